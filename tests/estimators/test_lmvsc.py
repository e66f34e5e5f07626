"""LMVSC: mixtures of anchors against a general solver, and nothing that grows faster than the samples."""

import tracemalloc

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from emvc import LMVSC
from emvc.estimators import lmvsc


def minimum(x, anchors, alpha):
    """Minimise |x - A'z|^2 + alpha |z|^2 over the simplex by a general solver."""
    z = cp.Variable(len(anchors))
    cost = cp.sum_squares(x - anchors.T @ z) + alpha * cp.sum_squares(z)
    problem = cp.Problem(cp.Minimize(cost), [z >= 0, cp.sum(z) == 1])
    problem.solve()
    return z.value, problem.value


def solve(samples, anchors, alpha, tol=1e-3, max_iter=5000):
    gram = anchors @ anchors.T + alpha * np.eye(len(anchors))
    return lmvsc._solve(samples @ anchors.T, gram, np.sum(samples**2, axis=1), max_iter, tol)


@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_mixtures_are_the_minimisers(alpha, rng):
    samples, anchors = rng.standard_normal((6, 4)), rng.standard_normal((9, 4))
    mixtures, objective = solve(samples, anchors, alpha, tol=1e-7)
    expected = [minimum(x, anchors, alpha) for x in samples]
    np.testing.assert_allclose(mixtures, [z for z, _ in expected], atol=1e-4)
    assert objective[-1] == pytest.approx(sum(value for _, value in expected), rel=1e-6)


@pytest.mark.parametrize("tol", [0.1, 1e-3])
def test_tolerance_is_a_certificate(tol, rng):
    samples, anchors = rng.standard_normal((200, 5)), rng.standard_normal((20, 5))
    best = solve(samples, anchors, 0.05, tol=1e-6)[1][-1]
    _, objective = solve(samples, anchors, 0.05, tol=tol)
    assert objective[-1] - best <= tol * objective[-1]
    assert len(objective) > 2


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_objective_never_increases(alpha, rng):
    views = [rng.standard_normal((150, 5)), rng.standard_normal((150, 3))]
    model = LMVSC(3, alpha=alpha, scale=None, tol=1e-4, random_state=0).fit(views)
    assert model.n_iter_ == len(model.objective_) - 1 > 2
    assert np.all(np.diff(model.objective_) <= 0)
    for mixtures in model.mixtures_:
        assert mixtures.min() >= 0
        np.testing.assert_allclose(mixtures.sum(axis=1), 1.0)


def test_records_of_different_length_are_added_with_their_last_values():
    assert lmvsc._add([[5.0, 3.0], [4.0, 2.0, 1.0]]) == [9.0, 5.0, 4.0]


def test_embedding_has_the_left_singular_vectors(rng):
    mixtures = [rng.dirichlet(np.ones(4), 30) for _ in range(2)]
    joined = np.hstack([z / np.sqrt(z.sum(axis=0)) for z in mixtures]) / np.sqrt(2)
    left, values, _ = np.linalg.svd(joined)
    assert values[0] == pytest.approx(1.0)  # the mean of two doubly stochastic matrices
    found = lmvsc._singular_vectors(mixtures, 3)
    np.testing.assert_allclose(np.abs(found.T @ left[:, :3]), np.sqrt(30) * np.eye(3), atol=1e-9)


def test_blocks_shift_and_units_change_nothing(rng, monkeypatch):
    view = rng.standard_normal((90, 3))
    options = {"n_anchors": 8, "scale": None, "tol": 1e-7, "random_state": 0}
    expected = LMVSC(2, **options).fit(view).mixtures_[0]
    monkeypatch.setattr(lmvsc, "_BLOCK", 7)
    found = LMVSC(2, **options).fit(1e3 * view + 5e3).mixtures_[0]
    np.testing.assert_allclose(found, expected, atol=3e-3)


def test_sparse_views_are_not_centred_but_give_the_same(rng):
    view = np.abs(rng.standard_normal((80, 6))) + 3.0
    anchors = view[::16]
    dense, sparse = (lmvsc._mix(v, anchors, 0.5, 5000, 1e-7) for v in (view, scipy.sparse.csr_array(view)))
    np.testing.assert_allclose(sparse[0], dense[0], atol=1e-4)
    assert sparse[1][-1] == pytest.approx(dense[1][-1], rel=1e-6)


def test_nothing_grows_faster_than_the_samples():
    """Twice the samples, twice the memory; and the anchors do not become more."""
    rng = np.random.default_rng(0)

    def peak(n_samples):
        views = [rng.standard_normal((n_samples, 3)) for _ in range(2)]
        tracemalloc.start()
        model = LMVSC(3, n_anchors=20, tol=0.1, n_init=1, random_state=0).fit(views)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert [z.shape for z in model.mixtures_] == [(n_samples, 20)] * 2
        return most

    peak(1000)  # compiles
    small, large = peak(8000), peak(16000)
    assert large < 2.2 * small
    assert large < 8 * 16000**2 / 20
    assert LMVSC()._count_anchors(10**4, 5) == LMVSC()._count_anchors(10**8, 5) == 100


def test_number_of_anchors():
    assert LMVSC()._count_anchors(1000, 100) == 200
    assert LMVSC()._count_anchors(60, 3) == 30
    assert LMVSC()._count_anchors(10, 8) == 8
    with pytest.raises(ValueError, match="n_anchors must be at least 3, got 2"):
        LMVSC(n_anchors=2)._count_anchors(60, 3)
    with pytest.raises(ValueError, match="n_anchors=61 is larger than the number of samples, n_samples=60"):
        LMVSC(n_anchors=61)._count_anchors(60, 3)


def test_equal_samples_leave_no_gap(rng):
    """Fewer distinct samples than anchors."""
    labels = np.arange(60) % 3
    views = [rng.standard_normal((3, 4))[labels] for _ in range(2)]
    assert adjusted_rand_score(labels, LMVSC(3, random_state=0).fit_predict(views)) == 1.0


def test_running_out_of_steps_warns(blobs):
    with pytest.warns(ConvergenceWarning, match="LMVSC reached max_iter=2") as caught:
        LMVSC(3, alpha=1e-3, max_iter=2, tol=1e-9, random_state=0).fit(blobs[0])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must be finite and above 0"),
        ({"embedding": "weighted"}, "Unknown embedding='weighted'; choose from 'unit-rows', 'plain'"),
    ],
)
def test_bad_options(options, message, blobs):
    with pytest.raises(ValueError, match=message):
        LMVSC(3, **options).fit(blobs[0])
