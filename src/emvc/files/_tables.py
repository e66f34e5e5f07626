"""Tables with cells of any type: what all of them have in common, Excel and Parquet."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from emvc._containers import require
from emvc.files._base import FileView, ReadOptions, check_ids, locate_row, some
from emvc.files._ids import as_ids, find_ids, is_id_name
from emvc.files._sniff import is_number
from emvc.intake._coding import column_names


def stem(path: Path) -> str:
    """Return the name of a view: that of its file without endings.

    Examples
    --------
    >>> stem(Path("gene.csv.gz"))
    'gene'
    """
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def table_view(
    frame: Any,
    name: str,
    source: str,
    options: ReadOptions,
    *,
    how: str,
    locate: Callable[[int], str] = locate_row,
    index: str | None = None,
) -> FileView:
    """Return a table as a view: columns left out, empty rows too, turned if asked for, its ids found.

    Parameters
    ----------
    frame : DataFrame
        Cells of any type, ids among them.
    name, source : str
        Names of view and file.
    options : ReadOptions
        The columns to drop, the column of ids, whether to transpose.
    how : str
        What the reader found out.
    locate : callable
        Says where a row is.
    index : str or None
        Column that was the index of the table, and thus holds the ids.
    """
    frame, locate, notes = _tidy(frame, source, options.drop, locate)
    if options.transpose:
        turned = _turned(frame, name, source, options.id_column or index, how=how, notes=notes)
        return replace(turned, options=options)
    wanted = options.id_column if options.id_column is not None else index
    column, candidates = find_ids(frame, source, locate, id_column=wanted)
    view = FileView(
        name,
        frame,
        source,
        other_ids=candidates,
        locate=locate,
        fixed=True,
        how=how,
        options=options,
        notes=tuple(notes),
    )
    return with_ids(view, column)


def with_ids(view: FileView, column: str | None) -> FileView:
    """Return the view with its ids from another of the columns that hold some, or without ids."""
    frame, others = view.values, dict(view.other_ids)
    if view.id_column is not None and view.ids is not None:
        frame = frame.copy(deep=False)
        frame.insert(0, view.id_column, list(view.ids))
        others[view.id_column] = view.ids
    ids = others.pop(column) if column is not None else None
    if column is not None:
        place = [str(name) for name in frame.columns].index(column)
        frame = frame.iloc[:, [i for i in range(frame.shape[1]) if i != place]]
    columns = tuple(str(name) for name in frame.columns)
    return replace(view, values=frame, ids=ids, id_column=column, columns=columns, other_ids=others)


def _tidy(
    frame: Any, source: str, drop: Sequence[str], locate: Callable[[int], str] = locate_row
) -> tuple[Any, Callable[[int], str], list[str]]:
    """Leave out columns on request, and nameless columns and rows without any value; number names that come again."""
    nameless = [str(name) in ("", "nan") for name in frame.columns]
    frame.columns = list(column_names(frame))
    unknown = [name for name in drop if name not in frame.columns]
    if unknown:
        raise ValueError(f"{source} has no column {unknown[0]!r} to drop; it has {some(frame.columns)}.")
    notes = [f"{source}: {', '.join(map(repr, drop))} left out as asked for."] if drop else []
    empty = [name for name, bare in zip(frame.columns, nameless, strict=True) if bare and frame[name].isna().all()]
    if drop or empty:
        frame = frame.drop(columns=[*drop, *empty])
    there = np.flatnonzero(frame.notna().to_numpy().any(axis=1)) if frame.shape[1] else np.arange(len(frame))
    if len(there) == len(frame):
        return frame.reset_index(drop=True), locate, notes
    notes.append(f"{source}: {len(frame) - len(there)} empty rows left out.")
    return frame.iloc[there].reset_index(drop=True), lambda row: locate(int(there[row])), notes


def _turned(frame: Any, name: str, source: str, owner: str | None, *, how: str, notes: Sequence[str]) -> FileView:
    """Return a table of features x samples as samples x features."""
    first = str(frame.columns[0])
    if owner is None and (is_id_name(first) or frame[first].dtype.kind not in "iufb"):
        owner = first
    if owner is not None and owner not in frame.columns:
        raise ValueError(
            f"{source} has no column {owner!r} for the names of the features; it has {some(frame.columns)}."
        )
    features = as_ids(frame[owner]) if owner is not None else [str(i) for i in range(len(frame))]
    cells = frame.drop(columns=[owner]) if owner is not None else frame
    about = [column for column in cells.columns if not _has_numbers(cells[column])]
    told = [f"{name}: features x samples in the file, so it is transposed."]
    if about:
        cells = cells.drop(columns=about)
        told.append(f"{name}: {', '.join(map(repr, about))} in the header left out, for being no samples.")
    ids = check_ids([str(column) for column in cells.columns], f"{source} (its header)")
    turned = pd.DataFrame(cells.to_numpy().T, columns=features).infer_objects()
    turned, _, _ = _tidy(turned, source, ())
    columns = tuple(turned.columns)
    return FileView(name, turned, source, ids=ids, columns=columns, fixed=True, how=how, notes=(*notes, *told))


def _has_numbers(cells: Any) -> bool:
    """Tell whether some cells of a column are numbers, or there is nothing in it."""
    there = cells.dropna()
    return cells.dtype.kind in "iufb" or not len(there) or any(is_number(str(cell)) for cell in there)


def read_parquet(path: Path, options: ReadOptions) -> FileView:
    """Read one view from a Parquet table."""
    require("pyarrow", "parquet", f"Reading {path.name}")
    parquet = require("pyarrow.parquet", "parquet", f"Reading {path.name}")
    try:
        table = parquet.read_table(path)
        nested = [
            str(column.name) for column in table.schema if column.type.num_fields and "dict" not in str(column.type)
        ]
        frame = table.drop_columns(nested).to_pandas()
    except OSError:
        raise
    except Exception as error:  # the library has a class of its own for every failure
        raise ValueError(f"{path.name} cannot be read as a Parquet table ({str(error).splitlines()[0]}).") from None
    index = None
    if not (type(frame.index).__name__ == "RangeIndex" and frame.index.name is None):
        frame.index.names = ["index" if name is None else name for name in frame.index.names]
        index = str(frame.index.names[0]) if frame.index.nlevels == 1 else None
        frame = frame.reset_index()
    how = f"Parquet table without the lists in {some(nested)}" if nested else "Parquet table"
    return table_view(frame, path.stem, path.name, options, how=how, index=index)


def read_excel(path: Path, options: ReadOptions, sheet: str | None) -> list[FileView]:
    """Read a sheet of a workbook as a view, or every sheet that holds a table."""
    require("openpyxl", "excel", f"Reading {path.name}")
    wanted = sheet or options.sheet
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and validation
            sheets = pd.read_excel(path, sheet_name=None, header=None, dtype=object, engine="openpyxl")
    except OSError:
        raise
    except Exception as error:  # the library raises whatever a damaged file leads it to
        raise ValueError(f"{path.name} cannot be read as a workbook ({str(error).splitlines()[0]}).") from None
    if wanted is not None and wanted not in sheets:
        names = ", ".join(map(repr, sheets))
        raise ValueError(f"{path.name} has no sheet {wanted!r}; it has {names}.")
    chosen = {name: cells for name, cells in sheets.items() if name == wanted or (wanted is None and _is_table(cells))}
    if not chosen:
        raise ValueError(f"{path.name} holds no sheet with a table of numbers; it has {', '.join(map(repr, sheets))}.")
    views = []
    for name, cells in chosen.items():
        view, found = path.stem if len(chosen) == 1 else name, replace(options, sheet=name)
        views.append(_sheet(cells, view, path.name, found, how=_sheets(name, list(sheets))))
    return views


def _sheets(name: str, sheets: Sequence[str]) -> str:
    others = [other for other in sheets if other != name]
    more = f" (also in it: {', '.join(map(repr, others))}; FILE.xlsx::SHEET chooses)" if others else ""
    return f"sheet {name!r}{more}"


def _is_table(cells: Any) -> bool:
    """Tell whether a sheet has two rows and columns at least, and numbers below each other."""
    cells = cells.dropna(how="all").dropna(how="all", axis=1)
    if min(cells.shape) < 2:
        return False
    numbers = cells.map(lambda cell: not isinstance(cell, str) or (is_number(cell) and bool(cell.strip())))
    return bool(((numbers & cells.notna()).sum(axis=0) > 1).any())


def _sheet(cells: Any, name: str, source: str, options: ReadOptions, *, how: str) -> FileView:
    """Return a sheet as a view: its table starts at the first row that is as long as the others."""
    cells = cells.dropna(how="all", axis=1)
    filled = cells.notna().sum(axis=1)
    usual = max(int(filled.median()), 1)
    skip = next((i for i, count in enumerate(filled) if count >= max(usual - 1, 1)), 0)
    header = _is_head(cells.iloc[skip], cells.iloc[skip + 1 :]) if options.header is None else options.header
    start = skip + int(header)
    frame = cells.iloc[start:].infer_objects()
    if not len(frame):
        raise ValueError(f"{source}, sheet {name!r}, has a header but no samples.")
    frame.columns = as_ids(cells.iloc[skip]) if header else [str(i) for i in range(frame.shape[1])]
    told = f"{how}, header in row {skip + 1}" if header else f"{how}, no header"
    found = replace(options, header=header)
    return table_view(frame, name, source, found, how=told, locate=lambda row: f"row {start + row + 1}")


def _is_head(head: Any, rows: Any) -> bool:
    """Tell whether a row is text above other cells, or counts the columns."""
    cells = list(head.dropna())
    if all(isinstance(cell, str) for cell in cells):
        return not len(rows) or not all(map(is_number, cells[1:] or cells))
    counted = [cell for cell in cells if not isinstance(cell, str)]
    if len(counted) < 2 or counted != list(range(int(counted[0] == 1), len(counted) + int(counted[0] == 1))):
        return False
    below = rows.to_numpy().ravel()
    return len(counted) > 3 or any(isinstance(cell, float) and not cell.is_integer() for cell in below)
