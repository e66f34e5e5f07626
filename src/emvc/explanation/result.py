"""What `emvc.explain` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from emvc._array import FloatArray, IntArray
from emvc._containers import require
from emvc._html import html_table
from emvc.explanation.markers import LEVEL, Markers
from emvc.explanation.profiles import Finding, Trait, name_clusters

_SHOWN = 5  # markers of a cluster in a summary


@dataclass(frozen=True, eq=False)
class Explanation:
    """What sets the clusters apart; printing it gives a readable summary.

    ``markers``, ``annotations``, ``traits`` and ``agreement`` are pandas DataFrames, made when they are asked for.

    Attributes
    ----------
    labels : ndarray of int of shape (n_samples,)
        The clusters that are explained.
    n_clusters : int
        Number of clusters.
    marker_table : Markers, optional
        All features against all clusters; None if no views were given.
    findings : list of Finding
        The annotations, strongest evidence first.
    trait_list : list of Trait
        Values of annotations by cluster.
    split : bool
        Whether the p-values of markers are valid although the features were clustered.
    structure_p_value : float
        From the model or the assessment; NaN if not known.
    notes : list of str
        What else should be known.
    values : dict of (view, feature) to ndarray
        Values of the strongest markers, for drawing.
    """

    labels: IntArray
    n_clusters: int
    marker_table: Markers | None = None
    findings: Sequence[Finding] = ()
    trait_list: Sequence[Trait] = ()
    split: bool = False
    structure_p_value: float = float("nan")
    notes: Sequence[str] = ()
    values: Mapping[tuple[int, int], FloatArray] = field(default_factory=dict)

    @cached_property
    def markers(self) -> Any:
        """DataFrame: cluster, view, feature, direction, effect, difference, p, fdr, group; see `marker_columns`."""
        return _frame(self.marker_columns())

    @cached_property
    def annotations(self) -> Any:
        """DataFrame: column, kind, test, statistic, p, fdr, effect, n_samples."""
        return _frame(self.annotation_columns())

    @cached_property
    def traits(self) -> Any:
        """DataFrame: cluster, column, level, effect, p, fdr, inside, outside."""
        rows = self.trait_list
        columns: dict[str, list[Any]] = {
            name: [getattr(t, name) for t in rows] for name in ("cluster", "column", "level", "effect")
        }
        columns |= {"p": [t.p_value for t in rows], "fdr": [t.fdr for t in rows]}
        return _frame(columns | {name: [getattr(t, name) for t in rows] for name in ("inside", "outside")})

    @cached_property
    def agreement(self) -> Any:
        """DataFrame: agreement of the clusters with each annotation by categories: column, ari, nmi."""
        known = [finding for finding in self.findings if finding.table is not None]
        return _frame(
            {
                "column": [finding.annotation.name for finding in known],
                "ari": [finding.ari for finding in known],
                "nmi": [finding.nmi for finding in known],
            }
        )

    @property
    def has_structure(self) -> bool:
        """Whether there are clusters beyond chance, or nobody can tell."""
        from emvc.structure import LEVEL as structure_level

        return not self.structure_p_value > structure_level

    def marker_columns(self, most: int | None = None) -> dict[str, Any]:
        """Return the markers as columns, optionally only significant ones, at most so many by cluster and view.

        ``effect`` is the share of pairs in which a sample of the cluster has a larger value than another sample, minus
        the share in which it has a smaller one; ``difference`` that of the means in standard deviations; ``group`` the
        strongest feature that says the same.
        """
        if self.marker_table is None:
            return {name: np.array([], dtype=object) for name in MARKER_COLUMNS}
        return self.marker_table.columns(None if most is None else self.marker_table.significant(most))

    def annotation_columns(self) -> dict[str, Any]:
        """Return the annotations as columns by name."""
        found = self.findings
        return {
            "column": [f.annotation.name for f in found],
            "kind": [f.annotation.kind for f in found],
            "test": [f.association.test for f in found],
            "statistic": [f.association.statistic for f in found],
            "p": [f.association.p_value for f in found],
            "fdr": [f.fdr for f in found],
            "effect": [f.association.effect for f in found],
            "n_samples": [f.association.n_samples for f in found],
        }

    def contingency(self, column: str) -> Any:
        """Return the counts of clusters (rows) and values (columns) of an annotation as a DataFrame.

        Raises
        ------
        KeyError
            If no annotation by categories has this name.
        """
        for finding in self.findings:
            if finding.annotation.name == column and finding.table is not None:
                pd = require("pandas", "pandas", "contingency")
                return pd.DataFrame(finding.table, columns=list(finding.annotation.levels))
        known = [f.annotation.name for f in self.findings if f.table is not None]
        raise KeyError(f"no annotation {column!r} by categories; there are {known}")

    def names(self) -> list[str]:
        """Return a name for each cluster by its strongest annotation, its number where nothing tells it apart."""
        return name_clusters(self.trait_list, self.n_clusters)

    def summary(self) -> list[str]:
        """Return what to know before reading the tables, one sentence each."""
        told, several = [], self.n_clusters > 1
        if not self.has_structure:
            told.append(
                f"No clusters beyond chance (p = {self.structure_p_value:.2f})"
                + (": what tells these clusters apart is what they were made of, not a finding." if several else ".")
            )
        if not several:
            told.append("There is one cluster: nothing to compare.")
        elif self.marker_table is not None:
            told.append(SPLIT if self.split else NOT_SPLIT)
            if self.split and not np.any(self.marker_table.fdr <= LEVEL):
                told.append(NOT_SEEN)
        return [*told, *self.notes]

    def __str__(self) -> str:
        names = self.names()
        lines = [*self.summary(), ""]
        for cluster in range(self.n_clusters):
            size = int(np.sum(self.labels == cluster))
            named = "" if names[cluster] == str(cluster) else f" “{names[cluster]}”"
            lines.append(f"Cluster {cluster}{named}, {size} samples")
            lines += [f"  {text}" for text in self.marker_texts(cluster)]
            lines += [f"  {trait.text}" for trait in self.telling_traits(cluster)]
        if self.findings:
            lines += ["", f"{'annotation':24}  {'test':20}  {'fdr':>8}  effect"]
            lines += [
                f"{f.annotation.name[:24]:24}  {f.association.test:20}  {f.fdr:8.1e}  {f.association.effect:6.2f}"
                for f in self.findings
            ]
        return "\n".join(lines)

    def telling_traits(self, cluster: int, n: int = _SHOWN) -> list[Trait]:
        """Return the significant traits of a cluster: values that it has more of, and numbers."""
        own = [t for t in self.trait_list if t.cluster == cluster and t.fdr <= LEVEL]
        return [t for t in own if t.effect > 0 or not t.level][:n]

    def marker_texts(self, cluster: int, n: int = _SHOWN) -> list[str]:
        """Return the strongest markers of a cluster in words, redundant ones together."""
        table = self.marker_table
        if table is None or self.n_clusters < 2:
            return []
        told = []
        for row in table.top(cluster, n=n):
            others = table.followers(row)
            more = f", and {len(others)} like it" if others else ""
            sign = "up" if table.effect[row] > 0 else "down"
            view = table.view_names[table.view[row]]
            told.append(f"{table.name(row)} ({view}) {sign}, effect {table.effect[row]:+.2f}{more}")
        return told or ["no feature sets it apart"]

    def _repr_html_(self) -> str:
        """Return the summary as a table for notebooks."""
        head = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.summary())
        rows = [
            (
                name,
                str(int(np.sum(self.labels == cluster))),
                "; ".join(self.marker_texts(cluster)),
                "; ".join(trait.text for trait in self.telling_traits(cluster)),
            )
            for cluster, name in enumerate(self.names())
        ]
        return head + html_table(("cluster", "samples", "markers", "annotations"), rows)


MARKER_COLUMNS = ("cluster", "view", "feature", "direction", "effect", "difference", "p", "fdr", "group")

SPLIT = (
    "p-values of markers: each view was tested against the clusters that the other views find, so they hold although "
    "the features were used for clustering."
)
NOT_SEEN = (
    "No feature differs between the clusters that the other views find: nothing here speaks for clusters beyond noise."
)
NOT_SPLIT = (
    "The features were used to find the clusters, so p-values of markers are too small: read the effects. With two "
    "views or more, split=True (--split on the command line) gives valid ones."
)


def _frame(columns: Mapping[str, Any]) -> Any:
    return require("pandas", "pandas", "a table").DataFrame(dict(columns))
