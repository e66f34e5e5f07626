import numpy as np
import pytest

from emvc.problem import Problem
from emvc.prox import NuclearNorm
from emvc.solvers import ALM, _dense, alm, run
from emvc.solvers._svt import SingularValueThreshold

N = 420


@pytest.fixture
def chain(rng):
    """Nearly uniform: one singular value near one, the others from a hundredth down to nothing."""
    left, right = (np.linalg.qr(rng.standard_normal((N, N)))[0] for _ in range(2))
    return np.full((N, N), 1.0 / N) + (left * np.geomspace(1e-2, 1e-9, N)) @ right


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(60, 60), (90, 40)])
def test_all_vectors_and_some_of_them(shape, dtype, rng):
    matrix = rng.standard_normal(shape).astype(dtype)
    squares, vectors = _dense.decompose(matrix)
    exact = np.linalg.svdvals(matrix)[::-1]
    np.testing.assert_allclose(np.sqrt(squares), exact, rtol=1e-3)
    some, their = _dense.decompose(matrix, above=squares[30] - 1e-3)
    np.testing.assert_allclose(some, squares[30:], rtol=1e-4)
    np.testing.assert_allclose(np.abs(np.sum(their * vectors[:, 30:], axis=0)), 1.0, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_combine_is_a_product_with_shares_of_projections(dtype, rng):
    matrix, vectors = rng.standard_normal((50, 30)).astype(dtype), rng.standard_normal((30, 20)).astype(dtype)
    shares, out = rng.random(20), np.full((50, 30), np.nan, dtype=dtype)
    expected = matrix @ (vectors * shares) @ vectors.T
    np.testing.assert_allclose(_dense.combine(matrix, vectors, shares), expected, rtol=2e-3, atol=1e-3)
    assert _dense.combine(matrix, vectors, shares, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=2e-3, atol=1e-3)


def test_the_leading_vector_is_found_if_it_stands_alone(chain):
    vector = _dense.leading_vector(chain)
    exact = np.linalg.svd(chain)[2][0]
    assert abs(vector @ exact) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(_dense.leading_vector(chain, vector), vector, atol=1e-11)
    two_parts = np.kron(np.eye(2), np.full((N // 2, N // 2), 2.0 / N))
    two_parts[0, -1] = 0.1  # the ones vector is no longer a singular vector
    assert _dense.leading_vector(two_parts) is None
    assert _dense.leading_vector(np.zeros((N, N))) is not None  # any vector will do


@pytest.mark.parametrize("threshold", [2.0, 1e-1, 1e-3, 1e-5, 1e-7, 1e-9])
def test_single_precision_keeps_its_accuracy(threshold, chain):
    out = np.empty_like(chain)
    values, rank = _dense.threshold_in_single(chain, threshold, _dense.leading_vector(chain), out)
    exact = NuclearNorm().prox(chain, threshold)
    assert np.linalg.norm(out - exact, 2) <= _dense.ACCURACY
    assert np.abs(out - exact).max() <= 0.2 * _dense.ACCURACY
    assert np.linalg.norm(chain - out, 2) <= 2.0 * threshold + 1e-12  # the error falls with the threshold
    assert values.sum() == pytest.approx(NuclearNorm().value(exact), abs=N * _dense.ACCURACY)
    if threshold >= 1e-5:
        assert rank == np.count_nonzero(np.linalg.svdvals(chain) > threshold)


def test_single_precision_is_taken_where_it_is_good_enough(chain, monkeypatch):
    def thresholded(matrix, accuracy):
        calls = []
        original = _dense.threshold_in_single
        monkeypatch.setattr(_dense, "threshold_in_single", lambda *a: calls.append(1) or original(*a))
        operator, out = SingularValueThreshold(accuracy=accuracy), np.empty_like(matrix)
        for threshold in (1e-4, 1e-5):
            operator(matrix, threshold, out)
            assert np.linalg.norm(out - NuclearNorm().prox(matrix, threshold), 2) <= max(accuracy, 1e-8)
        monkeypatch.setattr(_dense, "threshold_in_single", original)
        return len(calls)

    assert thresholded(chain, 3e-6) == 2
    assert thresholded(chain, 1e-9) == 0
    assert thresholded(chain + np.kron(np.eye(2), np.full((N // 2, N // 2), 2.0 / N)), 3e-6) == 0


def test_the_published_algorithm_ends_at_the_same_point_in_single_precision(rng, monkeypatch):
    transitions = 1.0 + 0.3 * rng.random((2, N, N))
    transitions /= transitions.sum(axis=2, keepdims=True)
    problem = Problem(transitions, 1e-3, 1e-2)
    single = run(ALM(), problem)
    monkeypatch.setattr(alm, "_SVT_ACCURACY", 1e-10)
    double = run(ALM(), problem)
    assert single.status == double.status
    assert abs(single.n_iter - double.n_iter) <= 1
    np.testing.assert_allclose(single.consensus, double.consensus, atol=1e-3 / N)
    assert single.objective == pytest.approx(double.objective, rel=1e-4)
    assert single.gap == pytest.approx(double.gap, abs=1e-4)
