import math

import numpy as np
import pytest
from scipy import stats

from emvc.experiments.board.ranks import complete_block, critical_difference, friedman_p, rank_methods
from emvc.experiments.board.scores import condition_order, score_table
from emvc.experiments.board.statistics import (
    ALL_ERRORS,
    bootstrap,
    compare,
    condition_means,
    ladder,
    outcomes,
    robustness,
    signed_rank_p,
)


def record(dataset, method, nmi, **fields):
    known = {
        "kind": "image",
        "half": "choose",
        "error": "clean",
        "oracle": 0,
        "seed": 0,
        "outcome": "done",
        "imputed": 0,
    }
    return {"dataset": dataset, "method": method, "nmi": nmi, "ari": nmi, "accuracy": nmi} | known | fields


def runs(method, values, **fields):
    """One record per value, on data sets a, b, c, ..."""
    return [record(chr(ord("a") + i), method, value, **fields) for i, value in enumerate(values) if value is not None]


def test_seeds_are_averaged_and_failures_count_as_zero():
    records = [
        record("a", "one", 0.6, seed=0),
        record("a", "one", None, seed=1, outcome="failed"),
        record("a", "two", 0.9, seed=0, outcome="out of time"),
        record("b", "two", math.nan),
    ]
    table = score_table(records)
    assert (table.datasets, table.methods) == (("a", "b"), ("one", "two"))
    assert table.values == pytest.approx(np.array([[0.3, 0.0], [np.nan, 0.0]]), nan_ok=True)


def test_tables_are_of_one_condition_and_can_be_restricted():
    records = [
        record("a", "one", 0.1, half="choose", kind="text"),
        record("b", "one", 0.2, half="confirm", kind="text"),
        record("c", "one", 0.3, half="confirm", kind="omics"),
        record("a", "one", 0.4, error="noise view"),
        record("a", "one", 0.5, error="noise view", oracle=1),
    ]
    assert score_table(records).restrict(half="confirm").column("one").tolist() == [0.2, 0.3]
    assert score_table(records).restrict(half="confirm", kind="text").datasets == ("b",)
    assert score_table(records).restrict(kind="graph").values.shape == (0, 1)
    assert np.isnan(score_table(records).column("none such")).all()
    assert score_table(records, error="noise view").values.tolist() == [[0.4]]
    assert score_table(records, error="noise view", oracle=1).values.tolist() == [[0.5]]
    assert score_table(records, error="missing 30 %").values.shape == (0, 0)


def test_conditions_have_the_order_of_the_board():
    names = ["zebra", "missing 50 %", "destroyed 10 %", "clean", "ape", "destroyed 10 %"]
    assert condition_order(names) == ["clean", "destroyed 10 %", "missing 50 %", "ape", "zebra"]


def test_bootstrap_has_the_spread_of_the_mean():
    values = np.random.default_rng(1).normal(0.5, 0.1, 400)
    interval = bootstrap(values)
    error = values.std() / np.sqrt(len(values))
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert interval.high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)
    assert bootstrap(values) == interval


def test_bootstrap_of_few_or_no_values():
    assert bootstrap(np.array([0.5, np.nan])) == bootstrap(np.array([0.5]))
    assert bootstrap(np.array([0.5])).low == bootstrap(np.array([0.5])).high == 0.5
    assert bootstrap(np.array([])).n_datasets == 0
    assert math.isnan(bootstrap(np.array([np.nan])).mean)


def test_bootstrap_resamples_data_sets_with_all_their_values():
    interval = bootstrap(np.array([3.0, 0.0]), np.array([3.0, 1.0]))  # three values of 1 and one of 0
    assert interval.mean == 0.75
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_signed_rank_test():
    differences = np.array([0.1, 0.2, -0.05, 0.3, 0.15, 0.25, 0.4])
    assert signed_rank_p(differences) == stats.wilcoxon(differences).pvalue
    # Ranks of the negative ones: 1. So W = 1, and two of 2^7 signs have W <= 1; two-sided 4 / 128.
    assert signed_rank_p(differences) == pytest.approx(4 / 128)
    assert signed_rank_p(np.append(differences, [0.0, 1e-15])) == signed_rank_p(differences)
    assert signed_rank_p(np.zeros(5)) == 1.0
    assert math.isnan(signed_rank_p(np.array([])))


def test_comparison_by_hand_on_the_sets_that_have_both():
    records = runs("ours", [0.5, 0.7, 0.9, 0.4, None]) + runs("theirs", [0.4, 0.7005, None, 0.6, 0.1])
    pair = compare(score_table(records), "ours", "theirs")
    assert (pair.n_datasets, pair.wins, pair.losses, pair.ties) == (3, 1, 1, 1)
    assert pair.difference.mean == pytest.approx((0.1 - 0.0005 - 0.2) / 3)
    assert pair.mean == pytest.approx((0.5 + 0.7 + 0.4) / 3)
    assert pair.mean_reference == pytest.approx((0.4 + 0.7005 + 0.6) / 3)
    assert pair.difference.low <= pair.difference.mean <= pair.difference.high
    assert pair.p == stats.wilcoxon([0.1, -0.0005, -0.2]).pvalue


def test_a_failure_loses_and_an_absent_run_does_not_count():
    records = runs("ours", [0.5]) + runs("theirs", [0.4, 0.1, 0.3])
    records.append(record("b", "ours", None, outcome="out of memory"))
    pair = compare(score_table(records), "ours", "theirs")
    assert (pair.n_datasets, pair.wins, pair.losses) == (2, 1, 1)


def test_comparison_without_common_sets():
    pair = compare(score_table(runs("ours", [0.5]) + runs("theirs", [None, 0.5])), "ours", "theirs")
    assert pair.n_datasets == 0
    assert math.isnan(pair.p)
    assert math.isnan(pair.mean)


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_has_the_published_quantiles(k, q):
    assert critical_difference(k, 14) == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 14)), abs=1e-3)


def test_nothing_to_compare_has_no_critical_difference():
    assert math.isnan(critical_difference(1, 10))
    assert math.isnan(critical_difference(3, 0))


def test_ranks_by_hand():
    records = runs("a", [0.9, 0.9, 0.5]) + runs("b", [0.8, 0.9, 0.4]) + runs("c", [0.1, 0.2, None])
    ranks = rank_methods(score_table(records))
    assert ranks.methods == ("a", "b", "c")
    assert ranks.ranks == ((1 + 1.5) / 2, (2 + 1.5) / 2, 3.0)
    assert ranks.n_datasets == 2
    pair = rank_methods(score_table(records), ["b", "a"])
    assert (pair.methods, pair.n_datasets) == (("a", "b"), 3)
    assert math.isnan(pair.p)


def test_friedman_test():
    values = np.random.default_rng(0).random((12, 4)) + np.array([0.5, 0.2, 0.0, 0.0])
    assert friedman_p(values) == pytest.approx(stats.friedmanchisquare(*values.T).pvalue)
    assert friedman_p(values) < 0.01
    assert friedman_p(np.ones((5, 3))) == 1.0
    assert math.isnan(friedman_p(values[:1]))


def test_cliques_are_the_largest_groups_that_do_not_differ():
    values = np.array([[0.9, 0.8, 0.7, 0.1]] * 11)
    records = [r for name, column in zip("wxyz", values.T, strict=True) for r in runs(name, column)]
    ranks = rank_methods(score_table(records))  # ranks 1 to 4, critical difference 1.414
    assert 1 < ranks.critical_difference < 2
    assert ranks.cliques == ((0, 1), (1, 2), (2, 3))
    assert rank_methods(score_table([*records[:4], *records[11:15]])).cliques == ()  # four sets tell two methods apart
    alike = [r for name in "xyz" for r in runs(name, [0.5, 0.5])]
    assert rank_methods(score_table(alike)).cliques == ((0, 2),)


def test_complete_block_leaves_out_what_was_tried_on_few_sets():
    many = [r for name in ("a", "b", "c") for r in runs(name, [0.5] * 10)]
    assert complete_block(score_table(many + runs("rare", [0.5, 0.5])), "a") == ["a", "b", "c"]
    assert set(complete_block(score_table(many + runs("most", [0.5] * 9)), "a")) == {"a", "b", "c", "most"}
    assert "rare" in complete_block(score_table(many + runs("rare", [0.5])), "rare")


def test_robustness_is_the_ratio_of_the_means_on_the_sets_that_have_both():
    records = runs("ours", [0.4, 0.2, 0.9], error="noise view") + runs("ours", [0.5, 0.3], error="noise view", oracle=1)
    records += runs("ours", [0.8, 0.8]) + runs("ours", [0.5], error="missing 30 %")
    (row,) = [row for row in robustness(records) if row.error == "noise view"]
    assert row.n_datasets == 2
    assert (row.mean, row.oracle) == pytest.approx((0.3, 0.4))
    assert row.share == pytest.approx(0.75)
    assert [row.error for row in robustness(records)] == ["noise view"]
    assert robustness(records, half="confirm") == []
    more = runs("ours", [0.6], error="gross cells 10 %") + runs("ours", [1.0], error="gross cells 10 %", oracle=1)
    together = [row for row in robustness(records + more) if row.error == ALL_ERRORS]
    assert together[0].share == pytest.approx((0.4 + 0.2 + 0.6) / (0.5 + 0.3 + 1.0))
    failed = runs("ours", [0.0], error="noise view") + runs("ours", [0.0], error="noise view", oracle=1)
    assert math.isnan(robustness(failed)[0].share)


def test_means_by_condition_and_over_all_errors():
    records = runs("ours", [0.9, 0.7]) + runs("ours", [0.4, 0.2], error="noise view")
    records += runs("ours", [0.6], error="missing 30 %") + runs("ours", [1.0], error="noise view", oracle=1)
    means = condition_means(records)
    assert means["ours", "clean"].mean == pytest.approx(0.8)
    assert means["ours", "noise view"].mean == pytest.approx(0.3)
    assert means["ours", ALL_ERRORS].mean == pytest.approx((0.4 + 0.2 + 0.6) / 3)
    assert means["ours", ALL_ERRORS].n_datasets == 2
    assert condition_means(records, half="confirm") == {}
    assert ("ours", ALL_ERRORS) not in condition_means(records[:4])


def test_ladder_has_a_row_for_each_half_stage_and_condition():
    records = []
    for error, gain in (("clean", 0.0), ("noise view", 0.1), ("missing 30 %", 0.2)):
        for half, name in (("choose", "a"), ("choose", "b"), ("confirm", "c")):
            records.append(record(name, "old", 0.5, error=error, half=half))
            records.append(record(name, "new", 0.5 + gain, error=error, half=half))
    rungs = ladder(records, [("new", "old"), ("newest", "new")])
    assert [(rung.half, rung.error) for rung in rungs] == [
        (half, error) for half in ("choose", "confirm") for error in ("clean", "noise view", "missing 30 %", ALL_ERRORS)
    ]
    together = rungs[3].comparison
    assert together.difference.mean == pytest.approx(0.15)
    assert (together.wins, together.losses, together.ties, together.n_datasets) == (4, 0, 0, 2)
    assert together.p == stats.wilcoxon([0.15, 0.15]).pvalue  # two data sets, not four pairs
    assert rungs[0].comparison.p == 1.0


def test_outcomes_are_counted_by_method():
    records = [
        record("a", "x", 0.5, imputed=1),
        record("b", "x", None, outcome="failed", imputed=None),
        record("c", "x", None, outcome="out of time"),
        record("d", "x", None, outcome="out of time"),
        record("a", "y", None, outcome="out of memory"),
    ]
    x, y = outcomes(records)
    assert (x.done, x.failed, x.out_of_time, x.out_of_memory, x.imputed) == (1, 1, 2, 0, 1)
    assert (y.method, y.done, y.out_of_memory) == ("y", 0, 1)
