"""Plots of fitted models and assessments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from emvc._array import FloatArray, IntArray
from emvc.layout import block_means, cluster_order, plane_layout, state_labels
from emvc.plot._style import GREY, GRID, PALETTE, axes_or_new, color, get, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "os^D"  # after ten colours the marker changes
_MOST_BLOCKS = 1000
_SMALLEST = 1e-16


def plane_coordinates(embedding: FloatArray, labels: IntArray | None = None) -> FloatArray:
    """Return two coordinates per sample for drawing; see `emvc.layout.plane_layout`.

    Examples
    --------
    >>> import numpy as np
    >>> plane_coordinates(np.repeat(np.eye(3), 5, axis=0)).shape
    (15, 2)
    """
    return plane_layout(embedding, np.zeros(len(embedding), dtype=np.int64) if labels is None else labels)


def embedding(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the samples in the plane, coloured by cluster; crosses are samples that no view can be believed about.

    Parameters
    ----------
    model : estimator
        Fitted, with ``embedding_``.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from emvc import EMVC, plot
    >>> from emvc.datasets import make_paper_synthetic
    >>> views = make_paper_synthetic(n_per_cluster=20, random_state=0).views
    >>> model = EMVC(2, random_state=0).fit(views)
    >>> plot.embedding(model, Figure().subplots()).get_title()
    'Samples by cluster'
    """
    rows, labels = np.asarray(get(model, "embedding_")), np.asarray(model.labels_)
    ax = axes_or_new(ax)
    lost = _not_believed(model)
    points = plane_coordinates(rows, np.where(lost, -1, labels))
    size = float(np.clip(12000.0 / len(points), 4.0, 18.0))
    for cluster in cluster_names(labels):
        believed, crossed = points[(labels == cluster) & ~lost], points[(labels == cluster) & lost]
        marker = _MARKERS[max(cluster, 0) // len(PALETTE) % len(_MARKERS)]
        name = f"{cluster}" if cluster >= 0 else "none"
        ax.scatter(
            believed[:, 0], believed[:, 1], s=size, color=color(cluster), marker=marker, label=name, linewidths=0
        )
        if len(crossed):
            ax.scatter(crossed[:, 0], crossed[:, 1], s=size, color=color(cluster), marker="x", linewidths=0.6)
    ax.set(title="Samples by cluster", xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_color(GRID)
    if model.n_clusters_ <= 20:
        ax.legend(title="cluster", markerscale=2, fontsize="small", ncols=1 + model.n_clusters_ // 11,
                  loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)  # fmt: skip
    return ax


def cluster_names(labels: IntArray) -> list[int]:
    """Return the clusters that occur, in the order in which they are drawn: -1, no cluster, is last.

    Examples
    --------
    >>> import numpy as np
    >>> cluster_names(np.array([1, -1, 0, 1]))
    [0, 1, -1]
    """
    return sorted((int(name) for name in np.unique(labels)), key=lambda name: (name < 0, name))


def _not_believed(model: Any) -> Any:
    outliers, errors = getattr(model, "outliers_", None), getattr(model, "sample_errors_", None)
    if outliers is None or errors is None:
        return np.zeros(len(model.labels_), dtype=bool)
    return (np.asarray(outliers, dtype=bool) | np.isnan(errors)).all(axis=1)


def consensus(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the consensus with the samples ordered by cluster; lines separate the clusters.

    More than 1000 samples are drawn as means over blocks. The columns of a consensus with landmarks are ordered by the
    cluster that moves to them.

    Parameters
    ----------
    model : estimator
        Fitted, with ``consensus_``.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from emvc import EMVC, plot
    >>> from emvc.datasets import make_paper_synthetic
    >>> views = make_paper_synthetic(n_per_cluster=20, random_state=0).views
    >>> model = EMVC(2, random_state=0).fit(views)
    >>> plot.consensus(model, Figure().subplots()).get_ylabel()
    'sample'
    """
    matrix, labels = get(model, "consensus_"), np.asarray(model.labels_)
    ax = axes_or_new(ax)
    states = state_labels(matrix, labels)
    rows, columns = cluster_order(labels), cluster_order(states)
    # A square root and a cap at the 99th percentile of the links keep single strong links from hiding the blocks.
    shown = np.sqrt(np.maximum(block_means(matrix, rows, columns, _MOST_BLOCKS), 0.0))
    positive = shown[shown > 0]
    top = float(np.percentile(positive, 99)) if positive.size else 1.0
    extent = (-0.5, len(columns) - 0.5, len(rows) - 0.5, -0.5)
    ax.imshow(shown, cmap="Blues", vmin=0.0, vmax=top, interpolation="antialiased", extent=extent, aspect="auto")
    for edge in np.flatnonzero(np.diff(labels[rows])) + 0.5:
        ax.axhline(edge, color="#BBBBBB", lw=0.5)
    for edge in np.flatnonzero(np.diff(states[columns])) + 0.5:
        ax.axvline(edge, color="#BBBBBB", lw=0.5)
    square = matrix.shape[0] == matrix.shape[1]
    ax.set(title="Consensus by cluster", xlabel="sample" if square else "landmark", ylabel="sample")
    if square:
        ax.set_aspect("equal")
    return ax


def errors(model: Any, ax: Axes | None = None) -> Axes:
    """Draw for every view how many samples have an error larger than a value.

    Parameters
    ----------
    model : estimator
        Fitted, with ``sample_errors_``.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from emvc import EMVC, plot
    >>> from emvc.datasets import make_paper_synthetic
    >>> views = make_paper_synthetic(n_per_cluster=20, random_state=0).views
    >>> model = EMVC(2, random_state=0).fit(views)
    >>> len(plot.errors(model, Figure().subplots()).get_legend().get_texts())  # one curve for each view
    2
    """
    table = np.asarray(get(model, "sample_errors_"))
    ax = axes_or_new(ax)
    styles = ("-", "--", ":", "-.")
    for k, (name, values) in enumerate(zip(model.view_names_, table.T, strict=True)):
        present = np.sort(values[~np.isnan(values)])
        at_least = np.arange(len(present), 0, -1)
        style = styles[k // len(PALETTE) % len(styles)]
        ax.step(present, at_least, where="pre", lw=1.8, ls=style, color=color(k), label=str(name))
    ax.axvline(0.5, color=GREY, lw=1, ls=":")
    ax.set(title="Errors of the samples", xlabel="error: 0 usual, 1 wrong", ylabel="samples with at least this error")
    ax.set(xlim=(0, 1.01), yscale="log", ylim=(0.8, 1.2 * len(table)))
    tidy(ax, grid="y")
    ax.legend(title="view", fontsize="small", frameon=False)
    return ax


def convergence(model: Any, ax: Axes | None = None) -> Axes:
    """Draw what the solver measured along the iterations.

    This is the duality gap, the constraint residual of a solver that estimates none, or the objective of a baseline
    without a certificate.

    Parameters
    ----------
    model : estimator
        Fitted, with ``history_`` or with one ``objective_`` per iteration.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from emvc import EMVC, plot
    >>> from emvc.datasets import make_paper_synthetic
    >>> views = make_paper_synthetic(n_per_cluster=20, random_state=0).views
    >>> model = EMVC(2, solver="admm", random_state=0).fit(views)
    >>> plot.convergence(model, Figure().subplots()).get_ylabel()
    'relative duality gap'
    """
    history = get(model, "history_", "objective_")
    ax = axes_or_new(ax)
    if getattr(model, "history_", None) is None:
        values = np.atleast_1d(history)
        ax.plot(np.arange(1, len(values) + 1), values, marker="o", ms=3, color=color(0))
        label = "objective"
    else:
        has_gap = bool(np.isfinite(history.gap).all())
        values = history.gap if has_gap else history.residual
        label = "relative duality gap" if has_gap else "constraint residual"
        ax.semilogy(history.iteration, np.maximum(values, _SMALLEST), marker="o", ms=3, color=color(0), label=label)
        if has_gap:
            ax.axhline(max(model.duality_gap_, _SMALLEST), color=color(2), ls="--", lw=1,
                       label=f"certified: {model.duality_gap_:.1e}")  # fmt: skip
        ax.legend(fontsize="small", frameon=False)
    ax.set(title="Convergence", xlabel="iteration", ylabel=label)
    tidy(ax, grid="y")
    return ax


def weights(model: Any, ax: Axes | None = None) -> Axes:
    """Draw how far each view can be relied on or, for a Selection, the evidence for the weights of the errors.

    Parameters
    ----------
    model : estimator or Selection
        Fitted, with ``view_errors_`` or ``weights_``; or what `emvc.select` has returned.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from emvc import EMVC, plot
    >>> from emvc.datasets import make_paper_synthetic
    >>> views = make_paper_synthetic(n_per_cluster=20, random_state=0).views
    >>> model = EMVC(2, random_state=0).fit(views)
    >>> plot.weights(model, Figure().subplots()).get_xlabel()
    'reliability'
    """
    if hasattr(model, "beta") and hasattr(model, "clusters"):
        return _selection(model, ax)
    values = np.asarray(get(model, "view_errors_", "weights_"), dtype=np.float64)
    reliable = getattr(model, "view_errors_", None) is not None
    values = 1.0 - values if reliable else values / values.max()
    ax = axes_or_new(ax)
    order = np.argsort(values, kind="stable")
    names = [str(model.view_names_[k]) for k in order]
    bars = ax.barh(np.arange(len(order)), values[order], color=PALETTE[0], height=0.65)
    own = getattr(model, "view_weights_", None)
    notes = [f"{values[k]:.2f}" + (f", weight {own[k] / np.max(own):.2f}" if own is not None else "") for k in order]
    ax.bar_label(bars, notes, padding=4, fontsize="small")
    ax.set_yticks(np.arange(len(order)), names)
    ax.set(xlim=(0, 1.0 if reliable else 1.15), xlabel="reliability" if reliable else "weight")
    ax.set_title("Reliability of the views" if reliable else "Weights of the views")
    if reliable and max(values) > 0.6:
        ax.set_xlim(0, 1.45)  # room for the notes
        ax.set_xticks(np.linspace(0, 1, 6))
    tidy(ax, grid="x")
    return ax


def _selection(selection: Any, ax: Axes | None) -> Axes:
    """Draw the agreement of the clusters along the path of weights, and which weight was chosen."""
    if not selection.weights:
        raise ValueError("This Selection holds no path of weights: select was given fewer than two multipliers.")
    ax = axes_or_new(ax)
    beta = [record["beta"] for record in selection.weights]
    settled = [record["settled"] for record in selection.weights]
    ax.semilogx(beta, settled, marker="o", ms=4, color=color(0), label="agreement with the next weight")
    ax.axvline(selection.beta, color=color(2), ls="--", lw=1, label=f"chosen: {selection.beta:.3g}")
    ax.set_xticks(beta, [f"{record['beta']:.2g}\nrank {record['rank']:.0f}" for record in selection.weights])
    ax.set_xticks([], minor=True)
    ax.set(title="Evidence for the weights", xlabel="beta", ylabel="adjusted Rand index", ylim=(0, 1.08))
    tidy(ax, grid="y")
    ax.legend(fontsize="small", frameon=False, loc="lower right")
    return ax


def evidence(assessment: Any, ax: Axes | None = None) -> Axes:
    """Draw stability and the score of the spectrum for several numbers of clusters.

    Parameters
    ----------
    assessment : Assessment or estimator
        From `emvc.assess`; or a model fitted with ``n_clusters="auto"``, of which there is only the score.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from emvc import EMVC, assess, plot
    >>> from emvc.datasets import make_paper_synthetic
    >>> views = make_paper_synthetic(n_per_cluster=20, random_state=0).views
    >>> model = EMVC(2, random_state=0).fit(views)
    >>> found = assess(views, model, n_resamples=2, n_clusters=[3])
    >>> plot.evidence(found, Figure().subplots()).get_xlabel()
    'number of clusters'
    """
    records = get(assessment, "by_n_clusters", "n_clusters_evidence_")
    ax = axes_or_new(ax)
    numbers = [record["n_clusters"] for record in records]
    score = np.array([record["score"] for record in records], dtype=np.float64)
    largest = score.max() if score.max() > 0 else 1.0
    ax.plot(numbers, score / largest, marker="o", ms=4, color=color(0), label="score, relative to the best")
    if "stability" in records[0]:
        stability = [record["stability"] for record in records]
        ax.plot(numbers, stability, marker="s", ms=4, color=color(2), label="stability")
        ax.set_xticks(numbers)
    ax.set(title="Number of clusters", xlabel="number of clusters", ylim=(min(0.0, float(score.min())), 1.08))
    ax.legend(fontsize="small", frameon=False)
    tidy(ax, grid="y")
    return ax


def tree(assessment: Any, ax: Axes | None = None) -> Axes:
    """Draw who splits from whom: one row per number of clusters, a line from each cluster to where it comes from.

    Parameters
    ----------
    assessment : Assessment
        From `emvc.assess`, of several numbers of clusters.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from emvc import EMVC, assess, plot
    >>> from emvc.datasets import make_paper_synthetic
    >>> views = make_paper_synthetic(n_per_cluster=20, random_state=0).views
    >>> model = EMVC(2, random_state=0).fit(views)
    >>> found = assess(views, model, n_resamples=2, n_clusters=[3])
    >>> [text.get_text() for text in plot.tree(found, Figure().subplots()).get_yticklabels()]
    ['2', '3']
    """
    levels = sorted(get(assessment, "by_n_clusters"), key=lambda record: int(record["n_clusters"]))
    if len(levels) < 2:
        raise ValueError("This Assessment holds one number of clusters; a tree needs several (n_clusters=...).")
    ax = axes_or_new(ax)
    links = {child: (parent, share) for parent, child, share in assessment.tree()}
    places: dict[tuple[int, int], float] = {}
    for row, level in enumerate(levels):
        number, labels = int(level["n_clusters"]), np.asarray(level["labels"])
        sizes = np.bincount(labels[labels >= 0], minlength=number)
        # Children lie under their parents, so that lines do not cross where they need not.
        order = sorted(range(number), key=lambda c: (places[links[number, c][0]] if (number, c) in links else c, c))
        for position, cluster in enumerate(order):
            x = (position + 0.5) / number
            places[number, cluster] = x
            if (number, cluster) in links:
                parent, share = links[number, cluster]
                ax.plot([places[parent], x], [row - 1, row], color=GREY, lw=0.5 + 3.0 * share, alpha=0.5, zorder=1)
            size = 30.0 + 400.0 * sizes[cluster] / max(int(sizes.sum()), 1)
            ax.scatter(x, row, s=size, color=color(cluster), zorder=2)
            ax.annotate(str(cluster), (x, row), ha="center", va="center", fontsize=7, color="white", zorder=3)
    ax.set_yticks(range(len(levels)), [str(int(level["n_clusters"])) for level in levels])
    ax.set(
        title="Who splits from whom",
        ylabel="number of clusters",
        xticks=[],
        xlim=(0, 1),
        ylim=(len(levels) - 0.5, -0.5),
    )
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    return ax
