import numpy as np
import pytest

from emvc.prox import NuclearNorm
from emvc.solvers._svt import (
    SingularValueThreshold,
    _filtered,
    _nearly_orthogonal,
    _orthonormalize,
    _ritz,
    _with_residuals,
    gram_norm_bound,
    spectral_norm_bound,
)


def low_rank_plus_noise(rng, n, m, rank, noise=0.01):
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m)) / np.sqrt(n) + noise * rng.standard_normal(
        (n, m)
    )


@pytest.mark.parametrize("shape", [(80, 80), (120, 60)])
@pytest.mark.parametrize("threshold", [0.05, 1.0, 4.0])
def test_equals_the_exact_operator_along_a_slowly_changing_sequence(shape, threshold, rng):
    operator, out = SingularValueThreshold(), np.empty(shape)
    matrix, drift = low_rank_plus_noise(rng, *shape, rank=5), rng.standard_normal(shape)
    for _ in range(12):
        matrix = matrix + 1e-5 * drift
        result = operator(matrix, threshold, out)
    exact = NuclearNorm().prox(matrix, threshold)
    np.testing.assert_allclose(out, exact, atol=1e-4)
    assert result.nuclear_norm == pytest.approx(NuclearNorm().value(out), abs=1e-8)
    assert result.rank == np.sum(np.linalg.svdvals(matrix) > threshold)


def test_rank_growth_is_followed(rng):
    operator, out = SingularValueThreshold(), np.empty((100, 100))
    matrix = low_rank_plus_noise(rng, 100, 100, rank=3)
    operator(matrix, 0.5, out)
    richer = matrix + low_rank_plus_noise(rng, 100, 100, rank=20)
    assert operator(richer, 0.5, out).rank >= 20
    np.testing.assert_allclose(out, NuclearNorm().prox(richer, 0.5), atol=1e-6)


def test_norm_bound_skips_the_decomposition(monkeypatch, rng):
    operator, out = SingularValueThreshold(), np.ones((30, 30))
    monkeypatch.setattr(operator, "_by_gram", lambda *_: pytest.fail("decomposed"))
    matrix = rng.standard_normal((30, 30))
    assert operator(matrix, np.linalg.norm(matrix), out).rank == 0
    assert not out.any()


@pytest.mark.parametrize("size", [40, 300, 600])
@pytest.mark.parametrize("excess", [0.0, 1e-6, 3e-3, 0.5])
def test_spectral_norm_bound_is_a_bound_and_tight(excess, size, rng):
    q, _ = np.linalg.qr(rng.standard_normal((size, size)))
    matrix = q * np.linspace(0.0, 1.0 + excess, size)
    bound = spectral_norm_bound(matrix)
    assert bound >= 1.0 + excess - 1e-12
    if excess < 0.1:
        assert bound <= (1.0 + 10 * excess) * (1 + 1e-8)


def test_the_first_candidate_that_bounds_the_norm_is_proven(rng):
    matrix = np.linalg.qr(rng.standard_normal((50, 50)))[0] * np.linspace(0.0, 1.002, 50)
    gram = matrix.T @ matrix
    assert gram_norm_bound(gram.copy(), (1.001, 1.003, 1.1)) == pytest.approx(1.003, rel=1e-9)
    assert gram_norm_bound(gram.copy(), (1.003,)) >= 1.003
    assert gram_norm_bound(gram.copy(), (1.0, 1.001)) is None


def test_forgetting_enlarges_the_block(rng):
    operator, out = SingularValueThreshold(), np.empty((100, 100))
    matrix = low_rank_plus_noise(rng, 100, 100, rank=3)
    operator(matrix, 0.5, out)
    before = operator._left.shape[1]
    operator.forget()
    operator(matrix, 0.5, out)
    assert operator._left.shape[1] > before


@pytest.mark.parametrize("factor", [1.0, 1.9])
def test_an_accuracy_is_kept_along_a_fast_changing_sequence(factor, rng):
    operator, out = SingularValueThreshold(accuracy=1e-9), np.empty((90, 90))
    left, _ = np.linalg.qr(rng.standard_normal((90, 90)))
    right, _ = np.linalg.qr(rng.standard_normal((90, 90)))
    threshold = 0.5
    for _ in range(8):
        matrix = (left * np.geomspace(3.0, 1e-4, 90)) @ right + 1e-3 * rng.standard_normal((90, 90))
        result = operator(matrix, threshold, out)
        exact = NuclearNorm().prox(matrix, threshold)
        assert np.linalg.norm(out - exact, 2) <= 2e-9
        assert result.rank == np.sum(np.linalg.svdvals(matrix) > threshold)
        threshold /= factor


def test_full_and_partial_decompositions_agree(rng):
    operator, out = SingularValueThreshold(accuracy=1e-9), np.empty((60, 60))
    matrix = rng.standard_normal((60, 60))
    ranks = [operator(matrix, threshold, out).rank for threshold in (1e-3, 1e-3, 8.0, 8.0, 1e3)]
    assert ranks == [np.sum(np.linalg.svdvals(matrix) > threshold) for threshold in (1e-3, 1e-3, 8.0, 8.0, 1e3)]
    assert not out.any()


def test_a_missed_direction_is_recovered(rng):
    n = 450
    left, _ = np.linalg.qr(rng.standard_normal((n, n)))
    right, _ = np.linalg.qr(rng.standard_normal((n, n)))
    values = np.r_[np.full(20, 2.0), np.full(n - 20, 0.1)]
    matrix = (left * values) @ right.T
    operator, out = SingularValueThreshold(), np.empty((n, n))
    operator(matrix, 1.0, out)
    operator._left = np.ascontiguousarray(left[:, :17])  # three directions are gone, and nothing is left to find them
    operator._factors = 0.5 * left[:, :17] * values[:17], right[:, :17]
    assert operator.recover(matrix) == pytest.approx(2.0, rel=1e-3)
    assert operator(matrix, 1.0, out).rank == 20
    np.testing.assert_allclose(out, NuclearNorm().prox(matrix, 1.0), atol=1e-3)


def test_nothing_is_recovered_from_an_exact_step(rng):
    operator, out = SingularValueThreshold(), np.empty((50, 50))
    matrix = rng.standard_normal((50, 50))
    operator(matrix, 1e-3, out)  # of full rank: no block is carried on
    assert operator.recover(matrix) == 0.0


@pytest.mark.parametrize("careful", [False, True])
def test_single_precision_inside_double(careful, rng):
    n = 420
    operator, out = SingularValueThreshold(single=True), np.empty((n, n))
    operator.careful = careful
    matrix = low_rank_plus_noise(rng, n, n, rank=30)
    for _ in range(4):
        result = operator(matrix, 1.0, out)
    exact = NuclearNorm().prox(matrix, 1.0)
    assert operator._left.dtype == np.float32
    assert result.rank == np.linalg.matrix_rank(exact)
    np.testing.assert_allclose(out, exact, atol=2e-5)


def test_a_block_is_found_for_an_accuracy_without_the_gram_matrix(rng, monkeypatch):
    n = 500
    operator, out = SingularValueThreshold(accuracy=1e-10), np.empty((n, n))
    monkeypatch.setattr(operator, "_by_gram", lambda *_: pytest.fail("decomposed the Gram matrix"))
    left, _ = np.linalg.qr(rng.standard_normal((n, n)))
    right, _ = np.linalg.qr(rng.standard_normal((n, n)))
    # A wide range of singular values: the squares of the smallest are lost in those of the largest.
    matrix = (left * np.r_[1.0, 0.5, 0.25, np.full(n - 3, 1e-4)]) @ right.T
    for threshold in (0.7, 0.3, 0.1):
        operator(matrix, threshold, out)
        np.testing.assert_allclose(out, NuclearNorm().prox(matrix, threshold), atol=1e-10)


def test_dependent_columns_get_a_basis():
    block = np.outer(np.arange(1.0, 31.0), [1.0, 1.0, 1.0]) + 1e-9 * np.eye(30, 3)
    basis = _orthonormalize(block)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
    assert _orthonormalize(np.full((4, 2), np.nan)) is None


def test_residuals_turn_the_vectors_where_a_power_step_hardly_does(rng):
    """Many singular values just below the threshold: the block alone converges slowly."""
    n, rank, threshold = 500, 20, 1.0
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    values = np.concatenate([np.linspace(1.5, 1.05, rank), np.linspace(0.98, 0.5, n - rank)])
    matrix = (left * values) @ right.T
    start = left[:, : rank + 10] + 0.1 / np.sqrt(n) * rng.standard_normal((n, rank + 10))
    exact = (left[:, :rank] * (values[:rank] - threshold)) @ right[:, :rank].T
    errors = []
    for careful in (False, True):
        operator, out = SingularValueThreshold(), np.empty((n, n))
        operator.careful, operator._left = careful, start.copy()
        operator(matrix, threshold, out)
        errors.append(np.linalg.norm(matrix - out, 2) - threshold)
        np.testing.assert_allclose(out, exact, atol=0.1)
    assert 0 <= errors[1] < 0.1 * errors[0]


def test_residuals_that_vanish_are_left_out(rng):
    left, right = (np.linalg.qr(rng.standard_normal((60, 5)))[0] for _ in range(2))
    matrix = (left * np.arange(5.0, 0.0, -1.0)) @ right.T
    values = np.arange(5.0, 0.0, -1.0)
    basis, images, rotation, found = _with_residuals(matrix, right, matrix @ right, values, 0.5, 1e-3)
    assert basis is right
    np.testing.assert_array_equal(found, values)
    np.testing.assert_array_equal(rotation, np.eye(5))
    assert _with_residuals(matrix, right, images, values, 10.0, 1e-3)[0] is right


@pytest.mark.parametrize("mixed", [0.05, 3.0])
def test_ritz_vectors_do_not_depend_on_whether_the_block_is_nearly_orthogonal(rng, mixed):
    matrix = rng.standard_normal((80, 60))
    block = np.linalg.qr(rng.standard_normal((60, 12)))[0] * rng.uniform(0.01, 1.0, 12)
    block = block @ (np.eye(12) + mixed * rng.standard_normal((12, 12)))
    assert (_nearly_orthogonal(block.T @ block) is not None) == (mixed < 1.0)
    basis, images, rotation, values = _ritz(matrix, block)
    np.testing.assert_allclose((basis @ rotation).T @ (basis @ rotation), np.eye(12), atol=1e-10)
    np.testing.assert_allclose(matrix @ basis, images, atol=1e-12)
    reference = np.linalg.svd(matrix @ np.linalg.qr(block)[0], compute_uv=False)
    np.testing.assert_allclose(values[::-1], reference, rtol=1e-10)
    assert _ritz(matrix, np.full((60, 2), np.nan)) is None


def dense_around(rng, n, threshold):
    """Return a matrix with singular values that fall evenly through the threshold, and those."""
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    values = threshold * np.linspace(1.25, 0.0, n) ** 2
    values[:3] = 10.0 * threshold
    return left * values @ right.T, values


def test_filter_finds_what_power_steps_do_not(rng):
    matrix, values = dense_around(rng, 500, 1.0)
    known = np.linalg.svd(matrix)[0][:, :80] + 0.01 * rng.standard_normal((500, 80))
    left = np.hstack([known, rng.standard_normal((500, 40))])  # twenty more are above the threshold
    block = matrix.T @ (left / np.linalg.norm(left, axis=0))
    above = int(np.sum(values > 1.0))
    assert above == 100
    errors = []
    for basis in (block, matrix.T @ (matrix @ block), _filtered(matrix, block, 1.0)):
        found = _ritz(matrix, basis)[3][::-1][:above]
        assert np.all(found <= values[:above] * (1 + 1e-9))
        errors.append(np.max(values[:above] - found))
    assert errors[2] < 0.2 * errors[1] < errors[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_thorough_step_leaves_little_above_the_threshold(dtype, rng):
    matrix, values = dense_around(rng, 500, 1.0)
    matrix = matrix.astype(dtype)
    operator, out = SingularValueThreshold(single=dtype is np.float32), np.empty_like(matrix)
    for _ in range(3):
        operator(matrix, 1.0, out)
    assert operator.is_wide(500)
    plain = np.linalg.norm(matrix - out, 2)
    operator.thorough = True
    result = operator(matrix, 1.0, out)
    assert np.linalg.norm(matrix - out, 2) - 1.0 < min(5e-3, 0.1 * (plain - 1.0))
    assert abs(result.rank - np.sum(values > 1.0)) <= 1
    np.testing.assert_allclose(out, NuclearNorm().prox(matrix, 1.0), atol=5e-3)


def test_no_block_is_tried_where_most_singular_values_are_above_the_threshold(rng, monkeypatch):
    matrix = np.linalg.qr(rng.standard_normal((450, 450)))[0] * np.linspace(0.8, 3.0, 450)
    operator, out = SingularValueThreshold(), np.empty_like(matrix)
    monkeypatch.setattr(operator, "_by_subspace", lambda *_, **__: None)
    monkeypatch.setattr("emvc.solvers._svt._unit_columns", lambda *_: pytest.fail("a block was started"))
    operator(matrix, 1.0, out)
    np.testing.assert_allclose(out, NuclearNorm().prox(matrix, 1.0), atol=1e-8)


@pytest.mark.parametrize(("least", "rank"), [(0.75, 300), (0.9, 400)])
def test_a_high_rank_has_one_factor_and_a_full_one_none(least, rank, rng):
    n = 500
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    values = np.append(np.linspace(3.0, 1.1, rank), np.linspace(least, 0.0, n - rank))
    matrix = left * values @ right.T
    operator, out = SingularValueThreshold(), np.empty_like(matrix)
    for _ in range(3):
        assert operator(matrix, 1.0, out).rank == rank
    assert operator.is_exact
    np.testing.assert_allclose(out, NuclearNorm().prox(matrix, 1.0), atol=1e-8)
    if rank > 0.7 * n:
        assert operator.factors is None
    else:
        missing, vectors = operator.factors
        assert missing is None
        np.testing.assert_allclose(out @ vectors @ vectors.T, out, atol=1e-8)
    assert operator.recover(matrix) == 0.0


@pytest.mark.parametrize(("rank", "larger"), [(150, True), (40, False)])
def test_a_rank_close_to_the_largest_block_gets_a_larger_one(rank, larger, rng):
    left, right = (np.linalg.qr(rng.standard_normal((500, 500)))[0] for _ in range(2))
    values = np.where(np.arange(500) < rank, 1.7, 0.3)
    svt, out = SingularValueThreshold(), np.empty((500, 500))
    found = svt(left * values @ right.T, 1.0, out)
    assert not svt.is_exact
    assert (found.rank > 125) == larger
    if larger:  # a quarter of the columns would have cut it off
        assert found.rank == rank
        np.testing.assert_allclose(out, 0.7 * left[:, :rank] @ right[:, :rank].T, atol=0.2)
