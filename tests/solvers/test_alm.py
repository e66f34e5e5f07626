import numpy as np
import pytest

import oracles
from conftest import random_transitions
from emvc.kernels import reference
from emvc.problem import Problem
from emvc.solvers import ALM, Status, run
from emvc.solvers.alm import _separable_bound


def test_iterations_equal_literal_loops(rng):
    transitions = random_transitions(rng, 2, 5)
    problem, solver = Problem(transitions, 0.02, 0.05), ALM(penalty=0.5, growth=1.5)
    state = solver.init(problem, np.random.default_rng(7))
    literal = (np.zeros((5, 5)), np.zeros((5, 5)), np.zeros((5, 5)), state.errors.copy(), np.zeros((2, 5, 5)))
    mu = solver.penalty
    for _ in range(6):
        literal = oracles.alm_step(transitions, literal, problem.beta, problem.lam, mu)
        state = solver.step(problem, state)
        mu *= solver.growth
    got = (state.consensus, state.low_rank, state.low_rank_multiplier, state.errors, state.multipliers)
    for one, other in zip(got, literal, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_ends_at_a_feasible_point(rng):
    problem = Problem(random_transitions(rng, 3, 20), 0.05, 0.05)
    solver = ALM()
    state = solver.init(problem, rng)
    for _ in range(100):
        state = solver.step(problem, state)
        if solver.check(problem, state).done:
            break
    assert np.abs(state.consensus - state.low_rank).max() <= 1e-8
    assert np.abs(problem.errors(state.consensus) - state.errors).max() <= 1e-8


def test_low_rank_part_is_zero_until_the_penalty_has_grown(rng):
    history = run(ALM(), Problem(random_transitions(rng, 2, 20), 0.05, 0.05)).history
    assert history.rank[:15] == [0] * 15
    assert history.rank[-1] > 0


@pytest.mark.parametrize("weight", [1e-3, 1e3])
def test_authors_rule_stops_at_the_projected_mean_whatever_the_weights(weight, rng):
    transitions = random_transitions(rng, 2, 40)
    solution = run(ALM(stop="objective"), Problem(transitions, weight, weight))
    assert solution.status is Status.STALLED
    assert solution.rank == 0
    projected_mean = reference.project_simplex(transitions.sum(axis=0) / 3)
    np.testing.assert_allclose(solution.consensus, projected_mean, atol=1e-6)


def test_large_weights_do_not_trap_the_errors_at_zero(rng):
    solution = run(ALM(), Problem(random_transitions(rng, 2, 20), 1e3, 1e3), max_iter=200)
    assert solution.status is Status.CONVERGED


def test_objective_does_not_fall_in_every_iteration(rng):
    """The paper's convergence theorem says that it does."""
    solver, problem = ALM(), Problem(random_transitions(rng, 2, 20), 0.05, 0.05)
    state, values = solver.init(problem, rng), []
    for _ in range(40):
        state = solver.step(problem, state)
        values.append(problem.objective(state.consensus))
    assert np.max(np.diff(values)) > 1e-6


@pytest.mark.parametrize("observed", [False, True])
def test_the_bound_of_scaled_matrices_is_the_dual_bound(rng, observed):
    transitions = rng.dirichlet(np.ones(150), size=(2, 150))
    mask = rng.random((2, 150)) < 0.8 if observed else None
    problem = Problem(transitions, 0.3, 0.2, np.array([0.7, 1.3]), mask)
    matrices, low_rank = problem.observed_part(rng.standard_normal((2, 150, 150))), rng.standard_normal((150, 150))
    low_rank /= np.linalg.norm(low_rank, 2)
    rows = 0.3 * problem.weights[:, None] / np.linalg.norm(matrices, axis=2).clip(1e-9)
    columns = 0.2 * problem.weights[:, None] / np.linalg.norm(matrices, axis=1).clip(1e-9)
    expected = problem.dual_bound(low_rank, matrices * rows[:, :, None], matrices * columns[:, None, :])
    assert _separable_bound(problem, low_rank, matrices, rows, columns) == pytest.approx(expected, rel=1e-9)
