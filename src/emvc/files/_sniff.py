"""What a text file looks like: its encoding, what separates its cells, and where the table starts."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from emvc.files._base import ReadOptions
from emvc.files._ids import is_id_name

SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", r"\s+": "blanks", ":": "colons"}
"""What may separate cells, and what it is called; the first one that cuts all lines alike counts."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LOOKED_AT = 1 << 18  # bytes
_LEAST_LINES = 20
_MOST_ROWS = 100
_NUMBER = re.compile(r"[+-]?(\d[\d.,' ]*|[.,]\d+)([eE][+-]?\d+)?\s*%?|[+-]?inf(inity)?", re.IGNORECASE)
_NOTHING = frozenset({"", "na", "n/a", "nan", "null", "none", ".", "-", "--", "?", "#n/a", "n.a.", "<na>"})
_WORD = re.compile(r'"[^"]*"|\S+')
_COMMA_DECIMAL = re.compile(r"[+-]?(0|\d+),(\d{1,2}|\d{4,})|[+-]?0?,\d+|[+-]?\d+,\d+[eE][+-]?\d+")
_POINT_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?")


@dataclass(frozen=True)
class Layout:
    r"""How a text file is written.

    Attributes
    ----------
    encoding : str
        As Python calls it.
    separator : str
        Between cells; ``"\s+"`` for any number of blanks.
    skip : int
        Lines before the table.
    comments : bool
        Whether lines that begin with ``#`` are inside the table.
    names : tuple of str or None
        Names of the columns, None if the file has none.
    decimal : str
        Sign of decimals.
    thousands : str or None
        Sign between thousands, where that of decimals leaves no doubt.
    rows : list of list of str
        The first rows below the names.
    """

    encoding: str
    separator: str
    skip: int
    comments: bool
    names: tuple[str, ...] | None
    decimal: str
    thousands: str | None
    rows: list[list[str]]

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.names) if self.names is not None else len(self.rows[0])

    def __str__(self) -> str:
        decimal = ", decimal commas" if self.decimal == "," else ""
        decimal += " and thousands points" if self.thousands else ""
        skipped = f", {self.skip} line{'s' * (self.skip > 1)} above the table left out" if self.skip else ""
        comments = ", comments left out" if self.comments else ""
        head = "no header" if self.names is None else "header in the first line"
        if self.skip:
            head = head.replace("the first line", f"line {self.skip + 1}")
        apart = f", separated by {SEPARATORS.get(self.separator, repr(self.separator))}" if self.width > 1 else ""
        return f"{called(self.encoding)} text{apart}, {head}{decimal}{skipped}{comments}"


def called(encoding: str) -> str:
    """Return an encoding as people call it."""
    return {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "cp1252": "Latin-1 (Windows)"}.get(encoding, encoding.upper())


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, decompressed if it ends in .gz."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def open_text(path: Path, encoding: str) -> IO[str]:
    """Open a text file with the ends of its lines as they are."""
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="")


def sniff(path: Path, options: ReadOptions) -> Layout:
    """Find out how a text file is written, as far as ``options`` do not say it.

    Raises
    ------
    ValueError
        If the file is empty or no text.
    """
    with open_bytes(path) as stream:
        start = stream.read(_LOOKED_AT)
        while start.count(b"\n") < _LEAST_LINES and (more := stream.read(len(start))):  # of many columns
            start += more
        whole = not stream.read(1)
    encoding = options.encoding or _encoding(path, start)
    text = _decode(start, encoding, path.name)
    if text[:500].lstrip().lower().startswith(("<!doctype", "<html", "<?xml")):
        raise ValueError(
            f"{path.name} is a page of the web or XML, no table; look at it, and download the table again."
        )
    if "\x00" in text:
        raise ValueError(f"{path.name} holds zero bytes: it is no text, or in an encoding that has to be named.")
    lines = text.splitlines(keepends=True)
    if not whole and len(lines) > 1:
        lines.pop()  # cut off
    if not any(line.strip() for line in lines):
        raise ValueError(f"{path.name} is empty.")
    separator = options.separator or _separator(lines, path.name.lower())
    return _layout(lines, encoding, separator, path.name, options)


def _decode(start: bytes, encoding: str, source: str) -> str:
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(start)
    except LookupError:
        raise ValueError(f"{source}: there is no encoding {encoding!r}; try 'utf-8', 'utf-16' or 'latin-1'.") from None
    except UnicodeError:
        raise ValueError(f"{source} is not {called(encoding)} text; name its encoding.") from None


def _encoding(path: Path, start: bytes) -> str:
    for mark, encoding in _BOMS:
        if start.startswith(mark):
            return encoding
    zeros = [start[i::2].count(0) / max(len(start[i::2]), 1) for i in range(2)]
    if max(zeros) > 0.4 and min(zeros) < 0.1:  # letters of two bytes, one of them zero
        return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    try:
        with open_bytes(path) as stream:
            while block := stream.read(_LOOKED_AT):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "latin-1" if any(byte in start for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)) else "cp1252"
    return "utf-8"


def split(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the cells of lines."""
    if separator == r"\s+":
        return [[cell.strip('"') for cell in _WORD.findall(line)] for line in lines if line.strip()]
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    return [row for row in reader if any(cell.strip() for cell in row)]


def _separator(lines: Sequence[str], name: str) -> str:
    """Return what cuts all lines into the same number of cells, or else most of them."""
    sample = [line for line in lines if line.strip() and not line.startswith("#")][:_MOST_ROWS]
    if re.search(r"\.(tsv|tab)(\.gz)?$", name) and any("\t" in line for line in sample):
        return "\t"
    best, most = ",", 0.0
    for separator in SEPARATORS:
        try:
            rows = split(sample, separator)
            widths = Counter(len(row) for row in rows[1:] or rows)  # a header may be one cell shorter
        except csv.Error:
            continue
        width, count = max(widths.items(), key=lambda item: (item[0] > 1, item[1]))
        share = count / sum(widths.values())
        if width > 1 and share > most + 0.2 and (separator not in (r"\s+", ":") or share > 0.95):
            best, most = separator, share
    return best


def _layout(lines: Sequence[str], encoding: str, separator: str, source: str, options: ReadOptions) -> Layout:
    skip = _lines_above(lines, separator, source)
    below = list(lines[skip:])
    comments = any(line.startswith("#") for line in below[1:])
    try:
        rows = split([line for i, line in enumerate(below) if i == 0 or not line.startswith("#")], separator)
    except csv.Error as error:
        raise ValueError(f"{source} is not readable as a table ({error}).") from None
    rows = rows[:_MOST_ROWS]
    header = has_header(rows) if options.header is None else options.header
    names = _names(rows, source) if header else None
    rows = rows[1:] if header else rows
    if not rows:
        raise ValueError(f"{source} has a header but no samples.")
    decimal, thousands = _decimal(rows)
    if options.decimal not in (None, decimal):
        decimal, thousands = options.decimal or ".", None
    return Layout(encoding, separator, skip, comments, names, decimal, thousands, rows)


def _lines_above(lines: Sequence[str], separator: str, source: str) -> int:
    """Return how many comments and titles are above the table."""
    cells: list[int] = []
    for line in lines[: _MOST_ROWS + 50]:
        try:
            found = split([line], separator)
        except csv.Error:
            found = []
        cells.append(len(found[0]) if found else 0)
    usual = Counter(count for line, count in zip(lines, cells, strict=False) if count and not line.startswith("#"))
    if not usual:
        raise ValueError(f"{source} holds nothing but comments.")
    width = max(usual.items(), key=lambda item: (item[1], item[0]))[0]
    for i, line in enumerate(lines[: len(cells)]):
        if line.startswith("#"):
            following = split(lines[i + 1 : i + 2], separator)
            named = following and following[0][0][:1] != "#" and any(is_number(cell) for cell in following[0])
            if not (named and cells[i] == width > 1):
                continue
        if cells[i] >= width - 1 and cells[i] > 0:
            return i
        if i + 1 < len(cells) and cells[i] > 1 and cells[i + 1] != width:
            return i  # no title, but a table whose lines differ
    return 0


def is_number(cell: str) -> bool:
    """Tell whether a cell may be a number, however it is written, or stands for none.

    Examples
    --------
    >>> [cell for cell in ("1,5", "1 234.5", "NA", "S1", "1_000") if is_number(cell)]
    ['1,5', '1 234.5', 'NA']
    """
    cell = cell.strip()
    return cell.lower() in _NOTHING or _NUMBER.fullmatch(cell) is not None


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first row holds names.

    It does where it is text above numbers, has no name for the ids or one cell less, or counts columns.
    """
    first = [cell.strip() for cell in rows[0]]
    if len(rows) == 1:
        return not any(is_number(cell) and cell for cell in first)
    second = rows[1]
    nameless = not first[0] and any(first)  # as pandas writes an index
    if nameless or len(first) == len(second) - 1:
        return True
    numbers = [is_number(cell) for cell in first]
    if not any(numbers):
        return True
    if all(numbers[1:]):
        start = 0 if numbers[0] else 1
        if _counts(first[start:], rows[1:], start) or _numbered(first[start:], rows[1:], start):
            return True
        if start:  # ids without a header, or numbered features
            return is_id_name(first[0]) or is_number(second[0])
    return not all(numbers) and sum(map(is_number, second)) > sum(numbers)


def _counts(names: Sequence[str], rows: Sequence[Sequence[str]], start: int) -> bool:
    """Tell whether names are 0, 1, 2, ... above other numbers."""
    if len(names) < 2 or names[0] not in ("0", "1"):
        return False
    if any(name != str(i) for i, name in enumerate(names, int(names[0]))):
        return False
    return len(names) > 2 or any(not cell.strip().lstrip("+-").isdigit() for row in rows for cell in row[start:])


def _numbered(names: Sequence[str], rows: Sequence[Sequence[str]], start: int) -> bool:
    """Tell whether names are different whole numbers above numbers nearly all of which are not whole."""
    if len(names) < 2 or len(set(names)) < len(names) or not all(name.isdigit() for name in names):
        return False
    below = [cell.strip() for row in rows for cell in row[start:] if cell.strip()]
    return sum(re.search(r"[.,]\d", cell) is not None for cell in below) > 0.9 * len(below) > 0


def _names(rows: Sequence[Sequence[str]], source: str) -> tuple[str, ...]:
    names = [name.strip() for name in rows[0]]
    names[0] = names[0].lstrip("#").strip()
    width = Counter(map(len, rows[1:])).most_common(1)[0][0] if len(rows) > 1 else len(names)
    if len(names) == width - 1:
        if all(not row[-1].strip() for row in rows[1:] if len(row) == width):
            return (*names, "")  # a separator at the end of the lines
        return ("", *names)  # as R writes tables: no name for the ids
    if len(names) != width:
        raise ValueError(f"{source}: the header has {len(names)} cells, the first sample {width}.")
    return tuple(names)


def _decimal(rows: Sequence[Sequence[str]]) -> tuple[str, str | None]:
    """Return the signs of decimals and thousands; a point among decimal commas stands between thousands."""
    cells = [cell.strip() for row in rows for cell in row]
    points = [cell for cell in cells if "." in cell and is_number(cell)]
    if not any(_COMMA_DECIMAL.fullmatch(cell) for cell in cells) or not all(map(_POINT_THOUSANDS.fullmatch, points)):
        return ".", None
    return ",", "." if points else None
