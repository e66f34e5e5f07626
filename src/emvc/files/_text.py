"""Tables in text files: looked at first, then parsed by pandas."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from emvc.files._base import FileView, ReadOptions
from emvc.files._ids import is_id_name
from emvc.files._sniff import Layout, is_comment, is_number, open_text, sniff, split
from emvc.files._tables import stem, table_view
from emvc.intake import MISSING

_UNCLOSED = re.compile(r"EOF inside string starting at row (\d+)")


def read_text(path: Path, options: ReadOptions) -> FileView:
    """Read one view from a text file."""
    try:
        return _read(path, options)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path.name} is not a readable .gz file ({error}).") from None


def _read(path: Path, options: ReadOptions) -> FileView:
    layout = sniff(path, options)
    frame = _parse(path, layout)
    if len(layout.names or ()) != frame.shape[1] and layout.names is not None:
        raise ValueError(f"{path.name}: the header has {len(layout.names)} cells, the samples {frame.shape[1]}.")
    names = layout.names or tuple(map(str, range(frame.shape[1])))
    frame.columns = list(names)
    if len(frame) and frame.iloc[:, -1].isna().any():  # also where lines are short
        _check_widths(path, layout)
    found = replace(
        options,
        header=layout.names is not None,
        separator=layout.separator,
        decimal=layout.decimal,
        encoding=layout.encoding,
    )
    return table_view(frame, stem(path), path.name, found, how=str(layout), locate=partial(_locate, path, layout))


def _parse(path: Path, layout: Layout) -> Any:
    ids = [i for i, name in enumerate(layout.names or ()) if is_id_name(name)]
    if not ids and any(not is_number(row[0]) for row in layout.rows if row):
        ids = [0]
    try:
        with warnings.catch_warnings(), open_text(path, layout.encoding) as stream:
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                _below(stream, layout),
                sep=layout.separator,
                header=None,
                names=range(layout.width),
                index_col=False,
                dtype=dict.fromkeys(ids, str),
                na_values=sorted({*MISSING, *(word.upper() for word in MISSING), *(word.title() for word in MISSING)}),
                decimal=layout.decimal,
                thousands=layout.thousands,
                skipinitialspace=True,
                float_precision="round_trip",
                low_memory=False,
            )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, pd.errors.ParserWarning) as error:
        raise ValueError(_explain(str(error), path, layout)) from None
    except UnicodeError:
        raise ValueError(f"{path.name} is not {layout.encoding} text throughout; name its encoding.") from None


def _below(stream: Any, layout: Layout) -> Any:
    """Return the lines below the header, without comments."""
    for _ in range(layout.skip):
        stream.readline()
    while layout.names is not None and not _skip_record(stream, layout.separator):
        pass
    if not layout.comments:
        return stream
    return io.StringIO("".join(line for line in stream if not is_comment(line, layout.separator, layout.width)))


def _skip_record(stream: Any, separator: str) -> bool:
    """Read one row, which is several lines if a line ends inside quotes; tell whether it holds anything."""
    line = stream.readline()
    while separator != r"\s+" and line.count('"') % 2 and (more := stream.readline()):
        line += more
    return bool(line.strip())


def _numbered(path: Path, layout: Layout) -> Any:
    """Yield the number of the line and the cells of every row below the header."""
    with open_text(path, layout.encoding) as stream:
        for _ in range(layout.skip):
            stream.readline()
        before = layout.skip
        lines = (line for line in stream)
        if layout.separator == r"\s+":
            rows = ((number, row) for number, line in enumerate(lines, before + 1) for row in split([line], r"\s+"))
        else:
            reader = csv.reader(lines, delimiter=layout.separator, skipinitialspace=True)
            rows = ((reader.line_num + before, row) for row in reader)
        header = layout.names is not None
        for number, row in rows:
            if not row or (len(row) == 1 and not row[0].strip()):
                continue
            if header:
                header = False
            elif not (layout.comments and row[0].startswith("#") and len(row) != layout.width):
                yield number, row


def _check_widths(path: Path, layout: Layout) -> None:
    for number, row in _numbered(path, layout):
        if len(row) != layout.width:
            raise ValueError(_ragged(path.name, number, len(row), layout.width))


def _ragged(source: str, line: int, found: int, wanted: int) -> str:
    return f"{source}: line {line} has {found} cells instead of {wanted}."


def _locate(path: Path, layout: Layout, row: int) -> str:
    """Return the line of a row."""
    for i, (number, _) in enumerate(_numbered(path, layout)):
        if i == row:
            return f"line {number}"
    return f"row {row}"


def _explain(message: str, path: Path, layout: Layout) -> str:
    """Say what is wrong with a file that pandas does not read."""
    if found := _UNCLOSED.search(message):
        return (
            f"{path.name} is not readable as a table: quotes in {_locate(path, layout, int(found[1]))} are not closed."
        )
    if "EmptyData" in message or "No columns" in message:
        return f"{path.name} has a header but no samples."
    for number, row in _numbered(path, layout):
        if len(row) != layout.width:
            return _ragged(path.name, number, len(row), layout.width)
    return f"{path.name} is not readable as a table ({' '.join(message.split())})."
