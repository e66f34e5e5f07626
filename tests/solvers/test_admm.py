import numpy as np
import pytest

import oracles
from conftest import random_transitions
from emvc.graphs import local_affinity, transition_matrix
from emvc.problem import Problem
from emvc.solvers import ADMM, ALM, Status, run
from emvc.solvers.certificate import candidate

WEIGHTS = [(0.0, 0.0), (0.0, 0.3), (0.3, 0.0), (0.05, 0.05), (0.2, 0.4), (0.5, 0.1), (1.0, 1.0), (10.0, 0.01)]


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize(("beta", "lam"), WEIGHTS)
def test_agrees_with_a_general_convex_solver(n_views, beta, lam):
    problem = Problem(random_transitions(np.random.default_rng(n_views), n_views, 8), beta, lam)
    optimum, _ = oracles.solve(problem)
    solution = run(ADMM(tol=1e-7), problem, max_iter=20_000)
    assert solution.status is Status.CONVERGED
    assert abs(solution.objective - optimum) <= 1e-5 * optimum
    assert solution.bound <= optimum * (1 + 1e-7)
    assert problem.objective(solution.consensus) == pytest.approx(solution.objective)


def test_rectangular_problem_agrees_too(rng):
    """Transitions to landmarks are N x m; the same solver serves them."""
    problem = Problem(random_transitions(rng, 2, 9, 5), 0.2, 0.2)
    optimum, _ = oracles.solve(problem)
    solution = run(ADMM(tol=1e-7), problem, max_iter=20_000)
    assert solution.objective == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize(("beta", "lam"), [(0.0, 0.3), (0.3, 0.0), (0.2, 0.4), (10.0, 0.01)])
def test_unobserved_samples_and_view_weights_agree_with_a_general_convex_solver(beta, lam, rng):
    observed = np.ones((3, 8))
    observed[0, [1, 2]] = observed[1, 5] = observed[2, 2] = 0.0
    problem = Problem(random_transitions(rng, 3, 8), beta, lam, np.array([0.5, 1.0, 2.0]), observed)
    optimum, _ = oracles.solve(problem)
    solution = run(ADMM(tol=1e-7), problem, max_iter=20_000)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(optimum, rel=1e-5)
    assert solution.bound <= optimum * (1 + 1e-7)
    assert problem.objective(solution.consensus) == pytest.approx(solution.objective)
    published = run(ALM(), Problem(problem.transitions, beta, lam, problem.view_weights))
    assert published.bound <= published.objective * (1 + 1e-9)


def test_values_of_unobserved_samples_do_not_matter(rng):
    observed = np.ones((2, 12))
    observed[0, :3] = 0.0
    transitions = random_transitions(rng, 2, 12)
    changed = transitions.copy()
    changed[0, :3], changed[0, :, :3] = 7.0, -7.0
    one, other = (
        run(ADMM(tol=1e-7), Problem(t, 0.3, 0.3, None, observed), max_iter=5000) for t in (transitions, changed)
    )
    assert one.objective == pytest.approx(other.objective, rel=1e-6)
    np.testing.assert_allclose(one.consensus, other.consensus, atol=1e-3)


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_gap_is_the_stopping_rule_and_holds(tol, rng):
    problem = Problem(random_transitions(rng, 2, 60), 0.3, 0.3)
    rough = run(ADMM(tol=tol), problem)
    exact = run(ADMM(tol=1e-9), problem, max_iter=5000)
    assert rough.status is Status.CONVERGED
    assert rough.gap <= tol
    assert rough.objective - exact.bound <= tol * rough.objective + 1e-9
    assert rough.bound <= exact.objective + 1e-9


def test_large_problem_without_svd_of_the_consensus(rng):
    """The objective along the run is an upper bound on that of a candidate."""
    labels = np.arange(340) % 4
    together = (labels[:, None] == labels) + 0.05
    noisy = together * rng.random((2, 340, 340))
    problem = Problem(noisy / noisy.sum(axis=2, keepdims=True), 0.2, 0.2)
    solution = run(ADMM(tol=1e-3), problem)
    assert solution.status is Status.CONVERGED
    objective = problem.objective(solution.consensus)
    assert objective == solution.objective
    assert all(upper >= solution.bound for upper in solution.history.objective)
    assert run(ADMM(tol=1e-6), problem, max_iter=3000).objective <= solution.objective


def test_consensus_is_row_stochastic(rng):
    solution = run(ADMM(), Problem(random_transitions(rng, 3, 30), 0.2, 0.1))
    assert solution.consensus.min() >= 0
    np.testing.assert_allclose(solution.consensus.sum(axis=1), 1.0)


def test_identical_views_with_large_weights_are_returned(rng):
    view = random_transitions(rng, 1, 20)[0]
    solution = run(ADMM(tol=1e-6), Problem(np.stack([view, view]), 50.0, 50.0), max_iter=2000)
    np.testing.assert_allclose(solution.consensus, view, atol=1e-6)


def test_penalty_freezes(rng):
    problem = Problem(random_transitions(rng, 2, 20), 0.2, 0.2)
    history = run(ADMM(tol=1e-15, penalty=1e-3, max_penalty_changes=3), problem, max_iter=300).history
    assert len(set(history.penalty)) == 4
    assert len(set(history.penalty[4:])) == 1


def test_running_out_of_iterations_is_a_status(rng):
    solution = run(ADMM(tol=1e-12), Problem(random_transitions(rng, 2, 20), 0.2, 0.2), max_iter=3)
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter == 3
    assert solution.history.iteration == [3]


def test_certified_solver_is_never_above_the_published_one(rng):
    problem = Problem(random_transitions(rng, 2, 25), 0.1, 0.1)
    certified = run(ADMM(tol=1e-6), problem, max_iter=2000)
    published = run(ALM(), problem)
    assert published.status is Status.CONVERGED
    assert certified.objective <= published.objective * (1 + 1e-6)
    assert published.gap < 1
    assert published.bound <= certified.objective * (1 + 1e-9)


@pytest.mark.parametrize("start", [1e-2, 1e2])
def test_multipliers_stay_feasible_and_the_same_at_a_penalty_change(start, rng):
    """A run may end just then."""
    problem, solver = Problem(random_transitions(rng, 2, 20), 0.2, 0.1), ADMM(tol=1e-9, penalty=start)
    state, changes = solver.init(problem, rng), 0
    for _ in range(30):
        state = solver.step(problem, state)
        before, penalty = multipliers(state), state.penalty
        solver.check(problem, state)
        changes += state.penalty != penalty
        for one, other in zip(before, multipliers(state), strict=True):
            np.testing.assert_allclose(other, one, atol=1e-12)
        assert np.linalg.norm(before[0], 2) <= 1 + 1e-6
        assert np.linalg.norm(before[1], axis=2).max() <= problem.beta * (1 + 1e-9)
        assert np.linalg.norm(before[2], axis=1).max() <= problem.lam * (1 + 1e-9)
    assert changes


def multipliers(state):
    """Z, A and B."""
    rows = state.penalty * (1 - state.row_scale[:, :, None]) * state.row_points
    columns = state.penalty * (1 - state.column_scale[:, None, :]) * state.column_points
    return state.low_rank_multiplier, rows, columns


@pytest.mark.parametrize("start", [1e-2, 1e2])
def test_a_bad_first_penalty_is_put_right(start, rng):
    problem = Problem(random_transitions(rng, 2, 40), 0.3, 0.3)
    assert run(ADMM(penalty=start), problem, max_iter=100).status is Status.CONVERGED
    assert run(ADMM(penalty=start, max_penalty_changes=0), problem, max_iter=100).status is Status.MAX_ITER


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("beta", "lam"), [(0.2, 0.1), (0.3, 0.0), (0.0, 0.3)])
def test_iterations_equal_those_with_proximal_operators(beta, lam, masked, rng):
    mask = (rng.random((2, 12)) < 0.8).astype(float) if masked else None
    problem, solver = Problem(random_transitions(rng, 2, 12), beta, lam, np.array([0.5, 1.5]), mask), ADMM()
    state = solver.init(problem, rng)
    literal = oracles.admm_start(problem, state.consensus)
    for _ in range(8):
        state = solver.step(problem, state)
        literal = oracles.admm_step(problem, literal, state.penalty, solver.relaxation)
        for one, other in zip((state.consensus, state.low_rank), literal[:2], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("weight", [1e-9, 1e3, 1e6, 1e9])
def test_extreme_weights_converge(weight, rng):
    problem = Problem(random_transitions(rng, 2, 60), weight, weight)
    assert run(ADMM(), problem, max_iter=200).status is Status.CONVERGED


def test_certified_gap_is_not_worse_than_the_running_one(rng):
    problem = Problem(random_transitions(rng, 2, 60), 0.3, 0.3)
    for max_iter in (5, 10, 20):
        solution = run(ADMM(tol=1e-9, penalty=0.1, check_every=1), problem, max_iter=max_iter)
        assert solution.gap <= 1.01 * solution.history.gap[-1]  # the norm of Z is proven only now


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        (ADMM, {"tol": -1}, "tol must be finite and at least 0"),
        (ADMM, {"penalty": 0}, "penalty must be finite and above 0"),
        (ADMM, {"relaxation": 3}, "relaxation must be at least 1 and below 2, got 3"),
        (ADMM, {"check_every": 0}, "check_every must be at least 1"),
        (ADMM, {"max_penalty_changes": -1}, "max_penalty_changes must be at least 0"),
        (ALM, {"stop": "never"}, "Unknown stop='never'; choose from 'residual', 'objective'"),
        (ALM, {"growth": 0.5}, "growth must be finite and above 1"),
        (ALM, {"floor": 0}, "floor must be finite and above 0"),
    ],
)
def test_bad_configurations(solver, options, message):
    with pytest.raises(ValueError, match=message):
        solver(**options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_objective_is_that_of_the_consensus_whatever_the_size(dtype, rng):
    chains = random_transitions(rng, 2, 60).astype(dtype)
    for problem in (Problem(chains, 0.3, 0.3), Problem(blocks(850, rng).astype(dtype), 0.1, 0.1)):
        solution = run(ADMM(tol=1e-2), problem)
        assert solution.status is Status.CONVERGED
        assert solution.objective == problem.objective(solution.consensus)
        assert solution.gap <= 1e-2


def blocks(n_samples, rng):
    """Chains of five clusters with noise, two views."""
    labels = np.arange(n_samples) % 5
    noisy = ((labels[:, None] == labels) + 0.05) * rng.random((2, n_samples, n_samples))
    return noisy / noisy.sum(axis=2, keepdims=True)


def test_running_objective_is_never_below_that_of_the_candidate(rng):
    problem, solver = Problem(random_transitions(rng, 2, 60), 0.3, 0.3), ADMM()
    state = solver.init(problem, rng)
    for _ in range(12):
        state = solver.step(problem, state)
        check = solver.check(problem, state)
        exact = problem.objective(candidate(state.low_rank, state.spectrum)[0])
        assert exact <= check.objective * (1 + 1e-12)
    assert check.objective <= 1.01 * exact


def test_claimed_gap_is_at_least_the_true_one(rng):
    problem = Problem(blocks(300, rng), 0.2, 0.2)
    optimum = run(ADMM(tol=1e-8), problem, max_iter=3000)
    for max_iter in (3, 10, 30):
        solution = run(ADMM(tol=1e-9), problem, max_iter=max_iter)
        assert solution.bound <= optimum.objective * (1 + 1e-12)
        assert solution.gap >= 1 - optimum.bound / solution.objective - 1e-8
        assert solution.gap >= 1 - optimum.objective / solution.objective


def test_wide_blocks_of_inexact_singular_vectors_do_no_harm(rng):
    """The spectrum is dense around the threshold: the hardest case for thresholding by a block."""
    centres, labels = rng.standard_normal((8, 20)), rng.integers(0, 8, 500)
    views = [centres[labels] + 0.5 * rng.standard_normal((500, 20)) for _ in range(2)]
    problem = Problem(np.stack([transition_matrix(local_affinity(view, n_neighbors=15)) for view in views]), 0.2, 0.2)
    solution, closer = run(ADMM(), problem), run(ADMM(tol=1e-5), problem)
    assert solution.status is closer.status is Status.CONVERGED
    assert solution.bound <= closer.objective
    assert solution.objective >= closer.bound


@pytest.mark.parametrize("tol", [1e-5, 1e-7])
def test_double_precision_takes_over_where_single_precision_gets_no_further(tol):
    transitions = random_transitions(np.random.default_rng(0), 2, 80).astype(np.float32)
    problem = Problem(transitions, 0.2, 0.2)
    solution = run(ADMM(tol=tol), problem)
    assert solution.status is Status.CONVERGED
    assert solution.gap <= tol
    assert problem.transitions is transitions
    assert solution.bound <= run(ADMM(tol=tol), Problem(transitions.astype(np.float64), 0.2, 0.2)).objective


def test_constant_and_equal_views_are_solved(rng):
    uniform = np.full((2, 30, 30), 1 / 30)
    assert run(ADMM(), Problem(uniform, 0.3, 0.3)).objective == pytest.approx(1.0, rel=1e-3)
    points = np.repeat(random_transitions(rng, 1, 6, 30)[0], 5, axis=0)  # equal samples
    solution = run(ADMM(tol=1e-5), Problem(np.stack([points, points]), 0.3, 0.3))
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.consensus, np.repeat(solution.consensus[::5], 5, axis=0), atol=1e-6)
