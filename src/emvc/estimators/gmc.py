r"""Peer: graph-based multi-view clustering, GMC (Wang, Yang, Liu, IEEE TKDE 2020).

Every view has a sparse graph :math:`S_v`, all views share a unified graph U with embedding F. With squared distances
:math:`d^v_{ij}`, which are divided by their mean so that units do not matter, minimise

.. math:: \sum_v \Bigl( \sum_{ij} d^v_{ij} s^v_{ij} + \sum_i \beta^v_i \lVert s^v_i \rVert^2
          + \sqrt{\lVert U - S_v \rVert_F^2 + \varepsilon} \Bigr) + 2\lambda \operatorname{tr}(F' L_U F)

over rows in the simplex and :math:`F'F = I`. The graph of a view begins with
:math:`s_{ij} = (d_{i,k+1} - d_{ij}) / 2\beta_i`, where :math:`2\beta_i = k d_{i,k+1} - \sum_{j \le k} d_{ij}` leaves k
neighbours. A sweep takes, one after the other, the exact minimiser over

* :math:`S_v`: project :math:`(w_v u_i - d_i/2) / (\beta_i + w_v)` onto the simplex, over the k + 1 nearest samples;
* U: project :math:`(\sum_v w_v s^v_i - \lambda h_i/2) / \sum_v w_v`, :math:`h_{ij} = \lVert f_i - f_j \rVert^2`, over
  the nearest samples in some view;
* F: the eigenvectors of :math:`L_U` with the smallest eigenvalues,

with :math:`w_v = 1 / 2\sqrt{\lVert U - S_v \rVert_F^2 + \varepsilon}`, which majorises the concave root. So a sweep
never raises the objective **of its** :math:`\lambda`. After a sweep that leaves U with too few connected components
:math:`\lambda` is doubled, with too many halved; once it has been too small and too large, the geometric mean is next.
Such a change moves the objective. With as many components as clusters :math:`\lambda` stays, and sweeps go on until the
objective settles.

The authors' program chooses :math:`\beta_i` anew in every sweep and leaves :math:`w_v` out of the mean of the
:math:`S_v`; neither step minimises the objective, and both are not followed. It stops at the first U with the right
number of components.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from emvc._array import BoolArray, FloatArray, IntArray
from emvc._linalg import largest_eigenpairs
from emvc._validation import View, Views, check_integer, check_memory, check_number
from emvc.estimators._base import MultiViewClusterer
from emvc.graphs import scale_view, squared_distances, transition_matrix
from emvc.prox import Simplex
from emvc.spectral import cluster_chain, number_by_appearance

_LEAST_WEIGHT = 1e-9  # beta, as a share of the mean distance, of a sample whose nearest ones are all equally far
_SMOOTHING = 1e-10  # epsilon per sample: keeps the weight of a view finite that equals the unified graph


class GMC(MultiViewClusterer):
    """Graph-based multi-view clustering: a unified graph that falls apart into the clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int, default=15
        Neighbours of a sample in the graph of a view, at most the number of samples less two.
    scale, n_init, random_state
        As for `EMVC`; the last two matter only if k-means is needed.
    max_iter : int, default=100
        Most sweeps.
    tol : float, default=1e-4
        Relative decrease of the objective at which to stop.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The connected components of the unified graph, if there are as many as clusters.
    labels_from_ : {"components", "k-means"}
        Where the labels are from. No weight may give the wanted number of components; then k-means clusters the
        spectral embedding of the unified graph.
    n_components_ : int
        Number of connected components of the unified graph.
    unified_ : ndarray of shape (n_samples, n_samples)
        The unified graph U, row-stochastic.
    weights_ : ndarray of shape (n_views,)
        Weights of the views, summing to one.
    lam_ : float
        The last weight of the rank term.
    objective_ : list of float
        Objective with this weight, from the moment it was set and after each sweep since; it never increases. Values
        of different weights cannot be compared, so those of earlier ones are not kept.
    n_clusters_, n_iter_, view_names_, n_features_in_
        As for `EMVC`; ``n_iter_`` counts all sweeps.

    Examples
    --------
    >>> from emvc import GMC
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
    >>> GMC(2, random_state=0).fit(data.views).unified_.shape
    (100, 100)
    """

    _allow_gaps = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 15,
        scale: str | None = "auto",
        n_init: int = 20,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        n_neighbors = check_integer(self.n_neighbors, "n_neighbors", least=1)
        max_iter = check_integer(self.max_iter, "max_iter", least=1)
        tol = check_number(self.tol, "tol", strict=True)
        shape = (views.n_samples, views.n_samples)
        check_memory(3 * len(views.arrays) + 8, shape, advice="Cluster a subset of the samples or use fewer views.")
        state = _Graphs([_ViewGraph(scale_view(view, self.scale), n_neighbors) for view in views.arrays], n_clusters)
        lam, objective, n_iter = _search(state, n_clusters, max_iter, tol)
        number, labels = state.components()
        if number != n_clusters:
            chain = transition_matrix(state.unified + state.unified.T)
            labels, _, _ = cluster_chain(chain, n_clusters, n_init=self.n_init, rng=rng)
        weights = state.weights()
        return {
            "labels_": number_by_appearance(labels),
            "labels_from_": "components" if number == n_clusters else "k-means",
            "n_components_": number,
            "unified_": state.unified,
            "weights_": weights / weights.sum(),
            "lam_": lam,
            "objective_": objective,
            "n_iter_": n_iter,
        }


def _search(state: _Graphs, n_clusters: int, max_iter: int, tol: float) -> tuple[float, list[float], int]:
    """Sweep and adapt lambda; return it, the objectives since it was set, and the number of sweeps."""
    low, lam, high = 0.0, 1.0, math.inf
    objective = [state.objective(lam)]
    for n_iter in range(1, max_iter + 1):
        previous = state.vectors
        state.sweep(lam)
        objective.append(state.objective(lam))
        number, _ = state.components()
        if number == n_clusters:
            if objective[-2] - objective[-1] <= tol * abs(objective[-1]):
                return lam, objective, n_iter
        elif n_iter < max_iter:
            if number < n_clusters:
                low = lam
            else:
                high, state.vectors = lam, previous  # an embedding of more components than clusters is arbitrary
            lam = 2.0 * low if math.isinf(high) else high / 2.0 if low == 0 else math.sqrt(low * high)
            objective = [state.objective(lam)]
    if number == n_clusters and max_iter > 1:
        warnings.warn(f"GMC reached max_iter={max_iter}.", ConvergenceWarning, stacklevel=4)
    return lam, objective, max_iter


class _ViewGraph:
    """The graph of one view, with what its update needs."""

    def __init__(self, view: View, n_neighbors: int) -> None:
        self.distances = squared_distances(view)
        mean = self.distances.mean()
        self.distances /= mean if mean > 0 else 1.0
        np.fill_diagonal(self.distances, np.inf)
        k = min(n_neighbors, len(self.distances) - 2)
        nearest = np.sort(np.partition(self.distances, k, axis=1)[:, : k + 1], axis=1)
        self.near = self.distances <= nearest[:, k:]  # all that are as near as the last, whatever their order
        np.fill_diagonal(self.distances, 0.0)
        self.beta = np.maximum((k * nearest[:, k:] - nearest[:, :k].sum(axis=1, keepdims=True)) / 2.0, _LEAST_WEIGHT)
        self.graph = _project(-self.distances / (2.0 * self.beta), self.near)

    def update(self, unified: FloatArray, weight: float) -> None:
        self.graph = _project((weight * unified - self.distances / 2.0) / (self.beta + weight), self.near)

    def cost(self) -> float:
        return float(np.sum(self.graph * (self.distances + self.beta * self.graph)))


class _Graphs:
    """The graphs of all views, the unified graph and its embedding."""

    def __init__(self, views: list[_ViewGraph], n_clusters: int) -> None:
        self.views, self.n_clusters = views, n_clusters
        self.near = np.any([view.near for view in views], axis=0)
        self.unified: FloatArray = np.mean([view.graph for view in views], axis=0)
        self.vectors = self._embed()

    def sweep(self, lam: float) -> None:
        self.update_views()
        self.update_unified(lam)
        self.vectors = self._embed()

    def update_views(self) -> None:
        for view, weight in zip(self.views, self.weights(), strict=True):
            view.update(self.unified, weight)

    def update_unified(self, lam: float) -> None:
        weights = self.weights()
        pull = sum(weight * view.graph for view, weight in zip(self.views, weights, strict=True))
        self.unified = _project((pull - lam / 2.0 * squared_distances(self.vectors)) / weights.sum(), self.near)

    def weights(self) -> FloatArray:
        return 0.5 / self._differences()

    def objective(self, lam: float) -> float:
        spread = -float(np.sum(self.vectors * (self._negative_laplacian() @ self.vectors)))
        return sum(view.cost() for view in self.views) + float(self._differences().sum()) + 2.0 * lam * spread

    def components(self) -> tuple[int, IntArray]:
        number, labels = connected_components(scipy.sparse.csr_array(self.unified > 0), directed=False)
        return int(number), labels

    def _differences(self) -> FloatArray:
        smoothing = _SMOOTHING * len(self.unified)
        return np.sqrt([np.sum((self.unified - view.graph) ** 2) + smoothing for view in self.views])

    def _negative_laplacian(self) -> FloatArray:
        symmetric = (self.unified + self.unified.T) / 2.0
        symmetric[np.diag_indices_from(symmetric)] -= symmetric.sum(axis=1)
        return symmetric

    def _embed(self) -> FloatArray:
        return largest_eigenpairs(self._negative_laplacian(), number=self.n_clusters)[1]


def _project(points: FloatArray, allowed: BoolArray) -> FloatArray:
    """Project every row onto the simplex over its allowed entries.

    An entry more than one below the largest is zero in the projection, so that all such entries may be raised.
    """
    points = np.where(allowed, points, -np.inf)
    return np.asarray(Simplex().prox(np.maximum(points, points.max(axis=1, keepdims=True) - 2.0), 1.0))
