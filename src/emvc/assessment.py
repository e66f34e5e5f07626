"""What clusters are worth: whether there are any, whether they come back, how many, and which views they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from rich.progress import Progress
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from emvc._array import FloatArray, IntArray
from emvc._html import html_table
from emvc._terminal import Console
from emvc._validation import Views, check_generator, check_integer
from emvc.cluster_count import choose_n_clusters
from emvc.estimators._base import limit_threads, views_of_fit
from emvc.estimators._confidence import matched, resample
from emvc.estimators.emvc import EMVC
from emvc.method.reliability import rand_index
from emvc.structure import LEVEL

MOST_OTHERS = 4
"""Other numbers of clusters that are assessed: those that the spectrum speaks for most."""


@dataclass(frozen=True, eq=False)
class Assessment:
    """What `assess` has found; printing it gives a readable summary.

    Attributes
    ----------
    structure_p_value : float
        Share of data without clusters that look at least as clustered (see `emvc.structure`); NaN if it cannot be told.
    cluster_stability : ndarray of shape (n_clusters,)
        Mean Jaccard index of a cluster and the most similar one in fits to parts of the samples; 1 if it always comes
        back, below one half if it dissolves.
    sample_stability : ndarray of shape (n_samples,)
        How often a sample keeps its cluster in fits to parts of the samples.
    by_n_clusters : list of dict
        For several numbers of clusters: ``n_clusters``, ``stability`` (mean adjusted Rand index of fits to parts of the
        samples with the fit to all), ``score`` (that of `emvc.cluster_count`) and ``labels``.
    views : list of dict
        For every view ``name``, ``reliability`` and ``agreement``: the adjusted Rand index of the clusters with those
        found without the view; NaN for a single view.
    n_resamples : int
        Number of fits to parts of the samples.
    """

    structure_p_value: float
    cluster_stability: FloatArray
    sample_stability: FloatArray
    by_n_clusters: list[dict[str, Any]] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)
    n_resamples: int = 0

    @property
    def has_structure(self) -> bool:
        """Whether there are clusters beyond chance, or nobody can tell."""
        return not self.structure_p_value > LEVEL

    def tree(self) -> list[tuple[tuple[int, int], tuple[int, int], float]]:
        """Return who splits from whom: clusters of one number, their parents among the next smaller, and the share.

        Each entry is ((n, cluster), (larger n, cluster), share of the latter's samples that come from the former).
        """
        levels = sorted(self.by_n_clusters, key=lambda record: int(record["n_clusters"]))
        found = []
        for above, below in pairwise(levels):
            one, other = np.asarray(above["labels"]), np.asarray(below["labels"])
            for cluster in np.unique(other[other >= 0]):
                inside = one[(other == cluster) & (one >= 0)]
                if len(inside):
                    counts = np.bincount(inside)
                    parent = int(counts.argmax())
                    key = (int(above["n_clusters"]), parent), (int(below["n_clusters"]), int(cluster))
                    found.append((*key, float(counts[parent] / len(inside))))
        return found

    def __str__(self) -> str:
        if not np.isfinite(self.structure_p_value):
            lines = ["Whether there are clusters beyond chance cannot be tested here."]
        elif self.has_structure:
            lines = [f"There are clusters beyond chance (p = {self.structure_p_value:.3f})."]
        else:
            lines = [f"No clusters beyond chance (p = {self.structure_p_value:.3f})."]
        lines += ["", "cluster  stability"]
        lines += [f"{c:7d}  {value:9.2f}" for c, value in enumerate(self.cluster_stability)]
        lines += ["", "number of clusters  stability  score"]
        lines += [f"{r['n_clusters']:18d}  {r['stability']:9.2f}  {r['score']:5.3f}" for r in self.by_n_clusters]
        if len(self.views) > 1:
            lines += ["", "view              reliability  clusters without it agree"]
            lines += [f"{v['name'][:16]:16}  {v['reliability']:11.2f}  {v['agreement']:25.2f}" for v in self.views]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the summary as tables for notebooks."""
        first = f"<p>{escape(str(self).splitlines()[0])}</p>"
        parts = [
            html_table(("cluster", "stability"), [(str(c), f"{v:.2f}") for c, v in enumerate(self.cluster_stability)]),
            html_table(
                ("number of clusters", "stability", "score"),
                [(str(r["n_clusters"]), f"{r['stability']:.2f}", f"{r['score']:.3f}") for r in self.by_n_clusters],
            ),
            html_table(
                ("view", "reliability", "clusters without it agree"),
                [(v["name"], f"{v['reliability']:.2f}", f"{v['agreement']:.2f}") for v in self.views],
            ),
        ]
        return first + "".join(parts)


def assess(
    views: Any,
    model: EMVC,
    *,
    n_resamples: int = 50,
    n_clusters: Sequence[int] | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> Assessment:
    """Assess the clusters of a fitted model by fits to parts of the samples and to data without clusters.

    Parameters
    ----------
    views : list or dict of arrays
        What the model was fitted to; rows with ids may come in another order.
    model : EMVC
        Fitted with all samples (no landmarks).
    n_resamples : int
        Number of fits to parts (80 %) of the samples; other numbers of clusters get a fifth of it.
    n_clusters : sequence of int, optional
        Other numbers of clusters to look at; the four that the spectrum speaks for most if not given.
    random_state : int, Generator, RandomState or None
        Seed of the parts.
    verbose : int
        Show a progress bar.

    Examples
    --------
    >>> from emvc.datasets import make_digits_views
    >>> views = make_digits_views(n_samples=150).views
    >>> found = assess(views, EMVC(10, random_state=0).fit(views), n_resamples=5, n_clusters=[9])
    >>> found.has_structure, [record["n_clusters"] for record in found.by_n_clusters]
    (True, [9, 10])
    """
    check_is_fitted(model)
    n_resamples = check_integer(n_resamples, "n_resamples", least=1)
    checked = views_of_fit(views, model, precomputed=model._is_precomputed(), caller="assess")
    labels, number = np.asarray(model.labels_), int(model.n_clusters_)
    rng = check_generator(random_state)
    seed = int(rng.integers(2**31 - 1))
    with limit_threads(model.n_jobs), _bar(verbose) as bar:
        scores = _scores(checked, model)
        others = _others(scores, number) if n_clusters is None else _given(n_clusters, number, checked.n_samples)
        fewer = max(2, n_resamples // 5)
        step = _steps(bar, n_resamples + len(others) * (fewer + 1) + len(checked.arrays) + 1)
        p_value = model._test_structure(checked).p_value
        step()
        parts = []
        for part, found in resample(model, checked, number, n_resamples, rng):
            parts.append((part, found))
            step()
        records = [_record(number, labels, parts, scores)]
        for other in others:
            refitted = clone(model).set_params(n_clusters=other, n_landmarks=None, outliers="assign")
            full = refitted._fit(checked, other, np.random.default_rng(seed))["labels_"]
            step()
            again = []
            for part, found in resample(model, checked, other, fewer, rng):
                again.append((part, found))
                step()
            records.append(_record(other, full, again, scores))
        contributions = []
        for k, name in enumerate(checked.names):
            contributions.append({"name": name, "reliability": float(model.reliability_[k])})
            contributions[-1]["agreement"] = _without(model, checked, k, labels, number, seed)
            step()
    stability, samples = _stability(labels, number, parts)
    records.sort(key=lambda record: int(record["n_clusters"]))
    return Assessment(p_value, stability, samples, records, contributions, n_resamples)


def _bar(verbose: int) -> Progress:
    return Progress(console=Console(stderr=True), disable=not verbose, transient=True)


def _steps(bar: Progress, total: int) -> Any:
    task = bar.add_task("assessing", total=total)
    return lambda: bar.advance(task)


def _scores(views: Any, model: EMVC) -> dict[int, float]:
    """Return what the spectrum says about every number of clusters."""
    records = getattr(model, "n_clusters_evidence_", None)
    if not records:
        _, _, records = choose_n_clusters(lambda width: model._rows(views, width), None)
    return {int(record["n_clusters"]): float(record["score"]) for record in records}


def _others(scores: dict[int, float], number: int) -> list[int]:
    best = sorted((c for c in scores if c != number), key=lambda c: -scores[c])
    return sorted(best[:MOST_OTHERS])


def _given(numbers: Sequence[int], number: int, n_samples: int) -> list[int]:
    checked = {check_integer(c, "n_clusters", least=2) for c in numbers}
    if checked and max(checked) >= n_samples:
        raise ValueError(f"n_clusters must be between 2 and n_samples - 1 = {n_samples - 1}.")
    return sorted(checked - {number})


def _record(
    number: int, labels: IntArray, parts: Sequence[tuple[IntArray, IntArray]], scores: dict[int, float]
) -> dict[str, Any]:
    agreements = [rand_index(found, np.maximum(labels[part], 0)) for part, found in parts]
    stability = float(np.mean(agreements)) if number > 1 else 1.0
    return {"n_clusters": number, "stability": stability, "score": scores.get(number, 0.0), "labels": labels}


def _stability(
    labels: IntArray, number: int, parts: Sequence[tuple[IntArray, IntArray]]
) -> tuple[FloatArray, FloatArray]:
    """Return how stable clusters and samples are."""
    kept, seen = np.zeros((2, len(labels)))
    overlaps = []
    for part, found in parts:
        wanted = labels[part]
        seen[part] += 1.0
        kept[part] += matched(found, wanted, number) == wanted
        table = np.zeros((number, number))
        np.add.at(table, (wanted[wanted >= 0], found[wanted >= 0]), 1.0)
        union = table.sum(axis=1, keepdims=True) + np.bincount(found, minlength=number) - table
        overlaps.append(np.max(table / np.maximum(union, 1.0), axis=1))
    samples = np.divide(kept, seen, out=np.full(len(labels), np.nan), where=seen > 0)
    return np.mean(overlaps, axis=0), np.where(labels >= 0, samples, np.nan)


def _without(model: EMVC, views: Any, k: int, labels: IntArray, number: int, seed: int) -> float:
    """Return how far the clusters stay the same without a view."""
    if len(views.arrays) < 2:
        return float("nan")
    others = [other for other in range(len(views.arrays)) if other != k]
    arrays, names = tuple(views.arrays[o] for o in others), tuple(views.names[o] for o in others)
    rest = Views(arrays, names, False, views.missing[:, others])
    somewhere = np.flatnonzero(~rest.missing.all(axis=1) & (labels >= 0))
    if len(somewhere) <= number:
        return float("nan")
    refitted = clone(model).set_params(n_clusters=number, n_landmarks=None, outliers="assign")
    part = rest.take(somewhere, square=model._is_precomputed())
    found = refitted._fit(part, number, np.random.default_rng(seed))["labels_"]
    return rand_index(found, labels[somewhere])
