from types import SimpleNamespace

import numpy as np
import pytest

from conftest import random_transitions
from emvc.problem import Problem
from emvc.prox import NuclearNorm, Simplex
from emvc.solvers import ADMM, _split, admm, run
from emvc.solvers._polish import polish


def almost_a_chain(rng, n=120, rank=6, noise=0.02):
    """Return factors of a matrix of low rank whose rows almost sum to one and that has small negative entries."""
    chain = np.kron(np.eye(rank), np.full((n // rank, n // rank), rank / n))
    left, values, right = np.linalg.svd(chain + noise * rng.standard_normal((n, n)) / n)
    return left[:, :rank], right[:rank].T * values[:rank]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_polished_rows_stay_in_their_space_and_are_almost_stochastic(rng, dtype):
    left, right = (factor.astype(dtype) for factor in almost_a_chain(rng))
    low_rank = left @ right.T
    polished = polish(low_rank, left, right)
    better = polished.matrix
    tolerance = 1e-10 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(better.sum(axis=1), 1.0, atol=tolerance)
    basis = np.linalg.qr(right.astype(float))[0]
    np.testing.assert_allclose(better @ basis @ basis.T, better, atol=tolerance)
    norm = NuclearNorm().value(better.astype(float))
    assert polished.nuclear_norm() == pytest.approx(norm, rel=1e-5)
    assert norm * (1 - 1e-6) <= polished.norm_bound() <= norm * (1 + 1e-3)
    assert -better.min() < -0.2 * low_rank.min()
    added = [Simplex().prox(matrix.astype(float), 1.0) - matrix for matrix in (low_rank, better)]
    before, after = map(NuclearNorm().value, added)
    assert after < 0.1 * before
    assert np.linalg.norm(better - low_rank) < 0.1 * np.linalg.norm(low_rank)


def test_rows_that_are_no_distributions_are_left_alone(rng):
    left, right = almost_a_chain(rng)
    left[3] = 0.0
    assert polish(left @ right.T, left, right) is None


def test_factors_of_length_zero_count_for_nothing(rng):
    left, right = almost_a_chain(rng)
    padded = [np.hstack([factor, np.zeros((len(factor), 1))]) for factor in (left, right)]
    plain, padded = polish(left @ right.T, left, right), polish(left @ right.T, *padded)
    np.testing.assert_allclose(padded.matrix, plain.matrix, atol=1e-12)
    assert padded.nuclear_norm() == pytest.approx(plain.nuclear_norm())


@pytest.mark.parametrize("seed", range(3))
def test_a_polished_candidate_ends_the_run_earlier_with_a_certificate_that_holds(seed, monkeypatch):
    monkeypatch.setattr(_split, "_EXACT_CHECK", 0)
    monkeypatch.setattr(_split, "_EXACT_FINISH", 0)
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((150, 2))
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    chains = np.stack([np.exp(-squares / scale) for scale in (0.3, 0.5)]) + 0.01 * random_transitions(rng, 2, 150)
    problem = Problem(chains / chains.sum(axis=2, keepdims=True), 0.2, 0.2)
    calls = []
    monkeypatch.setattr(admm, "polish", lambda *args, **options: calls.append(1) or polish(*args, **options))
    solution = run(ADMM(), problem)
    assert calls
    assert solution.gap <= 1e-3
    np.testing.assert_allclose(solution.consensus.sum(axis=1), 1.0, atol=1e-12)
    assert solution.consensus.min() >= 0.0
    assert problem.objective(solution.consensus) <= solution.objective * (1 + 1e-6)
    assert solution.bound <= run(ADMM(tol=1e-5), problem).objective
    monkeypatch.setattr(admm, "polish", lambda *_, **__: None)
    assert run(ADMM(), problem).n_iter > solution.n_iter


def test_a_second_step_is_taken_where_much_is_missing(monkeypatch):
    steps = []
    monkeypatch.setattr(admm, "polish", lambda *_, **options: steps.append(options["steps"]))
    solver = ADMM(tol=1e-3)
    state = SimpleNamespace(low_rank=None, svt=SimpleNamespace(factors=(None, None)))
    for distance in (0.05, 0.5):
        found = (SimpleNamespace(low_rank_distance=distance), 100.0, 2e-3)
        assert solver._polished(None, state, found) is found
    assert steps == [1, 2]


def test_the_first_factor_is_computed_if_it_is_not_given(rng):
    left, right = almost_a_chain(rng)
    low_rank = left @ right.T
    given, computed = polish(low_rank, left, right), polish(low_rank, None, right)
    np.testing.assert_allclose(given.matrix, computed.matrix, atol=1e-12)
    assert given.nuclear_norm() == pytest.approx(computed.nuclear_norm())
