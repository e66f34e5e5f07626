"""Arranging a fitted model for drawing: samples in the plane, samples in order, large matrices as small ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import ndtri
from scipy.stats import rankdata

from emvc._array import FloatArray, IntArray

_GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))
_STRESS_STEPS = 100
_COMPONENTS = 6  # of a cluster, among which its shape is looked for
_ISLAND = 0.46  # radius of the largest cluster in units of the distance between neighbouring centres


def plane_layout(embedding: FloatArray, labels: IntArray) -> FloatArray:
    """Return two coordinates per sample for drawing: clusters as islands, undecided samples between them.

    The centres of the clusters are laid out so that distances in the plane resemble those in the embedding. A sample
    lies at the mean of the centres, weighted by how close it is to each of them in the embedding, plus its own offset
    along two directions of its cluster, turned towards the clusters that are close. Nothing is random.

    Parameters
    ----------
    embedding : ndarray of shape (n_samples, n_components)
        Coordinates that the clusters were found in.
    labels : ndarray of int of shape (n_samples,)
        Cluster of each sample; the samples without one (negative) are an island of their own.

    Returns
    -------
    points : ndarray of shape (n_samples, 2)
        Coordinates between 0 and 1, with one scale for both axes.

    Examples
    --------
    >>> import numpy as np
    >>> points = plane_layout(np.repeat(np.eye(3), 5, axis=0), np.repeat([0, 1, 2], 5))
    >>> points.shape, bool(points.min() >= 0), bool(points.max() <= 1)
    ((15, 2), True, True)
    """
    rows = np.nan_to_num(np.asarray(embedding, dtype=np.float64)).reshape(len(labels), -1)
    names, position = np.unique(np.maximum(labels, -1), return_inverse=True)
    centres = np.stack([rows[position == k].mean(axis=0) for k in range(len(names))])
    squares = np.stack([((rows - centre) ** 2).sum(axis=1) for centre in centres], axis=1)
    spread = float(squares[np.arange(len(labels)), position].mean())
    spread = max(spread, 1e-3 * float(squares.mean()), 1e-12)
    closeness = np.exp(-(squares - squares.min(axis=1, keepdims=True)) / (2.0 * spread))
    anchors = _place_centres(centres)
    share = closeness / closeness.sum(axis=1, keepdims=True)
    points = np.asarray(share @ anchors)
    sizes = np.bincount(position)
    radii = _ISLAND * _nearest_distance(anchors) * (sizes / sizes.max()) ** 0.35
    # A wider look at the neighbours says which side of an island should face which other island.
    facing = np.sqrt(np.sqrt(closeness))
    facing = facing / facing.sum(axis=1, keepdims=True) @ anchors
    for k, radius in enumerate(radii):
        members = position == k
        offsets = _turned(_local_offsets(rows[members]), facing[members])
        points[members] += radius * offsets * share[members, k, None]
    return _fit_square(points)


def _turned(offsets: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the offsets turned, and mirrored if need be, so that they point where the directions do."""
    left, _, right = np.linalg.svd(offsets.T @ (direction - direction.mean(axis=0)))
    return np.asarray(offsets @ left @ right)


def _place_centres(centres: FloatArray) -> FloatArray:
    """Return points in the plane whose distances resemble those of the centres (SMACOF from a sunflower start)."""
    k = len(centres)
    if k == 1:
        return np.zeros((1, 2))
    distances = np.sqrt(np.maximum(((centres[:, None] - centres[None]) ** 2).sum(axis=2), 0.0))
    # Centres that almost coincide must still be told apart on paper.
    distances = np.maximum(distances, 0.8 * distances[distances > 0].mean() if distances.any() else 1.0)
    np.fill_diagonal(distances, 0.0)
    angle = _GOLDEN_ANGLE * np.arange(k)
    points = np.sqrt(np.arange(k) + 0.5)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    points *= distances.mean() / np.sqrt(k)
    for _ in range(_STRESS_STEPS):
        apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
        ratio = np.divide(distances, apart, out=np.zeros_like(apart), where=apart > 1e-12)
        points = (ratio.sum(axis=1)[:, None] * points - ratio @ points) / k
    return np.asarray(points)


def _nearest_distance(points: FloatArray) -> float:
    if len(points) < 2:
        return 1.0
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    return float(np.median(apart.min(axis=1)))


def _local_offsets(rows: FloatArray) -> FloatArray:
    """Return offsets of about unit size: two principal components as normal scores, so that a cluster is a round heap.

    Where coordinates are spectral, most components are curved functions of the first: drawn beside it, they would bend
    a heap into a bow. So the second is what remains of the component that such a function explains least.
    """
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    main = vectors[:, ::-1][:, :_COMPONENTS]
    # An eigenvector has no sign of its own: let its largest entry be positive.
    main = main * np.where(main[np.abs(main).argmax(axis=0), np.arange(main.shape[1])] < 0, -1.0, 1.0)
    if values[-1] <= 1e-24 * len(rows):
        return np.zeros((len(rows), 2))
    scores = centred @ main
    first = scores[:, 0] / scores[:, 0].std()
    curve = np.vander(first, 4)
    rest = scores[:, 1:] - curve @ np.linalg.lstsq(curve, scores[:, 1:], rcond=None)[0]
    spread = rest.std(axis=0)
    if not len(spread) or spread.max() <= 1e-9 * scores[:, 0].std():
        return np.column_stack([_normal_scores(first), np.zeros(len(rows))])
    return np.column_stack([_normal_scores(first), _normal_scores(rest[:, spread.argmax()])])


def _normal_scores(values: FloatArray) -> FloatArray:
    return np.asarray(ndtri((rankdata(values) - 0.5) / len(values)) / 3.0)


def _fit_square(points: FloatArray) -> FloatArray:
    low, high = points.min(axis=0), points.max(axis=0)
    span = float((high - low).max()) or 1.0
    return np.asarray((points - (low + high) / 2.0) / span + 0.5)


def cluster_order(labels: IntArray, within: FloatArray | None = None) -> IntArray:
    """Return the samples ordered by cluster, those without one last; inside a cluster by falling ``within``.

    Examples
    --------
    >>> import numpy as np
    >>> cluster_order(np.array([1, -1, 0, 1])).tolist()
    [2, 0, 3, 1]
    """
    group = np.where(labels < 0, np.iinfo(np.int64).max, labels)
    if within is None:
        return np.asarray(np.argsort(group, kind="stable"))
    return np.lexsort((-within, group))


def state_labels(consensus: Any, labels: IntArray) -> IntArray:
    """Return the cluster of each column of a consensus.

    The columns of a square consensus are the samples; those of a smaller one are landmarks, which belong to the cluster
    that moves there with the highest probability.

    Examples
    --------
    >>> import numpy as np
    >>> state_labels(np.array([[0.9, 0.1], [0.8, 0.2], [0.0, 1.0]]), np.array([1, 1, 0])).tolist()
    [1, 0]
    """
    n_samples, n_states = consensus.shape
    if n_samples == n_states:
        return labels
    names = np.unique(labels[labels >= 0])
    if not len(names):
        return np.full(n_states, -1)
    flow = np.stack([np.asarray(consensus[labels == name].mean(axis=0)).ravel() for name in names])
    return np.asarray(names[flow.argmax(axis=0)])


def block_edges(size: int, most: int) -> IntArray:
    """Return the borders of at most ``most`` nearly equal blocks of ``size`` positions."""
    return np.asarray(np.linspace(0, size, min(size, most) + 1).astype(np.int64))


def block_means(matrix: Any, rows: IntArray, columns: IntArray, most: int) -> FloatArray:
    """Return ``matrix[rows][:, columns]`` as means over at most ``most`` x ``most`` blocks.

    Only one strip of rows is copied at a time, so that matrices that fill the memory can be drawn.

    Examples
    --------
    >>> import numpy as np
    >>> block_means(np.arange(16.0).reshape(4, 4), np.arange(4), np.arange(4), 2)
    array([[ 2.5,  4.5],
           [10.5, 12.5]])
    """
    down, across = block_edges(len(rows), most), block_edges(len(columns), most)
    widths = np.diff(across)
    strips = []
    for start, stop in pairwise(down):
        strip = matrix[rows[start:stop]]
        sums = strip.sum(axis=0) if scipy.sparse.issparse(strip) else strip.sum(axis=0, dtype=np.float64)
        ordered = np.asarray(sums, dtype=np.float64).ravel()[columns]
        strips.append(np.add.reduceat(ordered, across[:-1]) / (widths * (stop - start)))
    return np.stack(strips)


def block_argmax(values: FloatArray, edges: Sequence[int] | IntArray) -> IntArray:
    """Return the position of the largest value in each block; NaN only where a block holds nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> block_argmax(np.array([1.0, np.nan, 3.0, 2.0]), [0, 2, 4]).tolist()
    [0, 2]
    """
    filled = np.where(np.isnan(values), -np.inf, values)
    return np.array(
        [start + int(np.argmax(filled[start:stop])) for start, stop in pairwise(edges)],
        dtype=np.int64,
    )
