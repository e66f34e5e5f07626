r"""Peer: large-scale multi-view subspace clustering, LMVSC (Kang et al., AAAI 2020), linear in the number of samples.

The rows a of :math:`A_v` are anchors of view v, the centres of k-means on at most 100 samples per anchor. Every sample
is written as a mixture of anchors: the rows z of :math:`Z_v` minimise

.. math:: \lVert x - A_v' z \rVert^2 + \alpha \lVert z \rVert^2 \quad \text{subject to} \quad z \ge 0,\; 1'z = 1 .

The left singular vectors of :math:`[Z_1 \Lambda_1^{-1/2}, \ldots, Z_K \Lambda_K^{-1/2}] / \sqrt K` are clustered by
k-means, where :math:`\Lambda_v` has the column sums of :math:`Z_v`. They come from a matrix of the size of all anchors,
and nothing larger than samples times anchors is ever held.

**Solver.** Accelerated projected gradient for all rows of a block at a time. A row that an accelerated step would make
worse stays where it is and loses its momentum; its next step is a plain one, which cannot make it worse. So the
objective never increases. With the gradient g, :math:`g'z - \min_j g_j` bounds what a row could still save (the gap of
Frank and Wolfe); a block is done when the sum of these bounds is at most ``tol`` of its objective.

**Deviations.** A view is divided by the root mean square of its distance from its mean, so that :math:`\alpha` means
the same for every view. The authors' program has neither that nor :math:`\Lambda_v`; without the latter an anchor of
many samples counts more than one of few, and the bipartite graph is not normalised.
"""

from __future__ import annotations

import warnings
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from emvc._array import FloatArray
from emvc._linalg import largest_eigenpairs
from emvc._validation import View, Views, check_choice, check_integer, check_memory, check_number, check_weight
from emvc.estimators._base import MultiViewClusterer
from emvc.graphs import scale_view
from emvc.prox import Simplex
from emvc.spectral import cluster_embedding, scale_rows

_BLOCK = 2048  # rows that are solved together; a few matrices of them and the anchors fit into a cache
_SAMPLES_PER_ANCHOR = 100  # that k-means sees


class LMVSC(MultiViewClusterer):
    """Large-scale multi-view subspace clustering: samples as mixtures of anchors, linear in the samples.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_anchors : int or "auto", default="auto"
        Anchors of each view, between the number of clusters and that of samples. ``"auto"`` is 100, the most its
        authors try, or twice the number of clusters where that is more, but no more than half of the samples.
    alpha : float, default=1.0
        Weight of the ridge, in units of the variance of a view; 1 is the middle of its authors' range, 0.01 to 100.
        A small one makes mixtures of few anchors.
    embedding : {"unit-rows", "plain"}, default="unit-rows"
        Whether rows of singular vectors are scaled to length one; the authors leave them as they are.
    scale, n_init, random_state
        As for `EMVC`.
    max_iter : int, default=1000
        Most steps of the solver.
    tol : float, default=1e-3
        Certified share by which the objective is above its minimum at most.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Singular vectors.
    mixtures_ : list of ndarray of shape (n_samples, n_anchors)
        Z of each view, rows in the simplex.
    objective_ : list of float
        Objective, summed over samples and views, before and after each step; it never increases.
    n_clusters_, n_iter_, view_names_, n_features_in_
        As for `EMVC`; ``n_iter_`` is the number of steps of the block that needed most.

    Examples
    --------
    >>> from emvc import LMVSC
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
    >>> LMVSC(2, n_anchors=10, random_state=0).fit(data.views).mixtures_[0].shape
    (100, 10)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_anchors: int | str = "auto",
        alpha: float = 1.0,
        embedding: Literal["unit-rows", "plain"] = "unit-rows",
        scale: str | None = "auto",
        n_init: int = 20,
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_anchors = n_anchors
        self.alpha = alpha
        self.embedding = embedding
        self.scale = scale
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        check_choice(self.embedding, "embedding", ("unit-rows", "plain"))
        alpha = check_weight(self.alpha, "alpha", strict=True)
        max_iter = check_integer(self.max_iter, "max_iter", least=1)
        tol = check_number(self.tol, "tol", strict=True)
        n_anchors = self._count_anchors(views.n_samples, n_clusters)
        check_memory(3 * len(views.arrays), (views.n_samples, n_anchors), advice="Use fewer anchors.")
        mixtures: list[FloatArray] = []
        records: list[list[float]] = []
        for view in views.arrays:
            scaled = scale_view(view, self.scale)
            mixture, record = _mix(scaled, _anchors(scaled, n_anchors, rng), alpha, max_iter, tol)
            mixtures.append(mixture)
            records.append(record)
        points = _singular_vectors(mixtures, n_clusters)
        points = scale_rows(points) if self.embedding == "unit-rows" else points
        objective = _add(records)
        return {
            "labels_": cluster_embedding(points, n_clusters, n_init=self.n_init, rng=rng),
            "embedding_": points,
            "mixtures_": mixtures,
            "objective_": objective,
            "n_iter_": len(objective) - 1,
        }

    def _count_anchors(self, n_samples: int, n_clusters: int) -> int:
        if isinstance(self.n_anchors, str) and self.n_anchors == "auto":
            return max(min(max(100, 2 * n_clusters), n_samples // 2), n_clusters)
        n_anchors = check_integer(self.n_anchors, "n_anchors", least=n_clusters)
        if n_anchors > n_samples:
            raise ValueError(f"n_anchors={n_anchors} is larger than the number of samples, n_samples={n_samples}.")
        return n_anchors


def _mix(view: View, anchors: FloatArray, alpha: float, max_iter: int, tol: float) -> tuple[FloatArray, list[float]]:
    """Return the mixtures of one view and the objective after each step.

    Mixtures sum to one, so that the problem does not see where the origin is, but rounding and the step do: it is moved
    to the mean of the view.
    """
    mean = np.asarray(view.mean(axis=0)).ravel()
    anchors = anchors - mean
    norms = _squared_norms(view, mean)
    variance = float(norms.mean()) or 1.0
    gram = anchors @ anchors.T / variance + alpha * np.eye(len(anchors))
    mixture = np.empty((view.shape[0], len(anchors)))
    records = []
    for start in range(0, len(mixture), _BLOCK):
        rows = slice(start, start + _BLOCK)
        linear = _products(view[rows], mean, anchors) / variance
        mixture[rows], record = _solve(linear, gram, norms[rows] / variance, max_iter, tol)
        records.append(record)
    return mixture, _add(records)


def _squared_norms(view: View, mean: FloatArray) -> FloatArray:
    if not scipy.sparse.issparse(view):
        return np.asarray(np.sum((view - mean) ** 2, axis=1))
    squares = np.asarray(view.multiply(view).sum(axis=1)).ravel()
    return np.maximum(squares - 2.0 * np.asarray(view @ mean) + mean @ mean, 0.0)


def _products(rows: View, mean: FloatArray, anchors: FloatArray) -> FloatArray:
    if not scipy.sparse.issparse(rows):
        return np.asarray((rows - mean) @ anchors.T)
    return np.asarray(rows @ anchors.T) - anchors @ mean


def _anchors(view: View, n_anchors: int, rng: np.random.Generator) -> FloatArray:
    n_samples = view.shape[0]
    rows = np.sort(rng.choice(n_samples, min(n_samples, _SAMPLES_PER_ANCHOR * n_anchors), replace=False))
    means = KMeans(n_anchors, n_init=1, random_state=int(rng.integers(2**31 - 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # equal samples may leave anchors that repeat others
        return np.asarray(means.fit(view[rows]).cluster_centers_)


def _solve(
    linear: FloatArray, gram: FloatArray, norms: FloatArray, max_iter: int, tol: float
) -> tuple[FloatArray, list[float]]:
    """Minimise ``z'Gz - 2 b'z + |x|^2`` for all rows b of ``linear``, z in the simplex; see the module."""
    step = 1.0 / float(largest_eigenpairs(gram, number=1)[0][0])
    points = np.full(linear.shape, 1.0 / linear.shape[1])
    images = points @ gram
    ahead, ahead_images, pace = points, images, np.ones((len(linear), 1))
    objective = [float(np.sum(points * (images - 2.0 * linear)) + norms.sum())]
    for _ in range(max_iter):
        trial = np.asarray(Simplex().prox(ahead - step * (ahead_images - linear), 1.0))
        trial_images = trial @ gram
        # What a row gains, as a product with its change: the difference of two objectives would be rounding.
        change = np.einsum("ij,ij->i", trial - points, trial_images + images - 2.0 * linear)[:, None]
        better = change <= 0.0
        trial, trial_images = np.where(better, trial, points), np.where(better, trial_images, images)
        faster = (1.0 + np.sqrt(1.0 + 4.0 * pace**2)) / 2.0
        momentum = np.where(better, (pace - 1.0) / faster, 0.0)
        ahead, ahead_images = trial + momentum * (trial - points), trial_images + momentum * (trial_images - images)
        points, images, pace = trial, trial_images, np.where(better, faster, 1.0)
        objective.append(objective[-1] + float(np.minimum(change, 0.0).sum()))
        half = images - linear
        if 2.0 * float(np.sum(half * points) - half.min(axis=1).sum()) <= tol * objective[-1]:
            return points, objective
    if max_iter > 1:
        warnings.warn(f"LMVSC reached max_iter={max_iter}.", ConvergenceWarning, stacklevel=5)
    return points, objective


def _add(records: list[list[float]]) -> list[float]:
    """Add objectives step by step; one that has ended stays at its last value."""
    ends = [record[-1] for record in records]
    steps = zip_longest(*records)
    return [sum(end if value is None else value for value, end in zip(step, ends, strict=True)) for step in steps]


def _singular_vectors(mixtures: list[FloatArray], n_clusters: int) -> FloatArray:
    """Return left singular vectors of the scaled and joined mixtures, with entries of size about one."""
    n_samples = len(mixtures[0])
    joined = np.hstack(mixtures)
    sums = joined.sum(axis=0)
    joined /= np.sqrt(np.where(sums > 0, sums, 1.0) * len(mixtures))
    squares, right = largest_eigenpairs(joined.T @ joined, number=n_clusters)
    lengths = np.sqrt(np.maximum(squares, 1e-12))  # fewer directions than clusters, where most samples are equal
    return np.asarray(joined @ (right[:, ::-1] * (np.sqrt(n_samples) / lengths[::-1])))
