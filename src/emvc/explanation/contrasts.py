"""Every cluster against all other samples, for all features of a view at once.

Features are compared by ranks (Mann and Whitney): with S the sum of the ranks of a cluster of n samples among m,

    U = S - n (n + 1) / 2,    effect = 2 U / (n (m - n)) - 1,

the share of pairs in which the sample of the cluster has the larger value, minus the share in which it has the smaller
one. The p-value is that of the normal approximation with ties and a correction for continuity; features of zeros and
ones whose expected counts are small get the exact one of Fisher's table. The values may be dense, NaN where there is
none, or sparse: zeros of sparse columns are tied and never stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import ndtr
from scipy.stats import hypergeom

from emvc._array import BoolArray, FloatArray, IntArray

_BLOCK_CELLS = 2**21  # of dense values that are ranked together: 16 MiB
_FEW = 5.0  # expected counts below this ask for the exact test


@dataclass(frozen=True)
class Contrasts:
    """Clusters against the rest; all arrays have the shape (n_features, n_clusters).

    Attributes
    ----------
    effect : ndarray
        Rank-biserial correlation, from -1 (all values of the cluster are smaller) to 1; 0 if nothing can be told.
    difference : ndarray
        Difference of the means in units of the standard deviation within both groups.
    p_value : ndarray
        Two-sided.
    """

    effect: FloatArray
    difference: FloatArray
    p_value: FloatArray


@dataclass(frozen=True)
class _Sums:
    """What the tests need of each feature and cluster."""

    counts: FloatArray
    ranks: FloatArray
    totals: FloatArray
    values: FloatArray
    """Sums like ``totals``, but of values that lie around zero."""
    squares: FloatArray
    ties: FloatArray
    binary: BoolArray


def contrast(array: Any, labels: IntArray, n_clusters: int) -> Contrasts:
    """Compare every cluster with the other samples in every feature.

    Parameters
    ----------
    array : ndarray or sparse matrix of shape (n_samples, n_features)
        Values; NaN where there is none.
    labels : ndarray of int of shape (n_samples,)
        Clusters; samples with negative labels are left out.
    n_clusters : int
        Number of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> found = contrast(np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([0, 0, 1, 1]), 2)
    >>> found.effect
    array([[-1.,  1.]])
    """
    kept = np.flatnonzero(labels >= 0)
    members = np.zeros((len(kept), n_clusters))
    members[np.arange(len(kept)), labels[kept]] = 1.0
    rows = array if len(kept) == len(labels) else array[kept]
    width = max(1, _BLOCK_CELLS // max(len(kept), 1))
    starts = range(0, array.shape[1], width)
    if scipy.sparse.issparse(rows):
        columns = scipy.sparse.csc_matrix(rows)
        parts = [_test(_sparse_sums(columns[:, start : start + width], members)) for start in starts]
    else:
        parts = [_test(_dense_sums(rows[:, start : start + width], members)) for start in starts]
    empty = np.zeros((0, n_clusters))
    joined = (np.concatenate([empty, *(getattr(part, name) for part in parts)]) for name in Contrasts.__annotations__)
    return Contrasts(*joined)


def rank_rows(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return average ranks within each row, 0 where a value is NaN, and the sums of t^3 - t over the ties.

    Examples
    --------
    >>> import numpy as np
    >>> rank_rows(np.array([[3.0, 1.0, np.nan, 3.0]]))
    (array([[2.5, 1. , 0. , 2.5]]), array([6.]))
    """
    order = np.argsort(rows, axis=1)
    ordered = np.take_along_axis(rows, order, axis=1)
    first = np.ones(rows.shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    position = np.arange(1.0, rows.shape[1] + 1.0)
    averages: FloatArray = np.broadcast_to(position, rows.shape)
    ties: FloatArray = np.zeros(len(rows))
    if not first.all():
        group = np.cumsum(first.ravel()) - 1
        sizes = np.bincount(group).astype(np.float64)
        begin = np.broadcast_to(position, rows.shape).ravel()[first.ravel()]
        averages = np.asarray((begin + (sizes - 1.0) / 2.0)[group].reshape(rows.shape))
        owner = np.repeat(np.arange(len(rows)), rows.shape[1])[first.ravel()]
        ties = np.asarray(np.bincount(owner, weights=sizes**3 - sizes, minlength=len(rows)))
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, averages, axis=1)
    ranks[np.isnan(rows)] = 0.0
    return ranks, ties


def _dense_sums(block: Any, members: FloatArray) -> _Sums:
    rows = np.ascontiguousarray(np.asarray(block, dtype=np.float64).T)
    ranks, ties = rank_rows(rows)
    binary = ((rows == 0.0) | (rows == 1.0) | np.isnan(rows)).all(axis=1)
    gaps = np.isnan(rows)
    if gaps.any():
        counts = (~gaps) @ members
        rows = np.where(gaps, 0.0, rows)
    else:
        counts = np.broadcast_to(members.sum(axis=0), (len(rows), members.shape[1]))
    # Differences of means do not depend on where zero is; near the mean squares lose no digits.
    totals = rows @ members
    centre = totals.sum(axis=1, keepdims=True) / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    rows = np.where(gaps, 0.0, rows - centre)
    return _Sums(counts, ranks @ members, totals, totals - centre * counts, (rows**2) @ members, ties, binary)


def _sparse_sums(block: Any, members: FloatArray) -> _Sums:
    """Return the same for a sparse block: ranks of what is stored, and the average rank of the zeros."""
    block = block.copy()
    block.eliminate_zeros()
    n_features, n_clusters = block.shape[1], members.shape[1]
    column = np.repeat(np.arange(n_features), np.diff(block.indptr))
    label = members.argmax(axis=1)[block.indices]
    gap = np.isnan(block.data)

    def by_cluster(chosen: Any, weights: Any) -> FloatArray:
        cells = np.bincount(column[chosen] * n_clusters + label[chosen], weights, minlength=n_features * n_clusters)
        return np.asarray(cells.reshape(n_features, n_clusters), dtype=np.float64)

    counts = members.sum(axis=0) - by_cluster(gap, None)
    column, label, data = column[~gap], label[~gap], block.data[~gap]
    everything = slice(None)
    stored = by_cluster(everything, None)
    zeros = (counts - stored).sum(axis=1)
    ranks, low, ties = _ranks_of_stored(column, data, zeros)
    # A column without zeros has no rank of zeros.
    zero_rank = low + (zeros + 1.0) / 2.0
    sums = by_cluster(everything, ranks) + (counts - stored) * zero_rank[:, None]
    binary = np.bincount(column, data != 1.0, minlength=n_features) == 0
    totals = by_cluster(everything, data)
    return _Sums(counts, sums, totals, totals, by_cluster(everything, data**2), ties, binary)


def _ranks_of_stored(
    column: IntArray, data: FloatArray, zeros: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ranks of the stored values among all of their column, numbers of values below zero, and ties."""
    n_features = len(zeros)
    low = np.bincount(column[data < 0], minlength=n_features).astype(np.float64)
    order = np.lexsort((data, column))
    columns, values = column[order], data[order]
    begin = np.searchsorted(columns, np.arange(n_features))
    first = np.ones(len(values), dtype=bool)
    first[1:] = (values[1:] != values[:-1]) | (columns[1:] != columns[:-1])
    group = np.cumsum(first) - 1
    sizes = np.bincount(group).astype(np.float64) if len(group) else np.zeros(0)
    place = np.flatnonzero(first) - begin[columns[first]] + 1.0 + np.where(values[first] > 0, zeros[columns[first]], 0)
    ranks = np.empty(len(values))
    ranks[order] = (place + (sizes - 1.0) / 2.0)[group]
    ties = np.bincount(columns[first], sizes**3 - sizes, minlength=n_features) + zeros**3 - zeros
    return ranks, low, ties


def _test(sums: _Sums) -> Contrasts:
    """Return effects and p-values of sums by cluster."""
    inside = sums.counts
    total = inside.sum(axis=1, keepdims=True)
    outside = total - inside
    pairs = inside * outside
    possible = pairs > 0
    safe = np.where(possible, pairs, 1.0)
    excess = sums.ranks - inside * (inside + 1.0) / 2.0 - pairs / 2.0
    effect = np.where(possible, 2.0 * excess / safe, 0.0)
    ties = sums.ties[:, None] / np.maximum(total * (total - 1.0), 1.0)
    variance = np.maximum(pairs / 12.0 * (total + 1.0 - ties), 0.0)
    told = possible & (variance > 1e-9 * safe)
    z = np.maximum(np.abs(excess) - 0.5, 0.0) / np.sqrt(np.where(told, variance, 1.0))
    p_value = np.where(told, np.minimum(2.0 * ndtr(-z), 1.0), 1.0)
    p_value = _exact(p_value, sums, told)
    return Contrasts(np.clip(effect, -1.0, 1.0), _differences(sums, inside, outside, total), p_value)


def _differences(sums: _Sums, inside: FloatArray, outside: FloatArray, total: FloatArray) -> FloatArray:
    rest_values = sums.values.sum(axis=1, keepdims=True) - sums.values
    rest_squares = sums.squares.sum(axis=1, keepdims=True) - sums.squares
    known = (inside > 0) & (outside > 0) & (total > 2)
    n_in, n_out = np.where(known, inside, 1.0), np.where(known, outside, 1.0)
    mean, rest = sums.values / n_in, rest_values / n_out
    within = np.maximum(sums.squares - n_in * mean**2, 0.0) + np.maximum(rest_squares - n_out * rest**2, 0.0)
    # What the rounding of the sums of squares can leave is no spread.
    within[within <= total * np.finfo(np.float64).eps * (sums.squares + rest_squares)] = 0.0
    spread = np.sqrt(within / np.maximum(total - 2.0, 1.0))
    gap = mean - rest
    # Without any spread the groups are infinitely far apart, or equal.
    flat = spread <= 1e-9 * np.abs(gap)
    ratio = np.where(flat, np.sign(gap) * np.where(gap == 0, 0.0, np.inf), gap / np.where(flat, 1.0, spread))
    return np.where(known, ratio, 0.0)


def _exact(p_value: FloatArray, sums: _Sums, told: BoolArray) -> FloatArray:
    """Replace p-values of features of zeros and ones, where counts are small, by those of the hypergeometric law."""
    if not sums.binary.any():
        return p_value
    inside = sums.counts
    total = np.broadcast_to(inside.sum(axis=1, keepdims=True), inside.shape)
    ones = sums.totals
    all_ones = np.broadcast_to(ones.sum(axis=1, keepdims=True), inside.shape)
    least = np.minimum(inside, total - inside) * np.minimum(all_ones, total - all_ones) / np.maximum(total, 1.0)
    rows, columns = np.nonzero(sums.binary[:, None] & told & (least < _FEW))
    if not len(rows):
        return p_value
    table = np.stack([a[rows, columns] for a in (ones, total, all_ones, inside)], axis=1)
    different, which = np.unique(np.rint(table).astype(np.int64), axis=0, return_inverse=True)
    x, m, k, n = different.T
    tails = np.minimum(hypergeom.cdf(x, m, k, n), hypergeom.sf(x - 1, m, k, n))
    found = p_value.copy()
    found[rows, columns] = np.minimum(2.0 * tails, 1.0)[which.ravel()]
    return found
