"""Baseline: k-means on the joined features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from emvc import graphs
from emvc._validation import Views, check_choice
from emvc.estimators._base import MultiViewClusterer
from emvc.spectral import cluster_embedding


class FeatureConcatenation(MultiViewClusterer):
    """Scale every view, join the features of all views and run k-means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    scale, n_init, random_state
        As for `EMVC`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    n_clusters_, view_names_, n_features_in_
        As for `EMVC`.

    Examples
    --------
    >>> from emvc import FeatureConcatenation
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
    >>> FeatureConcatenation(2, random_state=0).fit_predict(data.views).shape
    (100,)
    """

    def __init__(
        self, n_clusters: int = 8, *, scale: str | None = "auto", n_init: int = 20, random_state: Any = None
    ) -> None:
        self.n_clusters = n_clusters
        self.scale = scale
        self.n_init = n_init
        self.random_state = random_state

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        check_choice(self.scale, "scale", graphs.SCALES)
        scaled = [graphs.scale_view(array, self.scale) for array in views.arrays]
        if any(scipy.sparse.issparse(array) for array in scaled):
            joined = scipy.sparse.hstack(scaled, format="csr")
        else:
            joined = np.hstack(scaled)
        return {"labels_": cluster_embedding(joined, n_clusters, n_init=self.n_init, rng=rng)}
