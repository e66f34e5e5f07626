r"""The number of clusters without labels.

One fused graph, whose width does not depend on the number of clusters, is cut into c clusters for every candidate c,
and four quantities make a score:

* the share of its links that the average cluster keeps inside;
* information, that of the cluster of a sample about the cluster of a neighbour: the mutual information of one step of
  the random walk. It grows with the number of clusters, slowly once they cut through what belongs together, where the
  first falls;
* stability: the adjusted Rand index between the clusters of everybody and those of random subsets of the samples;
* agreement: the adjusted Rand index between the clusters of each view alone and those of all views.

The first two prefer cuts through gaps, the other two punish cuts that depend on who was asked. More than twenty
clusters are looked for where views agree much more on twenty than on ten. Their scores hardly differ from one number
to the next, but a graph that is as narrow as they are small has a gap in its spectrum there, and that decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from emvc._array import FloatArray, IntArray
from emvc._validation import check_integer
from emvc.graphs import transition_matrix
from emvc.method.reference import Rows
from emvc.spectral import cluster_embedding, spectral_embedding

WIDTH = 5
"""Graphs are as wide as for this many clusters, which is fair for two and for twenty as well."""

_FEWEST_SUBSETS, _MOST_SUBSETS = 6, 50
_SUBSET_SAMPLES = 10_000  # in all subsets, roughly: small ones differ more
_SUBSET = 0.8
_CLOSE = 0.85  # numbers with at least this share of the best score are looked at more closely
_STARTS = 5
_MOST_STARTS = 20  # where clusters are compared to many others
_STARTED_SAMPLES = 20_000  # in all starts of k-means, roughly
_STEP = 1.5  # from one number beyond the usual ones to the next
_MOST = 20
_NEAR_THE_END = 0.75  # a best number beyond this share of the largest one calls for larger ones
_MORE_AGREEMENT = 1.1  # and so do views that agree by so much more on the largest number than on half of it


def choose_n_clusters(
    describe: Callable[[int], Rows], candidates: Sequence[int] | None, rng: np.random.Generator
) -> tuple[int, float, list[dict[str, float]]]:
    """Return the number of clusters with the best score, the confidence in it and the evidence.

    Parameters
    ----------
    describe : callable
        Returns the samples with graphs that are as wide as is right for the given number of clusters.
    candidates : sequence of int or None
        Numbers to try; None for 2 to 20, and more if there is reason to.
    rng : Generator
        Source of the subsets and of the seeds of k-means.

    Returns
    -------
    n_clusters : int
    confidence : float
        One minus the score of the second best number over that of the best; for more than twenty clusters the same
        for gaps in the spectrum.
    evidence : list of dict
        ``n_clusters``, ``inside``, ``information``, ``stability``, ``agreement`` and ``score`` for each candidate.
    """
    rows = describe(WIDTH)
    n_samples = len(rows.shown)
    chosen = range(2, max(3, min(_MOST, n_samples // 5) + 1)) if candidates is None else candidates
    numbers = sorted({check_integer(c, "n_clusters", least=2) for c in chosen})
    if not numbers or numbers[-1] >= n_samples:
        raise ValueError(f"The candidates for n_clusters must be between 2 and n_samples - 1 = {n_samples - 1}.")
    evidence = _Evidence(rows, int(rng.integers(2**31 - 1)))
    records = evidence.collect(numbers)
    if candidates is None and (_best(records) > _NEAR_THE_END * numbers[-1] or evidence.rises(numbers[-1])):
        records += evidence.collect(_wider(n_samples))
    records = evidence.settle(records)
    best = _best(records)
    if candidates is None and best > _MOST:
        best, confidence = _widest_gap(describe(best), best)
        if best not in {int(record["n_clusters"]) for record in records}:
            records = sorted([*records, *evidence.collect([best])], key=lambda record: record["n_clusters"])
        return best, confidence, records
    scores = sorted(record["score"] for record in records)
    if len(scores) == 1:
        return best, 1.0, records
    return best, 1.0 - scores[-2] / scores[-1] if scores[-1] > 0 else 0.0, records


def _widest_gap(rows: Rows, around: int) -> tuple[int, float]:
    """Return the number of clusters near the given one with the widest gap in the spectrum, and how clear that is."""
    graph = _without_loops(rows.problem.solve().consensus)
    low, high = round(around / _STEP), min(round(_STEP * around), len(graph) - 2)
    _, values = spectral_embedding(transition_matrix(graph), high + 1, embedding="plain")
    gaps = values[low - 1 : high] - values[low : high + 1]
    last, first = np.sort(gaps)[-2:]
    return low + int(np.argmax(gaps)), float(1.0 - last / first) if first > 0 else 0.0


def _wider(n_samples: int) -> list[int]:
    """Return numbers beyond the usual ones, each half as large again as the last, up to ten samples per cluster."""
    numbers, number = [], _MOST * _STEP
    while number <= n_samples / 10:
        numbers.append(round(number))
        number *= _STEP
    return numbers


def _best(records: list[dict[str, float]]) -> int:
    return int(max(records, key=lambda record: record["score"])["n_clusters"])


class _Evidence:
    """Clusters of everybody, of each view alone and of random subsets, and what they say about their number."""

    def __init__(self, rows: Rows, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._graph = _without_loops(rows.problem.solve().consensus)
        n_samples, n_views = rows.shown.shape
        starts = min(max(_STARTS, _STARTED_SAMPLES // n_samples), _MOST_STARTS)
        self._everybody = _Cuts(lambda: self._graph, seed, starts)
        views = rows.problem.transitions[:n_views] if n_views > 1 else ()
        self._alone = [_Cuts(partial(_without_loops, chain), seed, starts) for chain in views]
        n_subsets = min(max(_FEWEST_SUBSETS, _SUBSET_SAMPLES // n_samples), _MOST_SUBSETS)
        size = max(3, int(_SUBSET * n_samples))
        members = [np.sort(rng.choice(n_samples, size, replace=False)) for _ in range(n_subsets)]
        self._subsets = [(part, _Cuts(partial(self._part, part), seed, _STARTS)) for part in members]

    def _part(self, members: IntArray) -> FloatArray:
        return np.asarray(self._graph[np.ix_(members, members)])

    def collect(self, numbers: Sequence[int]) -> list[dict[str, float]]:
        """Return one record for each number of clusters."""
        return [self._record(number, _FEWEST_SUBSETS) for number in numbers]

    def settle(self, records: list[dict[str, float]]) -> list[dict[str, float]]:
        """Return records with all subsets behind those that come close to the best."""
        least = _CLOSE * max(record["score"] for record in records)
        return [
            self._record(int(record["n_clusters"]), len(self._subsets)) if record["score"] >= least else record
            for record in records
        ]

    def _record(self, number: int, n_subsets: int) -> dict[str, float]:
        labels = self._everybody.labels(number)
        stability = np.mean(
            [
                adjusted_rand_score(labels[part], cuts.labels(min(number, len(part) - 1)))
                for part, cuts in self._subsets[:n_subsets]
            ]
        )
        inside, information = _separation(self._graph, labels)
        solid, information = max(inside * float(stability), 0.0), max(information, 0.0)
        if self._alone:
            with_views = [adjusted_rand_score(labels, cuts.labels(number)) for cuts in self._alone]
            agreement = float(np.mean(with_views))
            score = solid**1.5 * math.sqrt(information) * max(agreement, 0.0)
        else:  # nothing to make up for what is lost with every further cluster
            agreement, score = 1.0, solid * math.sqrt(information)
        return {
            "n_clusters": float(number),
            "inside": inside,
            "information": information,
            "stability": float(stability),
            "agreement": agreement,
            "score": score,
        }

    def rises(self, number: int) -> bool:
        """Tell whether views agree much more on so many clusters than on half as many.

        By mutual information, which unlike pairs of samples sees small clusters as well as large ones.
        """

        def information(n_clusters: int) -> float:
            labels = self._everybody.labels(n_clusters)
            with_views = [adjusted_mutual_info_score(labels, cuts.labels(n_clusters)) for cuts in self._alone]
            return float(np.mean(with_views))

        return (
            bool(self._alone) and number >= _MOST and information(number) > _MORE_AGREEMENT * information(number // 2)
        )


class _Cuts:
    """Spectral clusters of one graph for any number; the graph is made again when more vectors are needed."""

    def __init__(self, graph: Callable[[], FloatArray], seed: int, starts: int) -> None:
        self._graph = graph
        self._seed = seed
        self._starts = starts
        self._embedding = np.empty((0, 0))
        self._found: dict[int, IntArray] = {}

    def labels(self, n_clusters: int) -> IntArray:
        if n_clusters not in self._found:
            if self._embedding.shape[1] < n_clusters:
                self._embed(n_clusters)
            rng, part = np.random.default_rng(self._seed), self._embedding[:, :n_clusters]
            labels = cluster_embedding(part, n_clusters, n_init=self._starts, rng=rng, weights=self._weights)
            self._found[n_clusters] = labels
        return self._found[n_clusters]

    def _embed(self, n_clusters: int) -> None:
        graph = self._graph()
        most = min(_MOST if n_clusters <= _MOST else 2 * n_clusters, len(graph) - 1)
        self._embedding, _ = spectral_embedding(transition_matrix(graph), most, embedding="plain")
        degree = graph.sum(axis=1)
        self._weights = np.maximum(degree, 1e-3 * degree.mean())


def _without_loops(chain: FloatArray) -> FloatArray:
    graph = chain + chain.T
    np.fill_diagonal(graph, 0.0)
    return graph


def _separation(graph: FloatArray, labels: IntArray) -> tuple[float, float]:
    """Return the mean share of links that clusters keep inside, and the mutual information of the ends of a link."""
    members = np.eye(int(labels.max()) + 1)[labels]
    links = members.T @ (graph @ members)
    links /= float(links.sum()) or 1.0
    shares = links.sum(axis=1)
    kept = np.divide(np.diag(links), shares, out=np.ones_like(shares), where=shares > 0)
    linked = links > 0
    information = links[linked] * np.log(links[linked] / np.outer(shares, shares)[linked])
    return float(kept.mean()), float(information.sum())
