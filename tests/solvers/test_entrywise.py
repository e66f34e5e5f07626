import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from conftest import random_transitions
from emvc.graphs import compute_affinity, transition_matrix
from emvc.problem import EntrywiseProblem
from emvc.solvers import EntrywiseADMM, EntrywiseALM, Status, run


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("lam", [0.0, 0.01, 0.05, 0.2, 1.0, 10.0])
def test_agrees_with_a_general_convex_solver(n_views, lam):
    problem = EntrywiseProblem(random_transitions(np.random.default_rng(n_views), n_views, 8), lam)
    optimum = oracles.solve_entrywise(problem)
    solution = run(EntrywiseADMM(tol=1e-7), problem, max_iter=20_000)
    assert solution.status is Status.CONVERGED
    assert abs(solution.objective - optimum) <= 1e-5 * optimum
    assert solution.bound <= optimum * (1 + 1e-7)
    assert problem.objective(solution.consensus) == pytest.approx(solution.objective)


@given(seed=st.integers(0, 10**6), lam=st.sampled_from([0.0, 0.05, 0.5]), size=st.sampled_from([0.1, 1.0, 10.0]))
@settings(max_examples=30, deadline=None)
def test_dual_bound_never_exceeds_the_optimum(seed, lam, size):
    rng = np.random.default_rng(seed)
    problem = EntrywiseProblem(random_transitions(rng, 2, 4), lam)
    low_rank, multipliers = size * rng.standard_normal((4, 4)), size * rng.standard_normal((2, 4, 4))
    optimum = oracles.solve_entrywise(problem)
    assert problem.dual_bound(low_rank, multipliers) <= optimum + 1e-7 * max(1.0, optimum)


@pytest.mark.parametrize("start", [1e-2, 1e2])
def test_multipliers_stay_feasible_and_the_same_at_a_penalty_change(start, rng):
    problem, solver = EntrywiseProblem(random_transitions(rng, 2, 20), 0.1), EntrywiseADMM(tol=1e-9, penalty=start)
    state, changes = solver.init(problem, rng), 0
    for _ in range(30):
        state = solver.step(problem, state)
        before, penalty = multipliers(state), state.penalty
        solver.check(problem, state)
        changes += state.penalty != penalty
        for one, other in zip(before, multipliers(state), strict=True):
            np.testing.assert_allclose(other, one, atol=1e-12)
        assert np.abs(before[1]).max() <= problem.lam * (1 + 1e-9)
    assert changes


def multipliers(state):
    """Z, and those of the entries."""
    return state.low_rank_multiplier, state.penalty * np.clip(state.points, -state.step, state.step)


@pytest.mark.parametrize("lam", [1e-9, 1e6])
def test_extreme_weights_converge(lam, rng):
    assert run(EntrywiseADMM(), EntrywiseProblem(random_transitions(rng, 2, 40), lam), max_iter=200).gap <= 1e-3


def test_published_schedule_is_feasible_and_not_below_the_optimum(rng):
    problem = EntrywiseProblem(random_transitions(rng, 2, 25), 0.02)
    certified = run(EntrywiseADMM(tol=1e-6), problem, max_iter=3000)
    published = run(EntrywiseALM(), problem)
    assert published.status is Status.CONVERGED
    assert published.objective >= certified.bound
    assert published.bound <= certified.objective * (1 + 1e-9)
    np.testing.assert_allclose(published.consensus.sum(axis=1), 1.0)


def test_a_bound_that_is_sensitive_to_the_length_of_z_is_good_enough():
    """One view of clusters far apart: dividing Z by a little more than its length costs a multiple of that."""
    rng = np.random.default_rng(1)
    points = 4.0 * rng.standard_normal((3, 4)).repeat(20, axis=0) + 0.3 * rng.standard_normal((60, 4))
    chain = transition_matrix(compute_affinity(points, "rbf"))
    solution = run(EntrywiseADMM(), EntrywiseProblem(chain[None], 0.2), max_iter=600)
    assert solution.status is Status.CONVERGED
