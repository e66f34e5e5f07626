r"""Choosing the number of clusters and the weights without labels, with the evidence.

**Number of clusters.** See `emvc.cluster_count`.

**Weights.** The decomposition is solved along a path of weights around the default, and the smallest weight is taken
from which on the clusters no longer depend on it: below, the solution has too low a rank to hold them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from emvc._array import IntArray
from emvc._validation import check_generator, check_integer, check_views
from emvc.cluster_count import choose_n_clusters
from emvc.estimators._base import limit_threads
from emvc.estimators.emvc import EMVC

MULTIPLIERS = (0.5, 0.7, 1.0, 1.4, 2.0)
"""The path of weights, in units of the default."""

_SETTLED = 0.95  # adjusted Rand index with the next point of the path


@dataclass(frozen=True)
class Selection:
    """What `select` has chosen, and why.

    Attributes
    ----------
    n_clusters : int
        Number of clusters.
    confidence : float
        Between 0 and 1: one minus the score of the second best number of clusters over that of the best; 1 if the
        number was given.
    beta, lam : float
        Weights of the decomposition.
    clusters : list of dict
        For every candidate number of clusters ``n_clusters``, ``eigenvalue``, ``gap`` and ``score`` (see
        `emvc.cluster_count`).
    weights : list of dict
        For every point of the path ``multiplier``, ``beta``, ``rank``, ``eigengap``, ``gap`` and ``settled``, the
        agreement of its clusters with those of the next point.
    """

    n_clusters: int
    confidence: float
    beta: float
    lam: float
    clusters: list[dict[str, float]] = field(default_factory=list)
    weights: list[dict[str, float]] = field(default_factory=list)


def select(
    views: Any,
    n_clusters: int | str | Sequence[int] = "auto",
    *,
    estimator: EMVC | None = None,
    multipliers: Sequence[float] = MULTIPLIERS,
    random_state: Any = 0,
) -> Selection:
    """Choose the number of clusters and the weights without labels.

    Parameters
    ----------
    views : list or dict of arrays
        As for `EMVC.fit`.
    n_clusters : int, "auto" or sequence of int
        The number, or candidates for it; ``"auto"`` tries 2 to 120.
    estimator : EMVC, optional
        Options other than the number of clusters and the weights; the defaults if not given.
    multipliers : sequence of float
        Path of weights in units of the default; with fewer than two, the default is taken.
    random_state : int, Generator, RandomState or None
        Seed of k-means along the path of weights.

    Examples
    --------
    >>> from emvc.datasets import make_digits_views
    >>> data = make_digits_views(n_samples=200)
    >>> chosen = select(data.views, n_clusters=[8, 10], multipliers=(1.0,))
    >>> chosen.n_clusters in (8, 10) and chosen.beta > 0
    True
    """
    model = EMVC() if estimator is None else clone(estimator)
    checked = check_views(views, allow_missing=True, allow_gaps=True, precomputed=model._is_precomputed())
    seed = int(check_generator(random_state).integers(2**31 - 1))
    with limit_threads(model.n_jobs):
        if isinstance(n_clusters, str) or not np.isscalar(n_clusters):
            candidates = None if isinstance(n_clusters, str) else [int(c) for c in n_clusters]  # type: ignore[union-attr]
            number, confidence, evidence = choose_n_clusters(lambda width: model._rows(checked, width), candidates)
        else:
            number, confidence, evidence = check_integer(n_clusters, "n_clusters", least=2), 1.0, []
    beta, lam, path = _follow_path(views, model, number, multipliers, seed)
    return Selection(number, confidence, beta, lam, evidence, path)


def _follow_path(
    views: Any, model: EMVC, n_clusters: int, multipliers: Sequence[float], seed: int
) -> tuple[float, float, list[dict[str, float]]]:
    """Return the weights from which on the clusters have settled, and the evidence along the path."""
    model = clone(model).set_params(n_clusters=n_clusters, beta="auto", lam="auto", random_state=seed)
    if model.solver == "auto":  # the row problem has no weights
        model.set_params(solver="admm")
    default = model.fit(views)
    beta, lam = float(default.beta_), float(default.lam_)
    if len(multipliers) < 2:
        return beta, lam, []
    # The points of the path do not depend on each other: joblib.parallel_config decides where they are solved.
    found = Parallel()(delayed(_point)(views, model, beta, lam, multiplier) for multiplier in sorted(multipliers))
    path, labels = [record for record, _ in found], [labels for _, labels in found]
    for record, one, other in zip(path, labels, [*labels[1:], labels[-1]], strict=True):
        record["settled"] = float(adjusted_rand_score(one, other))
    chosen = next(
        (
            i
            for i, record in enumerate(path)
            if record["rank"] >= n_clusters and all(later["settled"] >= _SETTLED for later in path[i:])
        ),
        len(path) - 1,
    )
    multiplier = path[chosen]["multiplier"]
    return multiplier * beta, multiplier * lam, path


def _point(views: Any, model: EMVC, beta: float, lam: float, multiplier: float) -> tuple[dict[str, float], IntArray]:
    """Return evidence and labels of one point of the path."""
    fitted = clone(model).set_params(beta=multiplier * beta, lam=multiplier * lam).fit(views)
    values = fitted.eigenvalues_
    record = {
        "multiplier": float(multiplier),
        "beta": multiplier * beta,
        "rank": float(fitted.rank_),
        "eigengap": float(values[-2] - values[-1]) if len(values) > 1 else 0.0,
        "gap": float(fitted.duality_gap_),
    }
    return record, fitted.labels_
