r"""Peer: similarity network fusion, SNF (Wang et al., Nature Methods 2014).

Every view has a network, the kernel of `emvc.estimators._networks` with rows scaled to sum one and made symmetric,
:math:`P_v`, and a sparse one, :math:`S_v`, that keeps the strongest links of each sample, again with sums of one. The
views exchange what they know along their strongest links,

.. math:: P_v \leftarrow S_v \Bigl(\frac{1}{V-1} \sum_{w\ne v} P_w\Bigr) S_v' + \alpha I,

all at the same time and for a fixed number of rounds. With the rows of :math:`\sum_v P_v` scaled to sum one as Q, the
fused network is :math:`(Q + Q' + I) / 2`.

This is what snfpy computes, not the paper to the letter: there, the rows of every :math:`P_v` are scaled anew after
each round, and the kernel has no factor in front. The products cost :math:`O(KN^2)`, not :math:`O(N^3)`, because
:math:`S_v` has about K entries in a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from emvc._array import FloatArray
from emvc._threads import use_threads
from emvc._validation import Views, check_choice, check_integer, check_memory, check_weight
from emvc.estimators._networks import (
    NetworkClusterer,
    scaled_exponential,
    strongest_links,
    widest_gap,
    without_loops,
)
from emvc.graphs import SCALES, normalized_affinity, scale_view, squared_distances
from emvc.spectral import cluster_embedding, leading_eigenvectors, thin_out

_CANDIDATES = range(2, 6)  # for the number of clusters, as in snfpy


class SNF(NetworkClusterer):
    r"""Similarity network fusion: views pass messages until they agree on one network, which is cut spectrally.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters. ``"auto"`` is the estimate of snfpy: with the eigenvalues
        :math:`\lambda_1 \ge \lambda_2 \ge \ldots` of the normalised network, the c from 2 to 5 with the largest
        :math:`(\lambda_c - \lambda_{c+1}) \lambda_c / \lambda_{c+1}`.
    n_neighbors : int, default=20
        K, the neighbours that set the width of the kernel, and the links that a sample keeps, the one to itself among
        them. At most the number of samples. Links as strong as the last one are kept too.
    mu : float, default=0.5
        Width of the kernel.
    n_iter : int, default=20
        Rounds of messages.
    alpha : float, default=1.0
        Weight that a sample's link to itself gains in every round.
    scale : {"auto", "unit", "zscore", None}, default="auto"
        As for `EMVC`. ``"zscore"`` is what snfpy does by default, None its ``normalize=False``.
    n_init, random_state
        As for `EMVC`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample: k-means on ``embedding_``.
    fused_ : ndarray of shape (n_samples, n_samples)
        The fused network.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Leading eigenvectors of the random walk on the fused network without links of samples to themselves, as in
        ``spectral_clustering`` of scikit-learn.
    n_clusters_, view_names_, n_features_in_
        As for `EMVC`.

    Notes
    -----
    A single view has nobody to listen to but itself: it is fused as if there were two of it.

    The estimate of snfpy fails where it should be easiest. If the samples of a cluster are all alike,
    :math:`\lambda_{c+1}` is negative for the right c, and so is its score.

    Examples
    --------
    >>> from emvc import SNF
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
    >>> SNF(2, random_state=0).fit(data.views).fused_.shape
    (100, 100)
    """

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        n_neighbors: int = 20,
        mu: float = 0.5,
        n_iter: int = 20,
        alpha: float = 1.0,
        scale: str | None = "auto",
        n_init: int = 20,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.n_iter = n_iter
        self.alpha = alpha
        self.scale = scale
        self.n_init = n_init
        self.random_state = random_state

    @use_threads()  # the products are short: more threads of BLAS would cost more than they gain
    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        fused = self._fuse(views)
        n_clusters = n_clusters or _count_clusters(fused)
        graph = without_loops(fused)
        degree = graph.sum(axis=1, keepdims=True)
        vectors, _ = leading_eigenvectors(normalized_affinity(graph), n_clusters)
        embedding = vectors / np.sqrt(np.where(degree > 0, degree, 1.0))
        return {
            "labels_": cluster_embedding(embedding, n_clusters, n_init=self.n_init, rng=rng),
            "embedding_": embedding,
            "fused_": fused,
            "n_clusters_": n_clusters,
        }

    def _fuse(self, views: Views) -> FloatArray:
        check_choice(self.scale, "scale", SCALES)
        n_neighbors = check_integer(self.n_neighbors, "n_neighbors", least=1)
        mu = check_weight(self.mu, "mu", strict=True)
        n_iter = check_integer(self.n_iter, "n_iter", least=0)
        alpha = check_weight(self.alpha, "alpha")
        shape = (views.n_samples, views.n_samples)
        check_memory(2 * len(views.arrays) + 5, shape, advice="Cluster a subset of the samples or use fewer views.")
        networks, links = np.empty((len(views.arrays), *shape)), []
        for network, array in zip(networks, views.arrays, strict=True):
            kernel = scaled_exponential(squared_distances(scale_view(array, self.scale)), n_neighbors, mu)
            kernel /= 2.0 * kernel.sum(axis=1, keepdims=True)
            np.add(kernel, kernel.T, out=network)
            links.append(thin_out(strongest_links(network, n_neighbors)))
        return _exchange(networks, links, n_iter, alpha)


def _exchange(networks: FloatArray, links: list[Any], n_iter: int, alpha: float) -> FloatArray:
    """Return the fused network after so many rounds; the networks are overwritten."""
    n_views, n_samples, _ = networks.shape
    total = networks.sum(axis=0)
    for _ in range(n_iter):
        for network, link in zip(networks, links, strict=True):
            others = (total - network) / (n_views - 1) if n_views > 1 else network
            # S (S M)' is S M S', since M is symmetric.
            network[:] = link @ np.ascontiguousarray((link @ others).T)
            network.flat[:: n_samples + 1] += alpha
        total = networks.sum(axis=0)
    total /= total.sum(axis=1, keepdims=True)
    return np.asarray((total + total.T + np.eye(n_samples)) / 2.0)


def _count_clusters(fused: FloatArray) -> int:
    return widest_gap(fused, _CANDIDATES, lambda _, value, following: (value - following) * value / following)
