"""The ladder: the stages of our own method, each a method of the board.

Every stage adds one thing to an earlier one and shares all else, the spectral step included, so that the difference of
two rows of a table tells whether that thing pays. The last stage is the method as it is shipped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from emvc._validation import Views, check_views
from emvc.estimators import EMVC
from emvc.estimators._base import limit_threads
from emvc.graphs import default_n_neighbors
from emvc.method.reference import Settings
from emvc.spectral import cluster_chain

SIZES = (4, 2)
"""Neighbourhoods of ``n_samples / (s * n_clusters)`` for these s, besides 10 and a sixth of the samples."""


class Mean(EMVC):
    """In place of the solver, and of what it is told about errors: the weighted mean of the chains."""

    def _settings(self, n_samples: int, n_clusters: int) -> Settings:
        return super()._settings(n_samples, n_clusters).without_limits()


class BestGraph(EMVC):
    """Spectral clustering of the graph of one view: the view whose graph has the least normalised cut.

    Samples that this view does not have go to its largest cluster.
    """

    def fit(self, views: Any, y: Any = None) -> Any:
        """Cluster every view alone and keep the one whose leading eigenvalues are closest to one."""
        del y
        checked = check_views(views, allow_missing=True, allow_gaps=True)
        n_clusters, best = int(self.n_clusters), -np.inf
        for array, absent in zip(checked.arrays, checked.missing.T, strict=True):
            n_present = int((~absent).sum())
            model = EMVC(**self.get_params())
            if n_present <= n_clusters or model.fit(array[~absent]).eigenvalues_.sum() <= best:
                continue
            best = float(model.eigenvalues_.sum())
            self.labels_ = np.full(len(absent), np.argmax(np.bincount(model.labels_)))
            self.labels_[~absent] = model.labels_
        self.n_clusters_ = n_clusters
        return self


class SeveralSizes(EMVC):
    """The mean of the chains at four sizes of the neighbourhood."""

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        n_samples = views.n_samples
        sizes = {10, n_samples // 6, *(n_samples // (s * n_clusters) for s in SIZES)}
        least = default_n_neighbors(n_samples, n_samples)
        total = np.zeros((n_samples, n_samples))
        with limit_threads(self.n_jobs):
            for size in sorted({min(max(size, least), n_samples - 1) for size in sizes}):
                model = EMVC(**self.get_params() | {"n_neighbors": size})
                total += model._rows(views, n_clusters).problem.solve().consensus
            labels, embedding, eigenvalues = cluster_chain(
                total / total.sum(axis=1, keepdims=True),
                n_clusters,
                embedding=self.embedding,
                n_init=self.n_init,
                rng=rng,
            )
        return {"labels_": labels, "embedding_": embedding, "eigenvalues_": eigenvalues}


LADDER: dict[str, Callable[..., Any]] = {
    "best graph": partial(BestGraph, joint_view=False, screen=False),
    "mean of graphs": partial(EMVC, joint_view=False, screen=False),
    "mean + joint": partial(EMVC, screen=False),
    "mean + joint + sizes": partial(SeveralSizes, screen=False),
    "mean + joint + screening": Mean,
    "EMVC": EMVC,
}
"""Stages by name; the last one adds the solver to the one before it."""

STAGES = (
    ("mean of graphs", "best graph"),
    ("mean + joint", "mean of graphs"),
    ("mean + joint + sizes", "mean + joint"),
    ("mean + joint + screening", "mean + joint"),
    ("EMVC", "mean + joint + screening"),
)
"""Each stage and the one that it is compared with."""
