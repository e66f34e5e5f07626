import numpy as np
import pytest
import scipy.linalg

from emvc.prox import NuclearNorm
from emvc.solvers.svt import SingularValueThreshold


def low_rank_plus_noise(rng, n, m, rank, noise=0.01):
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m)) / np.sqrt(n) + noise * rng.standard_normal(
        (n, m)
    )


def with_values(rng, values):
    left, right = (np.linalg.qr(rng.standard_normal((len(values), len(values))))[0] for _ in range(2))
    return left * values @ right.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(80, 80), (120, 60)])
@pytest.mark.parametrize("threshold", [0.05, 1.0, 4.0])
def test_equals_the_exact_operator_along_a_slowly_changing_sequence(shape, threshold, dtype, rng):
    operator, out = SingularValueThreshold(), np.empty(shape, dtype=dtype)
    matrix, drift = low_rank_plus_noise(rng, *shape, rank=5), rng.standard_normal(shape)
    for _ in range(12):
        matrix = matrix + 1e-5 * drift
        result = operator(matrix.astype(dtype), threshold, out)
    np.testing.assert_allclose(out, NuclearNorm().prox(matrix, threshold), atol=1e-4)
    assert result.nuclear_norm == pytest.approx(NuclearNorm().value(out), abs=1e-3)
    assert result.rank == np.sum(scipy.linalg.svdvals(matrix) > threshold)
    np.testing.assert_allclose(out @ result.right @ result.right.T, out, atol=1e-4)


@pytest.mark.parametrize("rank", [20, 70])
def test_rank_growth_is_followed(rank, rng):
    operator, out = SingularValueThreshold(), np.empty((100, 100))
    matrix = low_rank_plus_noise(rng, 100, 100, rank=3)
    for _ in range(2):
        operator(matrix, 0.5, out)
    richer = matrix + low_rank_plus_noise(rng, 100, 100, rank=rank)
    assert operator(richer, 0.5, out).rank >= min(rank, 40)
    np.testing.assert_allclose(out, NuclearNorm().prox(richer, 0.5), atol=1e-6)


def test_a_rank_that_grows_slowly_is_followed_within_the_guard(rng):
    """Values rise through the threshold one after the other; the block of the last call has their directions."""
    left, right = (np.linalg.qr(rng.standard_normal((120, 120)))[0] for _ in range(2))
    operator, out = SingularValueThreshold(), np.empty((120, 120))
    for step in range(10):
        values = np.r_[np.full(5, 3.0), np.linspace(0.95, 0.5, 12) + 0.05 * step, np.full(103, 0.05)]
        matrix = left * values @ right.T
        operator(matrix, 1.0, out)
        np.testing.assert_allclose(out, NuclearNorm().prox(matrix, 1.0), atol=1e-8)


def test_a_block_is_accurate_where_the_spectrum_is_dense_around_the_threshold():
    excess = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        matrix = with_values(rng, np.r_[np.linspace(1.4, 0.8, 60), np.full(340, 0.3)])
        operator, out = SingularValueThreshold(), np.empty_like(matrix)
        for _ in range(6):
            operator(matrix, 1.0, out)
            last, matrix = matrix, matrix + 0.003 * rng.standard_normal(matrix.shape)
        excess.append(np.linalg.norm(last - out, 2) - 1.0)
    assert 0.0 < np.mean(excess) < 1.5e-3


@pytest.mark.parametrize("threshold", [1e-3, 1.0, 30.0])
def test_exact_means_exact(threshold, rng):
    operator, out = SingularValueThreshold(exact=True), np.empty((90, 90))
    for _ in range(4):
        matrix = with_values(rng, np.geomspace(10.0, 1e-4, 90))
        result = operator(matrix, threshold, out)
        np.testing.assert_allclose(out, NuclearNorm().prox(matrix, threshold), atol=1e-8)
        assert result.rank == np.sum(scipy.linalg.svdvals(matrix) > threshold)


def test_forgetting_finds_a_direction_that_the_block_does_not_have(rng):
    left, right = (np.linalg.qr(rng.standard_normal((200, 200)))[0] for _ in range(2))
    values = np.r_[np.full(10, 2.0), np.zeros(190)]
    operator, out = SingularValueThreshold(), np.empty((200, 200))
    operator(left * values @ right.T, 1.0, out)
    values[-1] = 1.5  # outside of the space that the block spans
    matrix = left * values @ right.T
    operator.forget()
    assert operator(matrix, 1.0, out).rank == 11
    np.testing.assert_allclose(out, NuclearNorm().prox(matrix, 1.0), atol=1e-8)


def test_nothing_is_left_below_the_threshold(rng):
    operator, out = SingularValueThreshold(), np.ones((30, 30))
    matrix = rng.standard_normal((30, 30))
    result = operator(matrix, np.linalg.norm(matrix), out)
    assert (result.rank, result.nuclear_norm, result.right.shape) == (0, 0.0, (30, 0))
    assert not out.any()
    assert operator(matrix, 0.5 * np.linalg.norm(matrix, 2), out).rank > 0
