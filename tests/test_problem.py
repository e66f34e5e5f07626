import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from conftest import random_transitions
from emvc.problem import EntrywiseProblem, Problem, relative_gap
from emvc.solvers import ADMM


def test_objective_equals_literal_loops(rng):
    transitions = random_transitions(rng, 3, 6, 4)
    consensus = random_transitions(rng, 1, 6, 4)[0]
    expected = oracles.objective(consensus, transitions, 0.3, 0.7)
    assert Problem(transitions, 0.3, 0.7).objective(consensus) == pytest.approx(expected, rel=1e-7)


def test_objective_is_infinite_outside_the_simplex(rng):
    problem = Problem(random_transitions(rng, 2, 4), 0.1, 0.1)
    assert problem.objective(np.full((4, 4), 0.3)) == np.inf


@given(
    seed=st.integers(0, 10**6),
    n_views=st.integers(1, 2),
    beta=st.sampled_from([0.0, 0.1, 1.0]),
    lam=st.sampled_from([0.0, 0.2, 2.0]),
    factor=st.sampled_from([0.5, 1.0, 2.0, 10.0]),
    noise=st.sampled_from([0.0, 1e-3, 0.1, 10.0]),
)
@settings(max_examples=200, deadline=None)
def test_dual_bound_never_exceeds_the_optimum(seed, n_views, beta, lam, factor, noise):
    """Optimal multipliers, too long by a factor and perturbed: only scaling them back keeps the bound valid."""
    rng = np.random.default_rng(seed)
    problem = Problem(random_transitions(rng, n_views, 4), beta, lam)
    optimum, _ = oracles.solve(problem)
    optimal = optimal_multipliers(problem)
    if factor == 1.0 and noise == 0.0:
        assert problem.dual_bound(*optimal) == pytest.approx(optimum, rel=1e-3)
    perturbed = [factor * array + noise * rng.standard_normal(array.shape) for array in optimal]
    assert problem.dual_bound(*perturbed) <= optimum + 1e-7 * max(1.0, optimum)


def optimal_multipliers(problem):
    """Z, A and B of the certified solver near the optimum."""
    solver = ADMM()
    state = solver.init(problem, np.random.default_rng(0))
    for _ in range(300):
        state = solver.step(problem, state)
    zeros = np.zeros_like(problem.transitions)
    rows = state.penalty * (1 - state.row_scale[:, :, None]) * state.row_points if problem.beta else zeros
    columns = state.penalty * (1 - state.column_scale[:, None, :]) * state.column_points if problem.lam else zeros
    low_rank = state.penalty * state.low_rank_weight * (state.low_rank_point - state.low_rank)
    return low_rank, rows, columns


def test_dual_bound_is_tight_at_the_uniform_optimum():
    """Without weights the optimum is the uniform matrix, of nuclear norm one, and Z = 11'/N proves it."""
    n = 5
    problem = Problem(np.eye(n)[None], 0.0, 0.0)
    uniform = np.full((n, n), 1 / n)
    assert problem.objective(uniform) == pytest.approx(1.0)
    zeros = np.zeros((1, n, n))
    assert problem.dual_bound(uniform, zeros, zeros) == pytest.approx(1.0)


def test_array_api_backend_agrees(rng):
    transitions, consensus = random_transitions(rng, 2, 4), random_transitions(rng, 1, 4)[0]
    low_rank, rows = rng.standard_normal((4, 4)), rng.standard_normal((2, 4, 4))
    values = []
    for convert in (np.asarray, array_api_strict.asarray):
        problem = Problem(convert(transitions), 0.2, 0.4)
        bound = problem.dual_bound(convert(low_rank), convert(rows), convert(0.5 * rows))
        values.append((problem.objective(convert(consensus)), bound))
    np.testing.assert_allclose(values[0], values[1])


def test_relative_gap_is_not_negative():
    assert relative_gap(1.0, 1.0 + 1e-12) == 0.0
    assert relative_gap(2.0, 1.0) == 0.5


def test_trivial_bound_is_the_nuclear_norm_of_the_uniform_matrix(rng):
    problem = EntrywiseProblem(random_transitions(rng, 2, 9, 4), 0.1)
    uniform = np.full((9, 4), 0.25)
    assert problem.trivial_bound() == pytest.approx(np.linalg.norm(uniform, "nuc"))
    assert problem.trivial_bound() == pytest.approx(problem.dual_bound(np.full((9, 4), 1 / 6), np.zeros((2, 9, 4))))


def test_entries_without_a_weight_bound_nothing(rng):
    """Errors cost nothing: the optimum is that of the nuclear norm alone, and multipliers do not help."""
    problem = EntrywiseProblem(random_transitions(rng, 2, 6), 0.0)
    low_rank = np.full((6, 6), 1.0 / 6.0)
    bounds = [problem.dual_bound(low_rank, factor * rng.standard_normal((2, 6, 6))) for factor in (0.0, 5.0)]
    assert bounds[0] == pytest.approx(bounds[1])
    assert bounds[0] <= problem.objective(low_rank) + 1e-9
