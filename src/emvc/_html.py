"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return texts as an HTML table.

    Examples
    --------
    >>> html_table(["view"], [["a & b"]])
    '<table><thead><tr><th>view</th></tr></thead><tbody><tr><td>a &amp; b</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
