"""From records to figures: curves over the level of an error, and heat maps over the two weights."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from emvc.experiments.runner import Record

STYLE = {
    "best single view": ("#999933", "v", ":"),
    "feature concatenation": ("#88CCEE", "^", ":"),
    "kernel addition": ("#117733", "s", "--"),
    "co-regularised": ("#DDCC77", "D", "--"),
    "AMGL": ("#AA4499", "P", "-."),
    "RMSC": ("#882255", "X", "-."),
    "EMVC": ("#332288", "o", "-"),
}
"""Colour, marker and line of each method: told apart without colour as well."""

_WIDTH = 3.5  # inches, a column of a paper


def curves(records: Mapping[str, Mapping[float, Sequence[Record]]], *, title: str, xlabel: str, log: bool) -> Any:
    """Return a figure of NMI over the level of an error, mean and standard deviation over the seeds.

    Parameters
    ----------
    records : dict of dict of list
        Records by method and level.
    title, xlabel : str
        Texts.
    log : bool
        Whether levels are spread logarithmically.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, 3.1), layout="constrained")
    ax = figure.subplots()
    for label, by_level in records.items():
        levels = sorted(by_level)
        numbers = [[r["nmi"] for r in by_level[level] if r["failure"] is None] for level in levels]
        color, marker, line = STYLE[label]
        ax.errorbar(
            levels,
            [np.mean(n) if n else np.nan for n in numbers],
            [np.std(n) if n else np.nan for n in numbers],
            color=color, marker=marker, ls=line, ms=4, lw=1.3, capsize=2, label=label,
        )  # fmt: skip
    if log:
        ax.set_xscale("log")
    ax.set_title(title, fontsize=9)
    ax.set_xlabel(xlabel, fontsize=8)
    ax.set_ylabel("NMI", fontsize=8)
    ax.set_ylim(-0.02, 1.02)
    ax.tick_params(labelsize=7)
    figure.legend(loc="outside lower center", ncols=2, fontsize=7, frameon=False)
    return figure


def heat_map(records: Sequence[Record], *, title: str) -> Any:
    """Return a heat map of accuracy over (lam, beta)."""
    from matplotlib.figure import Figure

    points = {}
    for record in records:
        parameters = json.loads(record["parameters"])
        points[parameters["beta"], parameters["lam"]] = record["accuracy"]
    betas, lams = (sorted({point[axis] for point in points}) for axis in (0, 1))
    values = np.array([[points.get((beta, lam), np.nan) for lam in lams] for beta in betas], dtype=np.float64)
    figure = Figure(figsize=(_WIDTH, 3.0), layout="constrained")
    ax = figure.subplots()
    image = ax.imshow(values, cmap="viridis", vmin=0.0, vmax=1.0, origin="lower", aspect="auto")
    middle = 0.6
    for (i, j), value in np.ndenumerate(values):
        shade = "black" if value > middle else "white"
        ax.text(j, i, f"{value:.2f}".lstrip("0"), ha="center", va="center", fontsize=6, color=shade)
    ax.set_xticks(range(len(lams)), [f"{lam:g}" for lam in lams], rotation=45, fontsize=7)
    ax.set_yticks(range(len(betas)), [f"{beta:g}" for beta in betas], fontsize=7)
    ax.set_xlabel(r"$\lambda$ (column groups)", fontsize=8)
    ax.set_ylabel(r"$\beta$ (row groups)", fontsize=8)
    ax.set_title(title, fontsize=8, loc="left")
    bar = figure.colorbar(image, ax=ax)
    bar.set_label("accuracy", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def render(figure: Any) -> dict[str, bytes]:
    """Return a figure as PNG and SVG, by file ending."""
    images = {}
    for ending in ("png", "svg"):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=ending, dpi=200, metadata={"Date": None} if ending == "svg" else None)
        images[ending] = buffer.getvalue()
    return images
