"""A table as people have it, as numbers: what each of its columns is, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from emvc._array import BoolArray, FloatArray
from emvc.intake._coding import Coding, ColumnRecord, Encoded, Rule, column_names, is_named, tidy
from emvc.intake._recognise import Column, Finding, by_text, by_type, common_decimal, drop, is_id_name

_COUNTERS = frozenset({"", "unnamed: 0", "index", "row", "rows", "rownames", "row_number", "nr", "no", "#"})
_HEAD = 8  # rows that show for nearly every column that it is neither constant nor a counter


def encode_frame(frame: pd.DataFrame, *, view: str, source: str = "", decimal: str | None = None) -> Encoded:
    r"""Return a table as numbers, and what was done with columns that are not plainly numeric.

    Numbers with decimal commas, thousands separators or percent signs are read as such, dates become days, two values
    0 and 1, and a category one column per value if there are at most `MOST_CATEGORIES`. Ids, row counters, free text
    and columns without a value are dropped.

    Parameters
    ----------
    frame : DataFrame of shape (n_rows, n_columns)
        Columns of any type, text included.
    view : str
        Name of the view.
    source : str
        Where the table comes from, for messages.
    decimal : {".", ","}, optional
        Sign of decimals in text; found out by default.

    Raises
    ------
    ValueError
        If no column can be used; the message says why.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"dose": ["1,5", "2", "NA", "4"], "sex": ["m", "f", "f", "m"], "code": list("abcd")})
    >>> encoded = encode_frame(frame, view="clinic")
    >>> encoded.values
    array([[1.5, 1. ],
           [2. , 0. ],
           [nan, 0. ],
           [4. , 1. ]])
    >>> for record in encoded.records:
    ...     print(record)
    clinic: column 'dose' is text and was read as numbers with a decimal comma.
    clinic: column 'sex' has two values: 'f' is 0, 'm' is 1.
    clinic: column 'code' was dropped: every value is different, as of ids.
    """
    frame = pd.DataFrame(frame)
    names = column_names(frame)
    findings = _look_at_text(frame, names, decimal)
    coding = Coding(view, names, {name: found.rule for name, found in findings.items()}, is_named(frame))
    encoded = coding.apply(frame)
    later = _look_at_numbers(encoded.values, encoded.columns, coding)
    dropped = {name: found.rule for name, found in later.items() if found.action == "dropped"}
    if set(names) <= dropped.keys() | set(coding.dropped):  # a counter may be all there is to go by
        later = {name: found for name, found in later.items() if found.kind != "counter"}
        dropped = {name: found.rule for name, found in later.items() if found.action == "dropped"}
    values = encoded.values
    if dropped:
        values = values[:, [name not in dropped for name in encoded.columns]]
        coding = replace(coding, rules={**coding.rules, **dropped})
    findings |= later
    records = tuple(ColumnRecord(view, n, *_told(findings[n])) for n in names if n in findings)
    if names and not coding.columns:
        owner = f"{source}: view {view!r}" if source else f"view {view!r}"
        reasons = "; ".join(f"{record.name!r} {record.message.rstrip('.')}" for record in records[:3])
        raise ValueError(f"{owner} has no column that can be used: {reasons}.")
    return Encoded(values, coding.columns, records, coding, coding.dropped)


def _told(finding: Finding) -> tuple[str, str, str]:
    return finding.kind, finding.action, finding.message


def _look_at_text(frame: pd.DataFrame, names: Sequence[str], decimal: str | None) -> dict[str, Finding]:
    """Return what the columns are that are not numeric by their type."""
    numeric = {kind: _is_number_type(kind) for kind in frame.dtypes.unique()}
    found: dict[str, Finding | None] = {}
    texts: list[Column] = []
    for place in np.flatnonzero([not numeric[kind] for kind in frame.dtypes]).tolist():
        cells, name = tidy(frame.iloc[:, place]), names[place]
        found[name] = by_type(name, cells)
        if found[name] is None and not types.is_numeric_dtype(cells.dtype):
            texts.append(Column.of(name, cells))
    decimal = decimal or common_decimal(column.decimal for column in texts)
    found |= {column.name: by_text(column, decimal) for column in texts}
    return {name: finding for name, finding in found.items() if finding is not None}


def _is_number_type(kind: Any) -> bool:
    return bool(types.is_numeric_dtype(kind) and not types.is_bool_dtype(kind) and not types.is_complex_dtype(kind))


def _look_at_numbers(values: FloatArray, columns: Sequence[str], coding: Coding) -> dict[str, Finding]:
    """Return which numeric columns are no measurements: without value, constant, counting rows, or ids."""
    found: dict[str, Finding] = {}
    for i in np.flatnonzero(_suspects(values, columns)).tolist():
        name = columns[i]
        if (name in coding.rules and coding.rules[name].kind != "number") or name not in coding.names:
            continue
        finding = _about_numbers(name, values[:, i])
        if finding is not None:
            found[name] = finding
    return found


def _suspects(values: FloatArray, columns: Sequence[str]) -> BoolArray:
    """Return which columns are worth a look, by their names and first rows."""
    head = values[:_HEAD]
    same = ~(np.fmax.reduce(head, axis=0) > np.fmin.reduce(head, axis=0)) if len(head) else np.zeros(len(columns), bool)
    counts = (np.diff(head, axis=0) == 1.0).all(axis=0)
    named = np.array([is_id_name(name) or name.strip().lower() in _COUNTERS for name in columns], dtype=bool)
    return np.asarray(same | counts | named)


def _about_numbers(name: str, column: FloatArray) -> Finding | None:
    present = column[~np.isnan(column)]
    if not len(present):
        return drop("empty", "it has no value") if len(column) else None
    if len(column) == len(present) > 2:
        ordered = np.sort(column) if name.strip().lower() in _COUNTERS else column
        if ordered[0] in (0.0, 1.0) and (ordered == np.arange(len(column)) + ordered[0]).all():
            return drop("counter", "it counts the rows")
    distinct = np.unique(present)
    if len(distinct) == 1:
        message = f"has the same value ({distinct[0]:g}) for everybody, which tells nothing."
        return Finding("constant", "kept", message, Rule("number"))
    if is_id_name(name) and len(distinct) > 2 and (distinct == np.floor(distinct)).all():
        return drop("id", "it holds ids, by its name")
    return None
