"""Annotations: read by kind, tested by kind, and against values known from elsewhere."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from emvc.explanation.associations import compare_categories, compare_numbers
from emvc.explanation.columns import read_annotations
from emvc.explanation.profiles import find_traits, name_clusters
from emvc.explanation.survival import compare_survival, curve, hazard_ratios, read_events


def kinds(columns, n, **options):
    return {column.name: column.kind for column in read_annotations(columns, n, None, **options)[0]}


def test_kinds_are_recognised():
    columns = {
        "stage": [1, 2, 3, 1, 2, 3],
        "grade": ["low", "high", None, "low", "high", "low"],
        "age": [50.5, 61, np.nan, 44, 38, 70],
        "typed": ["1.5", "2.25", "NA", "3.5", "4", "5"],
        "smoker": [True, False, True, False, True, True],
        "born": np.array(["1950-01-02"] * 5 + ["1960-05-01"], dtype="datetime64[D]"),
    }
    assert kinds(columns, 6) == {
        "stage": "category", "grade": "category", "age": "number", "typed": "number", "smoker": "category",
        "born": "category",
    } | {"born": kinds({"born": columns["born"]}, 6)["born"]}  # fmt: skip
    assert kinds(columns, 6, kinds={"stage": "number"})["stage"] == "number"


def test_dates_are_days():
    dates = np.arange("2020-01-01", "2020-02-01", dtype="datetime64[D]")
    (found,), _ = read_annotations({"date": dates}, len(dates), None)
    assert found.kind == "number"
    assert np.diff(found.values).tolist() == [1.0] * 30


def test_levels_are_in_natural_order_and_gaps_have_none():
    (found,), _ = read_annotations({"t": ["T10", "T2", "", "T2", "T10", None]}, 6, None)
    assert found.levels == ("T2", "T10")
    assert found.values.tolist() == [1, 0, -1, 0, 1, -1]


def test_text_is_read_as_it_is_in_views():
    weight = [f"{60 + i},{i % 10}" for i in range(12)]
    dates = [f"{i:02d}.03.2024" for i in range(11, 23)]
    found, notes = read_annotations({"weight": weight, "admitted": dates, "name": list("abcdefghijkl")}, 12, None)
    assert [(column.name, column.kind) for column in found] == [("weight", "number"), ("admitted", "number")]
    assert found[0].values[:2].tolist() == [60.0, 61.1]
    assert np.diff(found[1].values).tolist() == [1.0] * 11
    assert notes[0] == "Annotation 'weight' is text and was read as numbers with a decimal comma."
    (kept,), _ = read_annotations({"weight": weight}, 12, None, kinds={"weight": "category"})
    assert len(kept.levels) == 12


def test_identifiers_and_constants_are_left_out_with_a_note():
    found, notes = read_annotations({"id": [f"p{i}" for i in range(9)], "site": ["x"] * 9}, 9, None)
    assert not found
    assert "'id' was left out: 9 different texts" in notes[0]
    assert "'site' was left out: it says the same" in notes[1]


@pytest.mark.parametrize(
    ("time", "event"),
    [("time", "event"), ("OS.time", "OS"), ("OS_time", "OS_event"), ("days_to_death", "death"), ("months", "status"),
     ("survival_time", "vital_status"), ("PFS time", "pfs status")],
)  # fmt: skip
def test_pairs_of_survival_are_found_by_name(time, event):
    found = kinds({event: [0, 1, 1, 0], "age": [1.5, 2, 3, 4], time: [1.0, 2, 3, 4]}, 4)
    assert found == {f"{time}, {event}": "survival", "age": "number"}


def test_a_pair_of_arrays_is_survival():
    (found,), _ = read_annotations({"os": ([1.0, 2, 3, np.nan], ["dead", "alive", None, "dead"])}, 4, None)
    assert found.kind == "survival"
    np.testing.assert_array_equal(found.values, [1, 2, np.nan, np.nan])
    assert found.event.tolist() == [True, False, False, True]


def test_events_in_the_usual_words():
    assert read_events([2, 1, 2.0], "s").tolist() == [True, False, True]
    assert read_events(["1:DECEASED", "0:LIVING"], "s").tolist() == [True, False]
    with pytest.raises(ValueError, match=r"column 's' should say whether an event was seen .* 'maybe'"):
        read_events(["maybe", "dead"], "s")


def test_rows_of_a_frame_are_found_by_name():
    frame = pd.DataFrame({"g": ["x", "y", "z"]}, index=["c", "a", "zz"])
    found, notes = read_annotations(frame, 3, ["a", "b", "c"])
    assert [found[0].levels[k] if k >= 0 else None for k in found[0].values] == ["y", None, "x"]
    assert notes == ["2 of 3 samples are annotated; 1 other rows were not used."]


@pytest.mark.parametrize(
    ("annotations", "names", "message"),
    [
        (pd.DataFrame({"g": [1, 2]}), None, "have 2 rows, the model 3 samples"),
        (pd.DataFrame({"g": [1]}, index=["q"]), ["a", "b", "c"], "no sample in common: the first are 'q' and 'a'"),
        (pd.DataFrame({"g": [1, 2]}, index=["a", "a"]), ["a", "b", "c"], "sample 'a' has two rows"),
        ({"g": [1, 2]}, None, r"column 'g' has the shape \(2,\), not \(3,\)"),
        ({"t": ([-1.0, 2, 3], [0, 1, 1])}, None, "a time of 't' is negative"),
    ],
)
def test_annotations_that_do_not_fit(annotations, names, message):
    with pytest.raises(ValueError, match=message):
        read_annotations(annotations, 3, names)


def test_columns_of_other_libraries_and_types():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"grade": ["low", "high", None, "low"], "age": [50.5, 60.0, None, 41.0]})
    assert kinds(frame, 4) == {"grade": "category", "age": "number"}
    frame = pd.DataFrame({"a": pd.array([1, None, 2, 1], dtype="Int64"), "b": pd.Categorical(["x", "y", None, "x"])})
    found, _ = read_annotations(frame, 4, None)
    assert [column.kind for column in found] == ["category", "category"]
    assert [column.values.tolist() for column in found] == [[0, -1, 1, 0], [0, 1, -1, 0]]


def test_wrong_container():
    with pytest.raises(TypeError, match="must be a DataFrame or a dict of columns, not list"):
        read_annotations([1, 2], 2, None)


def test_numbers_agree_with_scipy():
    rng = np.random.default_rng(0)
    values, labels = rng.integers(0, 6, 60).astype(float), rng.integers(-1, 3, 60)
    values[:4] = np.nan
    known = ~np.isnan(values)
    expected = stats.kruskal(*(values[known & (labels == c)] for c in range(3)))
    found = compare_numbers(values, labels)
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))


def test_categories_choose_the_test_that_holds():
    rng = np.random.default_rng(0)
    large = np.array([[30, 10], [12, 28]])
    assert compare_categories(large, rng).p_value == pytest.approx(stats.chi2_contingency(large, correction=False)[1])
    small = np.array([[3, 0], [1, 4]])
    assert compare_categories(small, rng).p_value == pytest.approx(stats.fisher_exact(small)[1])
    shuffled = compare_categories(np.array([[3, 0, 1], [1, 4, 0], [0, 1, 3]]), rng)
    exact = stats.fisher_exact(np.array([[3, 0, 1], [1, 4, 0], [0, 1, 3]]), method=None)[1]
    assert shuffled.test == "chi-square, shuffled"
    assert shuffled.p_value == pytest.approx(exact, abs=0.02)
    extreme = compare_categories(np.diag([2, 40, 40, 3]), rng)
    assert 0 < extreme.p_value < 1e-12
    assert extreme.effect == pytest.approx(1.0)
    assert np.isnan(compare_categories(np.array([[3, 4]]), rng).p_value)


def test_log_rank_of_two_groups_agrees_with_scipy():
    rng = np.random.default_rng(0)
    time, event, labels = rng.integers(1, 20, 50).astype(float), rng.random(50) < 0.6, np.arange(50) % 2
    sides = [stats.CensoredData.right_censored(time[labels == g], ~event[labels == g]) for g in (0, 1)]
    expected = stats.logrank(*sides)
    found = compare_survival(time, event, labels)
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic**2, expected.pvalue))


def test_log_rank_of_three_groups_has_the_size_that_it_claims():
    rng, below = np.random.default_rng(0), 0
    for _ in range(400):
        time, event = rng.exponential(1, 90), rng.random(90) < 0.7
        below += compare_survival(time, event, rng.integers(0, 3, 90)).p_value <= 0.05
    assert 8 <= below <= 33  # 20 expected, standard deviation 4.4


def test_curve_of_kaplan_and_meier():
    times, share = curve(np.array([6.0, 6, 6, 6, 7, 9, 10, 10]), np.array([1, 1, 1, 0, 1, 0, 1, 0], dtype=bool))
    np.testing.assert_allclose(share, [1, 5 / 8, 5 / 8 * 3 / 4, 5 / 8 * 3 / 4, 5 / 8 * 3 / 4 / 2])
    assert times.tolist() == [0, 6, 7, 9, 10]


def test_early_events_have_ratios_above_one():
    ratios = hazard_ratios(np.array([1.0, 2, 8, 9]), np.ones(4, dtype=bool), np.array([0, 0, 1, 1]), 3)
    assert ratios[0] > 1 > ratios[1]
    assert np.isnan(ratios[2])


def test_traits_and_names():
    labels = np.repeat([0, 1, 2], 20)
    columns, _ = read_annotations(
        {"type": np.array(["a", "a", "b"])[labels], "age": labels * 10.5 + np.arange(60)}, 60, None
    )
    traits = find_traits(columns, labels, 3)
    own = [trait for trait in traits if trait.cluster == 2]
    assert own[0].level == "b"
    assert (own[0].effect, own[0].inside, own[0].outside) == (1.0, 1.0, 0.0)
    assert name_clusters(traits, 3)[2] == "b"
    assert name_clusters([], 2) == ["0", "1"]
