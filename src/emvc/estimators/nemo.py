r"""Peer: neighbourhood based multi-omics clustering, NEMO (Rappoport, Shamir, Bioinformatics 2019).

Every view gives the samples that it has a graph: of the kernel of `emvc.estimators._networks`, the k strongest links of
each sample, with rows scaled to sum one as :math:`S_v`, are kept in both directions, :math:`S_v + S_v'`. The affinity
of two samples is the mean of these graphs over the views that have both. Where no view has both, it is the mean
affinity of all pairs that share a view.

The clusters are those of the program of the authors: leading eigenvectors of :math:`D^{-1/2}AD^{-1/2}`, rows scaled to
length one as U, and the rotation R and clusters Y (one entry of one in each row) for which UR is closest to Y, in turn:
Y from the largest entry of each row of UR, and :math:`R = BC'` from the singular vectors of :math:`Y'U = C\Sigma B'`.
R starts from the row of U in the middle and rows that are as orthogonal as possible to those chosen before. Nothing of
this is random, but the start depends on the order of the samples. While a cluster is empty, R is determined up to a
sign, and while several are, which happens where there are dozens, up to rounding.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from emvc._array import FloatArray, IntArray
from emvc._threads import use_threads
from emvc._validation import Views, check_choice, check_integer, check_memory
from emvc.estimators._networks import NetworkClusterer, scaled_exponential, strongest_links, widest_gap
from emvc.graphs import SCALES, normalized_affinity, scale_view, squared_distances
from emvc.spectral import cluster_embedding, leading_eigenvectors, number_by_appearance, scale_rows

_CANDIDATES = range(2, 16)  # for the number of clusters, as in the authors' program
_SAMPLES_PER_NEIGHBOR = 6  # as in the paper
_MOST_ROTATIONS = 20  # as in the authors' program; few are needed


class NEMO(NetworkClusterer):
    r"""Neighbourhood based multi-omics clustering: the mean of nearest-neighbour graphs, for partial data as well.

    A row of NaN in a view means that the view does not have this sample.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters. ``"auto"`` is the estimate of the paper: with the eigenvalues
        :math:`\lambda_1 \ge \lambda_2 \ge \ldots` of the normalised affinity, the c from 2 to 15 with the largest
        :math:`c\,(\lambda_c - \lambda_{c+1})`.
    n_neighbors : int or "auto", default="auto"
        Neighbours that set the width of the kernel, and links that a sample keeps in a view, the one to itself among
        them. ``"auto"`` is a sixth of the samples that the view has. Links as strong as the last one are kept too.
    scale : {"auto", "unit", "zscore", None}, default="auto"
        As for `EMVC`; the authors expect features that are scaled already, None.
    assign_labels : {"discretize", "kmeans"}, default="discretize"
        Clusters by a rotation of the eigenvectors, as in the authors' program, or by k-means.
    n_init, random_state
        As for `EMVC`, for k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    fused_ : ndarray of shape (n_samples, n_samples)
        The affinity.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Leading eigenvectors with rows of length one.
    n_neighbors_ : list of int
        Number of neighbours in each view.
    n_clusters_, view_names_, n_features_in_
        As for `EMVC`.

    Examples
    --------
    >>> from emvc import NEMO
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
    >>> NEMO(2).fit(data.views).n_neighbors_
    [17, 17]
    """

    _allow_missing = True

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        n_neighbors: int | str = "auto",
        scale: str | None = "auto",
        assign_labels: Literal["discretize", "kmeans"] = "discretize",
        n_init: int = 20,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.random_state = random_state

    @use_threads()  # the products are short: more threads of BLAS would cost more than they gain
    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        check_choice(self.scale, "scale", SCALES)
        check_choice(self.assign_labels, "assign_labels", ("discretize", "kmeans"))
        n_neighbors = self._numbers_of_neighbors(views)
        check_memory(7, (views.n_samples, views.n_samples), advice="Cluster a subset of the samples.")
        fused = self._mean_graph(views, n_neighbors)
        n_clusters = n_clusters or widest_gap(fused, _CANDIDATES, lambda c, value, following: c * (value - following))
        vectors, _ = leading_eigenvectors(normalized_affinity(fused), n_clusters)
        # Signs decide only while a cluster is empty; these are those of imml.
        points = scale_rows(vectors * np.where(vectors.sum(axis=0) < 0, -1.0, 1.0))
        if self.assign_labels == "discretize":
            labels = number_by_appearance(_discretize(points))
        else:
            labels = cluster_embedding(points, n_clusters, n_init=self.n_init, rng=rng)
        return {
            "labels_": labels,
            "embedding_": points,
            "fused_": fused,
            "n_neighbors_": n_neighbors,
            "n_clusters_": n_clusters,
        }

    def _numbers_of_neighbors(self, views: Views) -> list[int]:
        present = [int(number) for number in (~views.missing).sum(axis=0)]
        if isinstance(self.n_neighbors, str) and self.n_neighbors == "auto":
            return [max(1, round(number / _SAMPLES_PER_NEIGHBOR)) for number in present]
        n_neighbors = check_integer(self.n_neighbors, "n_neighbors", least=1)
        n_samples = views.n_samples
        if n_neighbors >= n_samples:
            raise ValueError(f"n_neighbors={n_neighbors} must be smaller than the number of samples, {n_samples}.")
        return [min(n_neighbors, number) for number in present]

    def _mean_graph(self, views: Views, n_neighbors: list[int]) -> FloatArray:
        total = np.zeros((views.n_samples, views.n_samples))
        for array, absent, number in zip(views.arrays, views.missing.T, n_neighbors, strict=True):
            here = np.flatnonzero(~absent)
            squares = squared_distances(scale_view(array[here] if absent.any() else array, self.scale))
            links = strongest_links(scaled_exponential(squares, number), number)
            links += links.T
            if absent.any():
                total[np.ix_(here, here)] += links
            else:
                total += links
        present = (~views.missing).astype(np.float64)
        shared = present @ present.T
        total /= np.maximum(shared, 1.0)
        if not shared.all():
            total[shared == 0] = total[np.tril(shared > 0, -1)].mean()
        return total


def _discretize(points: FloatArray) -> IntArray:
    """Return the clusters that a rotation of the points, rows of length one, fits best."""
    n_samples, n_clusters = points.shape
    chosen = [max(0, round(n_samples / 2) - 1)]
    closeness = np.zeros(n_samples)
    for _ in range(n_clusters - 1):
        closeness += np.abs(points @ points[chosen[-1]])
        chosen.append(int(np.argmin(closeness)))
    rotation = points[chosen].T
    labels: IntArray = np.argmax(points @ rotation, axis=1)
    for _ in range(_MOST_ROTATIONS - 1):
        left, _, right = np.linalg.svd(np.eye(n_clusters)[labels].T @ points)
        previous, labels = labels, np.argmax(points @ (left @ right).T, axis=1)
        if np.array_equal(labels, previous):
            break
    return labels
