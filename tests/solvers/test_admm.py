import math
from types import SimpleNamespace

import numpy as np
import pytest

import oracles
from conftest import random_transitions
from emvc.problem import Problem
from emvc.solvers import ADMM, ALM, Status, _split, admm, run

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
    """Above the size where checks are exact the cheap bounds must still be on the right side."""
    labels = np.arange(340) % 4
    together = (labels[:, None] == labels) + 0.05
    noisy = together * rng.random((2, 340, 340))
    problem = Problem(noisy / noisy.sum(axis=2, keepdims=True), 0.2, 0.2)
    solution = run(ADMM(tol=1e-3), problem)
    assert solution.status is Status.CONVERGED
    objective = problem.objective(solution.consensus)
    assert objective == pytest.approx(solution.objective, rel=1e-9)
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
def test_multipliers_stay_feasible_right_after_a_penalty_change(start, rng):
    """They belong to the penalty of the last step, not to the changed one; a run may end just then."""
    problem, solver = Problem(random_transitions(rng, 2, 20), 0.2, 0.1), ADMM(tol=1e-9, penalty=start)
    state, changed = solver.init(problem, rng), False
    for _ in range(30):
        state = solver.step(problem, state)
        solver.check(problem, state)
        changed |= state.ratio != 1.0
        rows = (1 - state.row_scale) * np.linalg.norm(state.row_points, axis=2)
        columns = (1 - state.column_scale) * np.linalg.norm(state.column_points, axis=1)
        assert state.multiplier_scale * rows.max() <= problem.beta * (1 + 1e-9)
        assert state.multiplier_scale * columns.max() <= problem.lam * (1 + 1e-9)
    assert changed


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


def test_checks_get_closer_near_the_tolerance(rng):
    solution = run(ADMM(tol=1e-4), Problem(random_transitions(rng, 2, 60), 0.3, 0.3))
    steps = np.diff([0, *solution.history.iteration])
    assert solution.status is Status.CONVERGED
    assert steps[0] == 5
    assert 2 <= steps[1] <= 5
    for gap, step in zip(solution.history.gap[1:-1], steps[2:], strict=True):
        assert 1 <= step <= min(5, int(gap / 1e-4) + 2)


def test_upper_bound_of_large_problems_is_one(rng, monkeypatch):
    problem = Problem(random_transitions(rng, 2, 60), 0.3, 0.3)
    monkeypatch.setattr(_split, "_EXACT_CHECK", 0)
    solver = ADMM()
    state = solver.init(problem, rng)
    for _ in range(12):
        state = solver.step(problem, state)
        check = solver.check(problem, state)
        exact = problem.objective(solver._candidate(state))
        assert exact <= check.objective * (1 + 1e-12)
    assert check.objective <= 1.01 * exact


def test_a_run_that_ends_without_a_proof_is_certified_all_the_same(rng, monkeypatch):
    monkeypatch.setattr(_split, "gram_norm_bound", lambda *_, **__: None)
    problem = Problem(random_transitions(rng, 2, 60), 0.3, 0.3)
    solution = run(ADMM(tol=1e-2), problem, max_iter=60)
    assert solution.status is Status.MAX_ITER
    assert solution.gap < 1e-3
    assert solution.bound <= run(ADMM(tol=1e-5), problem).objective


def waiting(wait, gap, *, wide=False, exact=False):
    return SimpleNamespace(wait=wait, gap=gap, wide=wide, exact=exact)


def test_next_check_is_where_the_gap_should_be_small_enough():
    solver = ADMM(tol=1e-3)
    state = waiting(5, 2.4e-2)
    assert solver._pause(state, 4e-3, 0.0) == 4  # six times smaller in five iterations: four times in 3.9
    assert solver._pause(state, 1.1e-3, 0.0) == 1
    assert solver._pause(state, 2.3e-2, 0.0) == 5
    assert solver._pause(waiting(2, 2e-3), 1.5e-3, 0.0) == 3
    assert solver._pause(waiting(2, 1e-3), 1.5e-3, 0.0) == 1  # it has grown


def test_second_check_comes_early_if_the_step_before_it_is_thorough():
    solver = ADMM(tol=1e-3)
    careful, thorough = (waiting(0, np.inf, wide=wide) for wide in (False, True))
    assert solver._pause(careful, 1.5e-3, 0.0) == 4  # three of which are careful
    assert solver._pause(careful, 1e-1, 0.0) == 4
    assert solver._pause(thorough, 8e-3, 2e-3) == 2
    assert solver._pause(thorough, 1e-2, 2e-3) == 3
    assert solver._pause(thorough, 8e-3, 4e-3) == 3
    assert solver._pause(thorough, 1e-1, 4e-3) == 4


def test_checks_are_frequent_where_steps_are_exact():
    solver = ADMM(tol=1e-3)
    assert solver._pause(waiting(0, np.inf, exact=True), 1e-1, 0.0) == 2
    assert solver._pause(waiting(2, 2.4e-2, exact=True), 2e-2, 0.0) == 2
    assert solver._pause(waiting(2, 2.4e-2, exact=True), 1.1e-3, 0.0) == 1


def test_penalty_is_reconsidered_as_rarely_as_before(rng):
    solution = run(ADMM(tol=1e-5, penalty=100.0), Problem(random_transitions(rng, 2, 60), 0.3, 0.3))
    changes = [
        i for i, change in zip(solution.history.iteration, np.diff(solution.history.penalty), strict=False) if change
    ]
    assert changes
    assert np.all(np.diff(changes) >= 5)


@pytest.mark.parametrize("seed", [0, 2])
def test_one_pass_measures_and_certifies_unless_the_multiplier_is_longer_than_presumed(seed, monkeypatch):
    problem = Problem(random_transitions(np.random.default_rng(seed), 2, 70), 0.25, 0.25)
    exact = run(ADMM(tol=1e-6), problem).objective
    norms, passes = [], []
    measure = ADMM._measure
    prove = ADMM._multiplier_norm
    monkeypatch.setattr(ADMM, "_measure", lambda *args: passes.append(args[2].multiplier_norm) or measure(*args))
    solution = run(ADMM(tol=1e-3), problem)
    assert solution.status is Status.CONVERGED
    assert passes[-1] > 1.0  # what the certificate was measured with
    assert len(passes) == len(solution.history.gap)

    def longer(self, problem, state, candidates):
        norms.append(candidates)
        return prove(self, problem, state, candidates[1:])

    passes.clear()
    monkeypatch.setattr(ADMM, "_multiplier_norm", longer)
    again = run(ADMM(tol=1e-3), problem)
    assert norms[-1][0] < norms[-1][1] == pytest.approx(passes[-1])
    for found in (solution, again):
        assert found.bound <= exact * (1 + 1e-9)
        assert found.objective >= exact * (1 - 1e-6)
        assert found.gap <= 1e-3


def test_a_near_miss_is_followed_by_a_check_that_presumes_nothing():
    solver = ADMM(tol=1e-3)
    spectrum = SimpleNamespace(nuclear_norm=5.0)
    state = SimpleNamespace(gap=np.inf, objective=50.0, price=0.0, spectrum=spectrum, presumptions=0)
    solver._presume(state)
    assert state.multiplier_norm == 1.0  # nothing is known yet
    state.gap = 5e-3
    solver._presume(state)
    assert 1.0 < state.multiplier_norm < 1.0 + 0.5e-3 * 50.0 / 5.0
    state.gap = 1.2e-3
    solver._presume(state)
    assert state.multiplier_norm == 1.0
    assert state.presumptions == 1
    state.gap = 5e-3
    for _ in range(3):
        solver._presume(state)
    assert state.multiplier_norm == 1.0  # it has been in vain too often


def test_the_first_look_is_quick_only_where_the_gap_is_far(rng, monkeypatch):
    problem = Problem(random_transitions(rng, 2, 40), 0.2, 0.2)
    steps = []
    evaluate = admm.kernels.fused.evaluate

    def counted(*arrays, **options):
        steps.append(options["steps"])
        return evaluate(*arrays, **options)

    monkeypatch.setattr(admm.kernels.fused, "evaluate", counted)
    solution = run(ADMM(tol=1e-5), problem)
    assert steps[0] == 0
    assert steps[1] > 0
    assert solution.history.iteration[:2] == [5, 9]
    steps.clear()
    solution = run(ADMM(tol=0.2), problem)  # a quick look does not decide: a better one follows
    assert steps[0] == 0
    assert steps[1] > 0
    assert solution.status is Status.CONVERGED
    assert solution.n_iter == ADMM().check_every


def test_double_precision_takes_over_where_single_precision_gets_no_further(monkeypatch):
    transitions = random_transitions(np.random.default_rng(0), 2, 80).astype(np.float32)
    problem = Problem(transitions, 0.2, 0.2)
    calls, original = [], admm._make_precise
    monkeypatch.setattr(admm, "_make_precise", lambda *args: calls.append(1) or original(*args))
    solution = run(ADMM(tol=1e-7), problem)
    assert solution.status.value == "converged"
    assert solution.gap <= 1e-7
    assert len(calls) == 1
    assert problem.transitions is transitions
    precise = Problem(transitions.astype(np.float64), 0.2, 0.2)
    assert precise.objective(solution.consensus) <= solution.objective * (1 + 1e-9)
    assert solution.bound <= run(ADMM(tol=1e-7), precise).objective
    assert len(calls) == 1
    monkeypatch.setattr(admm, "_STUCK", math.inf)
    monkeypatch.setattr(admm, "_UNPROVEN", math.inf)
    assert run(ADMM(tol=1e-7), problem, max_iter=100).status.value == "reached max_iter"
