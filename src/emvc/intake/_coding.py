"""How the columns of a table become numbers, so that new rows become the same numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd
from pandas.api import types

from emvc._array import FloatArray
from emvc.intake._text import PLAIN, STYLES, Style, days, read_dates, read_numbers, split_cells, texts_of

Kind = Literal["number", "date", "binary", "ordered", "category", "dropped"]
_MOST_NAMED = 3


@dataclass(frozen=True)
class ColumnRecord:
    """What was done with a column that is not plainly numeric.

    Attributes
    ----------
    view : str
        Name of the view.
    name : str
        Name of the column.
    kind : str
        What it was taken for: ``"number"``, ``"boolean"``, ``"category"``, ``"date"``, ``"id"``, ``"counter"``,
        ``"constant"``, ``"empty"`` or ``"text"``.
    action : str
        What was done: ``"numbers"``, ``"0/1"``, ``"one-hot"``, ``"ranks"``, ``"days"``, ``"kept"`` or ``"dropped"``.
    message : str
        The same in words, with what a person should know.
    """

    view: str
    name: str
    kind: str
    action: str
    message: str

    def __str__(self) -> str:
        return f"{self.view}: column {self.name!r} {self.message}"


@dataclass(frozen=True)
class Rule:
    """How one column becomes numbers.

    Attributes
    ----------
    kind : str
        ``"category"`` makes a column of 0 and 1 of each value, ``"binary"`` and ``"ordered"`` one column of their
        places, ``"dropped"`` none.
    values : tuple of str
        Values that are known, folded to lower case.
    labels : tuple of str
        The same as they were written.
    style : tuple of three str
        How numbers are written: sign of decimals, sign between thousands, unit.
    format : str
        How dates are written.
    """

    kind: Kind
    values: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    style: tuple[str, str, str] = PLAIN
    format: str = ""

    def __post_init__(self) -> None:
        texts = (*self.values, *self.labels, *self.style, self.format)
        fits = (
            self.kind in get_args(Kind)
            and len(self.style) == 3
            and Style(*self.style[:2]) in STYLES
            and len(self.values) == len(self.labels)
        )
        if not fits or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"this is no rule for a column: {self!r}.")

    def names(self, column: str) -> tuple[str, ...]:
        """Return the names of the columns that a column becomes."""
        if self.kind == "dropped":
            return ()
        return tuple(f"{column}={label}" for label in self.labels) if self.kind == "category" else (column,)

    def apply(self, cells: pd.Series) -> tuple[FloatArray, list[str]]:
        """Return the numbers of shape (n_rows, n_columns), NaN where there is no value, and texts that do not fit."""
        cells = tidy(cells)
        if types.is_datetime64_any_dtype(cells.dtype) or types.is_timedelta64_dtype(cells.dtype):
            return days(cells)[:, None], []
        truth = self.kind == "binary" and self.values == ("false", "true")
        if (self.kind in ("number", "date") or truth) and types.is_numeric_dtype(cells.dtype):
            return cells.to_numpy(dtype=np.float64, na_value=np.nan)[:, None], []
        if self.kind == "number":
            plain, texts = split_cells(cells)
            values = np.where(plain.notna(), plain, read_numbers(texts, Style(*self.style)))
        else:
            texts = texts_of(cells, self.values)
            values = self._read(texts)
        here = texts.notna().to_numpy()
        odd = texts[here & np.isnan(values)]
        if self.kind != "category":
            return values[:, None], list(dict.fromkeys(odd))
        # A value that nobody had before is none of those that are known.
        found = (values[:, None] == np.arange(len(self.values))).astype(np.float64)
        found[~here] = np.nan
        return found, list(dict.fromkeys(odd))

    def _read(self, texts: pd.Series) -> FloatArray:
        if self.kind == "date":
            return np.asarray(read_dates(texts, self.format), dtype=np.float64)
        places = {value: float(i) for i, value in enumerate(self.values)}
        return np.asarray(texts.str.casefold().map(places).to_numpy(dtype=np.float64, na_value=np.nan))


@dataclass(frozen=True, eq=False)
class Encoded:
    """A table as numbers.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
        NaN where a cell has no value.
    columns : tuple of str
        Names of the columns of ``values``.
    records : tuple of ColumnRecord
        What was done with columns that are not plainly numeric.
    coding : Coding
        Encodes new rows the same way.
    dropped : tuple of str
        Columns of the table that are not in ``values``.
    """

    values: FloatArray
    columns: tuple[str, ...]
    records: tuple[ColumnRecord, ...]
    coding: Coding
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class Coding:
    """Names of the columns of a table, and rules for those that are not plainly numeric.

    Attributes
    ----------
    view : str
        Name of the view.
    names : tuple of str
        Columns of the table.
    rules : dict
        By column, how those become numbers that are not plainly numeric.
    named : bool
        Whether the columns have names instead of a mere count.

    Examples
    --------
    >>> import pandas as pd
    >>> from emvc.intake import encode_frame
    >>> coding = encode_frame(pd.DataFrame({"dose": ["1,5", "2"] * 4}), view="clinic").coding
    >>> coding.apply(pd.DataFrame({"dose": ["7,25"]})).values
    array([[7.25]])
    """

    view: str
    names: tuple[str, ...]
    rules: Mapping[str, Rule]
    named: bool = True

    def __post_init__(self) -> None:
        names = set(self.names)
        if len(names) < len(self.names) or not all(isinstance(rule, Rule) for rule in self.rules.values()):
            raise ValueError(f"the coding of view {self.view!r} has a column twice, or something else than rules.")
        if not names >= self.rules.keys():
            raise ValueError(f"the coding of view {self.view!r} has a rule for a column that the table does not have.")

    @classmethod
    def plain(cls, frame: pd.DataFrame, view: str) -> Self:
        """Return the coding of a table whose columns are all plainly numeric."""
        return cls(view, column_names(frame), {}, is_named(frame))

    @property
    def dropped(self) -> tuple[str, ...]:
        """Columns that are not used."""
        return tuple(name for name, rule in self.rules.items() if rule.kind == "dropped")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns after encoding."""
        return tuple(
            one for name in self.names for one in (self.rules[name].names(name) if name in self.rules else (name,))
        )

    def places(self, given: Sequence[str]) -> list[int]:
        """Return where the columns that are used are among given ones.

        Raises
        ------
        ValueError
            If a column is missing or unknown.
        """
        found = dict(zip(given, range(len(given)), strict=True))
        self._check_names(found)
        return [found[name] for name in self.names if name in found]

    def to_dict(self) -> dict[str, Any]:
        """Return the coding as what JSON knows."""
        rules = {name: dataclasses.asdict(rule) for name, rule in self.rules.items()}
        return {"view": self.view, "names": list(self.names), "rules": rules, "named": self.named}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the coding that `to_dict` has described."""
        rules = {}
        for name, fields in content["rules"].items():
            known: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in fields.items()}
            rules[str(name)] = Rule(**known)
        return cls(str(content["view"]), tuple(map(str, content["names"])), rules, bool(content["named"]))

    def apply(self, frame: pd.DataFrame) -> Encoded:
        """Encode new rows; columns may be in any order, and those that are not used may be absent.

        Raises
        ------
        ValueError
            If a column is missing or unknown.
        """
        given = column_names(frame)
        if self._counts_only(frame, given):
            given = self.names
        places = dict(zip(given, range(frame.shape[1]), strict=True))
        self._check_names(places)
        values = np.empty((len(frame), len(self.columns)))
        records: list[ColumnRecord] = []
        start = 0
        for names, rule in self._parts():
            if rule is None:
                found = self._plain(frame, [places[name] for name in names], names, records)
            elif rule.kind == "dropped":
                continue
            else:
                found, odd = rule.apply(frame.iloc[:, places[names[0]]])
                records.extend(self._about(names[0], rule, odd))
            values[:, start : start + found.shape[1]] = found
            start += found.shape[1]
        return Encoded(values, self.columns, tuple(records), self, self.dropped)

    def _counts_only(self, frame: pd.DataFrame, names: Sequence[str]) -> bool:
        """Tell whether columns can only be told by their places, since here or in the fit they have no names."""
        unnamed = not (self.named and is_named(frame))
        return unnamed and len(names) == len(self.names) and set(names) != set(self.names)

    def _parts(self) -> Iterator[tuple[list[str], Rule | None]]:
        """Yield runs of plainly numeric columns, and the others one by one."""
        run: list[str] = []
        for name in self.names:
            if name not in self.rules:
                run.append(name)
                continue
            if run:
                yield run, None
                run = []
            yield [name], self.rules[name]
        if run:
            yield run, None

    def _plain(
        self, frame: pd.DataFrame, places: Sequence[int], names: Sequence[str], records: list[ColumnRecord]
    ) -> FloatArray:
        """Return plainly numeric columns; where new rows hold text, what of it is numbers."""
        whole = len(places) == frame.shape[1] and list(places) == list(range(frame.shape[1]))
        part = frame if whole else frame.iloc[:, list(places)]
        if all(types.is_numeric_dtype(kind) for kind in part.dtypes.unique()):
            return np.asarray(part.to_numpy(dtype=np.float64, na_value=np.nan))
        found = np.empty(part.shape)
        for i, name in enumerate(names):
            found[:, [i]], odd = (rule := Rule("number")).apply(part.iloc[:, i])
            records.extend(self._about(name, rule, odd))
        return found

    def _check_names(self, given: Mapping[str, int]) -> None:
        unused = set(self.dropped)
        missing = [name for name in self.names if name not in given and name not in unused]
        unknown = sorted(set(given) - set(self.names))
        for what, columns in (("missing", missing), ("unknown", unknown)):
            if columns:
                more = f" and {len(columns) - 1} more columns are" if len(columns) > 1 else " is"
                first = ", ".join(map(repr, self.names[:_MOST_NAMED]))
                rest = ", ..." if len(self.names) > _MOST_NAMED else "."
                known = f"the fit had {len(self.names)}: {first}{rest}"
                raise ValueError(f"view {self.view!r}: column {columns[0]!r}{more} {what}; {known}")

    def _about(self, name: str, rule: Rule, odd: Sequence[str]) -> Iterator[ColumnRecord]:
        if not odd:
            return
        who = shorten(odd)
        if rule.kind == "category":
            message = f"has values that were not there in the fit ({who}); they count as none of the known ones."
        else:
            message = f"has values that do not fit it ({who}); they count as missing."
        kind = "category" if rule.kind in ("binary", "ordered") else rule.kind
        yield ColumnRecord(self.view, name, kind, "kept", message)


def tidy(cells: pd.Series) -> pd.Series:
    """Return a column of Python or Arrow objects as numbers, truth values or times if that is what they all are."""
    if isinstance(cells.dtype, pd.PeriodDtype):
        return cells.dt.to_timestamp()
    if isinstance(cells.dtype, pd.ArrowDtype) and not types.is_numeric_dtype(cells.dtype):
        cells = cells.astype(object)
    return cells.infer_objects() if cells.dtype == object else cells


def shorten(values: Sequence[str]) -> str:
    """Return the first few of several values, in quotes."""
    return ", ".join(map(repr, values[:_MOST_NAMED])) + (", ..." if len(values) > _MOST_NAMED else "")


def is_named(frame: pd.DataFrame) -> bool:
    """Tell whether the columns of a table have names instead of a mere count."""
    columns = frame.columns
    return not (isinstance(columns, pd.RangeIndex) and columns.start == 0 and columns.step == 1)


def column_names(frame: Any) -> tuple[str, ...]:
    """Return the names of the columns of a table as text; a name that appears again gets a number.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame([[1, 2, 3]], columns=["a", 7, "a"]))
    ('a', '7', 'a.1')
    """
    names = ["/".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in frame.columns]
    if len(set(names)) == len(names):
        return tuple(names)
    taken, seen, distinct = set(names), dict[str, int](), []
    for name in names:
        number = seen.get(name, 0)
        seen[name] = number + 1
        while number and f"{name}.{number}" in taken:
            number += 1
        distinct.append(f"{name}.{number}" if number else name)
        taken.add(distinct[-1])
    return tuple(distinct)
