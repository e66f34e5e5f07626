import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import random_transitions
from emvc.problem import RowProblem


def random_problem(seed, n_states=5):
    """Six rows of three views with limits below and above their errors; two rows are masked."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 1.0, (3, 6))
    weights[0, 1] = weights[2, 4] = 0.0
    return RowProblem(random_transitions(rng, 3, 6, n_states), beta=rng.uniform(0.05, 0.6, (3, 6)), weights=weights)


def best_by_cvxpy(problem):
    """The problem as it is written, with its errors as variables: the optimum and its consensus."""
    consensus = cp.Variable(problem.transitions.shape[1:], nonneg=True)
    cost = 0.0
    for chain, limits, weights in zip(problem.transitions, problem.beta, problem.weights, strict=True):
        errors = cp.Variable(chain.shape)
        for i, (limit, weight) in enumerate(zip(limits, weights, strict=True)):
            noise = chain[i] - consensus[i] - errors[i]
            cost += weight * (0.5 * cp.sum_squares(noise) + limit * cp.norm(errors[i]))
    task = cp.Problem(cp.Minimize(cost), [cp.sum(consensus, axis=1) == 1])
    optimum = task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return optimum, consensus.value


@pytest.mark.parametrize("seed", range(4))
def test_solution_is_that_of_cvxpy(seed):
    problem = random_problem(seed)
    optimum, consensus = best_by_cvxpy(problem)
    solution = problem.solve()
    np.testing.assert_allclose(solution.consensus, consensus, atol=1e-5)
    assert solution.objective == pytest.approx(optimum, abs=1e-5)
    assert problem.objective(consensus) == pytest.approx(optimum, abs=1e-5)


def test_solution_tells_the_truth_about_itself():
    problem = random_problem(0)
    solution = problem.solve()
    errors = problem.transitions - solution.consensus
    shown = problem.weights > 0
    np.testing.assert_allclose(np.einsum("ki,kij->ij", solution.shares, problem.transitions), solution.consensus)
    np.testing.assert_allclose(solution.lengths[shown], np.linalg.norm(errors, axis=2)[shown], atol=1e-9)
    assert (solution.lengths > problem.beta)[shown].any()
    assert (solution.lengths < problem.beta)[shown].any()
    assert problem.objective(solution.consensus) == pytest.approx(solution.objective)
    assert problem.dual_bound(problem.multipliers(solution.consensus)) == pytest.approx(solution.bound, abs=1e-6)
    assert solution.n_iter > 1


@pytest.mark.parametrize("seed", range(4))
def test_multipliers_of_the_solution_prove_it(seed):
    problem = random_problem(seed)
    consensus = problem.solve().consensus
    bound = problem.dual_bound(problem.multipliers(consensus))
    assert 0.0 <= problem.objective(consensus) - bound + 1e-12 < 1e-6


@given(
    seed=st.integers(0, 10**6),
    factor=st.sampled_from([0.0, 0.5, 1.0, 3.0, 30.0]),
    noise=st.sampled_from([0.0, 1e-3, 0.1, 10.0]),
)
@settings(max_examples=300, deadline=None)
def test_no_multipliers_promise_more_than_the_optimum(seed, factor, noise):
    """Optimal multipliers, too long by a factor and perturbed: only what makes them feasible keeps the bound valid."""
    problem, rng = random_problem(seed), np.random.default_rng(seed)
    solution = problem.solve()
    given = factor * problem.multipliers(solution.consensus) + noise * rng.standard_normal(problem.transitions.shape)
    assert problem.dual_bound(given) <= solution.objective + 1e-10


def test_an_early_stop_is_certified_as_such():
    problem = random_problem(0)
    exact, early = problem.solve(), problem.solve(max_iter=2)
    assert early.n_iter == 2
    assert early.bound <= exact.objective < early.objective
    assert early.objective - early.bound > 1e-4


def test_consensus_is_row_stochastic():
    consensus = random_problem(0).solve().consensus
    assert consensus.min() >= 0.0
    np.testing.assert_allclose(consensus.sum(axis=1), 1.0)


def test_without_errors_the_solution_is_the_weighted_mean(rng):
    chains, weights = random_transitions(rng, 3, 6, 5), rng.uniform(0.2, 1.0, (3, 6))
    mean = np.einsum("ki,kij->ij", weights / weights.sum(axis=0), chains)
    for limit in (2.0, np.inf):
        solution = RowProblem(chains, np.full((3, 6), limit), weights).solve()
        np.testing.assert_allclose(solution.consensus, mean, atol=1e-12)
        assert solution.objective - solution.bound < 1e-12


def test_a_gross_row_with_a_small_limit_pulls_no_further_than_its_limit():
    chains = np.array([[[0.9, 0.1, 0.0]], [[0.8, 0.2, 0.0]], [[0.0, 0.0, 1.0]]])
    limits = np.array([[9.0], [9.0], [0.01]])
    consensus = RowProblem(chains, limits, np.ones((3, 1))).solve().consensus
    np.testing.assert_allclose(consensus, chains[:2].mean(axis=0), atol=0.01)
    assert np.abs(chains.mean(axis=0) - consensus).max() > 0.3


def test_masked_rows_have_no_influence(rng):
    problem = random_problem(0)
    changed = problem.transitions.copy()
    changed[problem.weights == 0] = random_transitions(rng, 1, 2, 5)[0]
    one = problem.solve()
    other = RowProblem(changed, problem.beta, problem.weights)
    np.testing.assert_array_equal(other.solve().consensus, one.consensus)
    assert other.objective(one.consensus) == problem.objective(one.consensus)
    multipliers = problem.multipliers(one.consensus)
    assert not multipliers[problem.weights == 0].any()
    multipliers[problem.weights == 0] = 1.0
    assert problem.dual_bound(multipliers) == pytest.approx(one.bound, abs=1e-6)
    np.testing.assert_array_equal(problem.observed, problem.weights > 0)


def test_known_inner_products_change_nothing():
    problem = random_problem(0)
    again = RowProblem(problem.transitions, problem.beta, problem.weights, problem.inner_products())
    np.testing.assert_array_equal(again.solve().consensus, problem.solve().consensus)
    known = np.einsum("kij,lij->ikl", *2 * [problem.transitions * (problem.weights > 0)[..., None]])
    np.testing.assert_allclose(problem.inner_products(), known)


def test_single_precision_is_accurate():
    problem = random_problem(0)
    single = RowProblem(problem.transitions.astype(np.float32), problem.beta, problem.weights).solve()
    np.testing.assert_allclose(single.consensus, problem.solve().consensus, atol=1e-5)


def test_rows_without_limits_may_be_met_exactly():
    """A view alone, or views that agree: the errors are zero, the limits infinite, and the objective is zero."""
    chains = np.full((1, 2, 2), 0.5)
    problem = RowProblem(chains, np.full((1, 2), np.inf), np.ones((1, 2)))
    assert problem.objective(problem.solve().consensus) == 0.0


def test_equal_rows_that_are_given_no_room_are_their_own_mean(rng):
    """Errors of views that agree are rounding, and the limits, which are measured on them, are zero."""
    chains = np.tile(random_transitions(rng, 1, 50, 5), (3, 1, 1))
    solution = RowProblem(chains, np.zeros((3, 50)), np.ones((3, 50))).solve()
    np.testing.assert_allclose(solution.consensus, chains[0], atol=1e-12)
