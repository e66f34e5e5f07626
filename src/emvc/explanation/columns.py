"""Annotations: columns about the samples that were not used for clustering, and what kind each is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from emvc._array import BoolArray, FloatArray, IntArray
from emvc.explanation.survival import read_events

KINDS = ("category", "number")
_MOST_LEVELS = 50
_FEW_LEVELS = 5  # so many are never a list of names
_FEW_NUMBERS = 10  # whole numbers with at most so many values are categories: grades, stages, codes of classes
_ABSENT = frozenset({"", "na", "n/a", "nan", "none", "null", "<na>", "nat"})
_TIME = re.compile(r"^(?:(.*?)[ ._-]?)(?:time|days|months|years|duration)(?:[ ._-]to[ ._-](.*))?$", re.IGNORECASE)
_EVENT_WORDS = ("event", "status", "dead", "death", "censor", "indicator", "vital_status")


@dataclass(frozen=True)
class Annotation:
    """One column, or a pair of columns about survival.

    Attributes
    ----------
    name : str
        Name of the column; of survival, those of time and event.
    kind : {"category", "number", "survival"}
        What it is.
    values : ndarray of shape (n_samples,)
        Positions in ``levels`` (-1 if not known), numbers or times (NaN if not known).
    levels : tuple of str
        Names of the categories.
    event : ndarray of bool, optional
        Whether the event was seen, of survival.
    columns : tuple of str
        Names of the columns of the table that it is made of.
    """

    name: str
    kind: str
    values: Any
    levels: tuple[str, ...] = ()
    event: BoolArray | None = None
    columns: tuple[str, ...] = ()


def read_annotations(
    annotations: Any,
    n_samples: int,
    sample_names: Sequence[Any] | None,
    *,
    survival: Sequence[tuple[str, str]] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> tuple[list[Annotation], list[str]]:
    """Return the annotations by kind, in the order of the samples, and notes about columns that cannot be used.

    Parameters
    ----------
    annotations : DataFrame or mapping of str to sequences
        Columns by name. The rows of a DataFrame are found by the names of the samples if both have names, by position
        otherwise. A value that is a pair of sequences is (time, event).
    n_samples : int
        Number of samples.
    sample_names : sequence, optional
        Names of the samples.
    survival : sequence of (str, str), optional
        Names of columns of times and events; pairs such as ``time`` and ``event`` or ``OS.time`` and ``OS`` are
        recognised.
    kinds : mapping of str to str, optional
        "category" or "number", for columns that would be mistaken.

    Examples
    --------
    >>> found, notes = read_annotations({"sex": ["m", "f", "f", "m"], "age": [30.5, 41, 28, 33]}, 4, None)
    >>> [(column.name, column.kind) for column in found]
    [('sex', 'category'), ('age', 'number')]
    """
    columns, notes = _columns(annotations, n_samples, sample_names)
    given = dict(kinds or {})
    for name, kind in given.items():
        if name not in columns or kind not in KINDS:
            raise ValueError(f"kinds: {name!r} must be a column of the annotations and {kind!r} one of {KINDS}.")
    pairs = list(survival) if survival is not None else _find_pairs([n for n in columns if n not in given])
    found: list[Annotation] = []
    for time, event in pairs:
        absent = [name for name in (time, event) if name not in columns]
        if absent:
            raise ValueError(f"survival: the annotations have no column {absent[0]!r}.")
        pair = _survival(f"{time}, {event}", columns.pop(time), columns.pop(event), event)
        found.append(replace(pair, columns=(time, event)))
    written, told = _written_numbers(
        {name: values for name, values in columns.items() if given.get(name) != "category"}
    )
    columns, notes = columns | written, notes + told
    for name, values in columns.items():
        if isinstance(values, tuple):
            found.append(replace(_survival(name, values[0], values[1], name), columns=(name,)))
        else:
            annotation, note = _recognise(name, values, given.get(name))
            found += [] if annotation is None else [replace(annotation, columns=(name,))]
            notes += [note] if note else []
    return found, notes


def _columns(annotations: Any, n_samples: int, sample_names: Sequence[Any] | None) -> tuple[dict[str, Any], list[str]]:
    """Return columns in the order of the samples."""
    if hasattr(annotations, "iloc") and hasattr(annotations, "index"):
        frame, notes = _aligned(annotations, n_samples, sample_names)
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise ValueError(f"annotations: two columns have the name {str(twice)!r}.")
        return {str(name): frame[name].to_numpy() for name in frame.columns}, notes
    if hasattr(annotations, "get_columns"):  # polars
        annotations = {column.name: column.to_numpy() for column in annotations.get_columns()}
    if not isinstance(annotations, Mapping):
        raise TypeError(
            f"annotations must be a DataFrame or a dict of columns, not {type(annotations).__name__}; a column is one "
            "value for each sample, or a pair (time, event)."
        )
    columns = {
        str(name): values if _is_pair(values, n_samples) else np.asarray(values) for name, values in annotations.items()
    }
    for name, values in columns.items():
        for part in values if isinstance(values, tuple) else (values,):
            if np.shape(part) != (n_samples,):
                raise ValueError(f"annotations: column {name!r} has the shape {np.shape(part)}, not ({n_samples},).")
    return columns, []


def _is_pair(values: Any, n_samples: int) -> bool:
    return isinstance(values, tuple) and len(values) == 2 and n_samples != 2 and np.ndim(values[0]) == 1


def _aligned(frame: Any, n_samples: int, sample_names: Sequence[Any] | None) -> tuple[Any, list[str]]:
    positional = type(frame.index).__name__ == "RangeIndex"
    if sample_names is None or positional:
        if len(frame) != n_samples:
            raise ValueError(
                f"annotations have {len(frame)} rows, the model {n_samples} samples. Give both names (the index of "
                "DataFrames), or the same rows."
            )
        return frame, []
    wanted = [str(name) for name in sample_names]
    known = frame.set_axis([str(name) for name in frame.index], axis=0)
    if not known.index.is_unique:
        raise ValueError(f"annotations: sample {known.index[known.index.duplicated()][0]!r} has two rows.")
    common = sum(name in known.index for name in wanted)
    if not common:
        raise ValueError(
            f"annotations and views have no sample in common: the first are {known.index[0]!r} and {wanted[0]!r}."
        )
    notes = []
    if common < n_samples or common < len(known):
        notes = [
            f"{common:,} of {n_samples:,} samples are annotated; {len(known) - common:,} other rows were not used."
        ]
    return known.reindex(wanted), notes


def _find_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of columns that look like time and event by their names."""
    times = [name for name in names if _TIME.match(name)]
    pairs: list[tuple[str, str]] = []
    for time in times:
        taken = {name for pair in pairs for name in pair} | {time}
        lower = {name.lower(): name for name in names if name not in taken}
        wanted = _event_names(time) + (list(_EVENT_WORDS) if len(times) == 1 else [])
        partner = next((lower[word] for word in wanted if word in lower), None)
        if partner is not None:
            pairs.append((time, partner))
    return pairs


def _event_names(time: str) -> list[str]:
    """Return what the event that belongs to a time may be called, in small letters."""
    match = _TIME.match(time)
    stem, event = ((match[1] or "").lower(), (match[2] or "").lower()) if match else ("", "")
    if event:
        return [event]
    marks = (".", "_", " ", "-", "") if stem else ("",)
    return [f"{stem}{mark}{word}" for mark in marks for word in _EVENT_WORDS] + ([stem] if stem else [])


def _survival(name: str, time: Any, event: Any, event_name: str) -> Annotation:
    numbers = _numbers(time)
    if numbers is None:
        raise ValueError(f"survival: the times of {name!r} are not numbers.")
    if np.nanmin(numbers, initial=0.0) < 0:
        raise ValueError(f"survival: a time of {name!r} is negative.")
    seen = read_events(event, event_name)
    known = np.array([not _is_absent(value) for value in np.asarray(event, dtype=object)])
    return Annotation(name, "survival", np.where(known, numbers, np.nan), event=seen)


def _recognise(name: str, values: Any, kind: str | None) -> tuple[Annotation | None, str]:
    numbers = _numbers(values) if kind != "category" else None
    if kind == "number" and numbers is None:
        raise ValueError(f"annotations: column {name!r} holds text and cannot be a number.")
    if numbers is not None and (kind == "number" or not _few_whole_numbers(numbers)):
        if len(np.unique(numbers[~np.isnan(numbers)])) < 2:
            return None, f"Annotation {name!r} was left out: it says the same of all samples."
        return Annotation(name, "number", numbers), ""
    words = [None if _is_absent(value) else _word(value) for value in np.asarray(values, dtype=object)]
    levels = sorted({word for word in words if word is not None}, key=_natural)
    known = sum(word is not None for word in words)
    if len(levels) < 2:
        return None, f"Annotation {name!r} was left out: it says the same of all samples."
    if kind is None and len(levels) > min(_MOST_LEVELS, max(_FEW_LEVELS, known / 2)):
        return None, f"Annotation {name!r} was left out: {len(levels)} different texts for {known} samples name them."
    position = {level: i for i, level in enumerate(levels)}
    codes: IntArray = np.array([-1 if word is None else position[word] for word in words])
    return Annotation(name, "category", codes, tuple(levels)), ""


def _written_numbers(columns: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the columns of text that hold dates or numbers with decimal commas as numbers, as views are read."""
    texts = {
        name: values
        for name, values in columns.items()
        if not isinstance(values, tuple) and _has_words(values) and _numbers(values) is None
    }
    if not texts:
        return {}, []
    from emvc._containers import require
    from emvc.intake import encode_frame

    pandas = require("pandas", "pandas", "annotations of text")
    try:
        encoded = encode_frame(pandas.DataFrame(texts, dtype=object), view="annotations")
    except ValueError:  # nothing but names and free text
        return {}, []
    read = [record for record in encoded.records if record.kind in ("number", "date") and record.action != "dropped"]
    found = {record.name: encoded.values[:, encoded.columns.index(record.name)] for record in read}
    return found, [f"Annotation {record.name!r} {record.message}" for record in read]


def _has_words(values: Any) -> bool:
    return np.asarray(values).dtype.kind in "OUT"


def _numbers(values: Any) -> FloatArray | None:
    """Return the values as numbers, NaN where there is none; None if some are not numbers."""
    array = np.asarray(values)
    if array.dtype.kind == "M":
        days = (array - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
        return np.asarray(days, dtype=np.float64)
    if array.dtype.kind == "b":
        return None
    if array.dtype.kind in "iuf":
        numbers = array.astype(np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    try:
        return np.array([np.nan if _is_absent(value) else _number(value) for value in array.astype(object)])
    except (TypeError, ValueError):
        return None


def _number(value: Any) -> float:
    if isinstance(value, bool | np.bool_):
        raise TypeError
    return float(value)


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value)) or str(value).strip().lower() in _ABSENT


def _few_whole_numbers(numbers: FloatArray) -> bool:
    known = np.unique(numbers[~np.isnan(numbers)])
    return len(known) <= _FEW_NUMBERS and bool(np.all(known == np.rint(known)))


def _word(value: Any) -> str:
    if isinstance(value, float | np.floating) and value == round(value):
        return str(int(value))
    return str(value).strip()


def _natural(text: str) -> list[tuple[int, int, str]]:
    parts = re.findall(r"\d+|\D+", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
