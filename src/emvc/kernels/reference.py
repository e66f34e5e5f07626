r"""Plain versions of the per-iteration passes, written against the array API.

Notation of one splitting group: its *point* :math:`V` is the argument of the last proximal step and its *scale*
:math:`s` the shrinkage factor found there, so that the copy is :math:`sV` and the scaled multiplier
:math:`(1 - s)V`. Both follow from one stored matrix and one vector per view (`docs/method.md`, section 7).
"""

from __future__ import annotations

from typing import NamedTuple

from emvc._array import Array, namespace
from emvc.prox import ColumnGroups, Entries, RowGroups, project_simplex

FIT_STEPS = 10
"""Gradient steps towards the row multipliers that fit all others."""
MOMENTUM = 0.7
"""Share of the last of these steps that is added to the next."""
LEAST_NORM = 1e-12
"""Shorter errors are as good as none."""


class GroupSums(NamedTuple):
    """What the objective, the dual bound and the residuals are made of, at a candidate X."""

    row_norms: Array
    """Norms of the observed part of the rows of P_k - X, shape (n_views, n_samples)."""
    column_norms: Array
    """Norms of the observed part of the columns of P_k - X, shape (n_views, n_states)."""
    bound: float
    """Dual bound of the scaled multipliers, with row multipliers that fit the others."""
    residual: float
    """Squared constraint residual, :math:`w \\lVert P - Q\\rVert^2` and those of the copies of the errors."""
    square: float
    """Squared norm of the scaled multipliers, in the same metric."""


class EntrySums(NamedTuple):
    """The same for errors that are penalised entry by entry."""

    bound: float
    residual: float
    square: float
    total: float
    """Sum of the absolute values of all P_k - X."""


def sweep(
    transitions: Array,
    consensus: Array,
    low_rank_point: Array,
    low_rank: Array,
    row_points: Array,
    row_scale: Array,
    column_points: Array,
    column_scale: Array,
    observed_rows: Array,
    observed_columns: Array,
    thresholds: Array,
    *,
    row_steps: Array,
    column_steps: Array,
    relaxation: float,
    low_rank_weight: float,
) -> float:
    """Do one iteration but for the proximal step of the nuclear norm, in place; return the squared change of P.

    An entry of a view counts only if its row and its column are observed there. The scale of all other entries is one:
    their copy equals their point, and they have no multiplier.

    Parameters
    ----------
    transitions : array of shape (n_views, n_samples, n_states)
        The data.
    consensus, low_rank_point, low_rank : arrays of shape (n_samples, n_states)
        P, the point of the nuclear norm and its copy Q. The first two are overwritten.
    row_points, column_points : arrays of shape (n_views or 0, n_samples, n_states)
        Points of the row and column groups, overwritten; empty when the weight of the group is zero.
    row_scale : array of shape (n_views or 0, n_samples)
        Shrinkage factors of the rows, overwritten.
    column_scale : array of shape (n_views or 0, n_states)
        Shrinkage factors of the columns, overwritten.
    observed_rows : array of shape (n_views, n_samples)
        One where the sample is observed in the view, zero elsewhere.
    observed_columns : array of shape (n_views, n_states)
        The same for the states.
    thresholds : array of shape (n_samples,)
        Simplex thresholds, overwritten.
    row_steps, column_steps : arrays of shape (n_views,)
        Steps of the proximal operators of the groups.
    relaxation : float
        Over-relaxation, between 1 and 2.
    low_rank_weight : float
        Penalty on the distance to the low-rank copy over the penalty on the distance to every other copy.
    """
    xp = namespace(transitions)
    n_rows, n_columns = row_points.shape[0], column_points.shape[0]
    seen = observed_rows[:, :, None] * observed_columns[:, None, :]
    rows = row_points - seen[:n_rows, ...] * (1.0 - row_scale[:, :, None]) * row_points
    columns = column_points - seen[:n_columns, ...] * (1.0 - column_scale[:, None, :]) * column_points
    target = low_rank_weight * (2.0 * low_rank - low_rank_point)
    target = target + xp.sum(transitions[:n_rows, ...] - 2.0 * rows + row_points, axis=0)
    target = target + xp.sum(transitions[:n_columns, ...] - 2.0 * columns + column_points, axis=0)
    updated = project_simplex(target / (low_rank_weight + n_rows + n_columns), thresholds)
    change = float(xp.sum((updated - consensus) ** 2))
    consensus[...] = updated

    errors = transitions - updated[None, ...]
    low_rank_point[...] = low_rank_point + relaxation * (updated - low_rank)
    row_points[...] = row_points + relaxation * (errors[:n_rows, ...] - rows)
    column_points[...] = column_points + relaxation * (errors[:n_columns, ...] - columns)
    row_scale[...] = RowGroups().factors(seen[:n_rows, ...] * row_points, row_steps[:n_rows, None])
    column_scale[...] = ColumnGroups().factors(seen[:n_columns, ...] * column_points, column_steps[:n_columns, None])
    return change


def alm_sweep(
    transitions: Array,
    consensus: Array,
    low_rank_point: Array,
    low_rank: Array,
    points: Array,
    row_weight: Array,
    column_weight: Array,
    thresholds: Array,
    *,
    soft: tuple[float, float],
    new_row_weight: Array,
    new_column_weight: Array,
    ratio: float,
) -> tuple[Array, Array, float, float]:
    """Update the consensus and then the point of every view by the published schedule, in place.

    The errors of view k are ``E = shrink(B, soft) / (1 + row_weight + column_weight)`` with its point B, and its scaled
    multiplier is ``E - B``, so neither is stored.

    Parameters
    ----------
    transitions : array of shape (n_views, n_samples, n_states)
        The data.
    consensus, low_rank_point, low_rank : arrays of shape (n_samples, n_states)
        P, the point of the nuclear norm and its copy Q. The first two are overwritten.
    points : array of shape (n_views, n_samples, n_states)
        The points B, overwritten.
    row_weight, new_row_weight : arrays of shape (n_views, n_samples)
        Weights behind the present errors and behind the new ones.
    column_weight, new_column_weight : arrays of shape (n_views, n_states)
        The same for columns.
    thresholds : array of shape (n_samples,)
        Simplex thresholds, overwritten.
    soft : tuple of float
        Soft thresholds of single entries behind the present errors and behind the new ones.
    ratio : float
        Penalty of the previous iteration over the penalty of this one, which rescales the multipliers.

    Returns
    -------
    row_norms, column_norms : arrays
        Norms of the rows and columns of the new errors.
    total : float
        Sum of the absolute values of the new errors.
    residual : float
        Largest absolute entry of P_k - P - E_k.
    """
    xp = namespace(transitions)
    errors = _shrunk(points, soft[0], row_weight, column_weight)
    target = (1.0 + ratio) * low_rank - ratio * low_rank_point
    target = target + xp.sum(transitions - (1.0 + ratio) * errors + ratio * points, axis=0)
    updated = project_simplex(target / float(1 + transitions.shape[0]), thresholds)
    consensus[...] = updated
    low_rank_point[...] = updated + ratio * (low_rank_point - low_rank)
    difference = transitions - updated[None, ...]
    points[...] = difference - ratio * (errors - points)
    errors = _shrunk(points, soft[1], new_row_weight, new_column_weight)
    return (
        xp.sqrt(xp.sum(errors**2, axis=2)),
        xp.sqrt(xp.sum(errors**2, axis=1)),
        float(xp.sum(xp.abs(errors))),
        float(xp.max(xp.abs(difference - errors))),
    )


def _shrunk(points: Array, soft: float, row_weight: Array, column_weight: Array) -> Array:
    xp = namespace(points)
    shrunk = points - xp.clip(points, -soft, soft)
    return shrunk / (1.0 + row_weight[:, :, None] + column_weight[:, None, :])


def evaluate(
    transitions: Array,
    consensus: Array,
    low_rank_point: Array,
    low_rank: Array,
    row_points: Array,
    row_scale: Array,
    column_points: Array,
    column_scale: Array,
    observed_rows: Array,
    observed_columns: Array,
    candidate: Array,
    *,
    row_limits: Array,
    low_rank_weight: float,
    norm: float = 1.0,
    multipliers: Array | None = None,
) -> GroupSums:
    r"""Return the sums behind objective, dual bound and residuals for the state of the solver (see `sweep`).

    For given Z and B the best dual bound is separate by rows: with :math:`c = z_i - \sum_k b_{ki}` it is

    .. math::
        \max_{\lVert a_k\rVert\le\beta_k} \sum_k\langle a_k + b_{ki}, p_{ki}\rangle
            + \min_j \Bigl(c - \sum_k a_k\Bigr)_j
        = \sum_k\langle b_{ki}, p_{ki}\rangle
            + \min_{x\in\Delta} \langle c, x\rangle + \sum_k \beta_k \lVert p_{ki} - x\rVert .

    Projected gradient steps with momentum run on the right side, from the row of X, and every iterate gives feasible
    multipliers :math:`a_k = \beta_k (p_{ki} - x)/\lVert p_{ki} - x\rVert`. The best of them counts, or those of the
    state: where x is equal to a row of the data only they converge.

    Parameters
    ----------
    candidate : array of shape (n_samples, n_states)
        X, row-stochastic.
    row_limits : array of shape (n_views,)
        Largest norms of the scaled row multipliers.
    low_rank_weight : float
        As for `sweep`; it makes the scaled Z of what thresholding has removed.
    norm : float
        What Z is divided by.
    multipliers : array of shape (n_views, n_samples, n_states), optional
        Receives the scaled row multipliers that the bound is made with, if there are row groups.
    """
    xp = namespace(transitions)
    n_rows, n_columns = row_points.shape[0], column_points.shape[0]
    seen = observed_rows[:, :, None] * observed_columns[:, None, :]
    rows = seen[:n_rows, ...] * (1.0 - row_scale[:, :, None]) * row_points
    columns = seen[:n_columns, ...] * (1.0 - column_scale[:, None, :]) * column_points
    removed, errors = low_rank_point - low_rank, transitions - consensus[None, ...]
    residual = low_rank_weight * xp.sum((consensus - low_rank) ** 2)
    residual = residual + xp.sum((errors[:n_rows, ...] - row_points + rows) ** 2)
    residual = residual + xp.sum((errors[:n_columns, ...] - column_points + columns) ** 2)
    square = low_rank_weight * xp.sum(removed**2) + xp.sum(rows**2) + xp.sum(columns**2)

    cost = low_rank_weight / norm * removed - xp.sum(columns, axis=0)
    fixed = _inner(columns, transitions[:n_columns, ...])
    best, found = fixed + _inner(rows, transitions[:n_rows, ...]) + xp.min(cost - xp.sum(rows, axis=0), axis=1), rows
    point, last = candidate, candidate
    for _ in range(FIT_STEPS if n_rows else 0):
        toward = seen * (transitions - point[None, ...])
        pull = row_limits[:, None] * observed_rows / xp.clip(xp.sqrt(xp.sum(toward**2, axis=2)), LEAST_NORM)
        pulled = pull[:, :, None] * toward
        slope = cost - xp.sum(pulled, axis=0)
        value = fixed + _inner(pulled, transitions) + xp.min(slope, axis=1)
        found = xp.where((value > best)[None, :, None], pulled, found)
        best = xp.maximum(best, value)
        step = 1.0 / xp.clip(xp.sum(pull, axis=0), LEAST_NORM)
        moved = project_simplex(point - step[:, None] * slope)
        point, last = xp.clip(moved + MOMENTUM * (moved - last), 0.0), moved
    if multipliers is not None:
        multipliers[...] = found
    squares = seen * (transitions - candidate[None, ...]) ** 2
    return GroupSums(
        row_norms=xp.sqrt(xp.sum(squares, axis=2)),
        column_norms=xp.sqrt(xp.sum(squares, axis=1)),
        bound=float(xp.sum(best)),
        residual=float(residual),
        square=float(square),
    )


def _inner(multipliers: Array, transitions: Array) -> Array:
    """Return the inner products of rows, summed over the views."""
    xp = namespace(transitions)
    return xp.sum(xp.sum(multipliers * transitions, axis=2), axis=0)


def entrywise_sweep(
    transitions: Array,
    consensus: Array,
    low_rank_point: Array,
    low_rank: Array,
    points: Array,
    thresholds: Array,
    *,
    step: float,
    relaxation: float,
    low_rank_weight: float,
) -> float:
    """Do the same as `sweep` with one copy per view, whose entries are shortened by ``step``."""
    xp = namespace(transitions)
    copies = Entries().prox(points, step)
    target = low_rank_weight * (2.0 * low_rank - low_rank_point) + xp.sum(transitions - 2.0 * copies + points, axis=0)
    updated = project_simplex(target / (low_rank_weight + transitions.shape[0]), thresholds)
    change = float(xp.sum((updated - consensus) ** 2))
    consensus[...] = updated
    low_rank_point[...] = low_rank_point + relaxation * (updated - low_rank)
    points[...] = points + relaxation * (transitions - updated[None, ...] - copies)
    return change


def entrywise_evaluate(
    transitions: Array,
    consensus: Array,
    low_rank_point: Array,
    low_rank: Array,
    points: Array,
    candidate: Array,
    *,
    step: float,
    low_rank_weight: float,
    norm: float = 1.0,
) -> EntrySums:
    """Return the sums behind objective, dual bound and residuals (see `entrywise_sweep`)."""
    xp = namespace(transitions)
    copies = Entries().prox(points, step)
    multipliers, removed = points - copies, low_rank_point - low_rank
    slack = low_rank_weight / norm * removed - xp.sum(multipliers, axis=0)
    residual = low_rank_weight * xp.sum((consensus - low_rank) ** 2)
    residual = residual + xp.sum((transitions - consensus[None, ...] - copies) ** 2)
    return EntrySums(
        bound=float(xp.sum(multipliers * transitions) + xp.sum(xp.min(slack, axis=1))),
        residual=float(residual),
        square=float(low_rank_weight * xp.sum(removed**2) + xp.sum(multipliers**2)),
        total=Entries().value(transitions - candidate[None, ...]),
    )
