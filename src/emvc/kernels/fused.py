"""Fused CPU versions of the per-iteration passes: every array is read and written once.

Rows are handled in blocks of fixed size and sums over columns are added block by block, so the result does not
depend on the number of threads. Signatures and meaning are those of `emvc.kernels.reference`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from emvc._array import FloatArray
from emvc._threads import run_ranges
from emvc.kernels.reference import FIT_STEPS, LEAST_NORM, MOMENTUM, EntrywiseEvaluation, Evaluation, Measurement

_BLOCK = 32  # rows handled by one task; fixed, because it sets the order of summation
_NEWTON_STEPS = 64  # far above the handful that occurs; the iteration ends by itself


@njit(cache=True, fastmath=True)
def _simplex_threshold(row: Any, start: float) -> float:
    """Return theta with sum(max(row - theta, 0)) = 1.

    Newton's method on a convex, piecewise linear function: from any start the first step lands at or below the root,
    from there it climbs and ends exactly when the active set repeats.
    """
    n = row.shape[0]
    theta = start
    previous = -1
    for _ in range(_NEWTON_STEPS):
        total = 0.0
        count = 0
        least = row.dtype.type(theta)
        for j in range(n):
            value = row[j]
            if value > least:
                total += value
                count += 1
        if count == 0:
            largest = row[0]
            for j in range(1, n):
                largest = max(largest, row[j])
            theta = largest - 1.0
            previous = -1
            continue
        theta = (total - 1.0) / count
        if count == previous:
            break
        previous = count
    return theta


@njit(cache=True, fastmath=True)
def _smallest(row: Any) -> Any:
    """Return the smallest entry, by eight minima that do not wait for each other."""
    n = row.shape[0]
    whole = n - n % 8
    a = b = c = d = e = f = g = h = row[0]
    for j in range(0, whole, 8):
        a = min(a, row[j])
        b = min(b, row[j + 1])
        c = min(c, row[j + 2])
        d = min(d, row[j + 3])
        e = min(e, row[j + 4])
        f = min(f, row[j + 5])
        g = min(g, row[j + 6])
        h = min(h, row[j + 7])
    for j in range(whole, n):
        a = min(a, row[j])
    return min(a, b, c, d, e, f, g, h)


@njit(cache=True, fastmath=True, nogil=True)
def _project(x: Any, out: Any, thresholds: Any, first: int, last: int) -> None:
    for i in range(first, last):
        theta = _simplex_threshold(x[i], thresholds[i])
        thresholds[i] = theta
        for j in range(x.shape[1]):
            out[i, j] = max(x[i, j] - theta, 0.0)


@njit(cache=True, fastmath=True, nogil=True)
def _sweep(  # noqa: PLR0912
    transitions: Any,
    consensus: Any,
    low_rank_point: Any,
    low_rank: Any,
    row_points: Any,
    row_scale: Any,
    column_points: Any,
    column_removed: Any,
    thresholds: Any,
    observed_rows: Any,
    observed_columns: Any,
    relaxation: float,
    ratio: float,
    low_rank_weight: float,
    row_squares: Any,
    column_squares: Any,
    changes: Any,
    first: int,
    last: int,
) -> None:
    real = transitions.dtype.type
    n_views, n, m = transitions.shape
    n_rows, n_columns = row_points.shape[0], column_points.shape[0]
    one, times = real(1.0), real((1 if n_rows else 0) + (1 if n_columns else 0))
    divisor = real(1.0 / (low_rank_weight + n_rows + n_columns))
    gain, keep, swap = real(relaxation), real(1.0 - relaxation), real(ratio - (1.0 - relaxation))
    forth, back = real(low_rank_weight * (1.0 + ratio)), real(low_rank_weight * ratio)
    for block in range(first, last):
        target = np.empty(m, transitions.dtype)
        for i in range(block * _BLOCK, min((block + 1) * _BLOCK, n)):
            for j in range(m):
                target[j] = forth * low_rank[i, j] - back * low_rank_point[i, j]
            for k in range(n_views):
                for j in range(m):
                    target[j] += times * transitions[k, i, j]
            for k in range(n_rows):
                removed = real(observed_rows[k, i] * (1.0 - row_scale[k, i]) * (1.0 + ratio))
                for j in range(m):
                    target[j] -= (one - observed_columns[k, j] * removed) * row_points[k, i, j]
            for k in range(n_columns):
                removed = real(observed_rows[k, i] * (1.0 + ratio))
                for j in range(m):
                    target[j] -= (one - column_removed[k, j] * removed) * column_points[k, i, j]
            for j in range(m):
                target[j] *= divisor
            thresholds[i] = _simplex_threshold(target, thresholds[i])
            theta = real(thresholds[i])
            change = 0.0
            for j in range(m):
                value = max(target[j] - theta, real(0.0))
                target[j] = value
                change += (value - consensus[i, j]) ** 2
                consensus[i, j] = value
                low_rank_point[i, j] = gain * value + real(ratio) * low_rank_point[i, j] - swap * low_rank[i, j]
            changes[i] = change
            for k in range(n_rows):
                removed = real(observed_rows[k, i] * (1.0 - row_scale[k, i])) * swap
                total = 0.0
                for j in range(m):
                    value = (
                        gain * (transitions[k, i, j] - target[j])
                        + (keep + observed_columns[k, j] * removed) * row_points[k, i, j]
                    )
                    row_points[k, i, j] = value
                    total += observed_columns[k, j] * value * value
                row_squares[k, i] = observed_rows[k, i] * total
            for k in range(n_columns):
                seen = observed_rows[k, i]
                removed = seen * swap
                for j in range(m):
                    value = (
                        gain * (transitions[k, i, j] - target[j])
                        + (keep + column_removed[k, j] * removed) * column_points[k, i, j]
                    )
                    column_points[k, i, j] = value
                    column_squares[block, k, j] += seen * observed_columns[k, j] * value * value


@njit(cache=True, fastmath=True, nogil=True)
def _alm_sweep(
    transitions: Any,
    consensus: Any,
    low_rank_point: Any,
    low_rank: Any,
    points: Any,
    row_weight: Any,
    column_weight: Any,
    thresholds: Any,
    soft: float,
    new_soft: float,
    new_row_weight: Any,
    new_column_weight: Any,
    ratio: float,
    row_squares: Any,
    column_squares: Any,
    sums: Any,
    first: int,
    last: int,
) -> None:
    n_views, n, m = transitions.shape
    divisor = 1.0 / (1 + n_views)
    for block in range(first, last):
        target = np.empty(m)
        for i in range(block * _BLOCK, min((block + 1) * _BLOCK, n)):
            for j in range(m):
                target[j] = (1.0 + ratio) * low_rank[i, j] - ratio * low_rank_point[i, j]
            for k in range(n_views):
                weight = 1.0 + row_weight[k, i]
                for j in range(m):
                    point = points[k, i, j]
                    error = (point - min(max(point, -soft), soft)) / (weight + column_weight[k, j])
                    points[k, i, j] = ratio * (point - error)
                    target[j] += transitions[k, i, j] - error + points[k, i, j]
            for j in range(m):
                target[j] *= divisor
            theta = _simplex_threshold(target, thresholds[i])
            thresholds[i] = theta
            for j in range(m):
                value = max(target[j] - theta, 0.0)
                target[j] = value
                consensus[i, j] = value
                low_rank_point[i, j] = value + ratio * (low_rank_point[i, j] - low_rank[i, j])
            total, residual = 0.0, 0.0
            for k in range(n_views):
                weight = 1.0 + new_row_weight[k, i]
                square = 0.0
                for j in range(m):
                    difference = transitions[k, i, j] - target[j]
                    point = difference + points[k, i, j]
                    points[k, i, j] = point
                    error = (point - min(max(point, -new_soft), new_soft)) / (weight + new_column_weight[k, j])
                    square += error * error
                    total += abs(error)
                    residual = max(residual, abs(difference - error))
                    column_squares[block, k, j] += error * error
                row_squares[k, i] = square
            sums[0, i], sums[1, i] = total, residual


@njit(cache=True, fastmath=True)
def _feasible_row(row: Any, out: Any) -> tuple[float, float]:
    """Project a row onto the simplex; return what is subtracted, and the squared norm of what would be negative."""
    theta, clipped = _simplex_threshold(row, 0.0), 0.0
    for j in range(row.shape[0]):
        value = row[j] - theta
        out[j] = max(value, 0.0)
        clipped += min(value, 0.0) ** 2
    return theta, clipped


@njit(cache=True, fastmath=True)
def _add_errors(
    transitions: Any,
    point: Any,
    observed_rows: Any,
    observed_columns: Any,
    row_squares: Any,
    column_squares: Any,
    i: int,
) -> None:
    """Add the squared errors of a row to those of the columns, and set those of the row."""
    for k in range(transitions.shape[0]):
        seen, total = observed_rows[k, i], 0.0
        for j in range(point.shape[0]):
            square = seen * (observed_columns[k, j] * (transitions[k, i, j] - point[j])) ** 2
            total += square
            column_squares[k, j] += square
        row_squares[k, i] = total


@njit(cache=True, fastmath=True, nogil=True)
def _measure(
    transitions: Any,
    low_rank: Any,
    observed_rows: Any,
    observed_columns: Any,
    row_squares: Any,
    column_squares: Any,
    sums: Any,
    first: int,
    last: int,
) -> None:
    n, m = low_rank.shape
    for block in range(first, last):
        row, point = np.empty(m), np.empty(m)
        for i in range(block * _BLOCK, min((block + 1) * _BLOCK, n)):
            for j in range(m):
                row[j] = low_rank[i, j]
            sums[0, i], sums[1, i] = _feasible_row(row, point)
            _add_errors(transitions, point, observed_rows, observed_columns, row_squares, column_squares[block], i)


@njit(cache=True, fastmath=True, nogil=True)
def _evaluate(  # noqa: PLR0912, PLR0915
    transitions: Any,
    consensus: Any,
    low_rank_point: Any,
    low_rank: Any,
    row_points: Any,
    row_scale: Any,
    column_points: Any,
    column_removed: Any,
    observed_rows: Any,
    observed_columns: Any,
    masked: Any,
    row_weights: Any,
    low_rank_weight: float,
    steps: int,
    row_squares: Any,
    column_squares: Any,
    sums: Any,
    first: int,
    last: int,
) -> None:
    n_views, n, m = transitions.shape
    for block in range(first, last):
        cost, slope, point, previous = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
        data = np.empty((n_views, m))
        for i in range(block * _BLOCK, min((block + 1) * _BLOCK, n)):
            for j in range(m):
                slope[j] = low_rank[i, j]
                cost[j] = low_rank_weight * (low_rank_point[i, j] - low_rank[i, j])
            theta, clipped = _feasible_row(slope, point)
            shift, low, groups = theta, 0.0, 0.0
            for j in range(m):
                low += (consensus[i, j] - slope[j]) ** 2
                previous[j] = point[j]
            _add_errors(transitions, point, observed_rows, observed_columns, row_squares, column_squares[block], i)
            for k in range(n_views):
                for j in range(m):
                    data[k, j] = observed_columns[k, j] * transitions[k, i, j]
            fixed = 0.0
            for k in range(column_points.shape[0]):
                seen = observed_rows[k, i]
                for j in range(m):
                    column_point = column_points[k, i, j]
                    multiplier = seen * column_removed[k, j] * column_point
                    cost[j] -= multiplier
                    fixed += multiplier * transitions[k, i, j]
                    groups += (transitions[k, i, j] - consensus[i, j] - column_point + multiplier) ** 2
            inner = fixed
            for j in range(m):
                slope[j] = cost[j]
            for k in range(row_points.shape[0]):
                removed = observed_rows[k, i] * (1.0 - row_scale[k, i])
                for j in range(m):
                    row_point = row_points[k, i, j]
                    multiplier = observed_columns[k, j] * removed * row_point
                    slope[j] -= multiplier
                    inner += multiplier * transitions[k, i, j]
                    groups += (transitions[k, i, j] - consensus[i, j] - row_point + multiplier) ** 2
            best = inner + _smallest(slope)
            for step in range(steps + 1):
                inner, pulls = fixed, 0.0
                for j in range(m):
                    slope[j] = cost[j]
                for k in range(n_views):
                    weight, total, product = observed_rows[k, i] * row_weights[k], 0.0, 0.0
                    if weight == 0.0:
                        continue
                    if masked[k]:
                        for j in range(m):
                            toward = data[k, j] - observed_columns[k, j] * point[j]
                            total += toward * toward
                            product += toward * data[k, j]
                    else:
                        for j in range(m):
                            toward = data[k, j] - point[j]
                            total += toward * toward
                            product += toward * data[k, j]
                    pull = weight / max(np.sqrt(total), LEAST_NORM)
                    inner += pull * product
                    pulls += pull
                    if masked[k]:
                        for j in range(m):
                            slope[j] -= pull * (data[k, j] - observed_columns[k, j] * point[j])
                    else:
                        for j in range(m):
                            slope[j] -= pull * (data[k, j] - point[j])
                best = max(best, inner + _smallest(slope))
                if step == steps or pulls == 0.0:
                    break
                for j in range(m):
                    slope[j] = point[j] - slope[j] / pulls
                theta = _simplex_threshold(slope, theta)
                for j in range(m):
                    moved = max(slope[j] - theta, 0.0)
                    point[j] = max(moved + MOMENTUM * (moved - previous[j]), 0.0)
                    previous[j] = moved
            sums[0, i], sums[1, i], sums[2, i], sums[3, i], sums[4, i] = shift, clipped, best, low, groups


@njit(cache=True, fastmath=True, nogil=True)
def _entrywise_sweep(
    transitions: Any,
    consensus: Any,
    low_rank_point: Any,
    low_rank: Any,
    points: Any,
    thresholds: Any,
    clip: float,
    relaxation: float,
    ratio: float,
    low_rank_weight: float,
    changes: Any,
    first: int,
    last: int,
) -> None:
    n_views, m = transitions.shape[0], transitions.shape[2]
    keep, swap = 1.0 - relaxation, ratio - (1.0 - relaxation)
    divisor = 1.0 / (low_rank_weight + n_views)
    target = np.empty(m)
    for i in range(first, last):
        for j in range(m):
            target[j] = low_rank_weight * ((1.0 + ratio) * low_rank[i, j] - ratio * low_rank_point[i, j])
        for k in range(n_views):
            for j in range(m):
                point = points[k, i, j]
                target[j] += transitions[k, i, j] - point + (1.0 + ratio) * min(max(point, -clip), clip)
        for j in range(m):
            target[j] *= divisor
        theta = _simplex_threshold(target, thresholds[i])
        thresholds[i] = theta
        change = 0.0
        for j in range(m):
            value = max(target[j] - theta, 0.0)
            target[j] = value
            change += (value - consensus[i, j]) ** 2
            consensus[i, j] = value
            low_rank_point[i, j] = relaxation * value + ratio * low_rank_point[i, j] - swap * low_rank[i, j]
        changes[i] = change
        for k in range(n_views):
            for j in range(m):
                point = points[k, i, j]
                multiplier = min(max(point, -clip), clip)
                points[k, i, j] = relaxation * (transitions[k, i, j] - target[j]) + keep * point + swap * multiplier


@njit(cache=True, fastmath=True, nogil=True)
def _entrywise_evaluate(
    transitions: Any,
    consensus: Any,
    low_rank_point: Any,
    low_rank: Any,
    points: Any,
    clip: float,
    low_rank_weight: float,
    sums: Any,
    first: int,
    last: int,
) -> None:
    n_views, m = transitions.shape[0], transitions.shape[2]
    slack = np.empty(m)
    for i in range(first, last):
        total, inner, square, low, residual = 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(m):
            slack[j] = low_rank_weight * (low_rank_point[i, j] - low_rank[i, j])
            low += (consensus[i, j] - low_rank[i, j]) ** 2
        for k in range(n_views):
            for j in range(m):
                point, value = points[k, i, j], transitions[k, i, j]
                multiplier = min(max(point, -clip), clip)
                error = value - consensus[i, j]
                slack[j] -= multiplier
                total += abs(error)
                inner += multiplier * value
                square += multiplier * multiplier
                residual += (error - point + multiplier) ** 2
        sums[0, i], sums[1, i], sums[2, i] = total, inner, square
        sums[3, i], sums[4, i], sums[5, i] = _smallest(slack), low, residual


def _n_blocks(n_samples: int) -> int:
    return -(-n_samples // _BLOCK)


def project_simplex(x: NDArray[Any], thresholds: FloatArray | None = None) -> NDArray[Any]:
    """Project every row of a matrix onto the probability simplex (see `reference.project_simplex`)."""
    out = np.empty_like(x)
    if thresholds is None:
        thresholds = x.mean(axis=1) - 1.0 / x.shape[1]  # the root if no entry is cut off, else below it
    run_ranges(partial(_project, x, out, thresholds), len(x), least=_BLOCK)
    return out


@njit(cache=True, fastmath=True, nogil=True)
def _largest_difference(one: Any, other: Any, largest: Any, first: int, last: int) -> None:
    for i in range(first, last):
        value = 0.0
        for j in range(one.shape[1]):
            value = max(value, abs(one[i, j] - other[i, j]))
        largest[i] = value


def largest_difference(one: FloatArray, other: FloatArray) -> float:
    """Return the largest absolute entry of the difference of two matrices."""
    largest = np.empty(one.shape[0])
    run_ranges(partial(_largest_difference, one, other, largest), len(one), least=_BLOCK)
    return float(largest.max())


def sweep(
    transitions: FloatArray,
    consensus: FloatArray,
    low_rank_point: FloatArray,
    low_rank: FloatArray,
    row_points: FloatArray,
    row_scale: FloatArray,
    column_points: FloatArray,
    column_scale: FloatArray,
    thresholds: FloatArray,
    observed_rows: FloatArray,
    observed_columns: FloatArray,
    *,
    relaxation: float,
    ratio: float,
    low_rank_weight: float = 1.0,
) -> tuple[FloatArray, FloatArray, float]:
    """Update the consensus and the points of every group, in place (see `reference.sweep`)."""
    n_samples, n_states = consensus.shape
    row_squares = np.empty(row_scale.shape)
    column_squares = np.zeros((_n_blocks(n_samples), column_points.shape[0], n_states))
    changes = np.empty(n_samples)
    dtype = transitions.dtype
    observed_rows, observed_columns = observed_rows.astype(dtype), observed_columns.astype(dtype)
    column_removed = (observed_columns[: len(column_scale)] * (1.0 - column_scale)).astype(dtype)
    work = partial(
        _sweep,
        transitions, consensus, low_rank_point, low_rank, row_points, row_scale, column_points, column_removed,
        thresholds, observed_rows, observed_columns, relaxation, ratio, low_rank_weight,
        row_squares, column_squares, changes,
    )  # fmt: skip
    run_ranges(work, len(column_squares))
    return np.sqrt(row_squares), np.sqrt(column_squares.sum(axis=0)), float(changes.sum())


def alm_sweep(
    transitions: FloatArray,
    consensus: FloatArray,
    low_rank_point: FloatArray,
    low_rank: FloatArray,
    points: FloatArray,
    row_weight: FloatArray,
    column_weight: FloatArray,
    thresholds: FloatArray,
    *,
    soft: tuple[float, float],
    new_row_weight: FloatArray,
    new_column_weight: FloatArray,
    ratio: float,
) -> tuple[FloatArray, FloatArray, float, float]:
    """Do one pass of the published schedule, in place (see `reference.alm_sweep`)."""
    n_views, n_samples, n_states = transitions.shape
    row_squares = np.empty((n_views, n_samples))
    column_squares = np.zeros((_n_blocks(n_samples), n_views, n_states))
    sums = np.empty((2, n_samples))
    work = partial(
        _alm_sweep,
        transitions, consensus, low_rank_point, low_rank, points, row_weight, column_weight, thresholds,
        soft[0], soft[1], new_row_weight, new_column_weight, ratio, row_squares, column_squares, sums,
    )  # fmt: skip
    run_ranges(work, len(column_squares))
    total, residual = float(sums[0].sum()), float(sums[1].max())
    return np.sqrt(row_squares), np.sqrt(column_squares.sum(axis=0)), total, residual


def evaluate(
    transitions: FloatArray,
    consensus: FloatArray,
    low_rank_point: FloatArray,
    low_rank: FloatArray,
    row_points: FloatArray,
    row_scale: FloatArray,
    column_points: FloatArray,
    column_scale: FloatArray,
    observed_rows: FloatArray,
    observed_columns: FloatArray,
    *,
    row_weights: FloatArray,
    low_rank_weight: float = 1.0,
    steps: int = FIT_STEPS,
) -> Evaluation:
    """Return the sums behind objective, dual bound and residuals (see `reference.evaluate`)."""
    n_views, n_samples, n_states = transitions.shape
    row_squares = np.empty((n_views, n_samples))
    column_squares = np.zeros((_n_blocks(n_samples), n_views, n_states))
    sums = np.empty((5, n_samples))
    column_removed = observed_columns[: len(column_scale)] * (1.0 - column_scale)
    work = partial(
        _evaluate,
        transitions, consensus, low_rank_point, low_rank, row_points, row_scale, column_points, column_removed,
        observed_rows, observed_columns, np.any(observed_columns != 1.0, axis=1),
        np.asarray(row_weights, dtype=np.float64), low_rank_weight, steps, row_squares, column_squares, sums,
    )  # fmt: skip
    run_ranges(work, len(column_squares))
    bound, low, groups = sums[2:].sum(axis=1)
    return Evaluation(
        row_norms=np.sqrt(row_squares),
        column_norms=np.sqrt(column_squares.sum(axis=0)),
        shifts=sums[0],
        clipped=np.sqrt(sums[1]),
        bound=float(bound),
        low_rank_residual=float(low),
        group_residual=float(groups),
    )


def measure(
    transitions: FloatArray, low_rank: FloatArray, observed_rows: FloatArray, observed_columns: FloatArray
) -> Measurement:
    """Return the errors at the projection of a low-rank matrix and what it adds (see `reference.measure`)."""
    n_views, n_samples, n_states = transitions.shape
    row_squares = np.empty((n_views, n_samples))
    column_squares = np.zeros((_n_blocks(n_samples), n_views, n_states))
    sums = np.empty((2, n_samples))
    work = partial(_measure, transitions, low_rank, observed_rows, observed_columns, row_squares, column_squares, sums)
    run_ranges(work, len(column_squares))
    return Measurement(np.sqrt(row_squares), np.sqrt(column_squares.sum(axis=0)), sums[0], np.sqrt(sums[1]))


def entrywise_sweep(
    transitions: FloatArray,
    consensus: FloatArray,
    low_rank_point: FloatArray,
    low_rank: FloatArray,
    points: FloatArray,
    thresholds: FloatArray,
    *,
    clip: float,
    relaxation: float,
    ratio: float,
    low_rank_weight: float = 1.0,
) -> float:
    """Update the consensus and the points of every view, in place (see `reference.entrywise_sweep`)."""
    changes = np.empty(len(consensus))
    work = partial(
        _entrywise_sweep,
        transitions, consensus, low_rank_point, low_rank, points, thresholds,
        float(clip), relaxation, ratio, low_rank_weight, changes,
    )  # fmt: skip
    run_ranges(work, len(consensus), least=_BLOCK)
    return float(changes.sum())


def entrywise_evaluate(
    transitions: FloatArray,
    consensus: FloatArray,
    low_rank_point: FloatArray,
    low_rank: FloatArray,
    points: FloatArray,
    *,
    clip: float,
    low_rank_weight: float = 1.0,
) -> EntrywiseEvaluation:
    """Return the sums behind objective, dual bound and residuals (see `reference.entrywise_evaluate`)."""
    sums = np.empty((6, len(consensus)))
    work = partial(
        _entrywise_evaluate,
        transitions, consensus, low_rank_point, low_rank, points, float(clip), low_rank_weight, sums,
    )  # fmt: skip
    run_ranges(work, len(consensus), least=_BLOCK)
    total, inner, square, minima, _, residual = (float(value) for value in sums.sum(axis=1))
    return EntrywiseEvaluation(total, inner, square, minima, np.sqrt(sums[4]), residual)
