r"""The number of clusters without labels.

One fused graph, whose width does not depend on the number of clusters, is cut into c clusters for every candidate c,
and three quantities are multiplied:

* modularity, in units of its largest value: how much more often links stay inside clusters than by chance;
* stability: the adjusted Rand index between the clusters of everybody and those of random subsets of the samples;
* agreement: the adjusted mutual information between the clusters of each view alone and those of all views.

The first prefers cuts through gaps, the other two punish cuts that depend on who was asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from emvc._array import FloatArray, IntArray
from emvc._validation import check_integer
from emvc.fusion import Chains
from emvc.graphs import transition_matrix
from emvc.spectral import cluster_embedding, spectral_embedding

WIDTH = 5
"""Graphs are as wide as for this many clusters, which is fair for two and for twenty as well."""

_N_SUBSETS = 6
_SUBSET = 0.8
_N_INIT = 5
_MOST = 20
_NEAR_THE_END = 0.75  # a best number beyond this share of the largest one calls for larger ones


def choose_n_clusters(
    chains: Chains, candidates: Sequence[int] | None, rng: np.random.Generator
) -> tuple[int, float, list[dict[str, float]]]:
    """Return the number of clusters with the best score, the confidence in it and the evidence.

    Parameters
    ----------
    chains : Chains
        The fused views, with graphs for `WIDTH` clusters.
    candidates : sequence of int or None
        Numbers to try; None for 2 to 20, and more if the best of these is close to 20.
    rng : Generator
        Source of the subsets and of the seeds of k-means.

    Returns
    -------
    n_clusters : int
    confidence : float
        One minus the score of the second best number over that of the best.
    evidence : list of dict
        ``n_clusters``, ``modularity``, ``stability``, ``agreement`` and their product, ``score``, for each candidate.
    """
    n_samples = chains.transitions.shape[1]
    chosen = range(2, max(3, min(_MOST, n_samples // 5) + 1)) if candidates is None else candidates
    numbers = sorted({check_integer(c, "n_clusters", least=2) for c in chosen})
    if not numbers or numbers[-1] >= n_samples:
        raise ValueError(f"The candidates for n_clusters must be between 2 and n_samples - 1 = {n_samples - 1}.")
    seed = int(rng.integers(2**31 - 1))
    evidence = _evidence(chains, numbers, seed)
    if candidates is None and _best(evidence) > _NEAR_THE_END * _MOST:
        wider = _wider(n_samples)
        evidence += _evidence(chains, wider, seed) if wider else []
        around = _best(evidence)
        near = {around + step for step in range(-around // 10, around // 10 + 1)} - {e["n_clusters"] for e in evidence}
        if around > _MOST:
            evidence += _evidence(chains, sorted(int(c) for c in near), seed)
        evidence.sort(key=lambda record: record["n_clusters"])
    _score(evidence)
    ranked = sorted(evidence, key=lambda record: -record["score"])
    confidence = 1.0
    if len(ranked) > 1:
        confidence = 1.0 - ranked[1]["score"] / ranked[0]["score"] if ranked[0]["score"] > 0 else 0.0
    return int(ranked[0]["n_clusters"]), float(confidence), evidence


def _wider(n_samples: int) -> list[int]:
    """Return numbers beyond the usual ones, each a fifth larger than the last, up to ten samples per cluster."""
    numbers, number = [], _MOST * 1.2
    while number <= n_samples / 10:
        numbers.append(round(number))
        number *= 1.2
    return numbers


def _best(evidence: list[dict[str, float]]) -> int:
    _score(evidence)
    return int(max(evidence, key=lambda record: record["score"])["n_clusters"])


def _score(evidence: list[dict[str, float]]) -> None:
    """Add the product of the three quantities to every record."""
    best = max(record["modularity"] for record in evidence)
    for record in evidence:
        relative = record["modularity"] / best if best > 0 else 1.0
        record["score"] = max(relative, 0.0) * max(record["stability"], 0.0) * max(record["agreement"], 0.0)


def _evidence(chains: Chains, candidates: Sequence[int], seed: int) -> list[dict[str, float]]:
    """Return modularity, stability and agreement for each candidate."""
    rng = np.random.default_rng(seed)
    graph = _without_loops(chains.mean)
    most = max(candidates)
    everybody = _Cuts(graph, most, seed)
    n_views = len(chains.quality)
    alone = [_Cuts(_without_loops(chain), most, seed) for chain in chains.transitions[:n_views]] if n_views > 1 else []
    subsets = []
    size = max(most + 1, int(_SUBSET * len(graph)))
    for _ in range(_N_SUBSETS):
        members = np.sort(rng.choice(len(graph), size, replace=False))
        subsets.append((members, _Cuts(graph[np.ix_(members, members)], most, seed)))
    evidence = []
    for c in candidates:
        labels = everybody.labels(c)
        stability = np.mean([adjusted_rand_score(labels[m], cuts.labels(c)) for m, cuts in subsets])
        views_agree = [adjusted_mutual_info_score(labels, cuts.labels(c)) for cuts in alone]
        evidence.append(
            {
                "n_clusters": float(c),
                "modularity": _modularity(graph, labels),
                "stability": float(stability),
                "agreement": float(np.average(views_agree, weights=chains.own_weights)) if alone else 1.0,
            }
        )
    return evidence


class _Cuts:
    """Spectral clusters of one graph for any number of clusters up to a limit, from one eigendecomposition."""

    def __init__(self, graph: FloatArray, most: int, seed: int) -> None:
        self._embedding, _ = spectral_embedding(transition_matrix(graph), min(most, len(graph) - 1), embedding="plain")
        degree = graph.sum(axis=1)
        self._weights = np.maximum(degree, 1e-3 * degree.mean())
        self._seed = seed

    def labels(self, n_clusters: int) -> IntArray:
        rng = np.random.default_rng(self._seed)
        part = self._embedding[:, :n_clusters]
        return cluster_embedding(part, n_clusters, n_init=_N_INIT, rng=rng, weights=self._weights)


def _without_loops(chain: FloatArray) -> FloatArray:
    graph = chain + chain.T
    np.fill_diagonal(graph, 0.0)
    return graph


def _modularity(graph: FloatArray, labels: IntArray) -> float:
    """Return the share of links inside clusters minus what random links with the same degrees would give."""
    members = np.eye(int(labels.max()) + 1)[labels]
    degree = graph.sum(axis=1)
    total = float(degree.sum()) or 1.0
    inside = float(np.sum(members * (graph @ members)))
    return inside / total - float(np.sum((degree @ members) ** 2)) / total**2
