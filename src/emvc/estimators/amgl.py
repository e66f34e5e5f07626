r"""Baseline: parameter-free auto-weighted multiple graph learning (Nie, Li, Li, IJCAI 2016).

One spectral embedding F for all views minimises :math:`\sum_v \sqrt{\operatorname{tr}(F' L_v F)}` over orthonormal F,
with the normalised Laplacians :math:`L_v`. Alternate between F, the eigenvectors of :math:`\sum_v a_v L_v` with the
smallest eigenvalues, and the weights :math:`a_v = 1 / (2\sqrt{\operatorname{tr}(F' L_v F)})`. The objective falls in
every step, because the square root is concave.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from emvc._array import FloatArray
from emvc._validation import Views, check_choice, check_integer, check_memory, check_number
from emvc.estimators._base import GraphOptions
from emvc.graphs import normalized_affinity
from emvc.spectral import EMBEDDINGS, Embedding, cluster_embedding, leading_eigenvectors, scale_rows


class AMGL(GraphOptions):
    """Auto-weighted multiple graph learning: one embedding, views weighted by how well they agree with it.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    affinity, n_neighbors, scale, embedding, n_init, random_state
        As for `EMVC`; ``affinity="auto"`` is ``"rbf"``.
    max_iter : int, default=100
        Most iterations.
    tol : float, default=1e-6
        Relative decrease of the objective at which to stop.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Common spectral coordinates.
    weights_ : ndarray of shape (n_views,)
        Weights of the views, summing to one.
    objective_ : list of float
        Objective after each iteration, decreasing.
    n_clusters_, n_iter_, view_names_, n_features_in_
        As for `EMVC`.

    Examples
    --------
    >>> from emvc import AMGL
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
    >>> AMGL(2, random_state=0).fit(data.views).weights_.shape
    (2,)
    """

    default_affinity = "rbf"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        affinity: Any = "auto",
        n_neighbors: int | str = "auto",
        scale: str | None = "auto",
        embedding: Embedding = "unit-rows",
        n_init: int = 20,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.embedding = embedding
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        check_choice(self.embedding, "embedding", EMBEDDINGS)
        max_iter = check_integer(self.max_iter, "max_iter", least=1)
        tol = check_number(self.tol, "tol", strict=True)
        shape = (views.n_samples, views.n_samples)
        check_memory(len(views.arrays) + 4, shape, advice="Cluster a subset of the samples or use fewer views.")
        similarities = np.stack([normalized_affinity(s) for s in self._affinities(views, n_clusters)])
        vectors, weights, objective = _alternate(similarities, n_clusters, max_iter, tol)
        points = scale_rows(vectors) if self.embedding == "unit-rows" else vectors
        return {
            "labels_": cluster_embedding(points, n_clusters, n_init=self.n_init, rng=rng),
            "embedding_": points,
            "weights_": weights / weights.sum(),
            "objective_": objective,
            "n_iter_": len(objective),
        }


def _alternate(
    similarities: FloatArray, n_clusters: int, max_iter: int, tol: float
) -> tuple[FloatArray, FloatArray, list[float]]:
    """Return embedding, weights and objectives; ``similarities`` are I - L_v."""
    weights = np.full(len(similarities), 1.0 / len(similarities))
    objective: list[float] = []
    for _ in range(max_iter):
        mixture = np.tensordot(weights / weights.sum(), similarities, axes=1)
        vectors, _ = leading_eigenvectors(mixture, n_clusters)
        # tr(F' L F) = k - tr(F' (I - L) F); rounding may push a perfectly explained view below zero.
        costs = np.array([n_clusters - np.sum(vectors * (s @ vectors)) for s in similarities])
        roots = np.sqrt(np.maximum(costs, 1e-12))
        weights = 0.5 / roots
        objective.append(float(roots.sum()))
        if len(objective) > 1 and objective[-2] - objective[-1] <= tol * objective[-1]:
            return vectors, weights, objective
    if max_iter > 1:
        warnings.warn(f"AMGL reached max_iter={max_iter}.", ConvergenceWarning, stacklevel=4)
    return vectors, weights, objective
