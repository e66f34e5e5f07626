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
from emvc.files._stored import NeedsMemoryError, is_stored, open_stored, read_stored
from emvc.files._tables import read_h5mu, read_parquet
from emvc.files._text import read_text
from emvc.out_of_core import split_path

FORMATS = (".csv", ".tsv", ".npz", ".npy", ".mat", ".parquet", ".h5mu", ".h5", ".hdf5", ".zarr")
_MOST_NAMED = 5


@dataclass(frozen=True)
class JoinedViews:
    """Views of the same samples in the same order, ready for ``fit``.

    Attributes
    ----------
    views : dict of arrays
        By name; rows of NaN where a view does not have a sample. Dask arrays if they were left in their files.
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
    chunks: int | None = None,
) -> JoinedViews:
    r"""Read views from files of any of the `FORMATS` and join them on the ids of the samples.

    Parameters
    ----------
    paths : sequence of paths
        One or several files. .npz, .mat and .h5mu files may hold several views, all others hold one;
        ``"file.h5::name"`` and ``"folder.zarr::name"`` name an array inside the file.
    id_column : str, optional
        Column of the sample ids in text and Parquet files. By default the first column, if it is named like one or
        holds text.
    header : bool, optional
        Whether text files start with the names of the columns; found out by default.
    one_hot : bool
        Whether columns of text become one column of zeros and ones per category; else they are refused.
    chunks : int, optional
        Leaves the views in their files if the files allow it, as Dask arrays with so many rows per chunk: .npy,
        .parquet, .zarr, .h5 and .hdf5 files with the same samples in the same order do. A note says why not.

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
    notes = []
    if chunks is not None:
        try:
            return _open(paths, id_column=id_column, one_hot=one_hot, chunks=chunks)
        except NeedsMemoryError as reason:
            notes.append(f"All files were read into memory: {reason}.")
    found = [view for path in paths for view in read_file(path, id_column=id_column, header=header, one_hot=one_hot)]
    joined = join(found)
    return replace(joined, notes=[*notes, *joined.notes])


def _open(paths: Sequence[str | os.PathLike[str]], *, id_column: str | None, one_hot: bool, chunks: int) -> JoinedViews:
    """Join views that stay in their files."""
    for path in paths:
        if not is_stored(path):
            raise NeedsMemoryError(f"rows of {Path(path).name} cannot be read without the others")
    if one_hot:
        raise NeedsMemoryError("text has to be encoded")
    try:
        arrays, ids = open_stored(paths, id_column=id_column, chunks=chunks)
    except ImportError as error:
        raise NeedsMemoryError(str(error).rstrip(".")) from error
    n_samples = {int(array.shape[0]) for _, array in arrays}
    if len(n_samples) > 1:
        raise NeedsMemoryError("they have different numbers of rows")
    names = distinct_names([name for name, _ in arrays])
    views = dict(zip(names, (array for _, array in arrays), strict=True))
    sample_ids = list(ids) if ids is not None else [str(i) for i in range(n_samples.pop())]
    return JoinedViews(views, sample_ids, ids is not None, [])


def read_file(
    path: str | os.PathLike[str], *, id_column: str | None = None, header: bool | None = None, one_hot: bool = False
) -> list[FileView]:
    """Read the views of one file; see `read_views`."""
    address, path = path, Path(split_path(path)[0])
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"{path.name}: unknown kind of file {kind!r}; known are {', '.join(FORMATS)}.")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if kind in (".h5", ".hdf5", ".zarr"):
        return [read_stored(address)]
    if path.is_dir() and kind != ".parquet":
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
    names = distinct_names([view.name for view in found])
    return [replace(view, name=name) for view, name in zip(found, names, strict=True)]


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names with a number where they appear again.

    Examples
    --------
    >>> distinct_names(["gene", "lipid", "gene"])
    ['gene', 'lipid', 'gene-2']
    """
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return distinct
