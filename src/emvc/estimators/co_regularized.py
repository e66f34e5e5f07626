r"""Baseline: co-regularised spectral clustering (Kumar, Rai, Daume, NIPS 2011).

Every view has its own orthonormal embedding :math:`U_v`, and a term rewards agreement of the projections
:math:`U_v U_v'`. With the normalised similarities :math:`S_v`,

* pairwise: maximise :math:`\sum_v \operatorname{tr}(U_v'S_vU_v) + \lambda\sum_{v<w}\operatorname{tr}(U_vU_v'U_wU_w')`;
* centroid: maximise :math:`\sum_v \operatorname{tr}(U_v'S_vU_v) + \lambda\sum_v\operatorname{tr}(U_vU_v'U_*U_*')`.

Each embedding in turn is the leading eigenspace of a symmetric matrix with the others fixed, so the objective never
falls.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_memory as remember

from emvc._array import FloatArray
from emvc._validation import Views, check_choice, check_integer, check_memory, check_number, check_weight
from emvc.estimators._base import GraphOptions
from emvc.graphs import normalized_affinity
from emvc.spectral import cluster_embedding, leading_eigenvectors, scale_rows

_MOST_STEPS = 50  # of one embedding in one round


class CoRegularized(GraphOptions):
    """Co-regularised multi-view spectral clustering.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kind : {"pairwise", "centroid"}, default="pairwise"
        Whether embeddings are drawn towards each other or towards a common one.
    lam : float, default=0.01
        Weight of the agreement; its authors suggest 0.01 to 0.05.
    affinity, n_neighbors, scale, n_init, random_state, memory
        As for `EMVC`; ``affinity="auto"`` is ``"rbf"``.
    max_iter : int, default=100
        Most rounds over the views.
    tol : float, default=1e-6
        Relative increase of the objective at which to stop.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, from the joined embeddings (pairwise) or the common one (centroid).
    embedding_ : ndarray
        The coordinates that k-means has seen, with unit rows.
    objective_ : list of float
        Objective after each round, increasing.
    n_clusters_, n_iter_, view_names_, n_features_in_
        As for `EMVC`.

    Examples
    --------
    >>> from emvc import CoRegularized
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
    >>> CoRegularized(2, kind="centroid", random_state=0).fit(data.views).embedding_.shape
    (100, 2)
    """

    default_affinity = "rbf"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kind: Literal["pairwise", "centroid"] = "pairwise",
        lam: float = 0.01,
        affinity: Any = "auto",
        n_neighbors: int | str = "auto",
        scale: str | None = "auto",
        n_init: int = 20,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
        memory: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kind = kind
        self.lam = lam
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.memory = memory

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        check_choice(self.kind, "kind", ("pairwise", "centroid"))
        lam = check_weight(self.lam, "lam")
        max_iter = check_integer(self.max_iter, "max_iter", least=1)
        tol = check_number(self.tol, "tol", strict=True)
        shape = (views.n_samples, views.n_samples)
        check_memory(len(views.arrays) + 4, shape, advice="Cluster a subset of the samples or use fewer views.")
        similarities = [normalized_affinity(s) for s in self._affinities(views, n_clusters)]
        rounds = remember(self.memory).cache(_pairwise if self.kind == "pairwise" else _centroid)
        joined, objective = rounds(similarities, n_clusters, lam, max_iter, tol)
        points = scale_rows(joined)
        return {
            "labels_": cluster_embedding(points, n_clusters, n_init=self.n_init, rng=rng),
            "embedding_": points,
            "objective_": objective,
            "n_iter_": len(objective),
        }


Joined = tuple[FloatArray, list[float]]


def _pairwise(similarities: list[FloatArray], n_clusters: int, lam: float, max_iter: int, tol: float) -> Joined:
    embeddings = [_Embedding(s, n_clusters) for s in similarities]
    objective: list[float] = []
    for _ in range(max_iter):
        for embedding in embeddings:
            others = [other.vectors for other in embeddings if other is not embedding]
            if others:
                embedding.improve(np.hstack(others), lam, math.sqrt(tol))
        agreement = sum(_overlap(u.vectors, w.vectors) for v, u in enumerate(embeddings) for w in embeddings[:v])
        objective.append(sum(embedding.fit for embedding in embeddings) + lam * agreement)
        if _settled(objective, tol):
            break
    else:
        _warn(max_iter)
    return np.hstack([embedding.vectors for embedding in embeddings]), objective


def _centroid(similarities: list[FloatArray], n_clusters: int, lam: float, max_iter: int, tol: float) -> Joined:
    embeddings = [_Embedding(s, n_clusters) for s in similarities]
    objective: list[float] = []
    for _ in range(max_iter):
        joined = np.hstack([embedding.vectors for embedding in embeddings])
        common, _ = leading_eigenvectors(None, n_clusters, pull=joined, weight=1.0)
        for embedding in embeddings:
            embedding.improve(common, lam, math.sqrt(tol))
        agreement = sum(_overlap(embedding.vectors, common) for embedding in embeddings)
        objective.append(sum(embedding.fit for embedding in embeddings) + lam * agreement)
        if _settled(objective, tol):
            break
    else:
        _warn(max_iter)
    return common, objective


class _Embedding:
    """The embedding of one view: orthonormal ``vectors`` and their image under the view's similarities.

    It starts from the leading eigenvectors. What the other views ask of it changes little from round to round, so it
    follows by Rayleigh-Ritz steps on the span of the vectors and their residuals. These never lower the objective, and
    each takes one product with the similarities, because the image of the vectors is carried along.
    """

    def __init__(self, similarity: FloatArray, n_clusters: int) -> None:
        self.similarity = similarity
        self.vectors, values = leading_eigenvectors(similarity, n_clusters)
        self.image = self.vectors * values

    @property
    def fit(self) -> float:
        """tr(U'SU)."""
        return float(np.sum(self.vectors * self.image))

    def improve(self, pull: FloatArray, weight: float, tol: float) -> None:
        """Move towards the leading eigenvectors of S + w WW' until residuals have at most length ``tol``."""
        size = self.vectors.shape[1]
        residuals = self._residuals(pull, weight)
        for _ in range(_MOST_STEPS):
            basis, triangle = np.linalg.qr(np.hstack([self.vectors, residuals]))
            images = self.similarity @ basis[:, size:]
            images = np.hstack([self.image * np.sign(np.diag(triangle)[:size]), images])
            drawn = pull.T @ basis
            matrix = basis.T @ images + weight * (drawn.T @ drawn)
            _, rotation = scipy.linalg.eigh(matrix, check_finite=False, driver="evd")
            rotation = rotation[:, : -size - 1 : -1]
            self.vectors, self.image = basis @ rotation, images @ rotation
            residuals = self._residuals(pull, weight)
            if np.linalg.norm(residuals, axis=0).max() <= tol:
                break

    def _residuals(self, pull: FloatArray, weight: float) -> FloatArray:
        image = self.image + weight * (pull @ (pull.T @ self.vectors))
        return np.asarray(image - self.vectors @ (self.vectors.T @ image))


def _overlap(one: FloatArray, other: FloatArray) -> float:
    """Return tr(UU'WW')."""
    return float(np.sum((one.T @ other) ** 2))


def _settled(objective: list[float], tol: float) -> bool:
    return len(objective) > 1 and objective[-1] - objective[-2] <= tol * abs(objective[-1])


def _warn(max_iter: int) -> None:
    if max_iter > 1:
        warnings.warn(f"CoRegularized reached max_iter={max_iter}.", ConvergenceWarning, stacklevel=5)
