import math

import numpy as np
import pytest

from emvc.experiments.board import figures
from emvc.experiments.board.ranks import rank_methods
from emvc.experiments.board.scores import ScoreTable
from emvc.experiments.board.statistics import ALL_ERRORS, Comparison, Interval, Rung


def make_table(n_datasets=6, n_methods=4):
    values = np.random.default_rng(0).random((n_datasets, n_methods))
    kinds = tuple(("text", "omics")[i % 2] for i in range(n_datasets))
    datasets = tuple(f"set {i}" for i in range(n_datasets))
    return ScoreTable(datasets, tuple("abcd"[:n_methods]), values, kinds, ("choose",) * n_datasets)


def texts(figure):
    return [text.get_text() for ax in figure.axes for text in [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels()]]


def test_critical_difference_names_methods_from_best_to_worst():
    ranks = rank_methods(make_table())
    (ax,) = figures.critical_difference(ranks, reference="b").axes
    assert tuple(label.get_text() for label in ax.get_yticklabels()) == ranks.methods
    assert [label.get_text() for label in ax.get_yticklabels() if label.get_fontweight() == "bold"] == ["b"]
    assert f"critical difference {ranks.critical_difference:.2f}" in texts(ax.figure)


def test_bars_of_methods_that_do_not_differ_are_beside_the_ranks():
    ranks = rank_methods(make_table(2, 2))
    (ax,) = figures.critical_difference(ranks, reference="a").axes
    bars = [line for line in ax.lines if line.get_linewidth() == 3]
    assert len(bars) == len(ranks.cliques) == 1
    assert bars[0].get_xdata()[0] > max(*ranks.ranks, 1 + ranks.critical_difference)


def test_heat_map_sorts_by_kind_and_marks_failures():
    table = make_table(4, 2)
    table.values[1, 1] = np.nan
    failed = np.zeros((4, 2))
    failed[0, 0], failed[2, 0] = 1.0, 0.5
    (ax,) = figures.heat_map(table, failed, methods=["b", "a"], reference="a").axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["set 1", "set 3", "set 0", "set 2"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "a"]
    shown = {text.get_position(): text.get_text() for text in ax.texts}
    assert (0, 0) not in shown  # not tried
    assert shown[1, 2] == "–"
    assert shown[1, 3].endswith("*")
    assert shown[0, 1] == f"{table.values[3, 1]:.2f}"[1:]
    assert {"text", "omics"} <= set(shown.values())


def test_conditions_show_means_and_intervals():
    means = {("a", "clean"): Interval(0.5, 0.4, 0.6, 9), ("b", "clean"): Interval(0.3, 0.2, 0.35, 9)}
    means["a", "noise view"] = Interval(0.2, 0.1, 0.3, 9)
    figure = figures.conditions(means, methods=["a", "b"], errors=["clean", "noise view"], reference="a")
    (ax,) = figure.axes
    dots = {line.get_label(): list(line.get_xdata()) for line in ax.lines if line.get_label() in ("a", "b")}
    assert dots == {"a": [0.5, 0.2], "b": [0.3]}
    assert ax.collections[0].get_segments()[0][:, 0].tolist() == [0.4, 0.6]


@pytest.mark.parametrize("seed", range(3))
def test_names_of_methods_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    points = [figures.Pace(f"some method {i}", 10 ** rng.normal(0, 0.4), rng.normal(0.6, 0.05)) for i in range(16)]
    figure = figures.time_quality(points, reference="some method 3")
    names = [text for text in figure.axes[0].texts if text.get_text()]
    frame = figure.axes[0].get_window_extent()
    boxes = [text.get_window_extent() for text in names]
    assert len(names) == 16
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in boxes)
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_long_names_that_are_shortened_alike_are_all_shown():
    points = [
        figures.Pace("a very long name " * 3 + tail + " of a method", 1.0 + i, 0.5 + i) for i, tail in enumerate("xy")
    ]
    figure = figures.time_quality(points, reference="none of them")
    assert len([text for text in figure.axes[0].texts if text.get_text()]) == 2


@pytest.mark.parametrize("seconds", [0.004, 0.3, 70.0, 8000.0])
def test_the_axis_of_time_always_has_numbers(seconds):
    figure = figures.time_quality([figures.Pace("a", seconds, 0.5, stopped=True)], reference="a")
    figure.draw_without_rendering()
    (ax,) = figure.axes
    low, high = ax.get_xlim()
    assert any(low <= tick <= high for tick in ax.get_xticks())
    assert ax.lines[0].get_marker() == ">"


def test_ladder_has_both_halves_side_by_side():
    def rung(half, error, difference):
        interval = Interval(difference, difference - 0.1, difference + 0.1, 5)
        return Rung(half, error, Comparison("new", "old", 0.5, 0.4, interval, 3, 2, 0, 0.1))

    rungs = [rung("choose", "clean", 0.1), rung("choose", ALL_ERRORS, 0.2), rung("confirm", "clean", -0.1)]
    choose, confirm = figures.ladder([*rungs, rung("choose", "noise view", 0.9)]).axes
    assert (choose.get_title(), confirm.get_title()) == ("choose (5 sets)", "confirm (5 sets)")
    assert choose.get_xlim() == confirm.get_xlim()
    assert [label.get_text() for label in choose.get_yticklabels()] == ["new\nagainst old"]
    shown = [line.get_xdata()[0] for line in choose.lines if line.get_marker() != "None"]
    assert shown == [0.1, 0.2]


def test_pictures_are_the_same_every_time():
    def draw():
        figure = figures.critical_difference(rank_methods(make_table()), reference="a")
        return figures.render_svg(figure), figures.render_png(figure)

    assert draw() == draw()
    svg, png = draw()
    assert svg.startswith("<svg")
    assert "<dc:date>" not in svg
    assert png.startswith(b"\x89PNG")


def test_names_are_taken_as_they_are():
    table = make_table(2, 2)
    hostile = ScoreTable(("$a_{$ & <b>", "日本"), table.methods, table.values, table.kinds, table.halves)
    figure = figures.heat_map(hostile, np.zeros((2, 2)), methods=["a", "b"], reference="a")
    assert "$a_{$ & <b>" in texts(figure)
    assert "<b>" not in figures.render_svg(figure).replace("<!--", "")
    assert figures.render_png(figure)


def test_a_cell_that_failed_is_hatched():
    table = make_table(1, 1)
    (ax,) = figures.heat_map(table, np.ones((1, 1)), methods=["a"], reference="a").axes
    hatched = [artist for artist in ax.collections if artist.get_hatch()]
    assert len(hatched) == 1
    assert math.isnan(np.ma.filled(ax.images[0].get_array(), np.nan)[0, 0])
