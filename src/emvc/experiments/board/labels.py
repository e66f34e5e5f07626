"""Names beside the points of a picture, none on top of another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

_FONT = 8
_FAR = 12  # points: a name that is farther away gets a line


def place_names(figure: Any, ax: Any, names: Sequence[str], points: Sequence[tuple[float, float]], bold: int) -> None:
    """Write each name at the nearest free place around its point, the highest point first.

    Parameters
    ----------
    figure, ax : Figure, Axes
        The picture; its layout must be final.
    names : sequence of str
        The names.
    points : sequence of (float, float)
        Where they belong, in data coordinates.
    bold : int
        Position of the name that stands out, -1 for none.
    """
    unit = figure.dpi / 72
    frame = tuple(ax.get_window_extent().extents / unit)
    spots = ax.transData.transform(points) / unit
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in spots]
    for i in sorted(range(len(names)), key=lambda i: -points[i][1]):
        text = ax.annotate(names[i], points[i], (0, 0), textcoords="offset points", fontsize=_FONT)
        text.set_fontweight("bold" if i == bold else "normal")
        box = text.get_window_extent()
        width, height = box.width / unit, box.height / unit
        dx, dy = _free_place(spots[i], width, height, frame, taken)
        text.set_position((dx, dy))
        x, y = spots[i] + (dx, dy)
        taken.append((x, y, x + width, y + height))
        near = min(max(0.0, dx), dx + width), min(max(0.0, dy), dy + height)
        if math.hypot(*near) > _FAR:
            line = {"arrowstyle": "-", "color": "#7a8494", "lw": 0.7, "shrinkA": 0, "shrinkB": 3}
            ax.annotate("", points[i], near, textcoords="offset points", arrowprops=line)


def _free_place(
    spot: Any, width: float, height: float, frame: Sequence[float], taken: Sequence[Sequence[float]]
) -> tuple[float, float]:
    """Return the first place that is inside the frame and free; the last one tried if there is none."""
    for dx, dy in _places(width, height):
        left, bottom = spot[0] + dx, spot[1] + dy
        right, top = left + width, bottom + height
        inside = frame[0] < left and right < frame[2] and frame[1] < bottom and top < frame[3]
        if inside and not any(left < c and a < right and bottom < d and b < top for a, b, c, d in taken):
            break
    return dx, dy


def _places(width: float, height: float) -> Iterator[tuple[float, float]]:
    """Yield places of a text's lower left corner around a point, nearest first, in points."""
    for ring in range(16):
        away = 6 + 7 * ring
        for angle in np.deg2rad([0, 180, 90, 270, 45, 315, 135, 225, 20, 340, 160, 200, 65, 115, 245, 295]):
            cos, sin = float(np.cos(angle)), float(np.sin(angle))
            yield away * cos - width * (1 - cos) / 2, away * sin - height * (1 - sin) / 2
