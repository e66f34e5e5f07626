"""From paths to joined views."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from emvc._containers import align
from emvc.files._arrays import orient, read_mat, read_npy, read_npz
from emvc.files._base import FileView, check_values
from emvc.files._tables import read_h5mu, read_parquet
from emvc.files._text import read_text

FORMATS = (".csv", ".tsv", ".npz", ".npy", ".mat", ".parquet", ".h5mu")
_MOST_NAMED = 5


@dataclass(frozen=True)
class JoinedViews:
    """Views of the same samples in the same order, ready for ``fit``.

    Attributes
    ----------
    views : dict of arrays
        By name; rows of NaN where a view does not have a sample.
    sample_ids : list of str
        Ids, or the numbers of the rows where the files have none.
    has_ids : bool
        Whether the files have ids.
    notes : list of str
        Who is missing where, what was left out or transposed.
    """

    views: dict[str, Any]
    sample_ids: list[str]
    has_ids: bool
    notes: list[str]


def read_views(
    paths: Sequence[str | os.PathLike[str]],
    *,
    id_column: str | None = None,
    header: bool | None = None,
    one_hot: bool = False,
) -> JoinedViews:
    r"""Read views from files of any of the `FORMATS` and join them on the ids of the samples.

    Parameters
    ----------
    paths : sequence of paths
        One or several files. Text and Parquet files are one view each; .npz, .mat and .h5mu files may hold several.
    id_column : str, optional
        Column of the sample ids in text and Parquet files. By default the first column, if it is named like one or
        holds text.
    header : bool, optional
        Whether text files start with the names of the columns; found out by default.
    one_hot : bool
        Whether columns of text become one column of zeros and ones per category; else they are refused.

    Raises
    ------
    ValueError
        If a file cannot be used, or the files do not fit together; one line that names the file, and row and column
        where there are any.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = Path(folder) / "gene.csv", Path(folder) / "lipid.csv"
    ...     _ = one.write_text("id,a,b\ns1,1,2\ns2,3,4\n")
    ...     _ = other.write_text("id,c\ns2,5\ns1,6\ns3,7\n")
    ...     joined = read_views([one, other])
    >>> joined.sample_ids, joined.views["lipid"].ravel(), joined.notes
    (['s1', 's2', 's3'], array([6., 5., 7.]), ["gene: 1 of 3 samples is missing ('s3')."])
    """
    if not paths:
        raise ValueError("No files to read.")
    found = [view for path in paths for view in read_file(path, id_column=id_column, header=header, one_hot=one_hot)]
    return join(found)


def read_file(
    path: str | os.PathLike[str], *, id_column: str | None = None, header: bool | None = None, one_hot: bool = False
) -> list[FileView]:
    """Read the views of one file; see `read_views`."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"{path.name}: unknown kind of file {kind!r}; known are {', '.join(FORMATS)}.")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file.")
    if kind in (".csv", ".tsv"):
        return [read_text(path, id_column=id_column, header=header, encode=one_hot)]
    if kind == ".parquet":
        return [read_parquet(path, id_column=id_column, encode=one_hot)]
    readers = {".npy": read_npy, ".npz": read_npz, ".mat": read_mat, ".h5mu": read_h5mu}
    return readers[kind](path)


def join(found: Sequence[FileView]) -> JoinedViews:
    """Bring views to the same samples in the same order, by ids where there are any and by position elsewhere."""
    found = _with_distinct_names(found)
    notes = [note for view in found for note in view.notes]
    named = [view for view in found if view.ids is not None]
    if not named:
        oriented = orient(found, None)
        notes.extend(note for view in oriented for note in view.notes if note not in notes)
        ids = [str(i) for i in range(oriented[0].n_samples)]
        return JoinedViews({view.name: check_values(view).values for view in oriented}, ids, False, notes)
    _check_overlap(named)
    ids = list(dict.fromkeys(name for view in named for name in view.ids or ()))
    views = {}
    for view in found:
        placed = view if view.ids is not None else _by_position(view, named, notes)
        placed = check_values(placed)
        views[view.name] = align(placed.values, placed.ids, ids)
        absent = sorted(set(ids) - set(placed.ids or ()), key=ids.index)
        if absent:
            who = ", ".join(map(repr, absent[:_MOST_NAMED])) + (", ..." if len(absent) > _MOST_NAMED else "")
            verb = "is" if len(absent) == 1 else "are"
            notes.append(f"{view.name}: {len(absent)} of {len(ids)} samples {verb} missing ({who}).")
    return JoinedViews(views, ids, True, notes)


def _by_position(view: FileView, named: Sequence[FileView], notes: list[str]) -> FileView:
    """Give a view without ids those of the others, which must all be in one order."""
    first = named[0]
    if any(other.ids != first.ids for other in named):
        raise ValueError(
            f"{view.source}: {view.name} has no sample ids, but other files have different ones or another order, so "
            "that its rows cannot be matched."
        )
    (placed,) = orient([view], first.n_samples)
    notes.extend(note for note in placed.notes if note not in notes)
    notes.append(f"{view.name}: no sample ids; its rows were taken in the order of {first.source}.")
    return replace(placed, ids=first.ids)


def _check_overlap(named: Sequence[FileView]) -> None:
    for view in named[1:]:
        others = {name for other in named if other is not view for name in other.ids or ()}
        if not others & set(view.ids or ()):
            raise ValueError(f"{view.source}: {view.name} has no sample id in common with the other views.")


def _with_distinct_names(found: Sequence[FileView]) -> list[FileView]:
    seen: dict[str, int] = {}
    distinct = []
    for view in found:
        seen[view.name] = seen.get(view.name, 0) + 1
        name = view.name if seen[view.name] == 1 else f"{view.name}-{seen[view.name]}"
        distinct.append(replace(view, name=name))
    return distinct
