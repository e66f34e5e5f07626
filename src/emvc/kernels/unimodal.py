"""The closest unimodal distribution to a sample: one rise, one fall, and nothing in between."""

from __future__ import annotations

from typing import Any

import numpy as np

from emvc._array import FloatArray
from emvc.kernels._compile import njit

_MODES = 20  # quantiles that are tried as the mode


def unimodal_columns(columns: FloatArray) -> FloatArray:
    """Return evenly spaced quantiles of the unimodal distribution that is closest to each column.

    Right of the mode the distribution function is the least concave majorant of the empirical one, left of it likewise
    in the mirror. The mode is the quantile for which the two functions differ least.

    Examples
    --------
    >>> import numpy as np
    >>> two = np.repeat([[0.0], [1.0]], 50, axis=0) + np.linspace(0, 0.01, 100)[:, None]
    >>> bool((np.abs(unimodal_columns(two) - 0.5) < 0.4).sum() > 20)  # the gap is filled
    True
    """
    out = np.empty(columns.shape)
    for j in range(columns.shape[1]):
        _unimodal(np.sort(columns[:, j]), out[:, j])
    return out


@njit(cache=True, nogil=True)
def _falling(distances: Any, out: Any) -> float:
    """Write quantiles of the falling density of sorted distances from the mode; return how far the functions differ."""
    n = len(distances)
    ends, heights = np.zeros(n + 1), np.zeros(n + 1)
    m = 1
    for i in range(n):
        x, y = distances[i], (i + 1) / n
        if i + 1 < n and distances[i + 1] == x:
            continue
        if x <= 0.0:
            heights[0] = y  # as many samples are at the mode itself
            continue
        while m >= 2 and (y - heights[m - 1]) * (ends[m - 1] - ends[m - 2]) >= (heights[m - 1] - heights[m - 2]) * (
            x - ends[m - 1]
        ):
            m -= 1
        ends[m], heights[m] = x, y
        m += 1
    worst, piece, place = 0.0, 0, 0
    for i in range(n):
        share = (i + 0.5) / n
        while piece < m - 2 and heights[piece + 1] < share:
            piece += 1
        if m == 1 or share <= heights[0]:
            out[i] = 0.0
        else:
            slope = (ends[piece + 1] - ends[piece]) / (heights[piece + 1] - heights[piece])
            out[i] = ends[piece] + (share - heights[piece]) * slope
        while place < m - 2 and ends[place + 1] < distances[i]:
            place += 1
        if m > 1 and distances[i] > 0.0:
            rise = (heights[place + 1] - heights[place]) / (ends[place + 1] - ends[place])
            worst = max(worst, heights[place] + (distances[i] - ends[place]) * rise - i / n)
    return worst


@njit(cache=True, nogil=True)
def _unimodal(values: Any, out: Any) -> None:
    """Write the quantiles of the unimodal distribution closest to sorted values."""
    n = len(values)
    least = np.inf
    below, above = np.empty(n), np.empty(n)
    for step in range(1, _MODES):
        m = step * n // _MODES
        mode = values[m]
        worst = (n - m) / n * _falling(values[m:] - mode, above[: n - m])
        if m > 0:
            worst = max(worst, m / n * _falling(mode - values[:m][::-1], below[:m]))
        if worst < least:
            least = worst
            for i in range(m):
                out[m - 1 - i] = mode - below[i]
            for i in range(n - m):
                out[m + i] = mode + above[i]
