"""Cells as text: which stand for no value, and which are numbers or dates; pandas does the parsing."""

from __future__ import annotations

import numbers
import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

MISSING = frozenset(
    {*("", "na", "n/a", "#n/a", "n.a.", "<na>", "nan", "nat", "null", "none", "nil"), *(".", "-", "--", "?")}
)
"""Cells that stand for no value, whatever the case of their letters."""


class Style(NamedTuple):
    """How numbers are written: the sign of decimals, the one between thousands, and the unit behind them."""

    decimal: str
    thousands: str
    unit: str = ""


_SIGNS = ((".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
STYLES = tuple(Style(*signs) for signs in _SIGNS)
"""Ways to write numbers; where several fit as well, the first one counts."""

PLAIN = STYLES[0]
_BLANKS = str.maketrans({"\xa0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "\u2013": "-", "\u2019": "'"})
_DAYS = tuple(f"%d{sign}%m{sign}{year}" for sign in "./-" for year in ("%Y", "%y"))
_MONTHS = tuple(f"%m{sign}%d{sign}{year}" for sign in "/-" for year in ("%Y", "%y"))
_OTHERS = ("%Y/%m/%d", "%Y.%m.%d", *(f"%d{sign}{month}{sign}%Y" for sign in " -" for month in ("%b", "%B")))
_OTHERS += ("%b %d, %Y", "%B %d, %Y", "%d. %B %Y")
_TIMES = ("%H:%M", "%H:%M:%S")
DATES = (
    "ISO8601",
    *(day + time for day in (*_DAYS, *_MONTHS, *_OTHERS) for time in ("", " %H:%M", " %H:%M:%S")),
    *_TIMES,
)
"""Ways to write dates; where several fit as well, the first one counts: the day comes before the month."""

_LOOKS_LIKE_DATE = (
    r"\d{1,4}[-./ ]+\w{1,9}[-./, ]+\d{1,4}.*|[A-Za-z]{3,9} \d{1,2}, ?\d{4}.*|\d{4}-\d\d|\d\d?(:\d\d){1,2}"
)
_UNIT = r".*\d ?([A-Za-z\u00b5\u03bc\u00b0/%\u00b2\u00b3]+)"


def texts_of(cells: pd.Series, known: Collection[str] = ()) -> pd.Series:
    """Return cells as text without blanks around them, None where there is no value.

    Parameters
    ----------
    cells : Series
        Of any type.
    known : collection of str
        Values that are none of the `MISSING` ones here, such as a minus beside a plus.

    Examples
    --------
    >>> import pandas as pd
    >>> texts_of(pd.Series([" a", "N/A", 2.0, None])).tolist()
    ['a', None, '2', None]
    """
    try:
        codes, found = pd.factorize(cells, use_na_sentinel=True)
    except TypeError:  # lists and the like
        codes, found = pd.factorize(cells.map(str, na_action="ignore"), use_na_sentinel=True)
    texts = [_as_text(cell) for cell in found]
    missing = MISSING - set(known) - ({"-"} if "+" in texts else set())
    kept = np.array([None if text.lower() in missing else text for text in texts] + [None], dtype=object)
    return pd.Series(kept[codes], index=cells.index, dtype=object)


def _as_text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell).translate(_BLANKS).strip()


def split_cells(cells: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Return a column as numbers where cells are numbers by their type, and as text where they are not.

    Examples
    --------
    >>> import pandas as pd
    >>> numbers, texts = split_cells(pd.Series([1.5, "2,5", None]))
    >>> numbers.tolist(), texts.tolist()
    ([1.5, nan, nan], [None, '2,5', None])
    """
    if cells.dtype != object or not pd.api.types.infer_dtype(cells).startswith("mixed"):
        return pd.Series(np.nan, index=cells.index), texts_of(cells)
    real = cells.map(lambda cell: isinstance(cell, numbers.Real) and not isinstance(cell, bool)).to_numpy(dtype=bool)
    return pd.to_numeric(cells.where(real)), texts_of(cells.where(~real))


def matching_styles(texts: Sequence[str]) -> tuple[int, tuple[Style, ...]]:
    """Return how many texts are numbers in the ways of writing that fit best, and these ways.

    Examples
    --------
    >>> matching_styles(["1,5", "2.000"])
    (2, (Style(decimal=',', thousands='.', unit=''),))
    """
    cells = pd.Series(list(texts), dtype=object)
    units = cells.str.extract(f"^{_UNIT}$", expand=False).dropna().unique().tolist()
    unit = units[0] if len(units) == 1 else ""
    signs = set("".join(texts))
    styles = [style for style in STYLES if style == PLAIN or set(style.thousands or style.decimal) <= signs]
    counts = [int(_is_number(_without(cells, unit), style).sum()) for style in styles]
    most = max(counts)
    fitting = (style for style, count in zip(styles, counts, strict=True) if count == most)
    return most, tuple(style._replace(unit=unit) for style in fitting)


def _without(texts: pd.Series, unit: str) -> pd.Series:
    return texts.str.removesuffix(unit).str.rstrip() if unit else texts


def _is_number(texts: pd.Series, style: Style) -> pd.Series:
    decimal, thousands = re.escape(style.decimal), re.escape(style.thousands)
    whole = rf"(?:[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+|\d*)" if thousands else r"\d*"
    number = rf"[+-]?(?:(?=[\d{decimal}]){whole}(?:{decimal}\d*)?(?:[eE][+-]?\d+)?|[iI]nf(?:inity)?)"
    return (texts.str.fullmatch(number, flags=re.ASCII) == True) & (texts != style.decimal)  # noqa: E712


def read_numbers(texts: pd.Series, style: Style) -> Any:
    """Return texts as numbers, NaN where they are none.

    Examples
    --------
    >>> import pandas as pd
    >>> read_numbers(pd.Series(["1.234,5 mg", "12", "low"]), Style(",", ".", "mg"))
    array([1234.5,   12. ,    nan])
    """
    cells = _without(texts, style.unit)
    cells = cells.where(_is_number(cells, style))
    if style.thousands:
        cells = cells.str.replace(style.thousands, "", regex=False)
    if style.decimal != ".":
        cells = cells.str.replace(style.decimal, ".", regex=False)
    return pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)


def matching_dates(texts: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Return how many texts are dates in the ways of writing that fit best, and these ways.

    Examples
    --------
    >>> matching_dates(["03/04/2020", "25/12/2021"])
    (2, ('%d/%m/%Y',))
    """
    cells = pd.Series(list(texts), dtype=object)
    if not cells.str.fullmatch(_LOOKS_LIKE_DATE).any():
        return 0, ()
    counts = [int(np.isfinite(read_dates(cells, written)).sum()) for written in DATES]
    most = max(counts)
    return most, tuple(written for written, count in zip(DATES, counts, strict=True) if count == most > 0)


def read_dates(texts: pd.Series, written: str) -> Any:
    """Return texts as days since 1970, NaN where they are no dates.

    Examples
    --------
    >>> import pandas as pd
    >>> read_dates(pd.Series(["02.01.1970", "soon"]), "%d.%m.%Y")
    array([ 1., nan])
    """
    return days(pd.to_datetime(texts, format=written, errors="coerce", utc=True))


def days(times: pd.Series) -> Any:
    """Return times as days since 1970, durations as days; NaN where there are none."""
    if times.dtype.kind == "M":
        times = times.dt.tz_localize(None) if times.dt.tz is not None else times
        times = times - pd.Timestamp(0)
    return (times / pd.Timedelta(days=1)).to_numpy(dtype=np.float64, na_value=np.nan)
