"""Which ids of different files are the same samples, and what would help where few of them are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from emvc.files._base import FileView, some
from emvc.files._ids import is_counter, is_id_name, is_row_name
from emvc.files._tables import with_ids

POOR = 0.5
"""Share of the samples of the smaller file below which a join is poor."""
_LEAST = 10  # names that a header must have in common with ids before it is taken for ids
MATCHES = ("exact", "loose")
"""How ids are compared."""

Key = Callable[[str], str]


def loose(name: str) -> str:
    """Return an id without what people or programs write differently: case, '.', '-', '_', blanks, leading zeros.

    Examples
    --------
    >>> loose("TCGA-01.a "), loose("tcga_01_A"), loose("007")
    ('tcga01a', 'tcga01a', '7')
    """
    plain = re.sub(r"[\s._-]+", "", name).casefold()
    return plain.lstrip("0") or "0" if plain.isdigit() else plain


def exact(name: str) -> str:
    """Return an id as it is."""
    return name


@dataclass(frozen=True)
class Advice:
    """What would bring the ids of files together: tables to transpose, and whether ids have to be compared loosely."""

    transpose: tuple[str, ...] = ()
    loose: bool = False
    examples: tuple[str, str] | None = None

    def __str__(self) -> str:
        told = []
        if self.transpose:
            names = ", ".join(self.transpose)
            told.append(
                f"The sample ids of {names} lie in the header (features x samples): use "
                f"{' '.join(f'--transpose {name}' for name in self.transpose)} (transpose={list(self.transpose)} in "
                "Python)."
            )
        if self.loose:
            like = " and ".join(map(repr, self.examples)) if self.examples else ""
            told.append(
                "Ids agree if case, '.', '-', '_', blanks and leading zeros do not count"
                + (f" ({like})" if like else "")
                + ": use --match-ids loose (match_ids='loose' in Python)."
            )
        return " ".join(told)


def share(one: set[str], other: set[str]) -> float:
    """Return the share of the smaller of two sets that the other one has."""
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def choose_ids(views: Sequence[FileView]) -> list[FileView]:
    """Take other columns for ids where the first choice brings few samples together and others bring more.

    A column that nothing but its values speaks for must have the same name everywhere.
    """
    chosen = list(views)
    named = [i for i, view in enumerate(views) if view.ids is not None or view.other_ids]
    if len(named) < 2:
        return chosen
    if all(views[i].ids is not None for i in named) and worst_share([views[i] for i in named]) >= POOR:
        return chosen
    for i in named:
        for column, ids in _candidates(chosen[i]).items():
            others = {j: _partner(column, set(ids), chosen[j]) for j in named if j != i}
            if all(partner is not None for partner in others.values()):
                for j, partner in {i: column, **others}.items():
                    chosen[j] = _take(chosen[j], partner or "")
                return chosen
    return chosen


def _candidates(view: FileView) -> dict[str, tuple[str, ...]]:
    """Return the columns that may hold the ids, the one in use first; ids without a column have no name."""
    own = {view.id_column or "": view.ids} if view.ids is not None else {}
    return own | dict(view.other_ids)


def _take(view: FileView, column: str) -> FileView:
    return view if column == (view.id_column or "") and view.ids is not None else with_ids(view, column)


def _partner(column: str, ids: set[str], view: FileView) -> str | None:
    """Return the column of a view that has most of these ids, if one has enough."""
    usable = {
        name: share(ids, set(own))
        for name, own in _candidates(view).items()
        if name == column or (is_id_name(name) and is_id_name(column)) or name == (view.id_column or "")
    }
    best = max(usable, key=lambda name: usable[name], default=None)
    return best if best is not None and usable[best] >= POOR else None


def worst_share(views: Sequence[FileView], key: Key = exact) -> float:
    """Return the least share of its ids that a view has in common with all others."""
    if len(views) < 2:
        return 1.0
    sets = [set(map(key, view.ids or ())) for view in views]
    return min(share(own, set().union(*sets[:i], *sets[i + 1 :])) for i, own in enumerate(sets))


def without_counters(views: Sequence[FileView]) -> list[FileView]:
    """Forget ids that only number the rows where other files have other ids, or number them differently."""
    counted = {
        i
        for i, view in enumerate(views)
        if is_counter(view.ids) and is_row_name("id" if view.id_column is None else view.id_column)
    }
    others = [set(view.ids or ()) for i, view in enumerate(views) if i not in counted and view.ids is not None]
    first = {views[i].ids[0] for i in counted for ids in [views[i].ids] if ids}  # type: ignore[index]
    chosen = []
    for i, view in enumerate(views):
        strange = others and not any(share(set(view.ids or ()), other) for other in others)
        chosen.append(with_ids(view, None) if i in counted and (strange or len(first) > 1) else view)
    return chosen


def loosened(views: Sequence[FileView]) -> list[FileView]:
    """Give ids that are the same for `loose` the way of writing that comes first.

    Raises
    ------
    ValueError
        If two ids of one view are the same.
    """
    spelling: dict[str, str] = {}
    renamed = []
    for view in views:
        keys: dict[str, str] = {}
        for name in view.ids or ():
            key = loose(name)
            if key in keys:
                raise ValueError(
                    f"{view.source}: the sample ids {keys[key]!r} and {name!r} are the same when compared loosely; "
                    "match ids exactly, or rename one."
                )
            keys[key] = name
            spelling.setdefault(key, name)
        ids = tuple(spelling[key] for key in keys)
        renamed.append(view if view.ids is None else replace(view, ids=ids))
    return renamed


def advise(views: Sequence[FileView]) -> Advice | None:
    """Return what would bring more samples together, None if nothing does or the ids fit as they are."""
    named = [view for view in views if view.ids is not None or view.is_table]
    if len(named) < 2:
        return None
    with_rows = [view for view in named if view.ids is not None]
    now = worst_share(with_rows) if len(with_rows) == len(named) else 0.0
    if now < POOR:
        ways = [(turned, key is loose) for key in (exact, loose) if (turned := _turned(named, key)) is not None]
        ways = sorted((way for way in ways if any(way)), key=lambda way: (len(way[0]) == len(named), way[1]))
        if ways:
            turned, loosely = ways[0]
            ids = [view.columns if view.name in turned else view.ids for view in named]
            return Advice(turned, loosely, _examples(ids) if loosely else None)
    examples = _examples([view.ids for view in with_rows])
    gains = worst_share(with_rows, loose) > worst_share(with_rows)
    return Advice((), True, examples) if examples and gains else None


def _turned(views: Sequence[FileView], key: Key) -> tuple[str, ...] | None:
    """Return the fewest tables to transpose so that all views have their ids in common, None if that cannot be."""
    rows = [set(map(key, view.ids or ())) for view in views]
    heads = [set(map(key, view.columns or ())) if view.is_table else set() for view in views]
    best: tuple[str, ...] | None = None
    for reference in (*rows, *heads):
        names = []
        for view, row, head in zip(views, rows, heads, strict=True):
            by_head = share(head, reference) if len(head & reference) >= _LEAST else 0.0
            if max(share(row, reference), by_head) < POOR:
                break
            if by_head > share(row, reference):
                names.append(view.name)
        else:
            if best is None or len(names) < len(best):
                best = tuple(names)
    return best


def _examples(ids: Sequence[Sequence[str] | None]) -> tuple[str, str] | None:
    """Return two ids of different views that differ only in what `loose` ignores."""
    spelling: dict[str, str] = {}
    for names in ids:
        for name in names or ():
            other = spelling.get(loose(name), name)
            if other != name:
                return other, name
        spelling |= {loose(name): name for name in names or () if loose(name) not in spelling}
    return None


def ids_like(views: Sequence[FileView]) -> str:
    """Return examples of the ids of views."""
    return "; ".join(f"{view.name} {some((view.ids or ())[:3])}" for view in views)
