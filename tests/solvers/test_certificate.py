import numpy as np
import pytest

from conftest import random_transitions
from emvc.problem import Problem
from emvc.prox import NuclearNorm, Simplex
from emvc.solvers import ADMM, run
from emvc.solvers.certificate import Certificate, candidate, norm_bound, polish
from emvc.solvers.svt import Thresholded


def almost_a_chain(rng, n=120, rank=6, noise=0.02, dtype=np.float64):
    """Return a matrix of low rank whose rows almost sum to one and that has small negative entries, and its factors."""
    chain = np.kron(np.eye(rank), np.full((n // rank, n // rank), rank / n))
    left, values, right = np.linalg.svd(chain + noise * rng.standard_normal((n, n)) / n)
    low_rank = left[:, :rank] * values[:rank] @ right[:rank]
    return low_rank.astype(dtype), Thresholded(values[:rank], right[:rank].T.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_polished_rows_are_almost_stochastic(rng, dtype):
    low_rank, spectrum = almost_a_chain(rng, dtype=dtype)
    better = polish(low_rank, spectrum.right) @ spectrum.right.T
    np.testing.assert_allclose(better.sum(axis=1), 1.0, atol=1e-10 if dtype is np.float64 else 1e-5)
    added = [NuclearNorm().value(Simplex().prox(x.astype(float)) - x) for x in (low_rank, better)]
    assert added[1] < 0.2 * added[0]
    assert np.linalg.norm(better - low_rank) < 0.1 * np.linalg.norm(low_rank)


def test_rows_that_are_no_distributions_are_left_alone(rng):
    low_rank, spectrum = almost_a_chain(rng)
    low_rank[3] = 0.0
    assert polish(low_rank, spectrum.right) is None
    matrix, _ = candidate(low_rank, spectrum)
    assert Simplex().value(matrix) == 0.0
    np.testing.assert_allclose(matrix[3], 1 / 120)


@pytest.mark.parametrize("rank", [0, 1, 5, 40])
def test_a_candidate_is_feasible_and_its_norm_is_bounded(rank, rng):
    left, values, right = np.linalg.svd(random_transitions(rng, 1, 40)[0])
    low_rank = left[:, :rank] * values[:rank] @ right[:rank]
    matrix, bound = candidate(low_rank, Thresholded(values[:rank], right[:rank].T))
    assert Simplex().value(matrix) == 0.0
    norm = NuclearNorm().value(matrix)
    assert norm <= bound * (1 + 1e-12)
    if rank in (0, 1, 40):
        assert bound == pytest.approx(norm)


@pytest.mark.parametrize("seed", range(3))
def test_polishing_ends_the_run_earlier(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((150, 2))
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    chains = np.stack([np.exp(-squares / scale) for scale in (0.3, 0.5)]) + 0.01 * random_transitions(rng, 2, 150)
    problem = Problem(chains / chains.sum(axis=2, keepdims=True), 0.2, 0.2)
    polished = run(ADMM(), problem)
    monkeypatch.setattr("emvc.solvers.certificate._POLISHING_STEPS", 0)
    assert run(ADMM(), problem).n_iter > polished.n_iter


@pytest.mark.parametrize("least", [0.0, 1e-8, 1e-4, 1e-2])
@pytest.mark.parametrize("excess", [-0.2, 0.0, 1e-6, 3e-3, 0.5])
def test_norm_bound_is_a_bound_and_tight(excess, least, rng):
    matrix = np.linalg.qr(rng.standard_normal((60, 60)))[0] * np.linspace(0.0, 1.0 + excess, 60)
    bound = norm_bound(matrix, least)
    assert bound >= 1.0 + max(0.0, excess)
    if excess < 0.1:
        assert bound <= 1.0 + max(least, 4.1 * excess) + 1e-12


def test_norm_bound_of_a_long_matrix_is_one(rng):
    matrix = 10 * rng.standard_normal((60, 40))
    assert np.linalg.norm(matrix, 2) <= norm_bound(matrix, 1e-3) < np.inf


def test_a_certificate_has_the_exact_objective(rng):
    problem, consensus = Problem(random_transitions(rng, 2, 30), 0.1, 0.2), random_transitions(rng, 1, 30)[0]
    found = Certificate.of(problem, consensus, 1.0, 30)
    assert found.objective == problem.objective(consensus)
    assert found.gap == 1.0 - 1.0 / found.objective
