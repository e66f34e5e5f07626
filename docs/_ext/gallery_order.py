"""Order of the gallery: from the first fit to the questions that come later."""

from __future__ import annotations

from pathlib import Path

_FIRST = (
    "ten_lines",
    "explain_clusters",
    "errors_and_missing",
    "noise_view",
    "missing_samples",
    "number_of_clusters",
    "compare_methods",
)


class ReadingOrder:
    """Sort key of a file in the gallery; examples without a place of their own come last."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __repr__(self) -> str:
        return "<ReadingOrder>"

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the place of the file."""
        stem = Path(filename).stem
        return (_FIRST.index(stem) if stem in _FIRST else len(_FIRST), stem)
