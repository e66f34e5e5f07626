import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist

from emvc.graphs import clipped_scores
from emvc.method.isolation import APART, NEIGHBOR, Groups, Isolation


def blobs(seed=0, n_samples=200, n_features=20):
    rng = np.random.default_rng(seed)
    labels = np.arange(n_samples) % 4
    return 4.0 * rng.standard_normal((4, n_features))[labels] + rng.standard_normal((n_samples, n_features)), rng


def ruin(view, rng, number=8):
    """A copy with rows drawn uniformly from the ranges of the columns, and which these are."""
    rows = rng.choice(len(view), number, replace=False)
    damaged = view.copy()
    damaged[rows] = rng.uniform(view.min(axis=0), view.max(axis=0), (number, view.shape[1]))
    return damaged, np.isin(np.arange(len(view)), rows)


@pytest.mark.parametrize("seed", range(4))
def test_ruined_rows_are_found_and_no_others(seed):
    view, wrong = ruin(*blobs(seed))
    ruined = Isolation.fit(view)[1][0]
    assert ruined[wrong].min() > 0.95
    assert np.mean(ruined[~wrong] > 0.5) < 0.01


def test_new_samples_are_judged_like_those_of_the_fit():
    view, rng = blobs()
    model, _ = Isolation.fit(ruin(view, rng)[0])
    assert model.probabilities(rng.uniform(view.min(axis=0), view.max(axis=0), (50, 20)))[0].min() > 0.95
    assert model.probabilities(view + 0.1 * rng.standard_normal(view.shape))[0].max() < 0.05


def sparse_counts(rng, n_samples=400, n_features=300):
    """Rare words: few columns have a cell in more than a few rows."""
    return rng.poisson(rng.gamma(0.15, 0.3, size=n_features), size=(n_samples, n_features)).astype(float)


@pytest.mark.parametrize("number", [4, 8, 40])
def test_ruined_rows_are_told_although_they_lie_close_to_each_other(number):
    """In columns of rare words the cells of few ruined rows are cut off at the same bound: the rows become alike."""
    rng = np.random.default_rng(number)
    view, wrong = ruin(sparse_counts(rng), rng, number)
    ruined = Isolation.fit(view)[1][0]
    assert np.mean(ruined[wrong] > 0.95) > 0.9
    assert np.mean(ruined[~wrong] > 0.5) < 0.01


def test_what_lies_farther_from_its_neighbour_is_more_probably_wrong():
    rng = np.random.default_rng(0)
    view = rng.standard_normal((200, 20)) * np.where(rng.random(200) < 0.25, 3.0, 1.0)[:, None]
    probabilities = Isolation.fit(view)[1][1]
    scaled = clipped_scores(view).apply(view)
    order = np.argsort(np.sort(cdist(scaled, scaled), axis=1)[:, NEIGHBOR])
    assert np.diff(probabilities[order]).min() >= -1e-12
    assert np.ptp(probabilities) > 0.1


@pytest.mark.parametrize(("spread", "width"), [(1.0, 0.2), (0.2, 1.0), (0.5, 0.5)])
def test_neither_group_falls_towards_its_own_side(spread, width):
    """Of two normal densities the wider one wins far out on both sides; here it must not."""
    probabilities = Groups((0.0, spread), (3.0, width), 0.1).probability(np.linspace(-20.0, 20.0, 400))
    assert np.diff(probabilities).min() >= 0.0
    assert probabilities[0] < 0.5
    assert probabilities[-1] > 0.999


@pytest.mark.parametrize(
    ("distance", "share", "answer"), [(1.01 * APART, 0.3, True), (0.99 * APART, 0.3, False), (2 * APART, 0.51, False)]
)
def test_two_groups_are_apart_and_the_wrong_one_is_smaller(distance, share, answer):
    assert bool(Groups((0.0, 1.0), (distance, 1.0), share).are_two) is answer


def test_a_dispersed_second_group_is_suspicious():
    rng = np.random.default_rng(0)
    wide = rng.random(200) < 0.25
    view = rng.standard_normal((200, 20)) * np.where(wide, 3.0, 1.0)[:, None]
    suspicious = Isolation.fit(view)[1][1]
    assert np.mean(suspicious[wide] > 0.5) > 0.95
    assert suspicious[~wide].max() < 0.5


@pytest.mark.parametrize("n_features", [2, 4, 20])
def test_rows_that_look_like_any_others_are_not_ruined(n_features):
    """Columns are uniform themselves, so that ruined rows cannot be told."""
    rng = np.random.default_rng(0)
    for n_samples in (60, 100, 150, 200, 300, 500):
        assert Isolation.fit(rng.uniform(size=(n_samples, n_features)))[1][0].max() < 0.5


def test_a_wider_cluster_is_no_suspicion():
    """Its samples are farther from each other than others, but closer than rows of independent cells are."""
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 4
    spread = np.where(labels == 0, 1.0, 0.2)[:, None]
    view = 4.0 * rng.standard_normal((4, 20))[labels] + spread * rng.standard_normal((200, 20))
    assert Isolation.fit(view)[1].max() < 0.5


@pytest.mark.parametrize("seed", range(4))
def test_clean_blobs_raise_nothing(seed):
    assert Isolation.fit(blobs(seed)[0])[1].max() < 0.5


@pytest.mark.parametrize(
    "view",
    [
        np.random.default_rng(0).standard_normal((19, 3)),
        np.ones((50, 3)),
        np.zeros((2, 3)),
        np.repeat(np.eye(2), 30, axis=0),
    ],
    ids=["few", "constant", "two", "duplicates"],
)
def test_nothing_to_tell(view):
    model, probabilities = Isolation.fit(view)
    assert not probabilities.any()
    assert not model.probabilities(view[:5] + 7.0).any()


def test_a_sparse_view_is_judged_like_a_dense_one():
    rng = np.random.default_rng(0)
    view = np.maximum(blobs()[0] - 4.0, 0.0)
    view[:5] = rng.uniform(0.0, view.max(axis=0), (5, 20))
    dense, sparse = Isolation.fit(view), Isolation.fit(scipy.sparse.csr_matrix(view))
    np.testing.assert_allclose(sparse[1], dense[1], atol=1e-6)
    new = view[::-7]
    np.testing.assert_allclose(
        sparse[0].probabilities(scipy.sparse.csr_matrix(new)), dense[0].probabilities(new), atol=1e-6
    )
    assert np.ptp(dense[1]) > 0.05
