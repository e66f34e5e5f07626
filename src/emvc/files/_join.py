"""Views of different files as views of the same samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from emvc._containers import Table, align
from emvc._validation import check_choice
from emvc.files._arrays import orient
from emvc.files._base import FileView, about_labels, check_values, some
from emvc.files._match import (
    MATCHES,
    advise,
    choose_ids,
    ids_like,
    loosened,
    share,
    without_counters,
)


@dataclass(frozen=True)
class JoinedViews:
    """Views of the same samples in the same order, ready for ``fit``.

    Attributes
    ----------
    views : dict of DataFrames and arrays
        By name. Tables are DataFrames with the ids as index, without values where a view does not have a sample;
        ``fit`` encodes their columns. Arrays have rows of NaN there, and are the ``values`` of a table with ``ids``
        and ``columns`` if the file names these. Dask arrays if they were left in their files.
    sample_ids : list of str
        Ids, or the numbers of the rows where the files have none.
    has_ids : bool
        Whether the files have ids.
    notes : list of str
        What was guessed about each file, who is missing where, what was left out or transposed.
    """

    views: dict[str, Any]
    sample_ids: list[str]
    has_ids: bool
    notes: list[str]


def prepare(found: Sequence[FileView], *, match_ids: str = "exact") -> list[FileView]:
    """Give views distinct names, and their ids: the columns that fit together, compared as asked for."""
    check_choice(match_ids, "match_ids", MATCHES)
    names = distinct_names([view.name for view in found])
    views = [replace(view, name=name) for view, name in zip(found, names, strict=True)]
    views = without_counters(choose_ids(views))
    return loosened(views) if match_ids == "loose" else views


def join(found: Sequence[FileView], *, match_ids: str = "exact") -> JoinedViews:
    """Bring views to the same samples in the same order, by ids where there are any and by position elsewhere."""
    views = prepare(found, match_ids=match_ids)
    notes = [text for view in views for text in (view.description(), *view.notes, *about_labels(view)) if text]
    named = [view for view in views if view.ids is not None]
    if not named:
        return _in_order(views, notes)
    _check_overlap(views, named)
    advice = advise(views)
    if advice is not None:
        notes.append(str(advice))
    ids = list(dict.fromkeys(name for view in named for name in view.ids or ()))
    joined = {}
    for view in views:
        placed = check_values(view if view.ids is not None else _by_position(view, named, notes))
        joined[view.name] = _placed(placed, ids)
        absent = sorted(set(ids) - set(placed.ids or ()), key=ids.index) if len(placed.ids or ()) < len(ids) else []
        if absent:
            verb = "is" if len(absent) == 1 else "are"
            notes.append(f"{view.name}: {len(absent)} of {len(ids)} samples {verb} missing ({some(absent)}).")
    return JoinedViews(joined, ids, True, notes)


def _in_order(views: Sequence[FileView], notes: list[str]) -> JoinedViews:
    """Join views by the order of their rows."""
    oriented = orient(list(views), None)
    notes.extend(note for view in oriented for note in view.notes if note not in notes)
    ids = [str(i) for i in range(oriented[0].n_samples)]
    return JoinedViews({view.name: check_values(view).values for view in oriented}, ids, False, notes)


def _placed(view: FileView, ids: list[str]) -> Any:
    """Return the values in the order of the ids."""
    if not view.is_table:
        values = align(view.values, view.ids, ids)
        return values if view.columns is None else Table(values, ids, view.columns)
    table = view.values.set_axis(list(view.ids or ()), axis=0)
    return table if list(table.index) == ids else table.reindex(ids)


def _by_position(view: FileView, named: Sequence[FileView], notes: list[str]) -> FileView:
    """Give a view without ids those of the others, which must all be in one order."""
    first = named[0]
    if any(other.ids != first.ids for other in named):
        raise ValueError(
            f"{view.source}: {view.name} has no sample ids, but other files have different ones or another order, so "
            "that its rows cannot be matched. Add a column of ids to it, or name the one it has with --id-column."
        )
    (placed,) = orient([view], first.n_samples)
    notes.extend(note for note in placed.notes if note not in notes)
    notes.append(f"{view.name}: no sample ids; its rows were taken in the order of {first.source}.")
    return replace(placed, ids=first.ids)


def _check_overlap(views: Sequence[FileView], named: Sequence[FileView]) -> None:
    for view in named[1:]:
        others = {name for other in named if other is not view for name in other.ids or ()}
        if share(set(view.ids or ()), others) > 0:
            continue
        advice = advise(views)
        hint = str(advice) if advice is not None else "'emvc check' shows what could be done."
        raise ValueError(
            f"{view.source}: {view.name} has no sample id in common with the other views ({ids_like(named)}). {hint}"
        )
    advice = advise(views) if len(named) < len(views) else None
    if advice is not None and advice.transpose:
        raise ValueError(str(advice))


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names with a number where they appear again.

    Examples
    --------
    >>> distinct_names(["gene", "lipid", "gene", "gene-2"])
    ['gene', 'lipid', 'gene-3', 'gene-2']
    """
    taken, distinct = set(names), []
    for name in names:
        called = name
        if name in distinct:
            called = next(other for number in count(2) if (other := f"{name}-{number}") not in taken)
            taken.add(called)
        distinct.append(called)
    return distinct
