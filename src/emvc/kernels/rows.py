"""Fused passes over rows that lead to states: the local graph, seen from any rows, and the fusion of chains.

A row is a sample, a state a sample of the reference; ``own`` tells which state a row is itself, -1 if none. Every row
is handled by one task in a fixed order, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from emvc._array import ROUNDING, FloatArray, IntArray
from emvc._threads import run_ranges
from emvc.kernels._compile import njit
from emvc.kernels.neighbors import _ROWS, _select, least_width

WIDTH = 0.35
"""Width of the kernel of a link, as a share of the mean of its length and the neighbour distances of its ends."""


class Ends(NamedTuple):
    """What the local graph knows about each of its ends, rows or states.

    Attributes
    ----------
    bounds : ndarray
        Squared distance to the last neighbour.
    shares : ndarray
        What each of those at exactly this distance counts, so that places that are left are shared.
    scales : ndarray
        Mean distance to the neighbours.
    totals : ndarray
        Sum of the weights of the neighbours and of the sample itself.
    """

    bounds: FloatArray
    shares: FloatArray
    scales: FloatArray
    totals: FloatArray


@njit(cache=True, nogil=True)
def _measure(
    squares: Any, own: Any, n_neighbors: int, bounds: Any, shares: Any, scales: Any, first: int, last: int
) -> None:
    n = squares.shape[1]
    for i in range(first, last):
        row = np.empty(n)
        count: int = 0
        for j in range(n):
            if j != own[i]:
                row[count] = squares[i, j]
                count += 1
        if count == 0:  # a state that is alone has no neighbours
            bounds[i], shares[i], scales[i] = 0.0, 0.0, 0.0
            continue
        bound = _select(row[:count], min(n_neighbors, count) - 1)
        slack = ROUNDING * bound
        nearer, tied, near_sum, tied_sum = 0, 0, 0.0, 0.0
        for j in range(n):
            if j != own[i]:
                square = squares[i, j]
                if square < bound - slack:
                    nearer += 1
                    near_sum += np.sqrt(square)
                elif square <= bound + slack:
                    tied += 1
                    tied_sum += np.sqrt(square)
        bounds[i] = bound
        shares[i] = (n_neighbors - nearer) / tied
        scales[i] = (near_sum + shares[i] * tied_sum) / n_neighbors


@njit(cache=True)
def _part(square: float, bound: float, share: float) -> float:
    """Return how much a sample at this squared distance counts as a neighbour: 1, a share of the last places, or 0."""
    slack = ROUNDING * bound
    if square < bound - slack:
        return 1.0
    return share if square <= bound + slack else 0.0


@njit(cache=True)
def _gaussian(square: float, one: float, other: float, floor: float) -> float:
    width = max(WIDTH * (np.sqrt(square) + one + other) / 3.0, floor)
    return float(np.exp(-square / (2.0 * width * width)))


@njit(cache=True, nogil=True)
def _sum_up(
    squares: Any,
    own: Any,
    bounds: Any,
    shares: Any,
    scales: Any,
    states: Any,
    floor: float,
    totals: Any,
    first: int,
    last: int,
) -> None:
    for i in range(first, last):
        total = 0.0
        for j in range(squares.shape[1]):
            if j != own[i]:
                part = _part(squares[i, j], bounds[i], shares[i])
                if part > 0.0:
                    total += part * _gaussian(squares[i, j], scales[i], states[j], floor)
        totals[i] = total if total > 0.0 else 1.0


def measure_ends(squares: FloatArray, own: IntArray, n_neighbors: int, states: Ends | None, floor: float) -> Ends:
    """Return what the local graph knows about rows; the rows are the states themselves if ``states`` is None.

    With ``states=None`` the floor is not known yet; the totals are then left for `sum_up`.
    """
    n_rows = len(squares)
    bounds, shares, scales, totals = np.empty((4, n_rows))
    run_ranges(partial(_measure, squares, own, n_neighbors, bounds, shares, scales), n_rows, least=_ROWS)
    ends = Ends(bounds, shares, scales, totals)
    if states is not None:
        sum_up(squares, own, ends, states.scales, floor)
    return ends


def sum_up(squares: FloatArray, own: IntArray, ends: Ends, states: FloatArray, floor: float) -> None:
    """Write the totals of ``ends``, given the scales of the states."""
    work = partial(_sum_up, squares, own, ends.bounds, ends.shares, ends.scales, states, floor, ends.totals)
    run_ranges(work, len(squares), least=_ROWS)


@njit(cache=True, nogil=True)
def _local_rows(
    squares: Any, own: Any, rows: Any, states: Any, floor: float, divide: bool, out: Any, first: int, last: int
) -> None:
    bounds, shares, scales, totals = rows
    for i in range(first, last):
        total = 0.0
        for j in range(squares.shape[1]):
            square = squares[i, j]
            weight = 0.0
            if j != own[i]:
                there = _part(square, bounds[i], shares[i])
                back = _part(square, states[0][j], states[1][j])
                if there > 0.0 or back > 0.0:
                    weight = _gaussian(square, scales[i], states[2][j], floor)
                    weight *= there / totals[i] + back / states[3][j]
            out[i, j] = weight
            total += weight
        if total <= 0.0 and own[i] >= 0:
            out[i, own[i]] = total = 1.0  # a single state leads to itself
        if divide:
            for j in range(squares.shape[1]):
                out[i, j] /= total


def local_rows(
    squares: FloatArray,
    own: IntArray,
    rows: Ends,
    states: Ends,
    floor: float,
    out: FloatArray,
    *,
    divide: bool = True,
) -> None:
    """Write the rows of the symmetric local graph, divided by their sums or not, to ``out``."""
    work = partial(_local_rows, squares, own, tuple(rows), tuple(states), floor, divide, out)
    run_ranges(work, len(squares), least=_ROWS)


def measure_states(squares: FloatArray, n_neighbors: int) -> tuple[Ends, float]:
    """Return what the local graph knows about its states, from all distances between them, and its least width."""
    own = np.arange(len(squares))
    states = measure_ends(squares, own, n_neighbors, None, 0.0)
    floor = least_width(states.scales)
    sum_up(squares, own, states, states.scales, floor)
    return states, floor


def local_graph(squares: FloatArray, n_neighbors: int) -> FloatArray:
    """Return the symmetric local graph of some samples from all squared distances between them."""
    states, floor = measure_states(squares, n_neighbors)
    out = np.empty_like(squares)
    local_rows(squares, np.arange(len(squares)), states, states, floor, out, divide=False)
    return out


_SETTLED = 1e-13


@njit(cache=True, fastmath={"reassoc", "contract"}, nogil=True)
def _multiply(transitions: Any, weights: Any, out: Any, first: int, last: int) -> None:
    n_views, _, n_states = transitions.shape
    for i in range(first, last):
        for k in range(n_views):
            for other in range(k + 1):
                total = 0.0
                if weights[k, i] > 0.0 and weights[other, i] > 0.0:
                    for j in range(n_states):
                        total += np.float64(transitions[k, i, j]) * np.float64(transitions[other, i, j])
                out[i, k, other] = out[i, other, k] = total


def inner_products(transitions: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the inner products of the rows of all chains with weight, of shape (n_rows, n_views, n_views)."""
    n_views, n_rows, _ = transitions.shape
    out = np.empty((n_rows, n_views, n_views))
    run_ranges(partial(_multiply, transitions, weights, out), n_rows, least=_ROWS)
    return out


@njit(cache=True, nogil=True)
def _reweigh(gram: Any, weights: Any, limits: Any, parts: Any, lengths: Any, image: Any, max_iter: int) -> int:
    """Write the shares of the views in the solution of one row, and the lengths of their errors; return the steps."""
    n_views = len(parts)
    mass = 0.0
    for k in range(n_views):
        mass += weights[k]
    for k in range(n_views):
        parts[k] = weights[k] / mass
    steps: int = 0
    for _ in range(max_iter):
        steps += 1
        square = 0.0
        for k in range(n_views):
            image[k] = 0.0
            for other in range(n_views):
                image[k] += gram[k, other] * parts[other]
            square += parts[k] * image[k]
        total = 0.0
        for k in range(n_views):
            lengths[k] = np.sqrt(max(gram[k, k] - 2.0 * image[k] + square, 0.0))
            total += weights[k] * _kept(lengths[k], limits[k])
        if total <= 0.0:
            break  # limits of zero, where all rows are equal but for rounding
        moved = 0.0
        for k in range(n_views):
            share = weights[k] * _kept(lengths[k], limits[k]) / total
            moved = max(moved, abs(share - parts[k]))
            parts[k] = share
        if moved < _SETTLED:
            break
    return steps


@njit(cache=True)
def _kept(length: float, limit: float) -> float:
    """Return the part of a row that is not cut off as an error."""
    return limit / length if length > limit else 1.0


@njit(cache=True, nogil=True)
def _fuse(
    transitions: Any, inner: Any, weights: Any, limits: Any, out: Any, max_iter: int, shares: Any, lengths: Any,
    values: Any, first: int, last: int,
) -> None:  # fmt: skip
    n_views, _, n_states = transitions.shape
    parts, lengths_here, image, multipliers = np.empty(n_views), np.empty(n_views), np.empty(n_views), np.empty(n_views)
    for i in range(first, last):
        values[i, 2] = _reweigh(inner[i], weights[:, i], limits[:, i], parts, lengths_here, image, max_iter)
        for j in range(n_states):
            total = 0.0
            for k in range(n_views):
                if parts[k] > 0.0:
                    total += parts[k] * transitions[k, i, j]
            out[i, j] = total
        _rate(inner[i], parts, weights[:, i], limits[:, i], lengths_here, image, multipliers, values[i])
        for k in range(n_views):
            shares[k, i] = parts[k]
            lengths[k, i] = lengths_here[k]


@njit(cache=True)
def _rate(
    gram: Any, parts: Any, weights: Any, limits: Any, lengths: Any, image: Any, multipliers: Any, value: Any
) -> None:
    """Write objective and bound of one row, both from the inner products of the chains."""
    n_views = len(parts)
    square = 0.0
    for k in range(n_views):
        image[k] = 0.0
        for other in range(n_views):
            image[k] += gram[k, other] * parts[other]
        square += parts[k] * image[k]
    objective, bound, total = 0.0, 0.0, 0.0
    for k in range(n_views):
        if weights[k] <= 0.0:
            lengths[k] = 0.0
            multipliers[k] = 0.0
            continue
        length = np.sqrt(max(gram[k, k] - 2.0 * image[k] + square, 0.0))
        lengths[k] = length
        if length <= limits[k]:
            multipliers[k] = weights[k]
            objective += 0.5 * weights[k] * length * length
        else:
            multipliers[k] = weights[k] * limits[k] / length
            objective += weights[k] * limits[k] * (length - 0.5 * limits[k])
        # The multiplier of view k is multipliers[k] times its error, P_k - P.
        bound += multipliers[k] * (gram[k, k] - image[k])
        bound -= 0.5 * (multipliers[k] * length) ** 2 / weights[k]
        total += multipliers[k]
    # The largest entry of the sum of the multipliers is at most its length.
    for k in range(n_views):
        image[k] = multipliers[k] - total * parts[k]
    excess = 0.0
    for k in range(n_views):
        for other in range(n_views):
            excess += image[k] * gram[k, other] * image[other]
    value[0] = objective
    value[1] = max(bound - np.sqrt(max(excess, 0.0)), 0.0)


def fuse(
    transitions: FloatArray,
    inner: FloatArray,
    weights: FloatArray,
    limits: FloatArray,
    out: FloatArray,
    max_iter: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Solve `emvc.problem.RowProblem` row by row and write the consensus to ``out``.

    Returns
    -------
    shares : ndarray of shape (n_views, n_rows)
        The consensus is the mean of the chains with these weights.
    lengths : ndarray of shape (n_views, n_rows)
        Lengths of the errors.
    values : ndarray of shape (n_rows, 3)
        Objective, dual bound and number of steps of each row.
    """
    n_views, n_rows, _ = transitions.shape
    shares, lengths, values = np.empty((n_views, n_rows)), np.empty((n_views, n_rows)), np.zeros((n_rows, 3))
    work = partial(_fuse, transitions, inner, weights, limits, out, max_iter, shares, lengths, values)
    run_ranges(work, n_rows, least=_ROWS)
    return shares, lengths, values
