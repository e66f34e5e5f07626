"""The ladder: the stages of our own method, each a method of the board.

Every stage adds one thing to an earlier one and shares all else, the spectral step included, so that the difference of
two rows of a table tells whether that thing pays. The last stage is the method as it is shipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from emvc._validation import Views, check_views
from emvc.estimators import EMVC
from emvc.estimators._base import limit_threads
from emvc.graphs import default_n_neighbors, weighted_mean
from emvc.solvers import ADMM, Check, Status
from emvc.solvers._loop import Certificate
from emvc.spectral import cluster_chain

SIZES = (4, 2)
"""Neighbourhoods of ``n_samples / (s * n_clusters)`` for these s, besides 10 and a sixth of the samples."""


@dataclass(frozen=True)
class Mean(ADMM):
    """In place of the solver: the weighted mean of the chains that it would get. Certifies nothing."""

    def init(self, problem: Any, rng: np.random.Generator) -> Any:
        """Return the mean."""
        del rng
        return weighted_mean(problem.transitions, np.asarray(problem.weights))

    def step(self, problem: Any, state: Any) -> Any:
        """Leave it as it is."""
        del problem
        return state

    def check(self, problem: Any, state: Any) -> Check:
        """Be content."""
        del problem
        return Check(np.nan, np.nan, 0.0, min(state.shape), 0.0, Status.CONVERGED)

    def finish(self, problem: Any, state: Any) -> Certificate:
        """Return the mean; its objective was not computed, so that the gap is not a number."""
        return Certificate(state.astype(np.float64), np.inf, problem.trivial_bound(), min(state.shape))


class BestGraph(EMVC):
    """Spectral clustering of the graph of one view: the view whose graph has the least normalised cut.

    Samples that this view does not have go to its largest cluster.
    """

    def fit(self, views: Any, y: Any = None) -> Any:
        """Cluster every view alone and keep the one whose leading eigenvalues are closest to one."""
        del y
        checked = check_views(views, allow_missing=True)
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
                total += model._prepare(views, n_clusters).chains.mean
            labels, embedding, eigenvalues = cluster_chain(
                total / total.sum(axis=1, keepdims=True),
                n_clusters,
                embedding="weighted" if views.missing.any() else "unit-rows",
                n_init=self.n_init,
                rng=rng,
            )
        return {"labels_": labels, "embedding_": embedding, "eigenvalues_": eigenvalues}


LADDER: dict[str, Callable[..., Any]] = {
    "best graph": partial(BestGraph, solver=Mean(), joint_view=False, screen=False),
    "mean of graphs": partial(EMVC, solver=Mean(), joint_view=False, screen=False),
    "mean + joint": partial(EMVC, solver=Mean(), screen=False),
    "mean + joint + sizes": partial(SeveralSizes, solver=Mean(), screen=False),
    "mean + joint + screening": partial(EMVC, solver=Mean()),
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
