"""The pictures of a board, narrow enough for a phone. None needs colour to be read."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from emvc._array import FloatArray
from emvc.experiments.board.collection import HALVES, KINDS
from emvc.experiments.board.labels import place_names
from emvc.experiments.board.ranks import Ranks
from emvc.experiments.board.scores import CLEAN, ScoreTable
from emvc.experiments.board.statistics import ALL_ERRORS, Interval, Rung
from emvc.experiments.figures import STYLE

_ORDER = ("EMVC", "AMGL", "kernel addition", "RMSC", "best single view", "feature concatenation", "co-regularised")
_LOOKS = [STYLE[name][:2] for name in _ORDER]
_INK, _SOFT, _GRID, _REST = "#1d2430", "#5b6575", "#dfe3e9", "#7a8494"
_WIDTH = 4.3  # inches: text of 8 points stays readable on a phone

MOST_METHODS = len(_LOOKS)
"""So many methods can be told apart in the picture of the conditions."""


def critical_difference(ranks: Ranks, *, reference: str) -> Any:
    """Return a picture of average ranks; a bar beside them joins methods that do not differ."""
    count, length = len(ranks.methods), ranks.critical_difference
    span = max(count - 1, length)
    with _drawing():
        figure, ax = _figure(0.24 * count + 1.4)
        rows = np.arange(count)
        ax.hlines(rows, 1, ranks.ranks, color=_GRID, lw=1)
        for row, (name, rank) in enumerate(zip(ranks.methods, ranks.ranks, strict=True)):
            ax.plot(rank, row, "o", ms=6, color=_shade(name, reference))
            ax.annotate(f"{rank:.2f}", (rank, row), (6, 0), textcoords="offset points", va="center", fontsize=7.5)
        for i, (start, stop) in enumerate(ranks.cliques):
            x = 1 + span * (1.25 + 0.05 * i)
            ax.plot([x, x], [start - 0.25, stop + 0.25], color=_LOOKS[0][0], lw=3, solid_capstyle="round")
        ax.plot([1, 1 + length], [-1, -1], color=_INK, lw=1.5, marker="|", ms=8)
        ax.text(1, -1.75, f"critical difference {length:.2f}", va="center", fontsize=8)
        ax.set_yticks(rows, [_short(name) for name in ranks.methods])
        ax.set_ylim(count - 0.4, -2.3)
        ax.set_xlim(1 - 0.03 * span, 1 + span * (1.25 + 0.05 * len(ranks.cliques)))
        ax.set_xticks(range(1, count + 1, max(1, round(count / 8))))
        _plain(ax, "x")
        _embolden(ax.get_yticklabels(), ranks.methods, reference)
        text = f"average rank (1 is best) on {ranks.n_datasets} data sets\nmethods joined by a bar do not differ"
        figure.supxlabel(text, fontsize=8.5)
        return figure


def heat_map(table: ScoreTable, failed: FloatArray, *, methods: Sequence[str], reference: str) -> Any:
    """Return a picture of the values by data set and method.

    Parameters
    ----------
    table : ScoreTable
        The values; a method without a value on a data set leaves its cell empty.
    failed : array of shape (n_datasets, n_methods)
        Share of the runs that did not end well: hatched with a dash for all of them, an asterisk for some.
    methods : sequence of str
        The columns from left to right.
    reference : str
        Its name is bold.
    """
    rank = {kind: i for i, kind in enumerate(KINDS)}
    rows = sorted(range(len(table.datasets)), key=lambda i: (rank.get(table.kinds[i], len(KINDS)), table.datasets[i]))
    columns = [table.methods.index(name) for name in methods]
    values, failed = table.values[np.ix_(rows, columns)], failed[np.ix_(rows, columns)]
    with _drawing():
        figure, ax = _figure(0.19 * len(rows) + 1.9, width=2.0 + 0.4 * max(len(columns), 6))
        ax.imshow(np.where(failed == 1, np.nan, values), cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto")
        for (i, j), value in np.ndenumerate(values):
            _heat_cell(ax, i, j, value, float(failed[i, j]))
        names = [_short(name) for name in methods]
        ax.set_xticks(range(len(columns)), names, rotation=50, ha="left", rotation_mode="anchor", fontsize=8)
        ax.xaxis.tick_top()
        ax.set_yticks(range(len(rows)), [_short(table.datasets[i]) for i in rows], fontsize=7.5)
        ax.tick_params(length=0)
        _embolden(ax.get_xticklabels(), methods, reference)
        kinds = [table.kinds[i] for i in rows]
        for row, kind in enumerate(kinds):
            if row == 0 or kinds[row - 1] != kind:
                ax.axhline(row - 0.5, color=_INK, lw=1.2, xmax=1.02, clip_on=False)
                ax.text(len(columns) - 0.35, row, _short(kind), fontsize=7.5, va="center", color=_SOFT)
        ax.spines[:].set_visible(False)
        return figure


def _heat_cell(ax: Any, row: int, column: int, value: float, failed: float) -> None:
    if math.isnan(value):
        return
    text, color = f"{value:.2f}".removeprefix("0") + ("*" if failed > 0 else ""), "black" if value > 0.6 else "white"
    if failed == 1:
        text, color = "–", _INK
        ax.fill_between([column - 0.5, column + 0.5], row - 0.5, row + 0.5, hatch="////", fc="#eeeeee", ec="#aaaaaa")
    ax.text(column, row, text, ha="center", va="center", fontsize=7, color=color).set_in_layout(False)


def conditions(
    means: Mapping[tuple[str, str], Interval], *, methods: Sequence[str], errors: Sequence[str], reference: str
) -> Any:
    """Return a picture of the mean of a few methods in each condition, with intervals."""
    shown = list(methods)[:MOST_METHODS]
    with _drawing():
        block = len(shown) + 1.5
        figure, ax = _figure(0.09 * block * len(errors) + 0.9 + 0.17 * len(shown))
        for k, name in enumerate(shown):
            points = [(block * row + k, means[name, e]) for row, e in enumerate(errors) if (name, e) in means]
            y, color, marker = [row for row, _ in points], *_LOOKS[k]
            ax.hlines(y, [i.low for _, i in points], [i.high for _, i in points], color=color, lw=1.6)
            ax.plot([i.mean for _, i in points], y, marker, color=color, ms=5, label=_short(name))
        for row in range(1, len(errors)):
            ax.axhline(block * row - 1.25, color=_GRID, lw=0.8)
        centre = (len(shown) - 1) / 2
        ax.set_yticks([block * row + centre for row in range(len(errors))], [_wrap(e) for e in errors], fontsize=8)
        ax.set_ylim(block * len(errors) - 1.25, -1.25)
        ax.set_xlabel("mean NMI over data sets, with 95 % interval", fontsize=8.5)
        _plain(ax, "x")
        legend = figure.legend(loc="outside upper left", ncols=2, fontsize=8, frameon=False, handletextpad=0.2)
        _embolden(legend.get_texts(), shown, reference)
        return figure


@dataclass(frozen=True)
class Pace:
    """How fast and how good a method is, and whether it would be slower had none of its runs been stopped."""

    method: str
    seconds: float
    quality: float
    stopped: bool = False


def time_quality(points: Sequence[Pace], *, reference: str) -> Any:
    """Return a picture of mean NMI against the median time; a triangle marks methods with runs that were stopped."""
    with _drawing():
        figure, ax = _figure(4.6)
        seconds, values = [point.seconds for point in points], [point.quality for point in points]
        for point in points:
            marker = ">" if point.stopped else "o"
            ax.plot(point.seconds, point.quality, marker, ms=6, color=_shade(point.method, reference))
        _seconds_axis(ax, min(seconds) / 2, max(seconds) * 2)
        room = max(0.12 * (max(values) - min(values)), 0.02)
        ax.set_ylim(min(values) - room, max(values) + room)
        ax.set_xlabel("median seconds of a run", fontsize=8.5)
        ax.set_ylabel("mean NMI over data sets", fontsize=8.5)
        _plain(ax, "both")
        figure.draw_without_rendering()  # the layout has to stand before names are placed on it
        figure.set_layout_engine("none")
        methods = [point.method for point in points]
        bold = methods.index(reference) if reference in methods else -1
        place_names(figure, ax, [_short(name) for name in methods], list(zip(seconds, values, strict=True)), bold)
        return figure


def _seconds_axis(ax: Any, low: float, high: float) -> None:
    """Make a logarithmic axis with numbers on it, however short it is."""
    from matplotlib.ticker import LogLocator

    ax.set_xscale("log")
    ax.set_xlim(low, high)
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 40 * low else (1,)))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter("")


def ladder(rungs: Sequence[Rung]) -> Any:
    """Return a picture of the difference that each stage makes, the two halves side by side."""
    stages = list(dict.fromkeys((rung.comparison.method, rung.comparison.reference) for rung in rungs))
    groups = [error for error in (CLEAN, ALL_ERRORS) if any(rung.error == error for rung in rungs)]
    groups = groups or list(dict.fromkeys(rung.error for rung in rungs))[:1]
    with _drawing():
        figure, axes = _figure(0.42 * len(stages) + 1.3, columns=len(HALVES))
        for ax, half in zip(axes, HALVES, strict=True):
            for k, error in enumerate(groups):
                part = [r.comparison for r in rungs if (r.half, r.error) == (half, error)]
                y = [stages.index((c.method, c.reference)) + (k - (len(groups) - 1) / 2) * 0.3 for c in part]
                color, marker = _LOOKS[k]
                ax.hlines(y, [c.difference.low for c in part], [c.difference.high for c in part], color=color, lw=2)
                label = error if ax is axes[0] else None
                ax.plot([c.difference.mean for c in part], y, marker, color=color, ms=5.5, label=label)
            ax.axvline(0, color=_INK, lw=0.8)
            most = max((r.comparison.n_datasets for r in rungs if r.half == half), default=0)
            ax.set_title(f"{half} ({most} sets)", fontsize=9)
            ax.set_ylim(len(stages) - 0.45, -0.55)
            ax.locator_params(axis="x", nbins=3)
            _plain(ax, "x")
        axes[1].sharex(axes[0])
        axes[1].set_yticks([])
        axes[0].set_yticks(range(len(stages)), [f"{_short(a)}\nagainst {_short(b)}" for a, b in stages], fontsize=8)
        figure.supxlabel("difference in mean NMI, with 95 % interval", fontsize=8.5)
        figure.legend(loc="outside upper left", ncols=2, fontsize=8, frameon=False, handletextpad=0.2)
        return figure


def render_svg(figure: Any) -> str:
    """Return a figure as SVG text, the same for the same figure."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "board", "svg.fonttype": "path"}), _unknown_letters():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def render_png(figure: Any) -> bytes:
    """Return a figure as a PNG image."""
    buffer = io.BytesIO()
    with _unknown_letters():
        figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()


@contextmanager
def _unknown_letters() -> Iterator[None]:
    """Let names in scripts that the font does not have pass."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        yield


@contextmanager
def _drawing() -> Iterator[None]:
    """Take names as they are: a dollar sign does not start a formula."""
    import matplotlib as mpl

    with mpl.rc_context({"text.parse_math": False, "text.color": _INK, "hatch.linewidth": 0.6}), _unknown_letters():
        yield


def _figure(height: float, *, width: float = _WIDTH, columns: int = 1) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns)


def _plain(ax: Any, grid: str) -> None:
    ax.grid(axis=grid, color=_GRID, lw=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(_REST)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(labelsize=8)


def _embolden(texts: Sequence[Any], names: Sequence[str], reference: str) -> None:
    for text, name in zip(texts, names, strict=True):
        text.set_fontweight("bold" if name == reference else "normal")


def _shade(name: str, reference: str) -> str:
    return _LOOKS[0][0] if name == reference else _REST


def _short(name: str, longest: int = 28) -> str:
    """Return a name without its middle if it is long: the beginning and the end tell names apart."""
    return name if len(name) <= longest else f"{name[: longest - 12]}…{name[-11:]}"


def _wrap(name: str) -> str:
    return "\n".join(textwrap.wrap(_short(name, 44), 22))
