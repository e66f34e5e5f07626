import array_api_strict
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import oracles
from conftest import random_transitions
from emvc._threads import use_threads
from emvc.kernels import fused, neighbors, reference, seeding
from emvc.kernels import rows as kernel_rows
from emvc.problem import Problem
from emvc.prox import ColumnGroups, NuclearNorm, RowGroups, project_simplex
from emvc.solvers import ADMM, run


def make_state(rng, n_views, n, m, n_rows, n_columns):
    return {
        "transitions": random_transitions(rng, n_views, n, m),
        "consensus": random_transitions(rng, 1, n, m)[0],
        "low_rank_point": rng.standard_normal((n, m)) / m,
        "low_rank": rng.standard_normal((n, m)) / m,
        "row_points": rng.standard_normal((n_rows, n, m)) / m,
        "row_scale": rng.random((n_rows, n)),
        "column_points": rng.standard_normal((n_columns, n, m)) / m,
        "column_scale": rng.random((n_columns, m)),
        "observed_rows": (rng.random((n_views, n)) < 0.8).astype(float),
        "observed_columns": (rng.random((n_views, m)) < 0.8).astype(float),
    }


def sweep_options(rng, n_views):
    options = {"relaxation": rng.uniform(1, 1.9), "low_rank_weight": rng.uniform(0.5, 4.0)}
    return options | {"row_steps": 0.1 * rng.random(n_views), "column_steps": 0.1 * rng.random(n_views)}


def evaluation_options(rng, n_views, n, m):
    options = {"row_limits": rng.random(n_views), "low_rank_weight": rng.uniform(0.5, 2.0), "norm": rng.uniform(1, 1.1)}
    return options | {"candidate": random_transitions(rng, 1, n, m)[0]}


def copied(state):
    return {name: array.copy() for name, array in state.items()}


cases = given(
    seed=st.integers(0, 10**6),
    n_views=st.integers(1, 3),
    n=st.integers(1, 70),
    m=st.integers(1, 20),
    groups=st.sampled_from([(True, True), (True, False), (False, True), (False, False)]),
)


@cases
@settings(max_examples=60, deadline=None)
def test_fused_sweep_equals_reference(seed, n_views, n, m, groups):
    rng = np.random.default_rng(seed)
    state = make_state(rng, n_views, n, m, *(n_views * group for group in groups))
    options, results = sweep_options(rng, n_views), []
    for kernel in (reference, fused):
        own, thresholds = copied(state), rng.standard_normal(n)
        change = kernel.sweep(**own, thresholds=thresholds, **options)
        results.append([*own.values(), thresholds, change])
    for expected, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@cases
@example(seed=2, n_views=2, n=3, m=2, groups=(True, False))
@settings(max_examples=60, deadline=None)
def test_fused_evaluation_equals_reference(seed, n_views, n, m, groups):
    rng = np.random.default_rng(seed)
    state = make_state(rng, n_views, n, m, *(n_views * group for group in groups))
    options = evaluation_options(rng, n_views, n, m)
    expected, got = (kernel.evaluate(**state, **options) for kernel in (reference, fused))
    for name, value in expected._asdict().items():
        # An iterate of the bound that meets a row of the data has a direction of rounding.
        tolerance = 1e-3 if name == "bound" else 1e-12
        np.testing.assert_allclose(getattr(got, name), value, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("masked", [False, True])
def test_bound_of_the_evaluation_is_the_dual_bound_of_its_multipliers(seed, masked):
    """Whatever the state, no row-stochastic matrix has a smaller objective."""
    rng = np.random.default_rng(seed)
    state, weights = make_state(rng, 2, 30, 30, 2, 2), rng.uniform(0.5, 2.0, 2)
    if not masked:
        state["observed_rows"][:] = state["observed_columns"][:] = 1.0
    seen = state["observed_rows"][:, :, None] * state["observed_columns"][:, None, :]
    problem = Problem(
        state["transitions"], 0.3, 0.4, weights, state["observed_rows"], observed_states=state["observed_columns"]
    )
    state["row_scale"] = RowGroups().factors(seen * state["row_points"], 0.3 * weights[:, None])
    state["column_scale"] = ColumnGroups().factors(seen * state["column_points"], 0.4 * weights[:, None])
    state["low_rank"] = NuclearNorm().prox(state["low_rank_point"], 1.0)
    options = {"candidate": random_transitions(rng, 1, 30)[0], "row_limits": 0.3 * weights, "low_rank_weight": 1.0}
    low_rank = state["low_rank_point"] - state["low_rank"]
    columns = seen * (1.0 - state["column_scale"][:, None, :]) * state["column_points"]
    given_rows = seen * (1.0 - state["row_scale"][:, :, None]) * state["row_points"]
    bounds = []
    for kernel in (reference, fused):
        rows = np.empty_like(seen)
        bounds.append(kernel.evaluate(**state, **options, multipliers=rows).bound)
        assert bounds[-1] == pytest.approx(problem.dual_bound(low_rank, rows, columns), rel=1e-12)
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)
    assert bounds[1] > problem.dual_bound(low_rank, given_rows, columns)  # fitted ones are better
    assert bounds[1] <= run(ADMM(tol=1e-3), problem).objective * (1 + 1e-9)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 50), scale=st.sampled_from([1e-3, 1.0, 1e3]))
@settings(max_examples=60, deadline=None)
def test_fused_projection_equals_reference_from_any_start(seed, n, scale):
    rng = np.random.default_rng(seed)
    x = scale * rng.standard_normal((5, n))
    start = scale * 3 * rng.standard_normal(5)
    expected_thresholds = np.empty(5)
    expected = project_simplex(x, expected_thresholds)
    np.testing.assert_allclose(fused.project_simplex(x, start), expected, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(start, expected_thresholds, rtol=1e-12, atol=1e-12 * scale)


def test_reference_follows_the_array_api(rng):
    state = make_state(rng, 2, 6, 5, 2, 2)

    def strict(arrays):
        return {
            name: array_api_strict.asarray(value, copy=True) if isinstance(value, np.ndarray) else value
            for name, value in arrays.items()
        }

    options = evaluation_options(rng, 2, 6, 5)
    expected, got = reference.evaluate(**state, **options), reference.evaluate(**strict(state), **strict(options))
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(np.asarray(other), one, rtol=1e-12)
    options = sweep_options(rng, 2) | {"thresholds": np.zeros(6)}
    other = strict(state)
    assert reference.sweep(**state, **options) == pytest.approx(reference.sweep(**other, **strict(options)), rel=1e-12)
    for name, value in state.items():
        np.testing.assert_allclose(np.asarray(other[name]), value, rtol=1e-12)


def test_sums_do_not_depend_on_threads(rng):
    state, options = make_state(rng, 2, 130, 90, 2, 2), sweep_options(rng, 2)
    results = []
    for threads in (1, 2, 4):
        with use_threads(threads):
            own = copied(state)
            results.append([fused.sweep(**own, thresholds=np.zeros(130), **options), *own.values()])
    for others in results[1:]:
        for one, other in zip(results[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


@given(
    seed=st.integers(0, 10**6),
    n_views=st.integers(1, 3),
    n=st.integers(1, 70),
    m=st.integers(1, 20),
    entrywise=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_fused_published_pass_equals_reference(seed, n_views, n, m, entrywise):
    rng = np.random.default_rng(seed)
    state = make_state(rng, n_views, n, m, 0, 0)
    arrays = {name: state[name] for name in ("transitions", "consensus", "low_rank_point", "low_rank")}
    arrays["points"] = rng.standard_normal((n_views, n, m)) / m
    weights = [np.zeros(s) if entrywise else rng.exponential(size=s) for s in ((n_views, n), (n_views, m)) * 2]
    options = {"soft": tuple(rng.random(2) / m) if entrywise else (0.0, 0.0), "ratio": rng.uniform(0.3, 1.0)}
    options |= {"new_row_weight": weights[2], "new_column_weight": weights[3]}
    results = []
    for kernel in (reference, fused):
        own, thresholds = copied(arrays), rng.standard_normal(n)
        outcome = kernel.alm_sweep(
            **own, row_weight=weights[0], column_weight=weights[1], thresholds=thresholds, **options
        )
        results.append([*own.values(), thresholds, *outcome])
    for expected, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@given(seed=st.integers(0, 10**6), n_views=st.integers(1, 3), n=st.integers(1, 70), m=st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_fused_entrywise_passes_equal_reference(seed, n_views, n, m):
    rng = np.random.default_rng(seed)
    state = make_state(rng, n_views, n, m, 0, 0)
    arrays = {name: state[name] for name in ("transitions", "consensus", "low_rank_point", "low_rank")}
    arrays["points"] = rng.standard_normal((n_views, n, m)) / m
    common = {"step": rng.random() / m, "low_rank_weight": rng.uniform(1, 4)}
    candidate, norm = random_transitions(rng, 1, n, m)[0], rng.uniform(1, 1.1)
    results = []
    for kernel in (reference, fused):
        own, thresholds = copied(arrays), rng.standard_normal(n)
        sums = kernel.entrywise_evaluate(**own, **common, candidate=candidate, norm=norm)
        change = kernel.entrywise_sweep(**own, thresholds=thresholds, **common, relaxation=1.6)
        results.append([*own.values(), thresholds, *sums, change])
    for expected, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@given(seed=st.integers(0, 10**6), n=st.integers(3, 150), whole=st.booleans())
@settings(max_examples=40, deadline=None)
def test_local_graph_equals_plain_version(seed, n, whole):
    """Integer coordinates give ties and duplicates."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (n, 2)) if whole else rng.standard_normal((n, 3))
    squares = ((points[:, None, :] - points) ** 2).sum(axis=2).astype(float)
    n_neighbors = int(rng.integers(1, n))
    expected = oracles.local_graph(squares, n_neighbors)
    np.testing.assert_allclose(kernel_rows.local_graph(squares, n_neighbors), expected, rtol=1e-12, atol=1e-14)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 90))
@settings(max_examples=40, deadline=None)
def test_selection_equals_sorting(seed, n):
    matrix = np.random.default_rng(seed).integers(0, 9, (n, n)).astype(float)
    assert_selects(matrix, 1 + seed % (n - 1))


@pytest.mark.parametrize("n", [577, 578, 900])
@pytest.mark.parametrize("kind", ["few values", "sorted", "equal", "small where the sample is taken"])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.3, 1.0])
def test_selection_from_a_sample_equals_sorting(kind, n, share):
    rng = np.random.default_rng(n)
    matrix = {
        "few values": rng.integers(0, 9, (n, n)).astype(float),
        "sorted": np.sort(rng.standard_normal((n, n)), axis=1),
        "equal": np.ones((n, n)),
        "small where the sample is taken": rng.random((n, n)) - (np.arange(n) % ((n - 1) // 24) < 2),
    }[kind]
    assert_selects(matrix, max(1, round(share * (n - 1))))


def assert_selects(matrix, k):
    n = len(matrix)
    others = matrix[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    np.testing.assert_array_equal(neighbors.kth_smallest(matrix, k), np.sort(others, axis=1)[:, k - 1])


@given(seed=st.integers(0, 10**6), n=st.integers(1, 150), teleport=st.sampled_from([0.0, 1e-3, 0.5]))
@settings(max_examples=40, deadline=None)
def test_symmetric_operator_equals_plain_version(seed, n, teleport):
    rng = np.random.default_rng(seed)
    chain = rng.random((n, n)) + 1e-3
    chain /= chain.sum(axis=1, keepdims=True)
    root = np.sqrt(rng.dirichlet(np.ones(n)) + 1e-6)
    jumping = np.diag(root) @ ((1 - teleport) * chain + teleport / n) @ np.diag(1 / root)
    found = neighbors.symmetric_chain(chain, root, teleport)
    np.testing.assert_allclose(found, (jumping + jumping.T) / 2, rtol=1e-12, atol=1e-14)


def assert_seeds(points, weights, draws, chosen):
    """Assert that every centre is the best of those drawn, by definition; two may be equally good."""
    nearest = np.full(len(points), np.inf)
    for number, uniforms in enumerate(draws):
        masses = np.cumsum(weights * nearest if number else weights)
        candidates = np.searchsorted(masses, uniforms[: None if number else 1] * masses[-1], side="right")
        assert chosen[number] in candidates
        added = ((points - points[[chosen[number], *candidates]][:, None]) ** 2).sum(axis=2)
        sums = (weights * np.minimum(nearest, added)).sum(axis=1)
        assert sums[0] <= sums.min() * (1 + 1e-12)
        nearest = np.minimum(nearest, added[0])


@given(seed=st.integers(0, 10**6), n=st.integers(8, 60), n_columns=st.integers(1, 5), weighted=st.booleans())
@settings(max_examples=40, deadline=None)
def test_seeds_are_the_best_of_those_drawn(seed, n, n_columns, weighted):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, n_columns))
    weights = rng.random(n) * (np.arange(n) >= 3) if weighted else np.ones(n)
    found = seeding.seed(points, 4, 3, np.random.default_rng(seed), weights if weighted else None)
    draws = np.random.default_rng(seed).random((3, 4, 3))
    for start in range(3):
        assert_seeds(points, weights, draws[start], found[start])


def test_seeds_do_not_depend_on_threads(rng):
    points = rng.standard_normal((300, 4))
    found = []
    for number in (1, 2):
        with use_threads(number):
            found.append(seeding.seed(points, 5, 20, np.random.default_rng(0)))
    np.testing.assert_array_equal(*found)


def test_seeds_of_few_distinct_samples():
    points = np.repeat(np.eye(3), 4, axis=0)
    found = seeding.seed(points, 5, 10, np.random.default_rng(0))
    assert ((found >= 0) & (found < 12)).all()
    for start in found:
        assert len(np.unique(points[start], axis=0)) == 3
