"""The record that every reader returns, and what all of them have to find out about columns and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from emvc._array import LARGEST, BoolArray

_MOST_NAMED = 5
_LABEL_NAMES = {"y", "gt", "gnd", "label", "labels", "truth", "truelabel", "true_labels", "class", "classes", "target"}


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How one file is to be read; whatever is None is found out.

    Attributes
    ----------
    id_column : str or None
        Column of the sample ids; ``""`` if there is none.
    header : bool or None
        Whether a text file starts with the names of the columns.
    separator : str or None
        What separates the cells of a text file.
    decimal : str or None
        Sign of decimals in a text file.
    encoding : str or None
        Encoding of a text file.
    sheet : str or None
        Sheet of a workbook.
    transpose : bool
        Whether the table has features in rows and samples in columns.
    drop : tuple of str
        Columns to leave out.
    """

    id_column: str | None = None
    header: bool | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    transpose: bool = False
    drop: tuple[str, ...] = ()


def locate_row(number: int) -> str:
    """Say where a row is if nothing better is known."""
    return f"row {number}"


def some(names: Iterable[Any]) -> str:
    """Return the first few of several names, in quotes."""
    listed = [repr(str(name)) for name in names]
    return ", ".join(listed[:_MOST_NAMED]) + (", ..." if len(listed) > _MOST_NAMED else "")


@dataclass(frozen=True)
class FileView:
    """One view as it was found in a file.

    Attributes
    ----------
    name : str
        From the file, or from the variable in it.
    values : DataFrame, ndarray or sparse matrix of shape (n_samples, n_features)
        A table as it was parsed, or numbers.
    source : str
        Name of the file, for messages.
    ids : tuple of str or None
        Ids of the samples.
    id_column : str or None
        Column that they were in.
    columns : tuple of str or None
        Names of the features.
    other_ids : dict of tuple of str
        Columns of ``values`` that could hold the ids as well.
    locate : callable
        Says in words where in the file a row is.
    fixed : bool
        Whether rows are known to be samples; arrays may have to be transposed.
    how : str
        How the file was read, what was guessed above all.
    options : ReadOptions
        The same as options that read the file in this way.
    notes : tuple of str
        What else a person should know.
    """

    name: str
    values: Any
    source: str
    ids: tuple[str, ...] | None = None
    id_column: str | None = None
    columns: tuple[str, ...] | None = None
    other_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    locate: Callable[[int], str] = locate_row
    fixed: bool = False
    how: str = ""
    options: ReadOptions = field(default_factory=ReadOptions)
    notes: tuple[str, ...] = ()

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def is_table(self) -> bool:
        """Whether the values are a DataFrame, with cells of any type."""
        return hasattr(self.values, "dtypes")

    def transposed(self) -> FileView:
        """Return the view with rows and columns exchanged, and a note about it."""
        note = f"{self.name}: stored as features x samples, transposed."
        return replace(self, values=self.values.T, columns=None, notes=(*self.notes, note))

    def description(self) -> str:
        """Return one sentence about how the file was read and where the ids come from, empty for plain arrays."""
        if not self.how:
            return ""
        owner = self.source if self.name in self.source else f"{self.source}: {self.name}"
        if self.ids is None:
            return f"{owner}: {self.how}; no sample ids."
        where = f"column {self.id_column!r}" if self.id_column else "the first column, which has no name"
        return f"{owner}: {self.how}; sample ids from {'the header' if self.id_column is None else where}."


def is_label_name(name: str) -> bool:
    """Tell whether a variable of this name holds true classes, which are no view."""
    return name.strip().lower() in _LABEL_NAMES


def about_labels(view: FileView) -> list[str]:
    """Return a sentence about columns of a table that look like true classes, which would decide the clusters."""
    labels = [name for name in view.columns or () if is_label_name(name)] if view.is_table else []
    told = (
        "{}: column {!r} looks like known classes; leave it out (drop = [{!r}] in a --config) unless it is a feature."
    )
    return [told.format(view.name, name, name) for name in labels]


def check_ids(ids: Sequence[str], source: str, locate: Callable[[int], str] = locate_row) -> tuple[str, ...]:
    """Return ids without blanks around them.

    Raises
    ------
    ValueError
        If one is empty or appears twice.
    """
    seen: dict[str, int] = {}
    for i, name in enumerate(ids):
        clean = name.strip()
        if not clean:
            raise ValueError(
                f"{source}: the sample id in {locate(i)} is empty. Fill it in, remove the row, or name another column "
                "of ids."
            )
        if clean in seen:
            raise ValueError(
                f"{source}: the sample id {clean!r} appears twice ({locate(i)} and {locate(seen[clean])}). Keep one "
                "row per sample, or name another column of ids."
            )
        seen[clean] = i
    return tuple(seen)


def check_values(view: FileView) -> FileView:
    """Refuse values that no method can use.

    Raises
    ------
    ValueError
        If there are no samples or features, or a value is infinite or too large; the message names row and column.
    """
    owner = view.source if view.name in view.source else f"{view.source}: {view.name}"
    if view.n_samples == 0:
        raise ValueError(f"{owner} has no samples.")
    if view.values.shape[1] == 0:
        raise ValueError(f"{owner} has no features.")
    if scipy.sparse.issparse(view.values):
        if not np.all(np.abs(view.values.data) <= LARGEST):
            raise ValueError(f"{owner} contains NaN, infinite or too large values.")
        return view
    for first, block in _numeric_blocks(view.values):
        bad: BoolArray = np.abs(block) > LARGEST
        if bad.any():
            row, column = (int(index[0]) for index in np.nonzero(bad))
            value = float(block[row, column])
            raise ValueError(f"{owner}: the value {value:g} in {_where(view, row, first + column)} is too large.")
    return view


def _numeric_blocks(values: Any) -> Any:
    """Yield the numeric parts of a table or array, with the number of their first column."""
    if not hasattr(values, "dtypes"):
        yield 0, values
    elif all(kind.kind in "biuf" for kind in values.dtypes):
        yield 0, values.to_numpy()
    else:
        numeric = (i for i, kind in enumerate(values.dtypes) if kind.kind in "iuf")
        yield from ((i, values.iloc[:, [i]].to_numpy(dtype=np.float64, na_value=np.nan)) for i in numeric)


def _where(view: FileView, row: int, column: int) -> str:
    sample = f" (sample {view.ids[row]!r})" if view.ids is not None else ""
    name = repr(view.columns[column]) if view.columns is not None else str(column)
    return f"{view.locate(row)}{sample}, column {name}"
