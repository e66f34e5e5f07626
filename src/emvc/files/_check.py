"""A dry run: what is in files, how they fit together, and the command that clusters them."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from emvc.files._base import FileView, ReadOptions, about_labels, check_values, some
from emvc.files._join import JoinedViews, join, prepare
from emvc.files._match import POOR, advise, share
from emvc.files._read import names_of, options_of, read_file
from emvc.intake import encode_frame

_FEW_SAMPLES = 20
_MANY_SAMPLES = 10_000  # more take too much memory and time without landmarks
_MOST_MISSING = 0.2


@dataclass(frozen=True)
class ViewProfile:
    """What is in one view.

    Attributes
    ----------
    name, source : str
        Names of the view and its file.
    how : str
        How the file was read.
    n_samples, n_columns : int
        Shape of the table without ids.
    n_features : int
        Columns after encoding.
    types : dict of int
        Number of columns by what they were taken for.
    missing : float
        Share of cells without a value.
    ids : list of str
        The first of the ids, empty if there are none.
    columns : list of str
        What was done with columns that are not plainly numeric.
    options : dict
        Options that read the file in the same way (see `ReadOptions`).
    """

    name: str
    source: str
    how: str
    n_samples: int
    n_columns: int
    n_features: int
    types: dict[str, int]
    missing: float
    ids: list[str]
    columns: list[str]
    options: dict[str, Any]


@dataclass(frozen=True)
class Check:
    """What `check` has found.

    Attributes
    ----------
    views : list of ViewProfile
        The views that could be read.
    presence : list of dict
        For every combination of views the number of samples that are in exactly these: ``views``, ``n_samples``.
    n_samples : int
        Samples of all views together.
    notes, warnings, problems : list of str
        What was guessed; what deserves a look; what keeps the files from being clustered.
    options : dict
        What the command needs beside the files: ``transpose``, ``match_ids``, and ``landmarks`` for many samples.
    command : str
        The command that clusters the files; empty if there is none.
    """

    views: list[ViewProfile] = field(default_factory=list)
    presence: list[dict[str, Any]] = field(default_factory=list)
    n_samples: int = 0
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    command: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return everything as what JSON knows."""
        return asdict(self)


def check(
    paths: Sequence[str | os.PathLike[str]],
    *,
    id_column: str | None = None,
    header: bool | None = None,
    transpose: Sequence[str] = (),
    match_ids: str = "exact",
    options: Mapping[str, ReadOptions] | None = None,
    config: str | None = None,
) -> Check:
    r"""Read files without clustering them, and say what is in them and which command clusters them.

    Parameters
    ----------
    paths, id_column, header, transpose, match_ids, options
        As for `read_views`.
    config : str, optional
        File that the options were read from, for the command.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = Path(folder) / "gene.csv", Path(folder) / "lipid.csv"
    ...     _ = one.write_text("id,a,b\ns.1,1,2\ns.2,3,4\n")
    ...     _ = other.write_text("id,c\nS-2,5\nS-1,6\n")
    ...     found = check([one, other])
    >>> found.options, found.n_samples, [view.types for view in found.views]
    ({'match_ids': 'loose'}, 2, [{'number': 2}, {'number': 1}])
    """
    if not paths:
        raise ValueError("No files to check.")
    common = ReadOptions(id_column=id_column, header=header)

    def read(turned: Sequence[str]) -> tuple[list[FileView], list[str]]:
        return _read_all(paths, options_of(paths, common=common, transpose=turned, options=options or {}))

    found, problems = read(transpose)
    if not found:
        return Check(problems=problems)
    turned, matched = list(transpose), match_ids
    advice = advise(prepare(found)) if match_ids == "exact" else None
    if advice is not None:
        called = {name for path in paths for name in names_of(path)}
        views = [view for view in prepare(found) if view.name in advice.transpose]
        turned += dict.fromkeys(view.name if view.name in called else view.source for view in views)
        matched = "loose" if advice.loose else match_ids
        found, problems = read(turned)
    judged = _judge(found, problems, matched)
    chosen: dict[str, Any] = {"transpose": turned} if turned else {}
    chosen |= {} if matched == "exact" else {"match_ids": matched}
    if judged.n_samples > _MANY_SAMPLES:
        chosen["landmarks"] = 500
    command = "" if judged.problems else _command(paths, chosen, id_column, header, config)
    warnings = [str(advice)] if advice is not None else []
    return replace(judged, warnings=[*warnings, *judged.warnings], options=chosen, command=command)


def _judge(found: Sequence[FileView], problems: list[str], match_ids: str) -> Check:
    """Return what is in views, one by one and together."""
    views = prepare(found, match_ids=match_ids)
    profiles, warnings = [], []
    for view in views:
        try:
            profiles.append(_profile(view))
            warnings += _look(view, profiles[-1])
        except ValueError as error:
            problems = [*problems, str(error)]
    try:
        joined = join(found, match_ids=match_ids)
    except ValueError as error:
        notes = [text for view in views for text in (view.description(), *view.notes) if text]
        return Check(profiles, notes=notes, warnings=warnings, problems=list(dict.fromkeys([*problems, str(error)])))
    warnings += _look_at_join(views, joined)
    notes = [text for text in joined.notes if text not in warnings]
    return Check(profiles, _presence(views), len(joined.sample_ids), notes, warnings, problems)


def _read_all(paths: Sequence[str | os.PathLike[str]], each: Sequence[ReadOptions]) -> tuple[list[FileView], list[str]]:
    found: list[FileView] = []
    problems: list[str] = []
    for path, how in zip(paths, each, strict=True):
        try:
            found.extend(read_file(path, options=how))
        except (OSError, ValueError, TypeError, ImportError, MemoryError) as error:
            problems.append(" ".join(str(error).split()))
    return found, problems


def _profile(view: FileView) -> ViewProfile:
    """Return what is in a view; tables are encoded as `fit` does it."""
    check_values(view)
    n_samples, n_columns = view.values.shape
    types: Counter[str] = Counter()
    columns: list[str] = []
    n_features = n_columns
    if view.is_table:
        encoded = encode_frame(view.values, view=view.name, source=view.source)
        types.update(record.kind for record in encoded.records)
        columns = column_notes(encoded.records)
        n_features = len(encoded.columns)
        missing = float(np.mean(view.values.isna().to_numpy()))
        types["number"] += n_columns - len(encoded.records)
    else:
        types["number"] = n_columns
        dense = not scipy.sparse.issparse(view.values)
        missing = float(np.mean(np.isnan(view.values))) if dense and view.values.dtype.kind == "f" else 0.0
    return ViewProfile(
        view.name,
        view.source,
        view.description(),
        n_samples,
        n_columns,
        n_features,
        dict(types),
        missing,
        list((view.ids or ())[:3]),
        columns,
        _options(view),
    )


def column_notes(records: Sequence[Any]) -> list[str]:
    """Return what was done with columns in sentences, one for all columns of a view with which the same was done.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": ["1,5", "2,5"], "b": ["3,5", "4,5"]})
    >>> column_notes(encode_frame(frame, view="clinic").records)
    ["clinic: columns 'a', 'b': each of 2 is text and was read as numbers with a decimal comma."]
    """
    same: dict[tuple[str, str], list[str]] = {}
    for record in records:
        same.setdefault((record.view, record.message), []).append(record.name)
    told = []
    for (view, message), names in same.items():
        listed = f"column {names[0]!r}" if len(names) == 1 else f"columns {some(names)}: each of {len(names)}"
        told.append(f"{view}: {listed} {message}")
    return told


def _options(view: FileView) -> dict[str, Any]:
    """Return the options that read a table in the same way, without those that are usual."""
    if not view.is_table:
        return {}
    owner = view.options.id_column or view.id_column if view.ids is not None else ""
    found = asdict(replace(view.options, id_column=owner))
    usual = {"header": True, "encoding": "utf-8", "decimal": "."}
    return {name: value for name, value in found.items() if value not in (None, (), usual.get(name, False))}


def _look(view: FileView, profile: ViewProfile) -> list[str]:
    """Return what deserves a look in one view."""
    found = about_labels(view)
    if profile.missing > _MOST_MISSING:
        found.append(f"{view.name}: {profile.missing:.0%} of the cells have no value.")
    if profile.types and {name for name, count in profile.types.items() if count} == {"constant"}:
        found.append(f"{view.name}: no column tells the samples apart; leave the view out.")
    return found


def _look_at_join(views: Sequence[FileView], joined: JoinedViews) -> list[str]:
    """Return what deserves a look in views together."""
    found = []
    if len(joined.sample_ids) < _FEW_SAMPLES:
        found.append(f"There are only {len(joined.sample_ids)} samples.")
    if not joined.has_ids and len(views) > 1:
        found.append("No file has sample ids: rows are taken to be the same samples in the same order.")
    for view in views:
        others = [set(other.ids or ()) for other in views if other is not view and other.ids is not None]
        common = share(set(view.ids or ()), set().union(*others)) if others and view.ids is not None else 1.0
        if common < POOR:
            like = some((view.ids or ())[:3])
            found.append(f"{view.name}: only {common:.0%} of its samples are in another view ({like} here).")
    return found + [
        f"{one} and {other} hold the same values, which would count twice: leave one of them out."
        for one, other in combinations(joined.views, 2)
        if _are_equal(joined.views[one], joined.views[other])
    ]


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, pd.DataFrame) and isinstance(other, pd.DataFrame):
        return bool(one.equals(other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc" and other.dtype.kind in "fc")
    return False


def _presence(views: Sequence[FileView]) -> list[dict[str, Any]]:
    """Return how many samples are in which views."""
    if any(view.ids is None for view in views):
        return [{"views": [view.name for view in views], "n_samples": views[0].n_samples}]
    owners: dict[str, tuple[str, ...]] = {}
    for view in views:
        for name in view.ids or ():
            owners[name] = (*owners.get(name, ()), view.name)
    counts = Counter(owners.values())
    return [{"views": list(names), "n_samples": count} for names, count in counts.most_common()]


def _command(
    paths: Sequence[str | os.PathLike[str]],
    chosen: Mapping[str, Any],
    id_column: str | None,
    header: bool | None,
    config: str | None,
) -> str:
    """Return the command that clusters the files."""
    words = ["emvc", "cluster", *(["--config", config] if config else map(str, paths)), "-k", "auto"]
    if id_column is not None:
        words += ["--id-column", id_column]
    if header is not None:
        words.append("--header" if header else "--no-header")
    words += [word for name in chosen.get("transpose", ()) for word in ("--transpose", name)]
    for name in ("match_ids", "landmarks"):
        words += [f"--{name.replace('_', '-')}", str(chosen[name])] if name in chosen else []
    return shlex.join([*words, "-o", "result"])
