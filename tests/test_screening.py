import itertools

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import roc_auc_score

from emvc.screening import (
    condemn_companions,
    contradiction,
    contrast,
    disagreement,
    find_mismatches,
    isolation_scores,
    screen,
    standardize,
)


def clusters(rng, n=150, n_features=(6, 8, 10), n_clusters=3):
    labels = rng.integers(0, n_clusters, n)
    views = [4 * rng.standard_normal((n_clusters, f))[labels] + rng.standard_normal((n, f)) for f in n_features]
    return views, labels


def nothing_missing(views):
    return np.zeros((views[0].shape[0], len(views)), dtype=bool)


def test_clean_samples_are_hardly_ever_condemned():
    shares = []
    for seed in range(10):
        views, _ = clusters(np.random.default_rng(seed))
        shares.append(screen(views, nothing_missing(views)).condemned.mean())
    assert np.mean(shares) <= 0.01


def test_destroyed_samples_are_condemned_in_their_view_alone(rng):
    views, _ = clusters(rng)
    views[1][:10] = 30 * rng.standard_normal((10, views[1].shape[1]))
    found = screen(views, nothing_missing(views))
    assert found.condemned[:10, 1].all()
    assert found.condemned[:, [0, 2]].mean() <= 0.02
    assert found.observed.sum() == found.condemned.size - found.condemned.sum()


def test_small_errors_in_all_views_add_up(rng):
    """In each view the damage is too small to be told from an unusual sample."""
    views, _ = clusters(rng, n=300, n_features=(12,) * 6)
    for view in views:
        view[:15] = 1.2 * view.std(axis=0) * rng.standard_normal((15, view.shape[1])) + view.mean(axis=0)
    found = screen(views, nothing_missing(views))
    alone = [roc_auc_score(np.arange(300) < 15, isolation_scores(view)) for view in views]
    assert roc_auc_score(np.arange(300) < 15, found.together) >= max(alone)


def test_sparse_and_dense_views_are_judged_alike(rng):
    dense = rng.random((120, 30)) * (rng.random((120, 30)) < 0.2)
    np.testing.assert_allclose(isolation_scores(scipy.sparse.csr_matrix(dense)), isolation_scores(dense), atol=0.5)


def test_too_many_are_not_exceptions(rng):
    view = rng.standard_normal((100, 4))
    view[:45] *= 1e3
    assert not screen([view], np.zeros((100, 1), dtype=bool)).condemned.any()


@pytest.mark.parametrize("view", [np.ones((50, 3)), np.zeros((50, 3)), np.eye(50)])
def test_degenerate_views_condemn_nobody(view):
    found = screen([view], np.zeros((50, 1), dtype=bool))
    assert np.isfinite(found.isolation).all()
    assert not found.condemned.any()


def test_missing_samples_are_neither_scored_nor_condemned(rng):
    views, _ = clusters(rng)
    missing = nothing_missing(views)
    missing[:20, 0] = True
    views[0][:20] = 0.0
    found = screen(views, missing)
    assert not found.isolation[:20, 0].any()
    assert not found.condemned[:20, 0].any()
    assert not found.observed[:20, 0].any()


def test_screening_can_be_switched_off(rng):
    views, _ = clusters(rng)
    views[0][0] = 1e6
    assert not screen(views, nothing_missing(views), enabled=False).condemned.any()


def test_standard_scores_survive_contamination(rng):
    values = rng.standard_normal(1000)
    values[:100] = 12.0
    scores = standardize(values, least_spread=0.05)
    assert 8 < scores[:100].mean() < 16
    assert abs(np.median(scores[100:])) < 0.2


def block_chain(labels, noise, rng):
    affinity = (labels[:, None] == labels) + noise * rng.random((len(labels), len(labels)))
    return affinity / affinity.sum(axis=1, keepdims=True)


def test_disagreement_equals_literal_sums(rng):
    transitions = np.stack([block_chain(rng.integers(0, 2, 6), 0.5, rng) for _ in range(3)])
    observed = np.ones((6, 3), dtype=bool)
    observed[2, 1] = False
    got = disagreement(transitions, observed)
    for k in range(3):
        others = np.zeros((6, 6))
        for q in range(3):
            if q != k:
                others += transitions[q] * np.outer(observed[:, q], observed[:, q])
        others /= others.sum(axis=1, keepdims=True)
        for i in range(6):
            if not observed[i, k]:
                assert got[i, k] == 0.0
                continue
            own = transitions[k, i] * observed[:, k]
            own[i] = 0.0
            first = others[i].copy()
            first[i] = 0.0
            here, there = own / own.sum() @ others, first / first.sum() @ others
            assert got[i, k] == pytest.approx(1.0 - np.minimum(here, there).sum())


def test_a_mismatched_sample_disagrees_in_its_view(rng):
    labels = np.repeat(np.arange(3), 20)
    wrong = labels.copy()
    wrong[4] = 2
    transitions = np.stack([block_chain(labels, 0.2, rng), block_chain(labels, 0.2, rng), block_chain(wrong, 0.2, rng)])
    scores = disagreement(transitions, np.ones((60, 3), dtype=bool))
    assert np.unravel_index(scores.argmax(), scores.shape) == (4, 2)


@pytest.mark.parametrize("links", [1.0, 0.15])
def test_contrast_equals_literal_sums(links, rng):
    """In four views, one of which does not show two samples, and a sample that only two views show."""
    n = 40
    transitions = np.stack([block_chain(np.arange(n) % 3, 0.5, rng) * (rng.random((n, n)) < links) for _ in range(4)])
    transitions += 1e-3 * np.eye(n)
    transitions /= transitions.sum(axis=2, keepdims=True)
    observed = np.ones((n, 4), dtype=bool)
    observed[[2, 5], 1] = False
    observed[5, 0] = False
    got = contrast(transitions, observed)
    chains = []
    for k in range(4):
        chain = transitions[k] * np.outer(observed[:, k], observed[:, k])
        chains.append(chain / np.where(observed[:, k], chain.sum(axis=1), 1.0)[:, None])

    def overlap(i, k, j):
        walks = []
        for first in (chains[k][i].copy(), chains[j][i].copy()):
            first[i] = 0.0
            walks.append(first / (first.sum() or 1.0) @ chains[j])
        return np.minimum(*walks).sum()

    for i in range(n):
        shown = np.flatnonzero(observed[i])
        for k in range(4):
            if k not in shown or len(shown) < 3:
                assert np.isnan(got[i, k])
                continue
            pairs = {frozenset(pair): 0.0 for pair in itertools.combinations(map(int, shown), 2)}
            for pair in pairs:
                a, b = pair
                pairs[pair] = 0.5 * (overlap(i, a, b) + overlap(i, b, a))
            own = np.mean([value for pair, value in pairs.items() if k in pair])
            among = np.mean([value for pair, value in pairs.items() if k not in pair])
            assert got[i, k] == pytest.approx(np.log((among + 1e-3) / (own + 1e-3)), abs=1e-6)


def test_contrast_tells_a_mismatch_from_a_sample_that_is_hard_to_place(rng):
    """A sample that belongs to a cluster of its own in every view disagrees everywhere, but not with one view."""
    labels = np.repeat(np.arange(3), 20)
    chains = [block_chain(labels, 0.2, rng) for _ in range(3)]
    wrong = labels.copy()
    wrong[4] = 2
    chains[2] = block_chain(wrong, 0.2, rng)
    for chain in chains:
        chain[9] = rng.random(60) ** 8
        chain[9] /= chain[9].sum()
    everybody = np.ones((60, 3), dtype=bool)
    scores, doubts = contrast(np.stack(chains), everybody), disagreement(np.stack(chains), everybody)
    standard = np.column_stack([standardize(column, least_spread=0.05) for column in scores.T])
    assert np.argwhere(find_mismatches(standard)).tolist() == [[4, 2]]
    assert doubts[9].min() > np.quantile(doubts, 0.9)


def test_a_mismatch_is_condemned_in_the_view_that_stands_out():
    contrasts = np.zeros((10, 3))
    contrasts[7] = 5.5, 9.0, -3.0
    contrasts[8] = 4.5, np.nan, 0.0
    contrasts[9] = np.nan
    assert np.argwhere(find_mismatches(contrasts)).tolist() == [[7, 1]]


def test_one_view_has_nobody_to_disagree_with(rng):
    assert not disagreement(block_chain(np.arange(5), 1.0, rng)[None], np.ones((5, 1), dtype=bool)).any()


def test_companions_of_condemned_entries_are_condemned_where_they_are_unusual():
    condemned = np.array([[True, True, False], [True, False, False], [False, False, False], [True, False, False]])
    isolation = np.array([[7.0, 7.0, 1.2], [7.0, 1.2, 1.2], [1.2, 1.2, 1.2], [7.0, 1.2, 0.0]])
    missing = np.zeros((4, 3), dtype=bool)
    missing[3, 2] = True
    found = condemn_companions(condemned, isolation, missing)
    expected = [[True, True, True], [True, False, False], [False, False, False], [True, True, False]]
    np.testing.assert_array_equal(found, expected)


def test_contrast_adds_to_disagreement_and_a_condemned_sample_counts_in_full():
    doubts, contrasts = np.array([[2.0, 2.0], [1.0, 0.0]]), np.array([[4.0, -4.0], [0.0, 8.0]])
    mismatched = np.array([[False, False], [False, True]])
    np.testing.assert_allclose(contradiction(doubts, contrasts, mismatched), [[3.2, 1.6], [0.8, 8.0]])
    np.testing.assert_array_equal(contradiction(doubts, np.full((2, 2), np.nan), ~mismatched), doubts)
