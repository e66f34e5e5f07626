"""The record that every reader returns, and what all of them have to find out about columns and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from emvc._array import BoolArray

_LARGEST = 1e150  # squares of larger values overflow
_ID_NAMES = {
    "",
    "id",
    "ids",
    "sample",
    "samples",
    "sample_id",
    "sampleid",
    "sample id",
    "sample_name",
    "barcode",
    "index",
}
_ID_NAMES |= {"name", "names", "patient", "patient_id", "obs_names", "unnamed: 0", "__index_level_0__"}
_LABEL_NAMES = {"y", "gt", "gnd", "label", "labels", "truth", "truelabel", "true_labels", "class", "classes", "target"}
MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "."})
"""Cells that stand for no value."""


@dataclass(frozen=True)
class FileView:
    """One view as it was found in a file.

    Attributes
    ----------
    name : str
        From the file, or from the variable in it.
    values : ndarray or sparse matrix of shape (n_samples, n_features)
        Numbers; a sample that the view does not have is a row of NaN.
    source : str
        Name of the file, for messages.
    ids : tuple of str or None
        Ids of the samples.
    columns : tuple of str or None
        Names of the features.
    lines : tuple of int or None
        Line of each sample in a text file.
    fixed : bool
        Whether rows are known to be samples; arrays may have to be transposed.
    notes : tuple of str
        What a person should know about how the file was read.
    """

    name: str
    values: Any
    source: str
    ids: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    lines: tuple[int, ...] | None = None
    fixed: bool = False
    notes: tuple[str, ...] = ()

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    def transposed(self) -> FileView:
        """Return the view with rows and columns exchanged, and a note about it."""
        note = f"{self.name}: stored as features x samples, transposed."
        return replace(self, values=self.values.T, columns=None, notes=(*self.notes, note))


def is_id_name(name: str) -> bool:
    """Tell whether a column of this name holds the ids of the samples."""
    return name.strip().lower() in _ID_NAMES


def is_text_type(kind: str) -> bool:
    """Tell whether a type of Parquet, by its name, is text."""
    return any(word in kind for word in ("string", "utf8", "dictionary"))


def find_id_column(
    is_text: Mapping[str, bool], source: str, *, id_column: str | None, encode: bool = False
) -> str | None:
    """Return the column of the sample ids in a table: the given one, one named so, or a first column of text.

    Parameters
    ----------
    is_text : dict of bool
        Names of the columns in their order, and whether they hold text.
    source : str
        Name of the file, for messages.
    id_column : str or None
        The column that the user named.
    encode : bool
        Whether columns of text are features.
    """
    names = list(is_text)
    if id_column is not None:
        if id_column not in is_text:
            raise ValueError(f"{source} has no column {id_column!r} for the sample ids.")
        return id_column
    known = [name for name in names if is_id_name(name)]
    if known:
        return known[0]
    return names[0] if len(names) > 1 and is_text[names[0]] and not encode else None


def is_label_name(name: str) -> bool:
    """Tell whether a variable of this name holds true classes, which are no view."""
    return name.strip().lower() in _LABEL_NAMES


def check_ids(ids: Sequence[str], source: str, lines: Sequence[int] | None = None) -> tuple[str, ...]:
    """Return ids without blanks around them.

    Raises
    ------
    ValueError
        If one is empty or appears twice.
    """
    seen: dict[str, int] = {}
    for i, name in enumerate(ids):
        clean, where = name.strip(), f"line {lines[i]}" if lines is not None else f"row {i}"
        if not clean:
            raise ValueError(f"{source}: the sample id in {where} is empty.")
        if clean in seen:
            first = seen[clean] if lines is None else lines[seen[clean]]
            raise ValueError(f"{source}: the sample id {clean!r} appears twice ({where} and {first}).")
        seen[clean] = i
    return tuple(seen)


def check_values(view: FileView) -> FileView:
    """Refuse values that no method can use.

    Raises
    ------
    ValueError
        If there are no samples or features, or a value is infinite or too large, or missing while others of its row are
        there; the message names row and column.
    """
    owner = view.source if view.name in view.source else f"{view.source}: {view.name}"
    if view.n_samples == 0:
        raise ValueError(f"{owner} has no samples.")
    if view.values.shape[1] == 0:
        raise ValueError(f"{owner} has no features.")
    if scipy.sparse.issparse(view.values):
        if not np.all(np.abs(view.values.data) <= _LARGEST):
            raise ValueError(f"{owner} contains NaN, infinite or too large values.")
        return view
    bad: BoolArray = ~(np.abs(view.values) <= _LARGEST)
    if not bad.any():
        return view
    absent = np.isnan(view.values)
    bad &= ~absent.all(axis=1)[:, None]
    if bad.any():
        row, column = (int(index[0]) for index in np.nonzero(bad))
        value = float(view.values[row, column])
        where = _where(view, row, column)
        if np.isnan(value):
            raise ValueError(
                f"{owner}: no value in {where}. Impute it, or leave the whole row empty if the sample is missing."
            )
        raise ValueError(f"{owner}: the value {value:g} in {where} is too large.")
    return view


def _where(view: FileView, row: int, column: int) -> str:
    place = f"line {view.lines[row]}" if view.lines is not None else f"row {row}"
    sample = f" (sample {view.ids[row]!r})" if view.ids is not None else ""
    name = repr(view.columns[column]) if view.columns is not None else str(column)
    return f"{place}{sample}, column {name}"


def one_hot(values: Sequence[str], name: str) -> tuple[Any, list[str]]:
    """Return one column of zeros and ones per category, NaN where there is none, and their names."""
    cells = np.array([value.strip() for value in values])
    absent = np.array([value in MISSING for value in cells])
    categories = sorted(set(cells[~absent].tolist()))
    encoded = (cells[:, None] == np.array(categories)[None, :]).astype(np.float64)
    encoded[absent] = np.nan
    return encoded, [f"{name}={category}" for category in categories]
