"""Small charts as SVG text. Colours are style variables of the page, so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

_WIDTH, _HEIGHT = 440, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 14, 40


def line_chart(
    x: Sequence[float],
    y: Sequence[float],
    *,
    x_label: str,
    y_label: str,
    log: bool = False,
    lines: Sequence[tuple[float, str]] = (),
    mark: float | None = None,
    limits: tuple[float, float] | None = None,
) -> str:
    """Return a chart of one curve.

    Parameters
    ----------
    x, y : sequence of float
        The curve; values that are not finite are left out, and with ``log`` those that are not positive lie on
        the bottom.
    x_label, y_label : str
        Names of the axes.
    log : bool
        Whether the vertical axis is logarithmic.
    lines : sequence of (float, str)
        Horizontal lines with their names.
    mark : float, optional
        Position on the horizontal axis to be marked as chosen.
    limits : (float, float), optional
        What the vertical axis shows at least.

    Examples
    --------
    >>> line_chart([1, 2], [0.1, 0.01], x_label="iteration", y_label="gap", log=True).startswith("<svg")
    True
    """
    pairs = [(float(a), float(b)) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    if not pairs:
        return ""
    values = [b for _, b in pairs] + [value for value, _ in lines] + list(limits or ())
    transform, low, high, ticks = _axis(values, log=log)
    left, right = min(a for a, _ in pairs), max(a for a, _ in pairs)
    wide = (right - left) or 1.0

    def at_x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * ((value - left) / wide if right > left else 0.5)

    def at_y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (transform(value) - low) / ((high - low) or 1.0)

    parts = [
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(y_label)} by {escape(x_label)}, from {pairs[0][1]:.2g} to {pairs[-1][1]:.2g}">'
    ]
    for value, text in ticks:
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at_y(value):.1f}" y2="{at_y(value):.1f}"/>'
            f'<text x="{_LEFT - 7}" y="{at_y(value) + 4:.1f}" text-anchor="end">{text}</text>'
        )
    for value in round_ticks(left, right, whole=all(a.is_integer() for a, _ in pairs)):
        parts.append(f'<text x="{at_x(value):.1f}" y="{_HEIGHT - _BOTTOM + 17}" text-anchor="middle">{value:g}</text>')
    if mark is not None:
        parts.append(
            f'<line class="chosen" x1="{at_x(mark):.1f}" x2="{at_x(mark):.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
        )
    for value, name in lines:
        parts.append(
            f'<line class="rule" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at_y(value):.1f}" y2="{at_y(value):.1f}"/>'
            f'<text class="rule-name" x="{_WIDTH - _RIGHT}" y="{at_y(value) + 15:.1f}" '
            f'text-anchor="end">{escape(name)}: {value:.1e}</text>'
        )
    path = " ".join(f"{at_x(a):.1f},{at_y(b):.1f}" for a, b in pairs)
    parts.append(f'<polyline class="curve" points="{path}"/>')
    if len(pairs) <= 60:
        parts += [f'<circle class="dot" cx="{at_x(a):.1f}" cy="{at_y(b):.1f}" r="3"/>' for a, b in pairs]
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text></svg>')
    return "".join(parts)


def _axis(
    values: Sequence[float], *, log: bool
) -> tuple[Callable[[float], float], float, float, list[tuple[float, str]]]:
    """Return the transform of the vertical axis, its range and its ticks."""
    if not log:
        least, most = min(values), max(values)
        # Zero is part of the axis unless that would flatten the curve.
        least = min(least, 0.0) if least < 0.3 * most else least
        return float, least, most, [(value, f"{value:g}") for value in round_ticks(least, most)]
    low = math.floor(math.log10(min((value for value in values if value > 0), default=1e-16)))
    high = max(low + 1, math.ceil(math.log10(max(*values, 10.0**low))))

    def transform(value: float) -> float:
        return math.log10(max(value, 10.0**low))

    step = max(1, math.ceil((high - low) / 6))
    ticks = [(10.0**power, _power(power)) for power in range(low, high + 1, step)]
    return transform, low, high, ticks


def _power(exponent: int) -> str:
    if -3 <= exponent <= 3:
        return f"{10.0**exponent:g}"
    sign = "−" if exponent < 0 else ""
    return f'10<tspan dy="-5" class="exponent">{sign}{abs(exponent)}</tspan>'


def round_ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Return about five round numbers between the limits."""
    if high <= low:
        return [low]
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next((factor for factor in (1, 2, 5) if (high - low) / (factor * step) <= 5.5), 10)
    if whole:
        step = max(step, 1.0)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def bars(rows: Sequence[tuple[str, float, Sequence[str], str]], *, columns: Sequence[str]) -> str:
    """Return a table with a bar in each row.

    Parameters
    ----------
    rows : sequence of (str, float, sequence of str, str)
        Name, length of the bar between 0 and 1, further cells, and a style class.
    columns : sequence of str
        Headings of the names and of the further cells.
    """
    first, *rest = (f'<th scope="col">{escape(name)}</th>' for name in columns)
    head = first + '<th class="bar"></th>' + "".join(rest)
    body = "".join(
        f'<tr class="{escape(kind)}"><th scope="row">{escape(name)}</th>'
        f'<td class="bar"><span style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></span></td>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, share, cells, kind in rows
    )
    return f'<div class="scroll"><table class="bars"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
