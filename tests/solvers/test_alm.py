import numpy as np
import pytest

import oracles
from conftest import random_transitions
from emvc.problem import Problem
from emvc.prox import NuclearNorm, Simplex
from emvc.solvers import ALM, Status, run


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
    projected_mean = Simplex().prox(transitions.sum(axis=0) / 3)
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


def test_result_equals_that_with_whole_decompositions(rng):
    """Singular values come from a Gram matrix, over many orders of magnitude of the penalty."""
    problem, solver = Problem(1.0 + 0.3 * rng.random((2, 60, 60)), 1e-3, 1e-2), ALM()
    problem = Problem(problem.transitions / problem.transitions.sum(axis=2, keepdims=True), 1e-3, 1e-2)
    plain, fast = (solver.init(problem, np.random.default_rng(0)) for _ in range(2))
    for _ in range(45):
        step = 1.0 / plain.penalty
        plain = solver.step(problem, plain)
        plain.low_rank[...] = NuclearNorm().prox(plain.low_rank_point, step)
        fast = solver.step(problem, fast)
    np.testing.assert_allclose(fast.consensus, plain.consensus, atol=1e-5 / 60)
