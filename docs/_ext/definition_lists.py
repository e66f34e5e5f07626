"""Sections ``Parameters`` and ``Attributes`` of numpydoc docstrings as definition lists.

Napoleon's own forms lose the trailing underscore of fitted attributes and repeat the text of an entry for each of its
names. Here the names become literals, and the sections are passed on as they are (``napoleon_custom_sections``).
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

SECTIONS = ("Attributes", "Parameters")


def quote_names(lines: list[str]) -> list[str]:
    """Return the docstring with the names of its parameters and attributes as literals.

    >>> quote_names(["Attributes", "----------", "labels_, rank_ : ndarray, int", "    Text."])[2]
    '``labels_``, ``rank_`` : ndarray, int'
    """
    quoted, inside = list(lines), False
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line and set(following) == {"-"}:
            inside = line in SECTIONS
        elif inside and line and not line.startswith((" ", "-")):
            names, colon, kind = line.partition(" : ")
            quoted[i] = ", ".join(f"``{name.strip()}``" for name in names.split(",")) + colon + kind.replace("_", r"\_")
    return quoted


def _process(_app: Sphinx, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    lines[:] = quote_names(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Run before Napoleon, whose priority is 500."""
    app.setup_extension("sphinx.ext.autodoc")  # it owns the event
    app.connect("autodoc-process-docstring", _process, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
