import array_api_strict
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import oracles
from emvc.prox import ColumnGroups, Entries, NuclearNorm, RowGroups, Simplex, shrinkage

NORMS = {"nuclear": NuclearNorm(), "rows": RowGroups(), "columns": ColumnGroups(), "entries": Entries()}


@pytest.mark.parametrize("name", [*NORMS, "simplex"])
@pytest.mark.parametrize("step", [0.3, 1.5])
def test_prox_solves_its_problem(name, step, rng):
    x = 2 * rng.standard_normal((4, 5))
    function = NORMS.get(name, Simplex())
    np.testing.assert_allclose(function.prox(x, step), oracles.prox(name, x, step), atol=2e-5)


@pytest.mark.parametrize("name", NORMS)
@given(seed=st.integers(0, 10**6), step=st.floats(0.01, 5.0))
@example(seed=105, step=0.01)  # rounding is that of x, however small the step
@settings(max_examples=30, deadline=None)
def test_moreau_identity(name, seed, step):
    """x - prox is the projection onto the dual ball: inside it, and aligned with the proximal point."""
    x = np.random.default_rng(seed).standard_normal((4, 6))
    norm = NORMS[name]
    point = norm.prox(x, step)
    removed = x - point
    assert norm.dual_norm(removed) <= step + 1e-13 * np.linalg.norm(x)
    assert np.sum(removed * point) == pytest.approx(step * norm.value(point), abs=1e-10)


@pytest.mark.parametrize("name", NORMS)
def test_dual_norm_is_dual(name, rng):
    """<x, y> <= f(x) f*(y) with equality for some x."""
    x, y = rng.standard_normal((2, 5, 4))
    norm = NORMS[name]
    assert np.sum(x * y) <= norm.value(x) * norm.dual_norm(y) + 1e-12
    point = norm.prox(y, 0.999 * norm.dual_norm(y))  # only the largest group survives
    assert np.sum(point * y) == pytest.approx(norm.value(point) * norm.dual_norm(y))


def test_zero_groups_stay_zero():
    x = np.zeros((3, 3))
    for norm in NORMS.values():
        np.testing.assert_array_equal(norm.prox(x, 1.0), x)
    np.testing.assert_array_equal(shrinkage(np.array([0.0, 1.0, 2.0]), 0.0), [1.0, 1.0, 1.0])


@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), scale=st.sampled_from([1e-6, 1.0, 1e4]))
@settings(max_examples=60, deadline=None)
def test_simplex_projection_properties(seed, n, scale):
    x = scale * np.random.default_rng(seed).standard_normal((3, n))
    p = Simplex().prox(x)
    assert p.min() >= 0
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9 * max(1.0, scale))
    # Optimality: one threshold per row explains every entry.
    for row, projected in zip(x, p, strict=True):
        theta = np.max(row[projected > 0] - projected[projected > 0])
        np.testing.assert_allclose(np.maximum(row - theta, 0), projected, atol=1e-9 * max(1.0, scale))


def test_simplex_indicator():
    assert Simplex().value(np.full((2, 4), 0.25)) == 0.0
    assert Simplex().value(np.full((2, 4), 0.3)) == np.inf
    assert Simplex().value(np.array([[1.5, -0.5]])) == np.inf
    assert Simplex().support(np.array([[1.0, 2.0], [0.0, -1.0]])) == 2.0


@pytest.mark.parametrize("function", [*NORMS.values(), Simplex()], ids=lambda f: type(f).__name__)
def test_array_api_backend_agrees(function, rng):
    x = rng.standard_normal((4, 5))
    strict = array_api_strict.asarray(x)
    np.testing.assert_allclose(np.asarray(function.prox(strict, 0.5)), function.prox(x, 0.5), atol=1e-12)
    assert function.value(strict) == pytest.approx(function.value(x))
