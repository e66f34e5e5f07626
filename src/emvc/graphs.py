r"""From views to affinities to row-stochastic transitions.

Every affinity is a function of one view that returns an N x N matrix of non-negative similarities:

=============== ==========================================================================================
name            affinity
=============== ==========================================================================================
``local``       k nearest neighbours, Gaussian with the local scale of both ends (the default)
``rbf``         :math:`\exp(-d^2 / 2m^2)`, m the median distance; reproduces the paper's baselines
``rbf-literal`` :math:`\exp(-d^2 / m)`, as the paper prints it
``rbf-t100``    :math:`\exp(-d^2 / 2t^2)` of unit rows with t = 100, as in the authors' program
``self-tuning`` :math:`\exp(-d_{ij}^2 / \sigma_i\sigma_j)`, :math:`\sigma_i` the distance to the 7th neighbour
``cosine``      cosine similarity, negative values cut off
=============== ==========================================================================================

Sparse views stay sparse: distances come from :math:`XX'`, and z-scores need no centring because distances do not
see a shift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from emvc import cells, kernels
from emvc._array import ROUNDING, FloatArray, IntArray
from emvc._threads import by_rows, matmul
from emvc._validation import View, check_affinity, check_choice, to_dense

Affinity = Callable[[Any], Any]

SCALES = ("auto", "unit", "zscore", None)
CAP = 2.0
"""Largest cell of a view of mostly zeros, times the median of those that are not zero."""

SHARE = 0.1
"""Largest share of the squared cells of a view of mostly zeros that a column may make up, if there are twenty or more;
of fewer, twice an even share."""

CLIP = 3.0
"""Largest standard score of a cell."""

FEW_CELLS = 0.1
"""Share of cells up to which a view is computed with as a sparse matrix."""

_MOST_CLIPPED, _SETTLED = 6, 0.03  # rounds of cutting off, and the change of deviations that is none
_SELF_TUNING_NEIGHBOR = 7


def scale_view(view: View, scale: str | None = "auto") -> View:
    """Scale the features of one view.

    Parameters
    ----------
    view : ndarray or CSR matrix of shape (n_samples, n_features)
        The view.
    scale : {"auto", "unit", "zscore", None}
        ``"unit"`` gives every row length one (empty rows stay empty), ``"zscore"`` every column the mean zero and the
        variance one (constant columns become zero). ``"auto"`` picks the first for views of mostly zeros, such as
        counts of words, and the second otherwise, and cuts off gross cells before: at `CAP` times the median of the
        cells that are not zero, so that no single one rules its row, with columns that rule their view scaled down (see
        `SHARE`), or at `CLIP` deviations from the mean of their
        column, both computed after cutting off. A sparse view is divided by its deviations but not centred.

    Examples
    --------
    >>> import numpy as np
    >>> scale_view(np.array([[3.0, 4.0], [0.0, 0.0]]), "unit")
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    return fit_scaling(view, scale).apply(view)


@dataclass(frozen=True)
class Scaling:
    """How one view is scaled, so that further samples can be scaled in the same way.

    Attributes
    ----------
    kind : {"unit", "zscore"} or None
        As for `scale_view`, without ``"auto"``.
    cap : float
        Largest size of a cell, for unit rows.
    factors : ndarray of shape (n_features,), or None
        What columns are multiplied by: one over the deviations, or what keeps a column from ruling unit rows.
    mean, low, high : ndarray of shape (n_features,), or None
        For z-scores: what is subtracted (zero if fitted to a sparse view, since distances do not see a shift), and the
        bounds of the cells.
    """

    kind: str | None
    cap: float = np.inf
    mean: FloatArray | None = None
    factors: FloatArray | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None

    def apply(self, view: View) -> View:
        """Return the scaled view."""
        if self.kind == "unit":
            view = view if np.isinf(self.cap) else _clipped(view, -self.cap, self.cap)
            view = view if self.factors is None else _multiply(view, self.factors[None, :])
            norms = np.sqrt(cells.squared_norms(view) if cells.has_gaps(view) else _squared_norms(view))
            return _multiply(view, 1.0 / np.where(norms > 0, norms, 1.0)[:, None])
        if self.mean is None or self.factors is None:
            return view
        if self.low is not None:
            view = _clipped(view, self.low, self.high)
        return _multiply(view if scipy.sparse.issparse(view) else view - self.mean, self.factors[None, :])


def _center(view: View, mean: FloatArray) -> FloatArray:
    return np.zeros_like(mean) if scipy.sparse.issparse(view) else mean


def fit_scaling(view: View, scale: str | None = "auto") -> Scaling:
    """Return the scaling of `scale_view` for this view.

    Examples
    --------
    >>> import numpy as np
    >>> scaling = fit_scaling(np.array([[1.0], [3.0]]), "zscore")
    >>> scaling.apply(np.array([[4.0]]))
    array([[2.]])
    """
    check_choice(scale, "scale", SCALES)
    if scale == "auto":
        return _capped_units(view) if is_mostly_zero(view) else clipped_scores(view)
    if scale == "zscore":
        mean, spread = _column_moments(view)
        return Scaling(scale, mean=_center(view, mean), factors=_factors(view, spread))
    return Scaling(scale)


def _capped_units(view: View) -> Scaling:
    values = np.abs(view.data if scipy.sparse.issparse(view) else view)
    values = values[values > 0]
    cap = CAP * float(np.median(values)) if values.size else np.inf
    return Scaling("unit", cap, factors=_even_out(_clipped(view, -cap, cap)))


def _even_out(view: View) -> FloatArray | None:
    """Return factors of columns that keep each at its `SHARE` of the squared cells, or None if none has more."""
    mean, spread = _column_moments(view)
    squares = mean**2 + spread**2
    share = max(SHARE, 2.0 / max(int(np.count_nonzero(squares)), 1))  # of less than half of them
    ordered = np.sort(squares)[::-1]
    rest = ordered.sum() - np.concatenate(([0.0], np.cumsum(ordered[:-1])))
    free = 1.0 - share * np.arange(len(ordered))  # what so many limited columns leave
    limits = share * rest / np.maximum(free, ROUNDING)
    limit = limits[np.argmax(limits >= ordered)]
    if ordered[0] <= limit:
        return None
    factors = np.divide(limit, squares, out=np.ones_like(squares), where=squares > 0)
    return np.asarray(np.sqrt(np.minimum(factors, 1.0)))


def is_mostly_zero(view: View) -> bool:
    """Tell whether most cells of a view are zero, as in counts of rare things."""
    return cells.count_nonzero(view) < 0.5 * int(cells.count_present(view).sum())


def clipped_scores(view: View) -> Scaling:
    """Return the scaling to z-scores that gross cells do not disturb.

    Cells are cut off at the bounds, which follow from what is left, until these settle: a gross value cannot hide
    behind the deviation that it causes.
    """
    mean, spread = _column_moments(view)
    moving = np.arange(view.shape[1])
    for _ in range(_MOST_CLIPPED):
        part = view if len(moving) == view.shape[1] else view[:, moving]
        low, high = mean[moving] - CLIP * spread[moving], mean[moving] + CLIP * spread[moving]
        before = spread[moving]
        mean[moving], spread[moving] = _column_moments(_clipped(part, low, high))
        moving = moving[spread[moving] < (1.0 - _SETTLED) * before]
        if not len(moving):
            break
    low, high = mean - CLIP * spread, mean + CLIP * spread
    return Scaling("zscore", np.inf, _center(view, mean), _factors(view, spread), low, high)


def _factors(view: View, spread: FloatArray) -> FloatArray:
    """Return one over the deviations, zero for constant columns."""
    constant = spread <= 1e-12 * np.max(np.abs(column_ranges(view)), axis=0)
    return np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))


def _column_moments(view: View) -> tuple[FloatArray, FloatArray]:
    """Return mean and deviation of each column."""
    if cells.has_gaps(view):
        return cells.column_moments(view)
    n_samples, n_features = view.shape
    mean = np.asarray(view.mean(axis=0)).ravel()
    if not scipy.sparse.issparse(view):
        return mean, np.sqrt(np.mean((view - mean) ** 2, axis=0))
    # In two passes: the difference of the mean square and the squared mean is noise for a constant column.
    stored = np.bincount(view.indices, minlength=n_features)
    squares = np.bincount(view.indices, (view.data - mean[view.indices]) ** 2, minlength=n_features)
    return mean, np.sqrt((squares + (n_samples - stored) * mean**2) / n_samples)


def _clipped(view: View, low: Any, high: Any) -> View:
    """Return a view with cells between bounds, of all cells or of each column; those that are not stored stay zero."""
    if not scipy.sparse.issparse(view):
        return np.clip(view, low, high)
    view = view.copy()
    low, high = (bound if np.ndim(bound) == 0 else bound[view.indices] for bound in (low, high))
    np.clip(view.data, low, high, out=view.data)
    return view


def compact(view: View) -> View:
    """Return a view as a CSR matrix if next to all of its cells are zero: products are many times faster then."""
    if scipy.sparse.issparse(view) or np.count_nonzero(view) > FEW_CELLS * view.size or cells.has_gaps(view):
        return view
    return scipy.sparse.csr_matrix(view)


def like(view: View, known: View) -> View:
    """Return a view sparse or dense as another one is; with missing cells, which no sparse one has, it stays dense."""
    if scipy.sparse.issparse(known) and not cells.has_gaps(view):
        return scipy.sparse.csr_matrix(view)
    return to_dense(view)


def column_ranges(view: View) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of each column."""
    if scipy.sparse.issparse(view):
        return view.min(axis=0).toarray().ravel(), view.max(axis=0).toarray().ravel()
    if cells.has_gaps(view):
        return cells.column_ranges(view)
    return view.min(axis=0), view.max(axis=0)


def column_means(view: View) -> FloatArray:
    """Return the mean of each column."""
    return _column_moments(view)[0]


def column_variances(view: View) -> FloatArray:
    """Return the variance of each column."""
    return _column_moments(view)[1] ** 2


def settled_order(view: View) -> IntArray:
    """Return samples in an order that follows from their cells, whatever their own order is."""
    if cells.has_gaps(view):
        view = cells.filled(view, column_means(view))
    return np.argsort(np.asarray(view @ np.cos(np.arange(view.shape[1]))).ravel(), kind="stable")


def take_cells(view: View, samples: IntArray) -> FloatArray:
    """Return rows whose cell in column j is that of ``samples[:, j]``."""
    if not scipy.sparse.issparse(view):
        return np.take_along_axis(view, samples, axis=0)
    columns = np.broadcast_to(np.arange(view.shape[1]), samples.shape)
    return np.asarray(view[samples.ravel(), columns.ravel()]).reshape(samples.shape)


def _multiply(view: View, factors: FloatArray) -> View:
    return view.multiply(factors).tocsr() if scipy.sparse.issparse(view) else view * factors


def _squared_norms(view: View) -> FloatArray:
    squares = view.multiply(view) if scipy.sparse.issparse(view) else view * view
    return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()


def squared_distances(view: View) -> FloatArray:
    """Return all squared Euclidean distances, exactly zero between duplicates and on the diagonal.

    Of views with missing cells, over those that both samples have (see `emvc.cells`).
    """
    if cells.has_gaps(view):
        distances = cells.squared_distances_between(view, view)
        np.fill_diagonal(distances, 0.0)
        return distances
    if not scipy.sparse.issparse(view):
        view = view - view.mean(axis=0)  # no effect on distances, but less cancellation
    norms = _squared_norms(view)
    distances = np.ascontiguousarray(_product(view, view), dtype=np.float64)
    kernels.neighbors.to_squared_distances(distances, norms, norms, cells.ROUNDING)
    np.fill_diagonal(distances, 0.0)
    return distances


def kth_squared_distance(view: View, k: int) -> FloatArray:
    """Return the squared distance of each sample to its k-th neighbour, without all distances at a time."""
    if scipy.sparse.issparse(view) or cells.has_gaps(view):
        return kernels.neighbors.kth_smallest(squared_distances(view), k)
    view = np.ascontiguousarray(view - view.mean(axis=0), dtype=np.float64)
    norms = _squared_norms(view)
    found = np.empty(len(view))

    def search(rows: slice) -> None:
        kernels.neighbors.kth_of_rows(view[rows] @ view.T, norms, rows.start, k - 1, cells.ROUNDING, found)

    kernels.neighbors.kth_of_rows(np.zeros((0, 1)), norms, 0, 0, cells.ROUNDING, found)  # compiled before threads start
    by_rows(search, len(view))
    return found


def squared_distances_between(one: View, other: View) -> FloatArray:
    """Return the squared Euclidean distances between the rows of two views, exactly zero between duplicates."""
    if cells.has_gaps(one) or cells.has_gaps(other):
        return cells.squared_distances_between(to_dense(one), to_dense(other))
    if not scipy.sparse.issparse(one) and not scipy.sparse.issparse(other):
        middle = other.mean(axis=0)  # as in squared_distances
        one, other = one - middle, other - middle
    squares = np.ascontiguousarray(_product(one, other), dtype=np.float64)
    kernels.neighbors.to_squared_distances(squares, _squared_norms(one), _squared_norms(other), cells.ROUNDING)
    return squares


def _product(one: View, other: View) -> FloatArray:
    if not scipy.sparse.issparse(one) and not scipy.sparse.issparse(other):
        return matmul(one, other.T)
    product = one @ other.T
    return to_dense(product)


def _median_distance(squares: FloatArray) -> float:
    """Return the median distance between two samples, or another positive scale if most of them coincide."""
    median = float(np.sqrt(np.median(squares[np.triu_indices(len(squares), 1)])))
    if median > 0:
        return median
    positive = squares[squares > 0]
    return float(np.sqrt(positive.mean())) if positive.size else 1.0


def rbf_affinity(view: View) -> FloatArray:
    """Gaussian kernel with the median distance as bandwidth, ``exp(-d^2 / (2 median^2))``."""
    return _gaussian(squared_distances(view), "rbf")


def rbf_literal_affinity(view: View) -> FloatArray:
    """Gaussian kernel as the paper prints it, ``exp(-d^2 / median)``."""
    return _gaussian(squared_distances(view), "rbf-literal")


def rbf_t100_affinity(view: View) -> FloatArray:
    """Gaussian kernel of the authors' program: unit rows and a fixed bandwidth of 100, almost constant."""
    return _gaussian(squared_distances(scale_view(view, "unit")), "rbf-t100")


def gaussian_width(squares: FloatArray, name: str) -> float:
    """Return what squared distances are divided by in the Gaussian kernel of this name."""
    if name == "rbf-t100":
        return 2.0 * 100.0**2
    median = _median_distance(squares)
    return median if name == "rbf-literal" else 2.0 * median**2


def _gaussian(squares: FloatArray, name: str) -> FloatArray:
    squares /= -gaussian_width(squares, name)
    return np.exp(squares, out=squares)


def self_tuning_affinity(view: View) -> FloatArray:
    """Gaussian kernel scaled by the distance of both ends to their 7th neighbour (Zelnik-Manor and Perona)."""
    squares = squared_distances(view)
    _, scale, _ = self_tuning_scale(squares)
    squares /= -np.outer(scale, scale)
    return np.exp(squares, out=squares)


def self_tuning_scale(squares: FloatArray) -> tuple[int, FloatArray, float]:
    """Return which neighbour sets the scale, its distance from each sample, and the least scale."""
    neighbor = min(_SELF_TUNING_NEIGHBOR, len(squares) - 1)
    floor = 1e-3 * _median_distance(squares)  # for samples with many duplicates
    scale = np.sqrt(np.partition(squares, neighbor, axis=1)[:, neighbor])
    return neighbor, np.maximum(scale, floor), floor


def cosine_affinity(view: View) -> FloatArray:
    """Cosine similarity, with negative values cut off; an empty row resembles nothing."""
    unit = scale_view(view, "unit")
    if cells.has_gaps(unit):
        return np.maximum(1.0 - 0.5 * squared_distances(unit), 0.0)
    similarity = _product(unit, unit)
    return np.maximum(similarity, 0.0, out=similarity)


def local_affinity(view: View, n_neighbors: int = 10) -> FloatArray:
    r"""Nearest-neighbour graph with local scale.

    :math:`w_{ij} = \exp(-d_{ij}^2 / 2\varepsilon_{ij}^2)` over the neighbours j of i, where
    :math:`\varepsilon_{ij}` is 0.35 times the mean of :math:`d_{ij}` and the mean neighbour distances of i and j. Rows
    are normalised, then the matrix is symmetrised.

    Neighbours at the same distance as the last one share the remaining places in equal parts. In sparse data such
    ties are the rule (all pages without a common link are equally far apart), and taking the first of them would
    make the graph depend on the order of the samples.
    """
    return local_graph(squared_distances(view), n_neighbors)


def local_graph(squares: FloatArray, n_neighbors: int) -> FloatArray:
    """Return the graph of `local_affinity` from squared distances."""
    return kernels.rows.local_graph(squares, min(n_neighbors, len(squares) - 1))


AFFINITIES: dict[str, Affinity] = {
    "local": local_affinity,
    "rbf": rbf_affinity,
    "rbf-literal": rbf_literal_affinity,
    "rbf-t100": rbf_t100_affinity,
    "self-tuning": self_tuning_affinity,
    "cosine": cosine_affinity,
}


def default_n_neighbors(n_samples: int, n_clusters: int) -> int:
    """Return an eighth of the average cluster size, at least 10: wide for few clusters, narrow for many."""
    return min(max(10, n_samples // (8 * n_clusters)), n_samples - 1)


def compute_affinity(view: View, affinity: str | Affinity, *, name: str = "0", n_neighbors: int = 10) -> FloatArray:
    """Return the affinity of one scaled view, by name or by calling ``affinity``."""
    if isinstance(affinity, str):
        return local_affinity(view, n_neighbors) if affinity == "local" else AFFINITIES[affinity](view)
    owner = f"view {name!r} from the callable"
    result = affinity(view)
    if scipy.sparse.issparse(result):
        result = result.toarray()
    if np.iscomplexobj(result):
        raise ValueError(f"The affinity of {owner} is complex.")
    try:
        result = np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"The affinity of {owner} is not numeric: {error}") from error
    check_affinity(result, owner, n_samples=view.shape[0])
    return result


def normalized_affinity(affinity: FloatArray) -> FloatArray:
    r"""Return :math:`D^{-1/2} S D^{-1/2}` of an affinity, symmetrised first; samples without a link get zero rows."""
    symmetric = 0.5 * (affinity + affinity.T)
    degree = symmetric.sum(axis=1)
    root = 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0))
    symmetric *= root[:, None]
    symmetric *= root
    return np.asarray(symmetric)


def stack_transitions(affinities: Iterable[FloatArray], n_views: int, n_samples: int) -> FloatArray:
    """Return the transitions of all views as one array of shape (n_views, n_samples, n_samples)."""
    transitions = np.empty((n_views, n_samples, n_samples))
    for out, affinity in zip(transitions, affinities, strict=True):
        transition_matrix(affinity, out=out)
    return transitions


def transition_matrix(affinity: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Return the row-stochastic matrix ``D^-1 S`` of an affinity.

    A sample that resembles nothing (a zero row) gets the uniform distribution: its view says nothing about it. Making
    it an absorbing state instead would let it attract the whole chain.

    Examples
    --------
    >>> import numpy as np
    >>> transition_matrix(np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    if out is None:
        out = np.empty(affinity.shape)
    kernels.neighbors.to_transitions(affinity, out)
    return out


def weighted_mean(matrices: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted mean of matrices, in their precision and without a copy of them.

    Examples
    --------
    >>> weighted_mean(np.array([[[1.0, 2.0]], [[4.0, 2.0]]]), np.array([2.0, 1.0]))
    array([[2., 2.]])
    """
    return weighted_sum(list(matrices), weights / weights.sum())


def weighted_sum(matrices: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Return the weighted sum of matrices, in their precision and a few rows at a time."""
    first, *others = matrices
    factors = weights.astype(first.dtype)
    out = np.empty_like(first)

    def add(rows: slice) -> None:
        np.multiply(first[rows], factors[0], out=out[rows])
        for matrix, factor in zip(others, factors[1:], strict=True):
            out[rows] += factor * matrix[rows]

    by_rows(add, len(out))
    return out
