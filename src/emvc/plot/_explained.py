"""Plots of what sets clusters apart: markers, annotations, survival, and two labellings side by side.

A function here is called ``annotations``: so types are quoted instead of imported from the future.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from emvc._array import FloatArray, IntArray
from emvc.layout import cluster_order
from emvc.plot._style import GREY, PALETTE, axes_or_new, color, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from emvc.explanation import Explanation

_GAP = 0.02  # between blocks, in units of all samples


def markers(explanation: "Explanation", ax: "Axes | None" = None, *, n: int = 3) -> "Axes":
    """Draw the strongest markers of each cluster (rows) over the samples ordered by cluster (columns), as ranks.

    Parameters
    ----------
    explanation : Explanation
        From `emvc.explain`, with views.
    ax : Axes, optional
        Where to draw; a new figure if not given.
    n : int
        Markers of each cluster, at most five from each view.

    Returns
    -------
    ax : Axes

    Raises
    ------
    ValueError
        If no feature sets a cluster apart.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from emvc import EMVC, explain, plot
    >>> rng = np.random.default_rng(0)
    >>> views = [rng.standard_normal((60, 5)) + np.repeat([[0], [5]], 30, axis=0) for _ in range(2)]
    >>> found = explain(EMVC(2, random_state=0).fit(views), views)
    >>> len(plot.markers(found, Figure().subplots(), n=2).get_yticklabels())  # of two clusters
    4
    """
    from matplotlib import colormaps
    from scipy.stats import rankdata

    table = explanation.marker_table
    rows: dict[tuple[int, int], None] = {}
    for cluster in range(explanation.n_clusters):
        if table is None:
            break
        own = [(int(table.view[r]), int(table.feature[r])) for r in table.top(cluster, n=10 * n)]
        rows |= dict.fromkeys([key for key in own if key in explanation.values and key not in rows][:n])
    if table is None or not rows:
        raise ValueError("No markers to draw: no feature sets a cluster apart, or no views were given.")
    ax = axes_or_new(ax)
    order = cluster_order(explanation.labels)
    shown = np.full((len(rows), len(order)), np.nan)
    for line, key in zip(shown, rows, strict=True):
        known = ~np.isnan(explanation.values[key])
        line[known] = rankdata(explanation.values[key][known]) / known.sum()
    image = ax.imshow(
        shown[:, order],
        cmap=colormaps["PuOr_r"].with_extremes(bad="#C8C8C8"),
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
    )
    names = [f"{table.feature_names[k][j]} ({table.view_names[k]})" for k, j in rows]
    ax.set_yticks(range(len(rows)), names, fontsize="small")
    _mark_clusters(ax, explanation.labels[order])
    ax.set(title="Markers: rank of the value", xlabel="cluster")
    ax.figure.colorbar(image, ax=ax, shrink=0.6, ticks=[0, 1]).set_ticklabels(["smallest", "largest"])
    return ax


def _mark_clusters(ax: "Axes", labels: IntArray) -> None:
    """Separate the clusters of samples in order, and name them below."""
    edges = np.flatnonzero(np.diff(labels)) + 0.5
    for edge in edges:
        ax.axvline(edge, color="white", lw=1.2)
    borders = np.concatenate([[-0.5], edges, [len(labels) - 0.5]])
    middles = (borders[1:] + borders[:-1]) / 2
    names = [str(labels[int(middle)]) if labels[int(middle)] >= 0 else "none" for middle in middles]
    ax.set_xticks(middles, names)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def annotations(explanation: "Explanation", ax: "Axes | None" = None, *, column: str | None = None) -> "Axes":
    """Draw how strongly annotations are associated with the clusters, or one of them by cluster.

    Parameters
    ----------
    explanation : Explanation
        From `emvc.explain`, with annotations.
    ax : Axes, optional
        Where to draw; a new figure if not given.
    column : str, optional
        A single annotation: shares of its values by cluster, or its numbers as boxes. Without, all annotations by their
        false discovery rate.

    Returns
    -------
    ax : Axes

    Raises
    ------
    ValueError
        If there are no annotations, or none of this name.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from emvc import EMVC, explain, plot
    >>> rng = np.random.default_rng(0)
    >>> views = [rng.standard_normal((60, 5)) + np.repeat([[0], [5]], 30, axis=0) for _ in range(2)]
    >>> found = explain(EMVC(2, random_state=0).fit(views), None, {"age": rng.normal(50, 9, 60)})
    >>> plot.annotations(found, Figure().subplots(), column="age").get_ylabel()
    'age'
    """
    found = explanation.findings
    if not found:
        raise ValueError("This Explanation has no annotations to draw.")
    if column is None:
        return _strengths(explanation, axes_or_new(ax))
    chosen = next((f.annotation for f in found if f.annotation.name == column and f.annotation.event is None), None)
    if chosen is None:
        raise ValueError(f"There is no annotation {column!r} to draw by cluster; see plot.survival for times.")
    ax = axes_or_new(ax)
    labels = explanation.labels
    clusters = range(explanation.n_clusters)
    if chosen.kind == "number":
        values = [chosen.values[(labels == c) & ~np.isnan(chosen.values)] for c in clusters]
        boxes = ax.boxplot(
            values, positions=list(clusters), patch_artist=True, widths=0.6, medianprops={"color": "black"}
        )
        for c, box in zip(clusters, boxes["boxes"], strict=True):
            box.set(facecolor=color(c), alpha=0.7)
        ax.set(ylabel=column)
    else:
        _shares(ax, chosen.values, labels, chosen.levels)
    ax.set_xticks(list(clusters), explanation.names() if chosen.kind == "number" else [str(c) for c in clusters])
    ax.set(title=column, xlabel="cluster")
    tidy(ax)
    return ax


def _shares(ax: "Axes", codes: IntArray, labels: IntArray, levels: Sequence[str]) -> None:
    clusters = range(int(labels.max(initial=-1)) + 1)
    bottom = np.zeros(len(clusters))
    for level, name in enumerate(levels):
        known = [np.sum((labels == c) & (codes >= 0)) for c in clusters]
        share = np.array([np.sum((labels == c) & (codes == level)) for c in clusters]) / np.maximum(known, 1)
        ax.bar(list(clusters), share, bottom=bottom, color=color(level), label=name, width=0.7)
        bottom += share
    ax.set(ylabel="share of the samples", ylim=(0, 1))
    ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _strengths(explanation: "Explanation", ax: "Axes") -> "Axes":
    found = list(explanation.findings)[::-1]
    fdr = np.maximum(np.nan_to_num([f.fdr for f in found], nan=1.0), 1e-300)
    colors = [PALETTE[0] if value <= 0.05 else GREY for value in fdr]
    bars = ax.barh(range(len(found)), -np.log10(fdr), color=colors, height=0.65)
    ax.bar_label(bars, [f"effect {f.association.effect:.2f}" for f in found], padding=4, fontsize="small")
    ax.axvline(-np.log10(0.05), color=GREY, lw=1, ls="--")
    ax.set_yticks(range(len(found)), [f.annotation.name for f in found])
    ax.set(title="Annotations and clusters", xlabel="−log10 of the false discovery rate")
    ax.set_xlim(0, 1.3 * max(float(-np.log10(fdr).min()), 2.0))
    tidy(ax, grid="x")
    return ax


def survival(explanation: "Explanation", ax: "Axes | None" = None, *, column: str | None = None) -> "Axes":
    """Draw the survival of each cluster (Kaplan and Meier); ticks are samples whose event was not seen.

    Parameters
    ----------
    explanation : Explanation
        From `emvc.explain`, with an annotation that is a pair of time and event.
    ax : Axes, optional
        Where to draw; a new figure if not given.
    column : str, optional
        Name of the annotation, if there are several.

    Returns
    -------
    ax : Axes

    Raises
    ------
    ValueError
        If there is no such annotation.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from emvc import EMVC, explain, plot
    >>> rng = np.random.default_rng(0)
    >>> views = [rng.standard_normal((60, 5)) + np.repeat([[0], [5]], 30, axis=0) for _ in range(2)]
    >>> time, event = rng.exponential(1.0, 60), rng.random(60) < 0.7
    >>> found = explain(EMVC(2, random_state=0).fit(views), None, {"months": (time, event)})
    >>> plot.survival(found, Figure().subplots()).get_xlabel()
    'months'
    """
    from emvc.explanation.survival import curve

    known = [f for f in explanation.findings if f.annotation.event is not None and column in (None, f.annotation.name)]
    if not known:
        raise ValueError("This Explanation has no survival to draw" + (f" called {column!r}." if column else "."))
    finding, ax = known[0], axes_or_new(ax)
    time, event = finding.annotation.values, np.asarray(finding.annotation.event)
    for cluster, name in enumerate(explanation.names()):
        own = (explanation.labels == cluster) & ~np.isnan(time)
        if own.any():
            times, share = curve(time[own], event[own])
            ax.step(times, share, where="post", color=color(cluster), label=f"{name} ({own.sum()})")
            censored = np.sort(time[own & ~event])
            height = share[np.searchsorted(times, censored, side="right") - 1]
            ax.plot(censored, height, "|", color=color(cluster), ms=5)
    ax.set(title=f"log-rank p = {finding.association.p_value:.2g}", xlabel=finding.annotation.name)
    ax.set(ylabel="share without event", ylim=(0, 1.02), xlim=(0, None))
    ax.legend(title="cluster", fontsize="small", frameon=False)
    tidy(ax, grid="y")
    return ax


def flow(first: Any, second: Any, ax: "Axes | None" = None, *, names: tuple[str, str] = ("first", "second")) -> "Axes":
    """Draw two labellings side by side: blocks are clusters, bands the samples that two of them share.

    Parameters
    ----------
    first, second : estimator or array-like of shape (n_samples,)
        Fitted models, or labels of any type, of the same samples.
    ax : Axes, optional
        Where to draw; a new figure if not given.
    names : (str, str)
        What the labellings are called.

    Returns
    -------
    ax : Axes

    Raises
    ------
    ValueError
        If the numbers of samples differ.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from emvc import plot
    >>> ax = plot.flow(["a", "a", "b", "b"], [0, 1, 1, 1], Figure().subplots())
    >>> len(ax.collections)  # bands: a with 0, a with 1, b with 1
    3
    """
    labels = [np.asarray(getattr(side, "labels_", side)) for side in (first, second)]
    if len(labels[0]) != len(labels[1]):
        raise ValueError(f"The labellings have {len(labels[0])} and {len(labels[1])} samples; give the same samples.")
    ax = axes_or_new(ax)
    (left, i), (right, j) = (np.unique(side, return_inverse=True) for side in labels)
    table = np.zeros((len(left), len(right)))
    np.add.at(table, (i, j), 1.0 / len(i))
    starts = _stack(table.sum(axis=1)), _stack(table.sum(axis=0))
    used = starts[0].copy(), starts[1].copy()
    for a, b in zip(*np.nonzero(table), strict=True):
        _band(ax, used[0][a], used[1][b], table[a, b], color(int(a)))
        used[0][a] += table[a, b]
        used[1][b] += table[a, b]
    for side, (known, sizes) in enumerate(((left, table.sum(axis=1)), (right, table.sum(axis=0)))):
        for k, name in enumerate(known):
            y = starts[side][k]
            ax.bar(side, sizes[k], 0.06, bottom=y, color=color(k) if side == 0 else GREY)
            where, align = (-0.05, "right") if side == 0 else (1.05, "left")
            ax.text(where, y + sizes[k] / 2, str(name), ha=align, va="center", fontsize="small")
    ax.set(xlim=(-0.35, 1.35), yticks=[], title="Two labellings")
    ax.set_xticks([0, 1], list(names))
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def _stack(sizes: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(sizes + _GAP)[:-1]])


def _band(ax: "Axes", left: float, right: float, thick: float, shade: str) -> None:
    t = np.linspace(0.0, 1.0, 40)
    smooth = left + (right - left) * t * t * (3.0 - 2.0 * t)
    ax.fill_between(0.03 + 0.94 * t, smooth, smooth + thick, color=shade, alpha=0.4, lw=0)
