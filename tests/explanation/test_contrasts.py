"""Every cluster against the rest: equal to scipy's tests one by one, dense or sparse, with gaps or without."""

import numpy as np
import pytest
import scipy.sparse
from scipy import stats

from emvc.explanation.contrasts import contrast, rank_rows


@pytest.fixture(scope="module", params=["whole", "gaps"])
def data(request):
    rng = np.random.default_rng(0)
    values = rng.integers(-1, 4, (80, 24)).astype(float)  # ties, zeros, negative values
    values[:, 8:16] = rng.standard_normal((80, 8))
    values[:, 16:] = rng.random((80, 8)) < [0.01, 0.02, 0.05, 0.1, 0.3, 0.5, 0.9, 0.99]
    labels = rng.integers(-1, 3, 80)
    values[labels == 1, 9] += 2
    if request.param == "gaps":
        values[rng.random(values.shape) < 0.05] = np.nan
    return values, labels


def one_by_one(values, labels):
    """Yield feature, cluster, and values inside and outside."""
    for j, column in enumerate(values.T):
        for c in range(3):
            known = ~np.isnan(column) & (labels >= 0)
            yield j, c, column[known & (labels == c)], column[known & (labels != c)]


def test_effects_and_p_values_are_those_of_mann_and_whitney(data):
    found = contrast(*data, 3)
    for j, c, inside, outside in one_by_one(*data):
        if len(np.unique(np.concatenate([inside, outside]))) < 2:
            assert found.p_value[j, c] == 1.0
            continue
        expected = stats.mannwhitneyu(inside, outside, method="asymptotic")
        assert found.effect[j, c] == pytest.approx(2 * expected.statistic / (len(inside) * len(outside)) - 1)
        if j < 16:
            assert found.p_value[j, c] == pytest.approx(expected.pvalue)


def test_rare_features_of_zeros_and_ones_get_exact_p_values(data):
    found, exact = contrast(*data, 3), 0
    for j, c, inside, outside in one_by_one(*data):
        ones, total = inside.sum() + outside.sum(), len(inside) + len(outside)
        if j >= 16 and min(len(inside), len(outside)) * min(ones, total - ones) / total < 5 and 0 < ones < total:
            table = [[inside.sum(), len(inside) - inside.sum()], [outside.sum(), len(outside) - outside.sum()]]
            tails = [stats.fisher_exact(table, side)[1] for side in ("less", "greater")]
            assert found.p_value[j, c] == pytest.approx(min(2 * min(tails), 1.0))
            exact += 1
    assert exact > 6


def test_sparse_views_give_the_same(data):
    values, labels = data
    dense, sparse = contrast(values, labels, 3), contrast(scipy.sparse.csr_matrix(values), labels, 3)
    for name in ("effect", "difference", "p_value"):
        np.testing.assert_allclose(getattr(sparse, name), getattr(dense, name), rtol=1e-8, atol=1e-12)


def test_difference_is_that_of_the_means_in_deviations_within_the_groups(data):
    found = contrast(*data, 3)
    for j, c, inside, outside in one_by_one(*data):
        if j < 16:
            spread = (len(inside) * inside.var() + len(outside) * outside.var()) / (len(inside) + len(outside) - 2)
            assert found.difference[j, c] == pytest.approx((inside.mean() - outside.mean()) / np.sqrt(spread))


def test_groups_without_spread_are_infinitely_far_apart():
    labels = np.array([0] * 7 + [1] * 4)
    rows = np.array([[1 / 3, 0.1 + 1e-6 * i] for i in range(11)])
    rows[labels == 1, 0] = 0.7
    assert contrast(rows, labels, 2).difference[0].tolist() == [-np.inf, np.inf]
    assert np.isfinite(contrast(rows, labels, 2).difference[1]).all()


def test_blocks_do_not_change_anything(data, monkeypatch):
    whole = contrast(*data, 3)
    monkeypatch.setattr("emvc.explanation.contrasts._BLOCK_CELLS", 300)
    np.testing.assert_allclose(contrast(*data, 3).p_value, whole.p_value)


def test_empty_clusters_and_constant_features_say_nothing():
    found = contrast(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]), np.array([0, 0, 2]), 3)
    assert found.effect[:, 1].tolist() == [0, 0]
    assert found.p_value[1].tolist() == [1, 1, 1]
    assert found.difference[1].tolist() == [0, 0, 0]


def test_ranks_are_those_of_scipy():
    rows = np.random.default_rng(0).integers(0, 5, (20, 30)).astype(float)
    ranks, ties = rank_rows(rows)
    np.testing.assert_allclose(ranks, stats.rankdata(rows, axis=1))
    for row, told in zip(rows, ties, strict=True):
        sizes = np.unique(row, return_counts=True)[1]
        assert told == np.sum(sizes**3 - sizes)
