"""Plots of a fitted model on matplotlib axes, in colours that colour-blind readers can tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from emvc._array import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = (
    "#332288", "#88CCEE", "#CC6677", "#117733", "#DDCC77", "#AA4499", "#44AA99", "#882255", "#999933", "#661100",
)  # fmt: skip
"""Ten colours of Paul Tol's muted scheme."""

_TSNE_LIMIT = 5000


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(4.5, 4.0), layout="constrained")[1]


def _color(index: int) -> str:
    return PALETTE[index % len(PALETTE)]


def plane_coordinates(embedding: FloatArray, random_state: int = 0) -> FloatArray:
    """Return two coordinates per sample for drawing: the embedding itself, or t-SNE (PCA above 5000 samples)."""
    if embedding.shape[1] <= 2:
        return np.pad(embedding, ((0, 0), (0, 2 - embedding.shape[1])))
    if len(embedding) <= _TSNE_LIMIT:
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(embedding) - 1) / 3.0)
        tsne = TSNE(init="pca", perplexity=perplexity, random_state=random_state)
        return np.asarray(tsne.fit_transform(embedding), dtype=np.float64)
    from sklearn.decomposition import PCA

    return np.asarray(PCA(2, random_state=random_state).fit_transform(embedding))


def embedding(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the samples in the plane, coloured by cluster."""
    ax = _axes(ax)
    points = plane_coordinates(model.embedding_)
    for cluster in np.unique(model.labels_):
        members = points[model.labels_ == cluster]
        ax.scatter(members[:, 0], members[:, 1], s=8, color=_color(cluster), label=f"{cluster}", linewidths=0)
    ax.set(title="Embedding by cluster", xticks=[], yticks=[])
    if model.n_clusters_ <= 20:
        ax.legend(title="cluster", markerscale=2, fontsize="small", ncols=1 + model.n_clusters_ // 11,
                  loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)  # fmt: skip
    return ax


def consensus(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the consensus matrix with the samples ordered by cluster; lines separate the clusters."""
    ax = _axes(ax)
    order = np.argsort(model.labels_, kind="stable")
    matrix = model.consensus_[np.ix_(order, order)]
    # A square root and a cap at the 99th percentile of the links keep single strong links from hiding the blocks.
    shown = np.sqrt(matrix)
    positive = shown[shown > 0]
    top = float(np.percentile(positive, 99)) if positive.size else 1.0
    ax.imshow(shown, cmap="magma_r", vmin=0.0, vmax=top, interpolation="antialiased")
    for edge in np.flatnonzero(np.diff(model.labels_[order])) + 0.5:
        ax.axhline(edge, color="#BBBBBB", lw=0.5)
        ax.axvline(edge, color="#BBBBBB", lw=0.5)
    ax.set(title="Consensus, ordered by cluster", xlabel="sample", ylabel="sample")
    return ax


def errors(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the distribution of the sample errors of every view."""
    ax = _axes(ax)
    bins = np.linspace(0.0, 1.0, 51).tolist()
    for k, (name, values) in enumerate(zip(model.view_names_, model.sample_errors_.T, strict=True)):
        present = values[~np.isnan(values)]
        ax.hist(present, bins=bins, histtype="step", lw=1.8, color=_color(2 * k), label=name, log=True)
    ax.set(title="Errors per view", xlabel="error of a sample: 0 usual, 1 wrong", ylabel="samples")
    ax.legend(title="view", fontsize="small", frameon=False)
    return ax


def convergence(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the duality gap (or the constraint residual of a solver without one) along the iterations."""
    ax = _axes(ax)
    history = model.history_
    has_gap = bool(np.isfinite(history.gap).all())
    values = history.gap if has_gap else history.residual
    label = "relative duality gap" if has_gap else "constraint residual"
    ax.semilogy(history.iteration, np.maximum(values, 1e-16), marker="o", ms=3, color=_color(0), label=label)
    if has_gap:
        ax.axhline(max(model.duality_gap_, 1e-16), color=_color(2), ls="--", lw=1,
                   label=f"certified: {model.duality_gap_:.1e}")  # fmt: skip
    ax.set(title="Convergence", xlabel="iteration", ylabel=label)
    ax.legend(fontsize="small", frameon=False)
    return ax
