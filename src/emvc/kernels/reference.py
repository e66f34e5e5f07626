r"""Plain versions of the per-iteration passes, written against the array API.

Notation of one splitting group: its *point* :math:`V` is the argument of the last proximal step and its *scale*
:math:`s` the shrinkage factor found there, so that the copy is :math:`sV` and the scaled multiplier
:math:`(1 - s)V`. Both follow from one stored matrix and one vector per view (`docs/method.md`, section 7).
"""

from __future__ import annotations

from typing import NamedTuple

from emvc._array import Array, namespace

FIT_STEPS = 9
"""Gradient steps towards the row multipliers that fit all others."""
MOMENTUM = 0.7
"""Share of the last of these steps that is added to the next."""
LEAST_NORM = 1e-12
"""Shorter errors are as good as none."""


class Measurement(NamedTuple):
    """The part of an `Evaluation` that depends on the low-rank copy alone; the fields have the same meaning."""

    row_norms: Array
    column_norms: Array
    shifts: Array
    clipped: Array


class Evaluation(NamedTuple):
    """Sums over the data that the objective, the dual bound and the residuals are made of.

    X is the low-rank copy Q with its rows projected onto the simplex.
    """

    row_norms: Array
    """Norms of the observed part of the rows of P_k - X, shape (n_views, n_samples)."""
    column_norms: Array
    """Norms of the observed part of the columns of P_k - X, shape (n_views, n_states)."""
    shifts: Array
    """What the projection subtracts from the rows of Q, shape (n_samples,)."""
    clipped: Array
    """Norms of the rows of X - Q plus the shifts, that is, of what would have been negative, shape (n_samples,)."""
    bound: float
    """Dual bound of the scaled multipliers, with row multipliers that fit the others."""
    low_rank_residual: float
    """Squared Frobenius norm of P - Q."""
    group_residual: float
    """Squared Frobenius norms of all P_k - P - R_k and P_k - P - C_k."""


class EntrywiseEvaluation(NamedTuple):
    """The same for errors that are penalised entry by entry."""

    total: float
    """Sum of the absolute values of all P_k - P."""
    inner: float
    """Inner product of the scaled multipliers with the transitions."""
    square: float
    """Squared Frobenius norm of the scaled multipliers."""
    row_minima: float
    """Sum over rows of the smallest entry of the scaled Z minus the sum of these multipliers."""
    low_rank_norms: Array
    """Norms of the rows of P - Q, shape (n_samples,)."""
    residual: float
    """Squared Frobenius norms of all P_k - P - L_k."""


def project_simplex(x: Array, thresholds: Array | None = None) -> Array:
    """Project every row of ``x`` onto the probability simplex by sorting.

    Parameters
    ----------
    x : array of shape (..., n)
        The points.
    thresholds : array of shape (...), optional
        Receives the amounts subtracted from each row. The fused version also starts from its content.
    """
    xp = namespace(x)
    n = x.shape[-1]
    descending = xp.sort(x, axis=-1, descending=True)
    counts = xp.arange(1, n + 1, dtype=x.dtype)
    candidates = (xp.cumulative_sum(descending, axis=-1) - 1.0) / counts
    support = xp.sum(xp.astype(descending > candidates, xp.int64), axis=-1, keepdims=True)
    theta = xp.take_along_axis(candidates, support - 1, axis=-1)
    if thresholds is not None:
        thresholds[...] = theta[..., 0]
    return xp.clip(x - theta, 0.0)


def sweep(
    transitions: Array,
    consensus: Array,
    low_rank_point: Array,
    low_rank: Array,
    row_points: Array,
    row_scale: Array,
    column_points: Array,
    column_scale: Array,
    thresholds: Array,
    observed_rows: Array,
    observed_columns: Array,
    *,
    relaxation: float,
    ratio: float,
    low_rank_weight: float = 1.0,
) -> tuple[Array, Array, float]:
    """Update the consensus and then the points of every group, in place.

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
        Shrinkage factors of the rows.
    column_scale : array of shape (n_views or 0, n_states)
        Shrinkage factors of the columns.
    thresholds : array of shape (n_samples,)
        Simplex thresholds, overwritten.
    observed_rows : array of shape (n_views, n_samples)
        One where the sample is observed in the view, zero elsewhere.
    observed_columns : array of shape (n_views, n_states)
        The same for the states.
    relaxation : float
        Over-relaxation, between 1 and 2.
    ratio : float
        Penalty of the previous iteration over the penalty of this one, which rescales the multipliers.
    low_rank_weight : float
        Penalty on the distance to the low-rank copy over the penalty on the distance to every other copy.

    Returns
    -------
    row_norms, column_norms : arrays
        Norms of the observed part of the new points, by group.
    change : float
        Squared Frobenius norm of the change of the consensus.
    """
    xp = namespace(transitions)
    n_rows, n_columns = row_points.shape[0], column_points.shape[0]
    seen = observed_rows[:, :, None] * observed_columns[:, None, :]
    rows = 1.0 - seen[:n_rows, ...] * (1.0 - row_scale[:, :, None])
    columns = 1.0 - seen[:n_columns, ...] * (1.0 - column_scale[:, None, :])
    target = low_rank_weight * ((1.0 + ratio) * low_rank - ratio * low_rank_point)
    target = target + float((n_rows > 0) + (n_columns > 0)) * xp.sum(transitions, axis=0)
    target = target - xp.sum(row_points * (rows - ratio * (1.0 - rows)), axis=0)
    target = target - xp.sum(column_points * (columns - ratio * (1.0 - columns)), axis=0)

    updated = project_simplex(target / (low_rank_weight + n_rows + n_columns), thresholds)
    change = float(xp.sum((updated - consensus) ** 2))
    consensus[...] = updated

    errors = relaxation * (transitions - updated[None, ...])
    keep = 1.0 - relaxation
    low_rank_point[...] = relaxation * updated + keep * low_rank + ratio * (low_rank_point - low_rank)
    row_points[...] = errors[:n_rows, ...] + row_points * (keep * rows + ratio * (1.0 - rows))
    column_points[...] = errors[:n_columns, ...] + column_points * (keep * columns + ratio * (1.0 - columns))
    row_squares = xp.sum(seen[:n_rows, ...] * row_points**2, axis=2)
    column_squares = xp.sum(seen[:n_columns, ...] * column_points**2, axis=1)
    return xp.sqrt(row_squares), xp.sqrt(column_squares), change


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
    *,
    row_weights: Array,
    low_rank_weight: float = 1.0,
    steps: int = FIT_STEPS,
) -> Evaluation:
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
    row_weights : array of shape (n_views,)
        Largest norms of the scaled row multipliers; zero if there are none.
    low_rank_weight : float
        Factor of the scaled multiplier of the nuclear norm, ``low_rank_point - low_rank``.
    steps : int
        Gradient steps.
    """
    xp = namespace(transitions)
    n_rows, n_columns = row_points.shape[0], column_points.shape[0]
    seen = observed_rows[:, :, None] * observed_columns[:, None, :]
    rows = 1.0 - seen[:n_rows, ...] * (1.0 - row_scale[:, :, None])
    columns = 1.0 - seen[:n_columns, ...] * (1.0 - column_scale[:, None, :])
    errors = transitions - consensus[None, ...]
    group_residual = xp.sum((errors[:n_rows, ...] - rows * row_points) ** 2)
    group_residual = group_residual + xp.sum((errors[:n_columns, ...] - columns * column_points) ** 2)

    candidate = project_simplex(low_rank)
    multipliers = (1.0 - columns) * column_points
    cost = low_rank_weight * (low_rank_point - low_rank) - xp.sum(multipliers, axis=0)
    fixed = xp.sum(xp.sum(multipliers * transitions[:n_columns, ...], axis=2), axis=0)
    point, last = candidate, candidate
    multipliers = (1.0 - rows) * row_points
    best = fixed + xp.sum(xp.sum(multipliers * transitions[:n_rows, ...], axis=2), axis=0)
    best = best + xp.min(cost - xp.sum(multipliers, axis=0), axis=1)
    for _ in range(steps + 1):
        toward = seen * (transitions - point[None, ...])
        pull = row_weights[:, None] * observed_rows / xp.clip(xp.sqrt(xp.sum(toward**2, axis=2)), LEAST_NORM)
        multipliers = pull[:, :, None] * toward
        slope = cost - xp.sum(multipliers, axis=0)
        inner = fixed + xp.sum(xp.sum(multipliers * transitions, axis=2), axis=0)
        best = xp.maximum(best, inner + xp.min(slope, axis=1))
        step = 1.0 / xp.clip(xp.sum(pull, axis=0), LEAST_NORM)
        moved = project_simplex(point - step[:, None] * slope)
        point, last = xp.clip(moved + MOMENTUM * (moved - last), 0.0), moved

    found = measure(transitions, low_rank, observed_rows, observed_columns)
    return Evaluation(
        *found,
        bound=float(xp.sum(best)),
        low_rank_residual=float(xp.sum((consensus - low_rank) ** 2)),
        group_residual=float(group_residual),
    )


def measure(transitions: Array, low_rank: Array, observed_rows: Array, observed_columns: Array) -> Measurement:
    """Return the errors at the projection of a low-rank matrix onto the simplex, and what the projection adds.

    Parameters
    ----------
    transitions : array of shape (n_views, n_samples, n_states)
        The data.
    low_rank : array of shape (n_samples, n_states)
        The matrix.
    observed_rows, observed_columns : array of shape (n_views, n_samples) and (n_views, n_states)
        Ones where the data are observed, zeros elsewhere.
    """
    xp = namespace(transitions)
    shifts = xp.zeros(low_rank.shape[0], dtype=low_rank.dtype)
    candidate = project_simplex(low_rank, shifts)
    squares = observed_rows[:, :, None] * observed_columns[:, None, :] * (transitions - candidate[None, ...]) ** 2
    return Measurement(
        row_norms=xp.sqrt(xp.sum(squares, axis=2)),
        column_norms=xp.sqrt(xp.sum(squares, axis=1)),
        shifts=shifts,
        clipped=xp.sqrt(xp.sum((candidate - low_rank + shifts[:, None]) ** 2, axis=1)),
    )


def entrywise_sweep(
    transitions: Array,
    consensus: Array,
    low_rank_point: Array,
    low_rank: Array,
    points: Array,
    thresholds: Array,
    *,
    clip: float,
    relaxation: float,
    ratio: float,
    low_rank_weight: float = 1.0,
) -> float:
    """Update the consensus and then the points of every view, in place, and return the squared change of the consensus.

    The scaled multiplier of an entry is its point clipped to ``[-clip, clip]``, its copy is the rest. Everything else
    is as in `sweep`.
    """
    xp = namespace(transitions)
    multipliers = xp.clip(points, -clip, clip)
    target = low_rank_weight * ((1.0 + ratio) * low_rank - ratio * low_rank_point)
    target = target + xp.sum(transitions - points + (1.0 + ratio) * multipliers, axis=0)
    updated = project_simplex(target / (low_rank_weight + transitions.shape[0]), thresholds)
    change = float(xp.sum((updated - consensus) ** 2))
    consensus[...] = updated
    keep = 1.0 - relaxation
    low_rank_point[...] = relaxation * updated + keep * low_rank + ratio * (low_rank_point - low_rank)
    errors = relaxation * (transitions - updated[None, ...])
    points[...] = errors + keep * (points - multipliers) + ratio * multipliers
    return change


def entrywise_evaluate(
    transitions: Array,
    consensus: Array,
    low_rank_point: Array,
    low_rank: Array,
    points: Array,
    *,
    clip: float,
    low_rank_weight: float = 1.0,
) -> EntrywiseEvaluation:
    """Return the sums behind objective, dual bound and residuals (see `entrywise_sweep`)."""
    xp = namespace(transitions)
    multipliers = xp.clip(points, -clip, clip)
    errors = transitions - consensus[None, ...]
    slack = low_rank_weight * (low_rank_point - low_rank) - xp.sum(multipliers, axis=0)
    return EntrywiseEvaluation(
        total=float(xp.sum(xp.abs(errors))),
        inner=float(xp.sum(multipliers * transitions)),
        square=float(xp.sum(multipliers**2)),
        row_minima=float(xp.sum(xp.min(slack, axis=1))),
        low_rank_norms=xp.sqrt(xp.sum((consensus - low_rank) ** 2, axis=1)),
        residual=float(xp.sum((errors - points + multipliers) ** 2)),
    )
