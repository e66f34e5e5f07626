"""Charts with one colour for each cluster, as SVG text: survival curves, and the flow between two labellings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from emvc.report._charts import round_ticks

_WIDTH, _HEIGHT = 440, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 12, 40
_FLOW_WIDTH, _FLOW_HEIGHT, _GAP, _MARGIN, _BLOCK = 420.0, 320.0, 14.0, 124.0, 12.0
_LONGEST = 16  # of a name beside a block


def survival_chart(curves: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return Kaplan-Meier curves as steps.

    Examples
    --------
    >>> chart = survival_chart([{"cluster": 0, "times": [0.0, 2.0], "shares": [1.0, 0.5]}], "time")
    >>> chart.startswith("<svg"), "colour0" in chart
    (True, True)
    """
    last = max((c["times"][-1] for c in curves), default=1.0) or 1.0

    def at_x(time: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * time / last

    def at_y(share: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share

    parts = [
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="Share without event by {escape(name)}, one curve for each cluster">'
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at_y(share):.1f}" y2="{at_y(share):.1f}"/>'
            f'<text x="{_LEFT - 7}" y="{at_y(share) + 4:.1f}" text-anchor="end">{share:g}</text>'
        )
    for tick in round_ticks(0.0, last):
        parts.append(f'<text x="{at_x(tick):.1f}" y="{_HEIGHT - _BOTTOM + 17}" text-anchor="middle">{tick:g}</text>')
    for curve in curves:
        points = [f"{at_x(0):.1f},{at_y(1):.1f}"]
        before = 1.0
        for time, share in zip(curve["times"], curve["shares"], strict=True):
            if share != before:
                points += [f"{at_x(time):.1f},{at_y(before):.1f}", f"{at_x(time):.1f},{at_y(share):.1f}"]
                before = share
        points.append(f"{at_x(curve['times'][-1]):.1f},{at_y(before):.1f}")
        parts.append(f'<polyline class="step colour{curve["cluster"] % 10}" points="{" ".join(points)}"/>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">time; share without event</text></svg>')
    return "".join(parts)


def flow_chart(table: Sequence[Sequence[int]], left: Sequence[str], right: Sequence[str]) -> str:
    """Return two labellings side by side: blocks for their clusters, ribbons for the samples they share.

    Parameters
    ----------
    table : sequence of sequence of int
        Samples by cluster of the first (rows) and of the second (columns).
    left, right : sequence of str
        Names of the clusters.

    Examples
    --------
    >>> flow_chart([[3, 0], [1, 4]], ["a", "b"], ["c", "d"]).count('class="ribbon')
    3
    """
    sizes = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    gaps = _GAP * (max(map(len, sizes)) - 1)
    scale = max(_FLOW_HEIGHT - gaps, 40.0) / max(sum(sizes[0]), 1)
    starts = _stack(sizes[0], scale), _stack(sizes[1], scale)
    height = 8.0 + max(
        start + size * scale for side in (0, 1) for start, size in zip(starts[side], sizes[side], strict=True)
    )
    parts = [
        f'<svg class="chart" viewBox="0 0 {_FLOW_WIDTH:g} {height:.0f}" role="img" aria-label="Clusters of both runs; '
        'the table says the same in numbers">'
    ]
    used = list(starts[0]), list(starts[1])
    for i, row in enumerate(table):
        for j, count in enumerate(row):
            if count:
                told = f"{left[i]} → {right[j]}: {count:,}"
                parts.append(_ribbon(used[0][i], used[1][j], count * scale, i, told))
                used[0][i] += count * scale
                used[1][j] += count * scale
    for side, names in enumerate((left, right)):
        for k, name in enumerate(names):
            parts.append(_block(side, k, name, sizes[side][k], starts[side][k], scale))
    return "".join(parts) + "</svg>"


def _stack(sizes: Sequence[int], scale: float) -> list[float]:
    """Return where each of the blocks below each other starts."""
    starts, at = [], 0.0
    for size in sizes:
        starts.append(at)
        at += size * scale + _GAP
    return starts


def _ribbon(left: float, right: float, thick: float, cluster: int, told: str) -> str:
    x0, x1, middle = _MARGIN + _BLOCK, _FLOW_WIDTH - _MARGIN - _BLOCK, _FLOW_WIDTH / 2
    path = (
        f"M{x0:g} {left:.1f}C{middle:g} {left:.1f} {middle:g} {right:.1f} {x1:g} {right:.1f}V{right + thick:.1f}"
        f"C{middle:g} {right + thick:.1f} {middle:g} {left + thick:.1f} {x0:g} {left + thick:.1f}Z"
    )
    return f'<path class="ribbon colour{cluster % 10}" d="{path}"><title>{escape(told)}</title></path>'


def _block(side: int, cluster: int, name: str, size: int, start: float, scale: float) -> str:
    x, at, anchor = (_MARGIN, _MARGIN - 6, "end")
    if side:
        x, at, anchor = _FLOW_WIDTH - _MARGIN - _BLOCK, _FLOW_WIDTH - _MARGIN + 6, "start"
    label = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    shade = "colourless" if side else f"colour{cluster % 10}"
    return (
        f'<rect class="block {shade}" x="{x:g}" y="{start:.1f}" width="{_BLOCK:g}" '
        f'height="{max(size * scale, 1):.1f}"/><text class="name" x="{at:g}" '
        f'y="{start + size * scale / 2 + 4:.1f}" text-anchor="{anchor}">'
        f"{escape(label)} ({size:,})</text>"
    )
