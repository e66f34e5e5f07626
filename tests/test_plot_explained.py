"""Plots of explanations: what is drawn is what was found, and what cannot be drawn is refused in one line."""

import matplotlib
import numpy as np
import pytest

import emvc
from emvc import EMVC, plot

matplotlib.use("agg")


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    views = {name: rng.standard_normal((60, 12)) for name in ("left", "right")}
    for view in views.values():
        for c in range(3):
            view[labels == c, 3 * c : 3 * c + 3] += 3
    views["left"][5] = np.nan
    columns = {
        "type": np.array(["a", "b", "c"])[labels],
        "age": rng.normal(50, 9, 60),
        "os": (rng.exponential(1 + labels), rng.random(60) < 0.7),
    }
    model = EMVC(3, random_state=0).fit(views)
    return emvc.explain(model, views, columns)


@pytest.fixture
def ax():
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_markers_are_ranks_of_samples_in_order(found, ax):
    assert plot.markers(found, ax, n=2) is ax
    shown = ax.images[0].get_array()
    assert shown.shape == (6, 60)
    assert len(ax.get_yticklabels()) == 6
    order = np.argsort(found.labels, kind="stable")
    own = shown[:2, found.labels[order] == 0].mean()
    assert own > 0.7 > shown[:2, found.labels[order] != 0].mean()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "1", "2"]


def test_annotations_by_strength_and_one_by_one(found, ax):
    plot.annotations(found, ax)
    assert [text.get_text() for text in ax.get_yticklabels()][-1] == "type"
    widths = [bar.get_width() for bar in ax.patches]
    assert widths[-1] == max(widths)


def test_categories_are_shares_that_sum_to_one(found, ax):
    plot.annotations(found, ax, column="type")
    heights = np.array([bar.get_height() for bar in ax.patches]).reshape(3, 3)
    np.testing.assert_allclose(heights.sum(axis=0), 1)


def test_numbers_are_boxes(found, ax):
    plot.annotations(found, ax, column="age")
    assert len(ax.patches) == 3


def test_survival_has_a_curve_for_each_cluster(found, ax):
    plot.survival(found, ax)
    curves = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
    assert len(curves) == 3
    for line in curves:
        assert line.get_ydata()[0] == 1
        assert (np.diff(line.get_ydata()) <= 0).all()
    assert ax.get_title().startswith("log-rank p =")


def test_flow_has_a_band_for_each_pair_of_clusters(ax):
    plot.flow(["a", "a", "b", "b"], [0, 1, 1, 1], ax, names=("before", "after"))
    assert len(ax.collections) == 3
    assert [bar.get_height() for bar in ax.patches] == [0.5, 0.5, 0.25, 0.75]


def test_what_cannot_be_drawn_is_refused(found, ax):
    rng = np.random.default_rng(1)
    views = [rng.standard_normal((30, 3)) for _ in range(2)]
    empty = emvc.explain(EMVC(2, random_state=0).fit(views), views, split=True)
    with pytest.raises(ValueError, match="no feature sets a cluster apart"):
        plot.markers(empty, ax)
    with pytest.raises(ValueError, match="no annotations to draw"):
        plot.annotations(empty, ax)
    with pytest.raises(ValueError, match="no annotation 'os' to draw by cluster"):
        plot.annotations(found, ax, column="os")
    with pytest.raises(ValueError, match="no survival to draw called 'pfs'"):
        plot.survival(found, ax, column="pfs")
    with pytest.raises(ValueError, match="2 and 3 samples"):
        plot.flow([0, 1], [0, 1, 1], ax)
