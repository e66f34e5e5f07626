"""Fused CPU versions of the per-iteration passes: every array is read and written once.

Rows are handled in blocks of fixed size and sums over columns are added block by block, so the result does not
depend on the number of threads. Signatures and meaning are those of `emvc.kernels.reference`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emvc._array import FloatArray
from emvc._threads import run_ranges
from emvc.kernels._compile import njit
from emvc.kernels.reference import FIT_STEPS, LEAST_NORM, MOMENTUM, EntrySums, GroupSums
from emvc.prox import shrinkage

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
    """Return the smallest entry, by four minima that do not wait for each other."""
    n = row.shape[0]
    whole = n - n % 4
    a = b = c = d = row[0]
    for j in range(0, whole, 4):
        a, b, c, d = min(a, row[j]), min(b, row[j + 1]), min(c, row[j + 2]), min(d, row[j + 3])
    for j in range(whole, n):
        a = min(a, row[j])
    return min(a, b, c, d)


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
    row_removed: Any,
    column_points: Any,
    column_removed: Any,
    thresholds: Any,
    observed_rows: Any,
    observed_columns: Any,
    relaxation: float,
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
    one, two, times = real(1.0), real(2.0), real((1 if n_rows else 0) + (1 if n_columns else 0))
    divisor, weight, gain = real(1.0 / (low_rank_weight + n_rows + n_columns)), real(low_rank_weight), real(relaxation)
    for block in range(first, last):
        target = np.empty(m, transitions.dtype)
        for i in range(block * _BLOCK, min((block + 1) * _BLOCK, n)):
            for j in range(m):
                target[j] = weight * (two * low_rank[i, j] - low_rank_point[i, j])
            for k in range(n_views):
                for j in range(m):
                    target[j] += times * transitions[k, i, j]
            for k in range(n_rows):
                removed = two * row_removed[k, i]
                for j in range(m):
                    target[j] -= (one - observed_columns[k, j] * removed) * row_points[k, i, j]
            for k in range(n_columns):
                removed = two * observed_rows[k, i]
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
                low_rank_point[i, j] += gain * (value - low_rank[i, j])
            changes[i] = change
            for k in range(n_rows):
                removed, total = row_removed[k, i], 0.0
                for j in range(m):
                    point = row_points[k, i, j]
                    copy = point - observed_columns[k, j] * removed * point
                    point += gain * (transitions[k, i, j] - target[j] - copy)
                    row_points[k, i, j] = point
                    total += observed_columns[k, j] * point * point
                row_squares[k, i] = observed_rows[k, i] * total
            for k in range(n_columns):
                seen = observed_rows[k, i]
                for j in range(m):
                    point = column_points[k, i, j]
                    copy = point - column_removed[k, j] * seen * point
                    point += gain * (transitions[k, i, j] - target[j] - copy)
                    column_points[k, i, j] = point
                    column_squares[block, k, j] += seen * observed_columns[k, j] * point * point


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


@njit(cache=True, fastmath=True, nogil=True)
def _evaluate(  # noqa: PLR0912, PLR0915
    transitions: Any,
    consensus: Any,
    low_rank_point: Any,
    low_rank: Any,
    row_points: Any,
    row_removed: Any,
    column_points: Any,
    column_removed: Any,
    observed_rows: Any,
    observed_columns: Any,
    candidate: Any,
    row_limits: Any,
    low_rank_weight: float,
    norm: float,
    multipliers: Any,
    row_squares: Any,
    column_squares: Any,
    sums: Any,
    first: int,
    last: int,
) -> None:
    n_views, n, m = transitions.shape
    for block in range(first, last):
        cost, slope, point, previous = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
        data, found, pull = np.empty((n_views, m)), np.empty((n_views, m)), np.empty(n_views)
        for i in range(block * _BLOCK, min((block + 1) * _BLOCK, n)):
            residual, square, fixed = 0.0, 0.0, 0.0
            for j in range(m):
                removed = low_rank_point[i, j] - low_rank[i, j]
                square += low_rank_weight * removed * removed
                residual += low_rank_weight * (consensus[i, j] - low_rank[i, j]) ** 2
                cost[j] = low_rank_weight / norm * removed
                point[j] = previous[j] = candidate[i, j]
            for k in range(n_views):
                seen, total = observed_rows[k, i], 0.0
                for j in range(m):
                    data[k, j] = observed_columns[k, j] * transitions[k, i, j]
                    error = seen * (data[k, j] - observed_columns[k, j] * point[j])
                    total += error * error
                    column_squares[block, k, j] += error * error
                row_squares[k, i] = total
            for k in range(column_points.shape[0]):
                seen = observed_rows[k, i]
                for j in range(m):
                    value = column_points[k, i, j]
                    multiplier = seen * column_removed[k, j] * value
                    cost[j] -= multiplier
                    fixed += multiplier * transitions[k, i, j]
                    square += multiplier * multiplier
                    residual += (transitions[k, i, j] - consensus[i, j] - value + multiplier) ** 2
            best = fixed
            for j in range(m):
                slope[j] = cost[j]
            for k in range(row_points.shape[0]):
                for j in range(m):
                    value = row_points[k, i, j]
                    multiplier = observed_columns[k, j] * row_removed[k, i] * value
                    found[k, j] = multiplier
                    slope[j] -= multiplier
                    best += multiplier * transitions[k, i, j]
                    square += multiplier * multiplier
                    residual += (transitions[k, i, j] - consensus[i, j] - value + multiplier) ** 2
            best += _smallest(slope)
            theta = 0.0
            for _ in range(FIT_STEPS if row_points.shape[0] else 0):
                value, pulls = fixed, 0.0
                for j in range(m):
                    slope[j] = cost[j]
                for k in range(n_views):
                    total, product = 0.0, 0.0
                    for j in range(m):
                        toward = data[k, j] - observed_columns[k, j] * point[j]
                        total += toward * toward
                        product += toward * data[k, j]
                    pull[k] = observed_rows[k, i] * row_limits[k] / max(np.sqrt(total), LEAST_NORM)
                    value += pull[k] * product
                    pulls += pull[k]
                    for j in range(m):
                        slope[j] -= pull[k] * (data[k, j] - observed_columns[k, j] * point[j])
                value += _smallest(slope)
                if value > best:
                    best = value
                    if multipliers.shape[0]:
                        for k in range(n_views):
                            for j in range(m):
                                found[k, j] = pull[k] * (data[k, j] - observed_columns[k, j] * point[j])
                if pulls == 0.0:
                    break
                for j in range(m):
                    slope[j] = point[j] - slope[j] / pulls
                theta = _simplex_threshold(slope, theta)
                for j in range(m):
                    moved = max(slope[j] - theta, 0.0)
                    point[j] = max(moved + MOMENTUM * (moved - previous[j]), 0.0)
                    previous[j] = moved
            for k in range(multipliers.shape[0]):
                for j in range(m):
                    multipliers[k, i, j] = found[k, j]
            sums[0, i], sums[1, i], sums[2, i] = best, residual, square


@njit(cache=True, fastmath=True, nogil=True)
def _entrywise_sweep(
    transitions: Any,
    consensus: Any,
    low_rank_point: Any,
    low_rank: Any,
    points: Any,
    thresholds: Any,
    step: float,
    relaxation: float,
    low_rank_weight: float,
    changes: Any,
    first: int,
    last: int,
) -> None:
    n_views, m = transitions.shape[0], transitions.shape[2]
    divisor = 1.0 / (low_rank_weight + n_views)
    target = np.empty(m)
    for i in range(first, last):
        for j in range(m):
            target[j] = low_rank_weight * (2.0 * low_rank[i, j] - low_rank_point[i, j])
        for k in range(n_views):
            for j in range(m):
                point = points[k, i, j]
                target[j] += transitions[k, i, j] - point + 2.0 * min(max(point, -step), step)
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
            low_rank_point[i, j] += relaxation * (value - low_rank[i, j])
        changes[i] = change
        for k in range(n_views):
            for j in range(m):
                point = points[k, i, j]
                copy = point - min(max(point, -step), step)
                points[k, i, j] = point + relaxation * (transitions[k, i, j] - target[j] - copy)


@njit(cache=True, fastmath=True, nogil=True)
def _entrywise_evaluate(
    transitions: Any,
    consensus: Any,
    low_rank_point: Any,
    low_rank: Any,
    points: Any,
    candidate: Any,
    step: float,
    low_rank_weight: float,
    norm: float,
    sums: Any,
    first: int,
    last: int,
) -> None:
    n_views, m = transitions.shape[0], transitions.shape[2]
    slack = np.empty(m)
    for i in range(first, last):
        total, best, residual, square = 0.0, 0.0, 0.0, 0.0
        for j in range(m):
            removed = low_rank_point[i, j] - low_rank[i, j]
            square += low_rank_weight * removed * removed
            residual += low_rank_weight * (consensus[i, j] - low_rank[i, j]) ** 2
            slack[j] = low_rank_weight / norm * removed
        for k in range(n_views):
            for j in range(m):
                point, value = points[k, i, j], transitions[k, i, j]
                multiplier = min(max(point, -step), step)
                slack[j] -= multiplier
                total += abs(value - candidate[i, j])
                best += multiplier * value
                square += multiplier * multiplier
                residual += (value - consensus[i, j] - point + multiplier) ** 2
        sums[0, i], sums[1, i], sums[2, i], sums[3, i] = best + _smallest(slack), residual, square, total


def _n_blocks(n_samples: int) -> int:
    return -(-n_samples // _BLOCK)


def project_simplex(x: NDArray[Any], thresholds: FloatArray | None = None) -> NDArray[Any]:
    """Project every row of a matrix onto the probability simplex (see `reference.project_simplex`)."""
    out = np.empty_like(x)
    if thresholds is None:
        thresholds = x.mean(axis=1) - 1.0 / x.shape[1]  # the root if no entry is cut off, else below it
    run_ranges(partial(_project, x, out, thresholds), len(x), least=_BLOCK)
    return out


def sweep(
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
    thresholds: FloatArray,
    *,
    row_steps: FloatArray,
    column_steps: FloatArray,
    relaxation: float,
    low_rank_weight: float,
) -> float:
    """Update the consensus, the points and the scales of the groups, in place (see `reference.sweep`)."""
    row_squares = np.empty(row_scale.shape)
    column_squares = np.zeros((_n_blocks(len(consensus)), *column_scale.shape))
    changes = np.empty(len(consensus))
    dtype = transitions.dtype
    row_removed = (observed_rows[: len(row_scale)] * (1.0 - row_scale)).astype(dtype)
    column_removed = (observed_columns[: len(column_scale)] * (1.0 - column_scale)).astype(dtype)
    work = partial(
        _sweep,
        transitions, consensus, low_rank_point, low_rank, row_points, row_removed, column_points, column_removed,
        thresholds, observed_rows.astype(dtype), observed_columns.astype(dtype), relaxation, low_rank_weight,
        row_squares, column_squares, changes,
    )  # fmt: skip
    run_ranges(work, len(column_squares))
    row_scale[...] = shrinkage(np.sqrt(row_squares), row_steps[: len(row_scale), None])
    column_scale[...] = shrinkage(np.sqrt(column_squares.sum(axis=0)), column_steps[: len(column_scale), None])
    return float(changes.sum())


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
    candidate: FloatArray,
    *,
    row_limits: FloatArray,
    low_rank_weight: float,
    norm: float = 1.0,
    multipliers: FloatArray | None = None,
) -> GroupSums:
    """Return the sums behind objective, dual bound and residuals (see `reference.evaluate`)."""
    n_views, n_samples, n_states = transitions.shape
    row_squares = np.empty((n_views, n_samples))
    column_squares = np.zeros((_n_blocks(n_samples), n_views, n_states))
    sums = np.empty((3, n_samples))
    row_removed = observed_rows[: len(row_scale)] * (1.0 - row_scale)
    column_removed = observed_columns[: len(column_scale)] * (1.0 - column_scale)
    out = np.empty((0, 0, 0), dtype=transitions.dtype) if multipliers is None else multipliers
    work = partial(
        _evaluate,
        transitions, consensus, low_rank_point, low_rank, row_points, row_removed, column_points, column_removed,
        observed_rows, observed_columns, candidate, np.asarray(row_limits, dtype=np.float64), low_rank_weight, norm,
        out, row_squares, column_squares, sums,
    )  # fmt: skip
    run_ranges(work, len(column_squares))
    return GroupSums(np.sqrt(row_squares), np.sqrt(column_squares.sum(axis=0)), *(float(x) for x in sums.sum(axis=1)))


def entrywise_sweep(
    transitions: FloatArray,
    consensus: FloatArray,
    low_rank_point: FloatArray,
    low_rank: FloatArray,
    points: FloatArray,
    thresholds: FloatArray,
    *,
    step: float,
    relaxation: float,
    low_rank_weight: float,
) -> float:
    """Update the consensus and the points of every view, in place (see `reference.entrywise_sweep`)."""
    changes = np.empty(len(consensus))
    work = partial(
        _entrywise_sweep,
        transitions, consensus, low_rank_point, low_rank, points, thresholds,
        float(step), relaxation, low_rank_weight, changes,
    )  # fmt: skip
    run_ranges(work, len(consensus), least=_BLOCK)
    return float(changes.sum())


def entrywise_evaluate(
    transitions: FloatArray,
    consensus: FloatArray,
    low_rank_point: FloatArray,
    low_rank: FloatArray,
    points: FloatArray,
    candidate: FloatArray,
    *,
    step: float,
    low_rank_weight: float,
    norm: float = 1.0,
) -> EntrySums:
    """Return the sums behind objective, dual bound and residuals (see `reference.entrywise_evaluate`)."""
    sums = np.empty((4, len(consensus)))
    work = partial(
        _entrywise_evaluate,
        transitions, consensus, low_rank_point, low_rank, points, candidate, float(step), low_rank_weight, norm, sums,
    )  # fmt: skip
    run_ranges(work, len(consensus), least=_BLOCK)
    return EntrySums(*(float(value) for value in sums.sum(axis=1)))
