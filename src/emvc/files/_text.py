"""Comma- and tab-separated text."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from emvc.files._base import MISSING, FileView, check_ids, check_values, is_id_name, one_hot

Row = tuple[int, list[str]]


def read_text(path: Path, *, id_column: str | None, header: bool | None, encode: bool) -> FileView:
    """Read one view from a text file; ``header`` None means to find out."""
    source = path.name
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(stream.readline())
            stream.seek(0)
            return _read(_rows(stream, delimiter), path.stem, source, id_column=id_column, header=header, encode=encode)
    except UnicodeDecodeError as error:
        raise ValueError(f"{source} is not UTF-8 text ({error.reason}); convert it first.") from None
    except csv.Error as error:
        raise ValueError(f"{source} is not readable as a table ({error}).") from None


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def _rows(stream: Any, delimiter: str) -> Iterator[Row]:
    """Yield the number of the line and the cells of every row that is not blank."""
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    for row in reader:
        if row and (len(row) > 1 or row[0].strip()):
            yield reader.line_num, row


def _read(
    rows: Iterator[Row], name: str, source: str, *, id_column: str | None, header: bool | None, encode: bool
) -> FileView:
    first, second = next(rows, None), next(rows, None)
    if first is None:
        raise ValueError(f"{source} is empty.")
    if header is None:
        header = _has_header(first[1], second[1] if second else None)
    start = [row for row in (second if header else first, None if header else second) if row is not None]
    if not start:
        raise ValueError(f"{source} has a header but no samples.")
    width = len(start[0][1])
    columns = _column_names(first[1] if header else None, width, source)
    position = _find_ids(columns, start[0][1], source, id_column=id_column, header=bool(header), encode=encode)
    rows = _checked(_chain(start, rows), width, source)
    table = _read_mixed if encode else _read_numbers
    ids, lines, values, names = table(rows, columns, position, source)
    return check_values(
        FileView(
            name,
            values,
            source,
            ids=None if position is None else check_ids(ids, source, lines),
            columns=tuple(names),
            lines=tuple(lines),
            fixed=True,
        )
    )


def _chain(start: Sequence[Row], rest: Iterator[Row]) -> Iterator[Row]:
    yield from start
    yield from rest


def _checked(rows: Iterator[Row], width: int, source: str) -> Iterator[Row]:
    for line, row in rows:
        if len(row) != width:
            raise ValueError(f"{source}: line {line} has {len(row)} cells instead of {width}.")
        yield line, row


def _is_number(cell: str) -> bool:
    cell = cell.strip()
    if cell in MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _has_header(first: Sequence[str], second: Sequence[str] | None) -> bool:
    """Tell whether the first row holds names: text where the second row has numbers, or one cell less."""
    if second is None:
        return not any(_is_number(cell) and cell.strip() for cell in first)
    nameless = not first[0].strip() and any(cell.strip() for cell in first)  # as pandas writes an index
    if nameless or len(first) == len(second) - 1:
        return True
    numbers = [_is_number(cell) for cell in first]
    if not any(numbers):
        return True
    if all(numbers[1:]) and not numbers[0]:  # ids without a header, or numbered features
        return is_id_name(first[0]) or _is_number(second[0])
    return not all(numbers) and sum(map(_is_number, second)) > sum(numbers)


def _column_names(names: Sequence[str] | None, width: int, source: str) -> list[str]:
    if names is None:
        return [str(i) for i in range(width)]
    if len(names) == width - 1:  # as R writes tables: no name for the ids
        names = ["", *names]
    if len(names) != width:
        raise ValueError(f"{source}: the header has {len(names)} cells, the first sample {width}.")
    return [name.strip() for name in names]


def _find_ids(
    columns: Sequence[str], row: Sequence[str], source: str, *, id_column: str | None, header: bool, encode: bool
) -> int | None:
    """Return the position of the column of ids, or None."""
    if id_column is not None:
        if id_column not in columns:
            raise ValueError(f"{source} has no column {id_column!r} for the sample ids.")
        return columns.index(id_column)
    if len(columns) < 2:
        return None
    if header and is_id_name(columns[0]):
        return 0
    return 0 if not _is_number(row[0]) and not encode else None


def _read_numbers(
    rows: Iterator[Row], columns: list[str], position: int | None, source: str
) -> tuple[list[str], list[int], Any, list[str]]:
    ids, lines, values = [], [], array("d")
    for line, row in rows:
        lines.append(line)
        if position is not None:
            ids.append(row.pop(position))
        try:
            numbers = list(map(float, row))
        except ValueError:
            numbers = _with_gaps(row, line, columns, position, source)
        if "_" in "".join(row):  # Python reads 1_000 as a number, nobody else does
            _with_gaps([cell.replace("_", "x") for cell in row], line, columns, position, source)
        values.extend(numbers)
    names = [name for i, name in enumerate(columns) if i != position]
    return ids, lines, np.array(values).reshape(len(lines), len(names)), names


def _with_gaps(row: list[str], line: int, columns: list[str], position: int | None, source: str) -> list[float]:
    """Return numbers with NaN for empty cells, or say which cell is not a number."""
    names = [name for i, name in enumerate(columns) if i != position]
    numbers = []
    for cell, name in zip(row, names, strict=True):
        if not _is_number(cell):
            raise ValueError(
                f"{source}: {cell[:40]!r} in line {line}, column {name!r} is not a number. Remove the column, or have "
                "text encoded by one-hot."
            )
        numbers.append(float("nan") if cell.strip() in MISSING else float(cell))
    return numbers


def _read_mixed(
    rows: Iterator[Row], columns: list[str], position: int | None, source: str
) -> tuple[list[str], list[int], Any, list[str]]:
    del source
    content = list(rows)
    lines = [line for line, _ in content]
    parts, names = [], []
    ids = [row[position] for _, row in content] if position is not None else []
    for i, name in enumerate(columns):
        if i == position:
            continue
        cells = [row[i] for _, row in content]
        if all(map(_is_number, cells)):
            parts.append(np.array([[np.nan if cell.strip() in MISSING else float(cell)] for cell in cells]))
            names.append(name)
        else:
            encoded, categories = one_hot(cells, name)
            parts.append(encoded)
            names.extend(categories)
    return ids, lines, np.hstack(parts), names
