"""What one column of a table is, by its type and its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from pandas.api import types

from emvc.intake._coding import Kind, Rule, shorten
from emvc.intake._text import PLAIN, Style, matching_dates, matching_styles, read_numbers, split_cells, texts_of

MOST_CATEGORIES = 20
"""Most values of a category; more columns of 0 and 1 would outweigh the others."""

_MOSTLY = 0.9  # share of the cells that must be numbers (or dates) for the rest to count as missing
_TRUTH = frozenset({"yes", "no", "y", "n", "true", "false", "t", "f", "on", "off"})
_ID_WORDS = frozenset({"id", "ids", "uid", "uuid", "guid", "identifier", "barcode", "mrn", "accession"})
_OWNERS = frozenset({"subject", "patient", "participant", "sample", "individual", "person", "donor", "specimen"})
_NUMBERS = frozenset({"no", "nr", "num", "number", "code", "key", "name"})


@dataclass(frozen=True)
class Finding:
    """What a column was taken for."""

    kind: str
    action: str
    message: str
    rule: Rule


@dataclass(frozen=True)
class Column:
    """A column that is not numeric by its type, and the ways to write numbers that fit its text."""

    name: str
    cells: pd.Series
    texts: pd.Series
    plain: pd.Series
    n_numbers: int
    styles: tuple[Style, ...]

    @classmethod
    def of(cls, name: str, cells: pd.Series) -> Self:
        """Return a column with the ways to write numbers that fit it."""
        plain, texts = split_cells(cells)
        plain = plain.dropna()
        n_numbers, styles = matching_styles(texts.dropna().tolist())
        texts = (texts_of(cells) if len(plain) else texts).dropna()
        return cls(name, cells, texts, plain, n_numbers + len(plain), styles)

    @property
    def measured(self) -> bool:
        """Whether its numbers are no mere labels: there are fractions among them, or many different ones."""
        written = np.asarray(read_numbers(self.texts, self.styles[0]), dtype=np.float64)
        found = np.concatenate([self.plain.to_numpy(dtype=np.float64), written])
        found = np.unique(found[np.isfinite(found)])
        return bool((found % 1 != 0).any()) or len(found) > MOST_CATEGORIES

    @property
    def is_number(self) -> bool:
        """Whether so many cells are numbers that the others count as missing: nearly all, or half of measurements."""
        share = self.n_numbers / max(len(self.texts), 1)
        return share >= _MOSTLY or (share >= 0.5 and not self.texts.is_unique and self.measured)

    @property
    def decimal(self) -> str | None:
        """The sign of decimals, if the column leaves no doubt."""
        found = {style.decimal for style in self.styles}
        return found.pop() if self.is_number and len(found) == 1 and self.texts.str.contains("[.,]").any() else None


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


def common_decimal(found: Iterable[str | None]) -> str | None:
    """Return the sign of decimals that most columns have which leave no doubt."""
    counts = Counter(sign for sign in found if sign is not None)
    return counts.most_common(1)[0][0] if counts else None


def by_type(name: str, cells: pd.Series) -> Finding | None:
    """Return what a column is if its type tells."""
    if not cells.notna().any():
        return drop("empty", "it has no value")
    if types.is_bool_dtype(cells.dtype):
        rule = Rule("binary", ("false", "true"), ("False", "True"))
        return Finding("boolean", "0/1", "is true or false: 1 or 0.", rule)
    if types.is_datetime64_any_dtype(cells.dtype):
        return Finding("date", "days", "holds dates; they count as days.", Rule("date", format="ISO8601"))
    if types.is_timedelta64_dtype(cells.dtype):
        return Finding("date", "days", "holds durations; they count as days.", Rule("date", format="ISO8601"))
    if types.is_complex_dtype(cells.dtype):
        raise ValueError(f"column {name!r} holds complex numbers; take their real and imaginary parts apart first.")
    if isinstance(cells.dtype, pd.CategoricalDtype) and cells.dtype.ordered:
        labels = tuple(texts_of(pd.Series(cells.dtype.categories)).dropna())
        rule = Rule("ordered", tuple(label.casefold() for label in labels), labels)
        return Finding("category", "ranks", f"has ordered values, which count as 0 to {len(labels) - 1}.", rule)
    return None


def by_text(column: Column, decimal: str | None) -> Finding:
    """Return what a column of text is."""
    texts, n_present = column.texts, len(column.texts)
    if not n_present:
        return drop("empty", "it has no value")
    labels = _labels(texts)
    named = isinstance(column.cells.dtype, pd.CategoricalDtype) and len(labels) <= MOST_CATEGORIES
    if column.is_number and (not named or column.measured) and not _are_codes(texts):
        return _number(column, decimal)
    if not named and (found := _date(texts)) is not None:
        return found
    if column.n_numbers and 2 < len(labels) < n_present and column.measured:
        return drop(
            "text", f"less than half of its cells are numbers, the others text ({shorten(list(labels.values()))})"
        )
    return _by_values(column.name, texts, labels, named=named)


def _are_codes(texts: pd.Series) -> bool:
    """Tell whether all texts are digits of one length with zeros in front, and different, as of ids."""
    digits = texts.str.fullmatch("[0-9]{2,}").all() and texts.str.len().nunique() == 1
    return bool(digits and texts.str.startswith("0").any() and texts.is_unique)


def _by_values(name: str, texts: pd.Series, labels: dict[str, str], *, named: bool) -> Finding:
    """Return what a column is whose text is neither numbers nor dates; ``named`` if its type calls it a category."""
    if len(labels) == 1:
        found = drop("constant", f"it is {texts.iloc[0]!r} for everybody")
    elif is_id_name(name):
        found = drop("id", "it holds ids, by its name")
    elif len(labels) == 2:
        (zero, one), kind = labels.values(), "boolean" if labels.keys() <= _TRUTH else "category"
        found = Finding(kind, "0/1", f"has two values: {zero!r} is 0, {one!r} is 1.", _known("binary", labels))
    elif (texts.str.count(" ") >= 2).mean() > 0.5 and 2 * len(labels) > len(texts):
        found = drop("text", f"it is free text ({shorten(texts.unique().tolist())})")
    elif len(labels) == len(texts):
        found = drop("id", "every value is different, as of ids")
    elif len(labels) <= MOST_CATEGORIES and (named or 2 * len(labels) <= len(texts)):
        message = f"is a category of {len(labels)} values: one column of 0 and 1 for each."
        found = Finding("category", "one-hot", message, _known("category", labels))
    elif 2 * len(labels) <= len(texts):
        found = drop("category", f"it is a category of {len(labels)} values, more than {MOST_CATEGORIES}; join some")
    else:
        found = drop("text", f"nearly every value is different ({shorten(texts.unique().tolist())})")
    return found


def _labels(texts: pd.Series) -> dict[str, str]:
    """Return the values of a column in lower case, sorted, and as they are written first."""
    found: dict[str, str] = {}
    for text in texts.unique():
        found.setdefault(text.casefold(), text)
    return dict(sorted(found.items()))


def _known(kind: Kind, labels: dict[str, str]) -> Rule:
    return Rule(kind, tuple(labels), tuple(labels.values()))


def drop(kind: str, reason: str) -> Finding:
    """Return that a column is dropped, and why."""
    return Finding(kind, "dropped", f"was dropped: {reason}.", Rule("dropped"))


def _number(column: Column, decimal: str | None) -> Finding:
    """Return how to read a column of numbers."""
    signs = set("".join(column.texts))
    styles = column.styles if signs & {".", ","} else column.styles[:1]
    style = next((one for one in styles if one.decimal == decimal), styles[0])
    told = ["a decimal comma"] * (style.decimal == "," in signs)
    told += [f"{style.thousands!r} between thousands"] * bool(style.thousands)
    told += [f"the unit {style.unit!r}"] * bool(style.unit)
    message = "is text and was read as numbers" + (" with " + " and ".join(told) if told else "") + "."
    rule = Rule("number", style=style)
    if len({one.decimal for one in styles}) > 1 and style[:2] != PLAIN[:2]:
        example = next(text for text in column.texts if set(text) & {".", ","})
        message += f" {example!r} could be read in two ways" + ("." if decimal is None else "; others tell.")
    if column.n_numbers < len(column.texts):
        message += _odd(column.cells, rule)
    return Finding("number", "numbers", message, rule)


def _odd(cells: pd.Series, rule: Rule) -> str:
    odd = rule.apply(cells)[1]
    return f" Other cells count as missing ({shorten(odd)})." if odd else ""


def _date(texts: pd.Series) -> Finding | None:
    """Return how to read a column of dates, None if it is none."""
    n_dates, written = matching_dates(texts.tolist())
    if not n_dates or n_dates < _MOSTLY * len(texts):
        return None
    message = "holds dates; they count as days."
    if len({form.startswith("%m") for form in written}) > 1:
        message += f" Day or month first cannot be told ({texts.iloc[0]!r}): the day was taken."
    rule = Rule("date", format=written[0])
    return Finding("date", "days", message + _odd(texts, rule), rule)
