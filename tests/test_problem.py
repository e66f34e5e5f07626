import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from conftest import random_transitions
from emvc.problem import Problem, relative_gap


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
    size=st.sampled_from([0.1, 1.0, 10.0]),
)
@settings(max_examples=200, deadline=None)
def test_dual_bound_never_exceeds_the_optimum(seed, n_views, beta, lam, size):
    rng = np.random.default_rng(seed)
    problem = Problem(random_transitions(rng, n_views, 4), beta, lam)
    low_rank = size * rng.standard_normal((4, 4))
    rows, columns = size * rng.standard_normal((2, n_views, 4, 4))
    optimum, _ = oracles.solve(problem)
    assert problem.dual_bound(low_rank, rows, columns) <= optimum + 1e-7 * max(1.0, optimum)


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
