"""Baseline: spectral clustering of the mean of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from emvc._validation import Views, check_choice, check_memory
from emvc.estimators._base import GraphOptions
from emvc.graphs import transition_matrix
from emvc.spectral import EMBEDDINGS, Embedding, cluster_embedding, spectral_embedding


class KernelAddition(GraphOptions):
    """Average the affinities of all views and cluster the result spectrally.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    affinity, n_neighbors, scale, embedding, n_init, random_state
        As for `EMVC`; ``affinity="auto"`` is the Gaussian kernel with the median bandwidth, ``"rbf"``.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Spectral coordinates.
    n_clusters_, view_names_, n_features_in_
        As for `EMVC`.

    Examples
    --------
    >>> from emvc import KernelAddition
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
    >>> KernelAddition(2, random_state=0).fit(data.views).embedding_.shape
    (100, 2)
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
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.embedding = embedding
        self.n_init = n_init
        self.random_state = random_state

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        check_choice(self.embedding, "embedding", EMBEDDINGS)
        shape = (views.n_samples, views.n_samples)
        check_memory(7, shape, advice="Cluster a subset of the samples.")
        total = np.zeros(shape)
        for affinity in self._affinities(views, n_clusters):
            total += affinity
        embedding, _ = spectral_embedding(transition_matrix(total, out=total), n_clusters, embedding=self.embedding)
        labels = cluster_embedding(embedding, n_clusters, n_init=self.n_init, rng=rng)
        return {"labels_": labels, "embedding_": embedding}
