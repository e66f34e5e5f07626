"""The demonstration: real digits in three views, one of them damaged, clustered by several methods."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from emvc._array import BoolArray
from emvc.datasets import MultiViewDataset, corrupt_samples, make_digits_views
from emvc.estimators import EMVC, FeatureConcatenation, KernelAddition
from emvc.metrics import clustering_scores

DAMAGED_VIEW = 1
FRACTION = 0.1


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found."""

    dataset: MultiViewDataset
    damaged: BoolArray
    """Which samples were destroyed in the damaged view."""
    records: list[dict[str, Any]]
    """One record per method: its name, the seven measures and the seconds it took."""
    model: EMVC
    detection_auc: float
    """How well the errors of the damaged view rank destroyed samples before the others."""
    found: int
    """Destroyed samples among as many samples with the largest errors in that view."""


def run_demo(
    *,
    n_samples: int | None = None,
    random_state: int = 0,
    verbose: int = 0,
    announce: Callable[[str], None] = lambda _: None,
) -> DemoResult:
    """Destroy 10 % of the digits in the Fourier view and cluster them.

    Parameters
    ----------
    n_samples : int, optional
        Use only the first samples of the 1797.
    random_state : int
        Seed of the damage and of the methods.
    verbose : int
        Passed on to `EMVC`.
    announce : callable
        Told the name of each method before it runs.
    """
    data = make_digits_views(n_samples)
    damaged_view, truth = corrupt_samples([data.views[DAMAGED_VIEW]], FRACTION, random_state)
    views = dict(zip(data.view_names, data.views, strict=True))
    views[data.view_names[DAMAGED_VIEW]] = damaged_view[0]
    data = MultiViewDataset(list(views.values()), data.labels, data.view_names, "digits, damaged")

    n_clusters = data.n_clusters
    model = EMVC(n_clusters, random_state=random_state, verbose=verbose)
    methods = {
        "k-means on joined features": FeatureConcatenation(n_clusters, random_state=random_state),
        "kernel addition": KernelAddition(n_clusters, random_state=random_state),
        # What the solver adds to its graphs shows only beside their plain mean.
        "mean of EMVC's graphs": KernelAddition(n_clusters, affinity="local", random_state=random_state),
        "EMVC": model,
    }
    records = []
    for name, method in methods.items():
        announce(name)
        start = time.perf_counter()
        method.fit(views)
        seconds = time.perf_counter() - start
        records.append({"method": name, **clustering_scores(data.labels, method.labels_), "seconds": seconds})
    errors, damaged = model.sample_errors_[:, DAMAGED_VIEW], truth[:, 0]
    worst = np.argsort(-errors)[: damaged.sum()]
    return DemoResult(
        dataset=data,
        damaged=damaged,
        records=records,
        model=model,
        detection_auc=float(roc_auc_score(damaged, errors)),
        found=int(damaged[worst].sum()),
    )
