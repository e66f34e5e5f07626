"""What is shown on terminals and written for spreadsheets: names are text there, and never instructions."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console as _Console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def printable(text: str) -> str:
    r"""Return a text without characters that control a terminal or turn the direction of writing.

    Examples
    --------
    >>> printable("gene\x1b[2J")
    'gene�[2J'
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


class Console(_Console):
    """A console on which texts cannot control the terminal; only what the library itself asks for can."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as the library does, with printable texts."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def csv_bytes(rows: Iterable[Iterable[Any]], *, safe: bool = False) -> bytes:
    r"""Return rows as a CSV file.

    Parameters
    ----------
    rows : iterable of iterables
        Texts and numbers.
    safe : bool
        Whether texts that a spreadsheet would take for formulas get an apostrophe in front.

    Examples
    --------
    >>> csv_bytes([["sample", "label"], ["=1+1", -1]], safe=True)
    b"sample,label\n'=1+1,-1\n"
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for row in rows:
        writer.writerow([_plain(cell) for cell in row] if safe else list(row))
    return stream.getvalue().encode("utf-8", "replace")


def _plain(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
