"""Fused passes over distances, neighbours and chains, a row or a tile at a time and in parallel.

Only the neighbours of a sample, a few per cent of a row, are exponentiated and multiplied. Every row is handled by one
task in a fixed order, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from emvc._array import FloatArray, IntArray
from emvc._threads import run_ranges
from emvc.kernels._compile import njit

_ROWS = 32  # fewest rows that are worth a thread
_SAMPLED = 24  # values that tell where a rank is, if there are many times as many
_SMALLEST, _LARGEST = 1e-200, 1e200  # sums of affinities that rounding does no harm
_TILE = 64  # rows and columns that are symmetrised at a time


@njit(cache=True)
def _squared_distance(product: float, norm: float, other: float, rounding: float) -> float:
    """Return the squared distance of two rows from their inner product and squared norms, zero if it is rounding."""
    scale = norm + other
    square = scale - 2.0 * product
    return square if square > rounding * scale else 0.0


@njit(cache=True, nogil=True)
def _to_squared_distances(products: Any, norms: Any, others: Any, rounding: float, first: int, last: int) -> None:
    for i in range(first, last):
        for j in range(products.shape[1]):
            products[i, j] = _squared_distance(products[i, j], norms[i], others[j], rounding)


def to_squared_distances(products: FloatArray, norms: FloatArray, others: FloatArray, rounding: float) -> None:
    """Turn inner products into squared distances, in place; those below rounding are zero.

    ``norms`` and ``others`` are the squared norms of the rows and of the columns.
    """
    run_ranges(partial(_to_squared_distances, products, norms, others, rounding), len(products), least=_ROWS)


@njit(cache=True)
def _keep_the_small(values: Any, rank: int) -> int:
    """Move values to the front, all up to some bound and at least ``rank + 1``, and return their number.

    The bound is one of a few values that were sorted, about where the rank should be. Unlike exchanges at a pivot, a
    pass that copies every value and moves on after the small ones has no branches to be mispredicted. What is not
    small is lost.
    """
    n: int = values.shape[0]
    if n < _SAMPLED * _SAMPLED:
        return n
    sample = np.empty(_SAMPLED, values.dtype)
    for i in range(_SAMPLED):
        value = values[i * (n // _SAMPLED)]
        j = i
        while j > 0 and sample[j - 1] > value:
            sample[j] = sample[j - 1]
            j -= 1
        sample[j] = value
    expected = _SAMPLED * (rank + 1) / n
    position = int(expected + 2.0 * np.sqrt(expected)) + 1
    while position < _SAMPLED:
        bound = sample[position]
        count = 0
        for j in range(n):
            count += values[j] <= bound
        if count > rank:
            kept: int = 0
            for j in range(n):
                value = values[j]
                values[kept] = value
                kept += value <= bound
            return kept
        position *= 2
    return n


@njit(cache=True)
def _select(values: Any, rank: int) -> float:
    """Return the entry that would be at ``rank`` if the values were sorted; they are rearranged or lost."""
    low, high = 0, _keep_the_small(values, rank) - 1
    while low < high:
        middle = (low + high) // 2
        a, b, c = values[low], values[middle], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return float(values[rank])


@njit(cache=True, nogil=True)
def _kth_smallest(matrix: Any, rank: int, out: Any, first: int, last: int) -> None:
    n = matrix.shape[0]
    for i in range(first, last):
        row = np.empty(n - 1, matrix.dtype)
        row[:i] = matrix[i, :i]
        row[i:] = matrix[i, i + 1 :]
        out[i] = _select(row, rank)


@njit(cache=True, nogil=True)
def kth_of_rows(products: Any, norms: Any, start: int, rank: int, rounding: float, out: Any) -> None:
    """Write the squared distance at ``rank`` of rows from ``start`` on, given their inner products with all rows."""
    n = products.shape[1]
    squares = np.empty(max(n - 1, 0))
    for row in range(products.shape[0]):
        i = start + row
        for j in range(n):
            if j != i:
                square = _squared_distance(products[row, j], norms[i], norms[j], rounding)
                squares[j if j < i else j - 1] = square
        out[i] = _select(squares, rank)


def kth_smallest(matrix: FloatArray, k: int) -> FloatArray:
    """Return the k-th smallest entry of each row of a square matrix, its diagonal left out."""
    out = np.empty(len(matrix))
    run_ranges(partial(_kth_smallest, matrix, k - 1, out), len(matrix), least=_ROWS)
    return out


def least_width(scale: FloatArray) -> float:
    """Return the least width of the kernel: samples with many duplicates have scale zero.

    If all have, every distance is zero and any width will do.
    """
    return 1e-3 * float(np.median(scale)) or 1e-6 * float(scale.max()) or 1.0


@njit(cache=True, nogil=True)
def _count(matrix: Any, counts: Any, first: int, last: int) -> None:
    for i in range(first, last):
        count = 0
        for j in range(matrix.shape[1]):
            if matrix[i, j] != 0.0:
                count += 1
        counts[i] = count


@njit(cache=True, nogil=True)
def _fill(matrix: Any, starts: Any, columns: Any, values: Any, first: int, last: int) -> None:
    for i in range(first, last):
        position = starts[i]
        for j in range(matrix.shape[1]):
            if matrix[i, j] != 0.0:
                columns[position] = j
                values[position] = matrix[i, j]
                position += 1


Compressed = tuple[IntArray, IntArray, FloatArray]
"""Starts of rows, columns and values of the entries that are not zero."""


def compress(matrix: FloatArray) -> Compressed:
    """Return starts of rows, columns and values of the entries that are not zero."""
    counts = np.empty(len(matrix), dtype=np.int64)
    run_ranges(partial(_count, matrix, counts), len(matrix), least=_ROWS)
    starts = np.concatenate(([0], np.cumsum(counts)))
    columns, values = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
    run_ranges(partial(_fill, matrix, starts, columns, values), len(matrix), least=_ROWS)
    return starts, columns, values


@njit(cache=True, fastmath={"nnan", "nsz", "reassoc"}, nogil=True)  # no reciprocals, which overflow
def _to_transitions(affinity: Any, out: Any, first: int, last: int) -> None:
    n = affinity.shape[1]
    for i in range(first, last):
        total = 0.0
        for j in range(n):
            total += affinity[i, j]
        if _SMALLEST <= total <= _LARGEST:
            for j in range(n):
                out[i, j] = affinity[i, j] / total
            continue
        largest = affinity[i, 0]
        for j in range(1, n):
            largest = max(largest, affinity[i, j])
        if largest > 0:
            # Divided by the largest entry first, so that neither tiny nor huge affinities lose their proportions.
            total = 0.0
            for j in range(n):
                out[i, j] = affinity[i, j] / largest
                total += out[i, j]
            for j in range(n):
                out[i, j] /= total
        else:
            for j in range(n):
                out[i, j] = 1.0 / n


def to_transitions(affinity: FloatArray, out: FloatArray) -> None:
    """Write rows divided by their sums to ``out``, and the uniform distribution for rows of zeros."""
    run_ranges(partial(_to_transitions, affinity, out), len(affinity), least=_ROWS)


@njit(cache=True, nogil=True)
def _symmetric_chain(
    transitions: Any, root: Any, inverse: Any, keep: float, jump: float, out: Any, first: int, last: int
) -> None:
    n = transitions.shape[0]
    for tile in range(first, last):
        for other in range(tile + 1):
            for i in range(tile * _TILE, min((tile + 1) * _TILE, n)):
                for j in range(other * _TILE, min((other + 1) * _TILE, i + 1)):
                    outward = root[i] * inverse[j] * (keep * transitions[i, j] + jump)
                    inward = root[j] * inverse[i] * (keep * transitions[j, i] + jump)
                    out[i, j] = out[j, i] = 0.5 * (outward + inward)


def symmetric_chain(transitions: FloatArray, root: FloatArray, teleport: float) -> FloatArray:
    """Return the symmetric operator of a chain with teleportation (`emvc.spectral`).

    Parameters
    ----------
    transitions : ndarray of shape (n, n)
        The chain.
    root : ndarray of shape (n,)
        Square root of its stationary distribution.
    teleport : float
        Probability of a jump to a random state.
    """
    out = np.empty_like(transitions)
    work = partial(_symmetric_chain, transitions, root, 1.0 / root, 1.0 - teleport, teleport / len(root), out)
    run_ranges(work, -(-len(root) // _TILE))
    return out
