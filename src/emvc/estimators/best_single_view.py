"""Baseline: k-means on each view alone, and the best of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.metrics import normalized_mutual_info_score, silhouette_score

from emvc import graphs
from emvc._validation import Views, check_choice
from emvc.estimators._base import MultiViewClusterer
from emvc.spectral import cluster_embedding

_SILHOUETTE_SAMPLES = 2000


class BestSingleView(MultiViewClusterer):
    """Run k-means on every view and keep the best result.

    Which view is best can only be known with labels. If ``fit`` is given true classes ``y``, the view with the highest
    normalised mutual information is kept, which is how the baseline is reported in the literature; without them the
    view with the highest silhouette is kept, which is a guess. ``selected_with_labels_`` says which of the two it was.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    scale, n_init, random_state
        As for `EMVC`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters in the best view.
    view_labels_ : ndarray of shape (n_views, n_samples)
        Clusters in every view.
    view_scores_ : ndarray of shape (n_views,)
        The scores by which the view was chosen.
    best_view_ : int
        Position of the view that was kept.
    selected_with_labels_ : bool
        Whether true classes were used to choose it.
    n_clusters_, view_names_, n_features_in_
        As for `EMVC`.

    Examples
    --------
    >>> from emvc import BestSingleView
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
    >>> model = BestSingleView(2, random_state=0).fit(data.views, data.labels)
    >>> model.view_labels_.shape, model.selected_with_labels_
    ((2, 100), True)
    """

    def __init__(
        self, n_clusters: int = 8, *, scale: str | None = "auto", n_init: int = 20, random_state: Any = None
    ) -> None:
        self.n_clusters = n_clusters
        self.scale = scale
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, views: Any, y: Any = None) -> Self:
        """Cluster every view; true classes ``y``, if given, choose the view that is kept."""
        super().fit(views)
        self.selected_with_labels_ = y is not None
        if y is None:
            return self
        y = np.asarray(y)
        if y.shape != self.labels_.shape:
            raise ValueError(f"y must have one class for each of the {len(self.labels_)} samples, got shape {y.shape}.")
        scores = [normalized_mutual_info_score(y, labels) for labels in self.view_labels_]
        self._keep(np.array(scores))
        return self

    def fit_predict(self, views: Any, y: Any = None) -> Any:
        """Fit and return the labels of the best view."""
        return self.fit(views, y).labels_

    def _keep(self, scores: Any) -> None:
        self.view_scores_ = scores
        self.best_view_ = int(np.argmax(scores))
        self.labels_ = self.view_labels_[self.best_view_]

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        check_choice(self.scale, "scale", graphs.SCALES)
        all_labels, scores = [], []
        for array in views.arrays:
            scaled = graphs.scale_view(array, self.scale)
            labels = cluster_embedding(scaled, n_clusters, n_init=self.n_init, rng=rng)
            all_labels.append(labels)
            scores.append(_silhouette(scaled, labels, rng))
        best = int(np.argmax(scores))
        return {
            "labels_": all_labels[best],
            "view_labels_": np.stack(all_labels),
            "view_scores_": np.array(scores),
            "best_view_": best,
        }


def _silhouette(view: Any, labels: Any, rng: np.random.Generator) -> float:
    """Return the silhouette on at most 2000 samples, or the lowest value where it is not defined."""
    chosen = np.sort(rng.permutation(len(labels))[:_SILHOUETTE_SAMPLES])
    labels = labels[chosen]
    if not 1 < len(np.unique(labels)) < len(labels):
        return -1.0
    return float(silhouette_score(view[chosen], labels))
