"""A table as people have it, as numbers: what each of its columns is, and what becomes of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api import types

from emvc._array import BoolArray, FloatArray
from emvc.intake._coding import Coding, ColumnRecord, Encoded, Kind, Rule, column_names, shorten, tidy
from emvc.intake._text import PLAIN, Style, matching_dates, matching_styles, split_cells, texts_of

MOST_CATEGORIES = 20
"""Most values of a category; more columns of 0 and 1 would outweigh the others."""

_MOSTLY = 0.9  # share of the cells that must be numbers (or dates) for the rest to count as missing
_TRUTH = frozenset({"yes", "no", "y", "n", "true", "false", "t", "f", "on", "off"})
_ID_WORDS = frozenset({"id", "ids", "uid", "uuid", "guid", "identifier", "barcode", "mrn", "accession"})
_OWNERS = frozenset({"subject", "patient", "participant", "sample", "individual", "person", "donor", "specimen"})
_COUNTERS = frozenset({"", "unnamed: 0", "index", "row", "rows", "rownames", "row_number", "nr", "no", "#"})
_HEAD = 8  # rows that show for nearly every column that it is neither constant nor a counter
_NUMBERS = frozenset({"no", "nr", "num", "number", "code", "key", "name"})


@dataclass(frozen=True)
class _Finding:
    """What a column was taken for."""

    kind: str
    action: str
    message: str
    rule: Rule


@dataclass(frozen=True)
class _Column:
    """A column that is not numeric by its type, and the ways to write numbers that fit its text."""

    name: str
    cells: pd.Series
    texts: pd.Series
    n_numbers: int
    styles: tuple[Style, ...]

    @classmethod
    def of(cls, name: str, cells: pd.Series) -> Self:
        """Return a column with the ways to write numbers that fit it."""
        plain, texts = split_cells(cells)
        n_numbers, styles = matching_styles(texts.dropna().tolist())
        return cls(name, cells, texts_of(cells).dropna(), n_numbers + int(plain.notna().sum()), styles)

    @property
    def decimal(self) -> str | None:
        """The sign of decimals, if the column leaves no doubt."""
        found = {style.decimal for style in self.styles}
        mostly = self.n_numbers >= _MOSTLY * max(len(self.texts), 1)
        return found.pop() if mostly and len(found) == 1 and self.texts.str.contains("[.,]").any() else None


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
    coding = Coding(view, names, {name: found.rule for name, found in findings.items()})
    encoded = coding.apply(frame)
    later = _look_at_numbers(encoded.values, encoded.columns, coding)
    dropped = {name: found.rule for name, found in later.items() if found.action == "dropped"}
    if set(names) <= dropped.keys() | set(coding.dropped):  # a counter may be all there is to go by
        later = {name: found for name, found in later.items() if found.kind != "counter"}
        dropped = {name: found.rule for name, found in later.items() if found.action == "dropped"}
    values = encoded.values
    if dropped:
        values = values[:, [name not in dropped for name in encoded.columns]]
        coding = Coding(view, names, {**coding.rules, **dropped})
    findings |= later
    records = tuple(ColumnRecord(view, n, *_told(findings[n])) for n in names if n in findings)
    if names and not coding.columns:
        owner = f"{source}: view {view!r}" if source else f"view {view!r}"
        reasons = "; ".join(f"{record.name!r} {record.message.rstrip('.')}" for record in records[:3])
        raise ValueError(f"{owner} has no column that can be used: {reasons}.")
    return Encoded(values, coding.columns, records, coding, coding.dropped)


def _told(finding: _Finding) -> tuple[str, str, str]:
    return finding.kind, finding.action, finding.message


def _look_at_text(frame: pd.DataFrame, names: Sequence[str], decimal: str | None) -> dict[str, _Finding]:
    """Return what the columns are that are not numeric by their type."""
    numeric = {kind: _is_number_type(kind) for kind in frame.dtypes.unique()}
    found: dict[str, _Finding | None] = {}
    texts: list[_Column] = []
    for place in np.flatnonzero([not numeric[kind] for kind in frame.dtypes]).tolist():
        cells, name = tidy(frame.iloc[:, place]), names[place]
        found[name] = _by_type(name, cells)
        if found[name] is None and not types.is_numeric_dtype(cells.dtype):
            texts.append(_Column.of(name, cells))
    decimal = decimal or _common_decimal(column.decimal for column in texts)
    found |= {column.name: _by_text(column, decimal) for column in texts}
    return {name: finding for name, finding in found.items() if finding is not None}


def _is_number_type(kind: Any) -> bool:
    return bool(types.is_numeric_dtype(kind) and not types.is_bool_dtype(kind) and not types.is_complex_dtype(kind))


def _common_decimal(found: Iterable[str | None]) -> str | None:
    counts = Counter(sign for sign in found if sign is not None)
    return counts.most_common(1)[0][0] if counts else None


def _by_type(name: str, cells: pd.Series) -> _Finding | None:
    """Return what a column is if its type tells."""
    if not cells.notna().any():
        return _drop("empty", "it has no value")
    if types.is_bool_dtype(cells.dtype):
        rule = Rule("binary", ("false", "true"), ("False", "True"))
        return _Finding("boolean", "0/1", "is true or false: 1 or 0.", rule)
    if types.is_datetime64_any_dtype(cells.dtype):
        return _Finding("date", "days", "holds dates; they count as days.", Rule("date", format="ISO8601"))
    if types.is_timedelta64_dtype(cells.dtype):
        return _Finding("date", "days", "holds durations; they count as days.", Rule("date", format="ISO8601"))
    if types.is_complex_dtype(cells.dtype):
        raise ValueError(f"column {name!r} holds complex numbers; take their real and imaginary parts apart first.")
    if isinstance(cells.dtype, pd.CategoricalDtype) and cells.dtype.ordered:
        labels = tuple(map(str, cells.dtype.categories))
        rule = Rule("ordered", tuple(label.casefold() for label in labels), labels)
        return _Finding("category", "ranks", f"has ordered values, which count as 0 to {len(labels) - 1}.", rule)
    return None


def _by_text(column: _Column, decimal: str | None) -> _Finding:
    """Return what a column of text is."""
    texts, n_present = column.texts, len(column.texts)
    if not n_present:
        return _drop("empty", "it has no value")
    labels = _labels(texts)
    named = isinstance(column.cells.dtype, pd.CategoricalDtype) and len(labels) <= MOST_CATEGORIES
    if not named and column.n_numbers >= _MOSTLY * n_present:
        return _number(column, decimal)
    if not named and (found := _date(texts)) is not None:
        return found
    return _by_values(column.name, texts, labels, named=named)


def _by_values(name: str, texts: pd.Series, labels: dict[str, str], *, named: bool) -> _Finding:
    """Return what a column is whose text is neither numbers nor dates; ``named`` if its type calls it a category."""
    if len(labels) == 1:
        found = _drop("constant", f"it is {texts.iloc[0]!r} for everybody")
    elif is_id_name(name):
        found = _drop("id", "it holds ids, by its name")
    elif len(labels) == 2:
        (zero, one), kind = labels.values(), "boolean" if labels.keys() <= _TRUTH else "category"
        found = _Finding(kind, "0/1", f"has two values: {zero!r} is 0, {one!r} is 1.", _known("binary", labels))
    elif (texts.str.count(" ") >= 2).mean() > 0.5 and 2 * len(labels) > len(texts):
        found = _drop("text", f"it is free text ({shorten(texts.unique().tolist())})")
    elif len(labels) == len(texts):
        found = _drop("id", "every value is different, as of ids")
    elif len(labels) <= MOST_CATEGORIES and (named or 2 * len(labels) <= len(texts)):
        message = f"is a category of {len(labels)} values: one column of 0 and 1 for each."
        found = _Finding("category", "one-hot", message, _known("category", labels))
    elif 2 * len(labels) <= len(texts):
        found = _drop("category", f"it is a category of {len(labels)} values, more than {MOST_CATEGORIES}; join some")
    else:
        found = _drop("text", f"nearly every value is different ({shorten(texts.unique().tolist())})")
    return found


def _labels(texts: pd.Series) -> dict[str, str]:
    """Return the values of a column in lower case, sorted, and as they are written first."""
    found: dict[str, str] = {}
    for text in texts.unique():
        found.setdefault(text.casefold(), text)
    return dict(sorted(found.items()))


def _known(kind: Kind, labels: dict[str, str]) -> Rule:
    return Rule(kind, tuple(labels), tuple(labels.values()))


def _drop(kind: str, reason: str) -> _Finding:
    return _Finding(kind, "dropped", f"was dropped: {reason}.", Rule("dropped"))


def _number(column: _Column, decimal: str | None) -> _Finding:
    """Return how to read a column of numbers."""
    signs = set("".join(column.texts))
    styles = column.styles if signs & {".", ","} else column.styles[:1]
    style = next((one for one in styles if one.decimal == decimal), styles[0])
    told = ["a decimal comma"] * (style.decimal == "," in signs)
    told += [f"{style.thousands!r} between thousands"] * bool(style.thousands)
    told += ["percent signs"] * ("%" in signs)
    message = "is text and was read as numbers" + (" with " + " and ".join(told) if told else "") + "."
    rule = Rule("number", style=style)
    if len({one.decimal for one in styles}) > 1 and style != PLAIN:
        message += f" {column.texts.iloc[0]!r} could be read in two ways" + (
            "." if decimal is None else "; others tell."
        )
    return _Finding("number", "numbers", message + _odd(column.cells, rule), rule)


def _odd(cells: pd.Series, rule: Rule) -> str:
    odd = rule.apply(cells)[1]
    return f" Other cells count as missing ({shorten(odd)})." if odd else ""


def _date(texts: pd.Series) -> _Finding | None:
    """Return how to read a column of dates, None if it is none."""
    n_dates, written = matching_dates(texts.tolist())
    if not n_dates or n_dates < _MOSTLY * len(texts):
        return None
    message = "holds dates; they count as days."
    if len({form.startswith("%m") for form in written}) > 1:
        message += f" Day or month first cannot be told ({texts.iloc[0]!r}): the day was taken."
    rule = Rule("date", format=written[0])
    return _Finding("date", "days", message + _odd(texts, rule), rule)


def is_id_name(name: str) -> bool:
    """Tell whether a column of this name holds ids.

    Examples
    --------
    >>> [is_id_name(name) for name in ("patient", "Sample ID", "subjectNo", "ID1", "patient_age")]
    [True, True, True, False, False]
    """
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]
    return bool(words) and (
        (bool(_ID_WORDS & set(words)) and not any(word.isdigit() for word in words))
        or (set(words) <= _OWNERS | _NUMBERS and bool(_OWNERS & set(words)))
    )


def _look_at_numbers(values: FloatArray, columns: Sequence[str], coding: Coding) -> dict[str, _Finding]:
    """Return which numeric columns are no measurements: without value, constant, counting rows, or ids."""
    found: dict[str, _Finding] = {}
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


def _about_numbers(name: str, column: FloatArray) -> _Finding | None:
    present = column[~np.isnan(column)]
    if not len(present):
        return _drop("empty", "it has no value") if len(column) else None
    if len(column) == len(present) > 2:
        ordered = np.sort(column) if name.strip().lower() in _COUNTERS else column
        if ordered[0] in (0.0, 1.0) and (ordered == np.arange(len(column)) + ordered[0]).all():
            return _drop("counter", "it counts the rows")
    distinct = np.unique(present)
    if len(distinct) == 1:
        message = f"has the same value ({distinct[0]:g}) for everybody, which tells nothing."
        return _Finding("constant", "kept", message, Rule("number"))
    if is_id_name(name) and len(distinct) > 2 and (distinct == np.floor(distinct)).all():
        return _drop("id", "it holds ids, by its name")
    return None
