"""Views that stay on disk: files as Dask arrays, read a chunk of rows at a time by whoever works on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from emvc._validation import check_integer
from emvc.distributed import import_dask

CHUNK_ROWS = 50_000
"""Rows of a chunk unless told otherwise."""
FORMATS = (".h5", ".hdf5", ".npy", ".parquet", ".zarr")
"""Endings of files that can be read in part."""
NUMERIC = ("int", "uint", "float", "double", "halffloat", "bool")
"""How the names of numeric types of Parquet begin."""


@dataclass(frozen=True)
class StoredView:
    """A two-dimensional table in a file, of which any range of rows can be read."""

    path: str
    part: str | None
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    read: Callable[[str, str | None, int, int], Any]


def open_views(paths: Any, *, chunks: int = CHUNK_ROWS, id_column: str | None = None) -> Any:
    """Open files as views without loading them.

    Parameters
    ----------
    paths : list of paths, or dict of them
        One file per view: ``.npy`` (memory-mapped), ``.parquet`` (a file, or a folder of them in the order of their
        names), ``.zarr``, or ``.h5`` / ``.hdf5``. ``"file.h5::name"`` and ``"folder.zarr::name"`` name an array inside
        the file, which is needed if it holds several.
    chunks : int
        Rows per chunk. A block of rows needs about ``12 * (n_views + 1) * n_landmarks`` bytes per row.
    id_column : str, optional
        Column of the sample ids in Parquet files, which is no feature. Rows are matched by their order, whatever the
        ids are.

    Returns
    -------
    views : list or dict of dask arrays
        For ``EMVC(...).fit``.

    Raises
    ------
    ImportError
        If Dask or the library of the format is not installed.
    FileNotFoundError, ValueError
        If a file is not there or does not hold a two-dimensional numeric array, or the numbers of rows differ.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/one.npy", np.arange(12.0).reshape(6, 2))
    ...     views = open_views([f"{folder}/one.npy"], chunks=4)
    ...     views[0].chunks, float(views[0].sum().compute())
    (((4, 2), (2,)), 66.0)
    """
    dask = import_dask()
    size = check_integer(chunks, "chunks", least=1)
    if isinstance(paths, str | Path) or not isinstance(paths, Iterable):
        raise TypeError(f"paths must be a list or dict of paths, one per view; got {paths!r}.")
    named = dict(paths) if isinstance(paths, Mapping) else dict(enumerate(paths))
    if not named:
        raise ValueError("No views: no path was given.")
    stored = {name: open_view(path, id_column=id_column) for name, path in named.items()}
    first = next(iter(stored.values()))
    for view in stored.values():
        if view.shape[0] != first.shape[0]:
            raise ValueError(
                f"All views must have the same samples: {first.path} has {first.shape[0]} rows, {view.path} has "
                f"{view.shape[0]}."
            )
    arrays = {name: _as_dask(dask, view, size) for name, view in stored.items()}
    return arrays if isinstance(paths, Mapping) else list(arrays.values())


def split_path(path: Any) -> tuple[str, str | None]:
    """Split ``"file::name"`` into the file and the array inside it.

    Examples
    --------
    >>> split_path("data.h5::genes"), split_path("data.npy")
    (('data.h5', 'genes'), ('data.npy', None))
    """
    name, _, part = str(path).partition("::")
    return name, part or None


def open_view(path: Any, *, id_column: str | None = None) -> StoredView:
    """Look at one file: its shape, its type, and how to read rows from it."""
    from emvc.files._apart import check_apart
    from emvc.files._gate import check_file

    name, part = split_path(path)
    if not Path(name).exists():
        raise FileNotFoundError(f"There is no file {name}.")
    suffix = Path(name).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{name}: cannot tell the format from the ending; use one of {', '.join(FORMATS)}.")
    check_file(Path(name), suffix, whole=False)
    if suffix in (".h5", ".hdf5"):
        check_apart(name)
    if suffix == ".parquet":
        shape, dtype, read = _open_parquet(name, part, id_column)
    else:
        shape, dtype, read = _OPENERS[suffix](name, part)
    if len(shape) != 2:
        raise ValueError(f"{path} must have two dimensions, got shape {tuple(shape)}.")
    if np.dtype(dtype).kind not in "fiub":
        raise ValueError(f"{path} is not numeric: its type is {dtype}.")
    return StoredView(name, part, (int(shape[0]), int(shape[1])), np.dtype(dtype), read)


def _as_dask(dask: Any, view: StoredView, size: int) -> Any:
    read = dask.delayed(view.read, pure=True)
    n_rows, n_columns = view.shape
    pieces = []
    for start in range(0, n_rows, size):
        stop = min(start + size, n_rows)
        rows = read(view.path, view.part, start, stop)
        pieces.append(dask.array.from_delayed(rows, (stop - start, n_columns), dtype=view.dtype))
    if not pieces:
        raise ValueError(f"{view.path} has no rows.")
    return dask.array.concatenate(pieces)


_Opened = tuple[tuple[int, ...], Any, Callable[[str, str | None, int, int], Any]]


def _open_npy(path: str, part: str | None) -> _Opened:
    if part is not None:
        raise ValueError(f"{path} holds one array; '::{part}' has no meaning there.")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"{path} is not a plain .npy array: {error}") from error
    return array.shape, array.dtype, _read_npy


def _read_npy(path: str, part: str | None, start: int, stop: int) -> Any:
    del part
    # A copy: a slice of the map would keep the file open and be sent around as if it were small.
    return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[start:stop])


def _hdf5() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise ImportError("HDF5 files need h5py: pip install 'emvc[dask]'.") from error
    return h5py


def _open_hdf5(path: str, part: str | None) -> _Opened:
    with _hdf5().File(path, "r") as file:
        data = _only_array(path, file, part)
        name = data.name
        shape, dtype = data.shape, data.dtype
    return shape, dtype, _Reader("hdf5", name)


def _only_array(path: str, file: Any, part: str | None) -> Any:
    """Return the named array of an HDF5 file, or the only one."""
    if part is not None:
        if part not in file or not hasattr(file[part], "shape"):
            raise ValueError(f"{path} has no array {part!r}.")
        return file[part]
    found: list[Any] = []
    file.visititems(lambda _, item: found.append(item) if hasattr(item, "shape") else None)
    if len(found) != 1:
        names = ", ".join(item.name for item in found) or "none"
        raise ValueError(f"{path} must hold one array, or be named with '::'; it holds {names}.")
    return found[0]


def _zarr() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise ImportError("Zarr stores need zarr: pip install 'emvc[dask]'.") from error
    return zarr


def _open_zarr(path: str, part: str | None) -> _Opened:
    zarr = _zarr()
    try:
        store = zarr.open(path, mode="r")
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} is not a Zarr store: {error}") from error
    if not hasattr(store, "shape"):
        arrays = dict(store.arrays())
        if part is None and len(arrays) == 1:
            part = next(iter(arrays))
        if part not in arrays:
            raise ValueError(f"{path} holds the arrays {', '.join(sorted(arrays)) or 'none'}; name one with '::'.")
        store = arrays[part]
    return store.shape, store.dtype, _Reader("zarr", part)


@dataclass(frozen=True)
class _Reader:
    """Read rows of an array inside a file that each worker opens for itself."""

    kind: str
    name: str | None

    def __call__(self, path: str, part: str | None, start: int, stop: int) -> Any:
        del part
        if self.kind == "hdf5":
            with _hdf5().File(path, "r") as file:
                return file[self.name][start:stop]
        store = _zarr().open(path, mode="r")
        return np.asarray((store if self.name is None else store[self.name])[start:stop])


def _parquet_files(path: str) -> list[tuple[str, int, Any]]:
    """Return path, number of rows and row groups of every file."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'emvc[dask]'.") from error
    from emvc.files._gate import check_file

    check_file(Path(path), ".parquet", whole=False)
    files = sorted(map(str, Path(path).glob("*.parquet"))) if Path(path).is_dir() else [path]
    if not files:
        raise ValueError(f"{path} is a folder without .parquet files.")
    opened = []
    for name in files:
        try:
            file = parquet.ParquetFile(name)
        except (OSError, ValueError) as error:
            raise ValueError(f"{name} is not a Parquet file: {error}") from error
        opened.append((name, file.metadata.num_rows, file))
    return opened


def parquet_columns(path: str) -> dict[str, str]:
    """Return the columns of a Parquet file, or of a folder of them, with the names of their types."""
    return {column.name: str(column.type) for column in _parquet_files(path)[0][2].schema_arrow}


def read_column(path: str, name: str) -> list[str]:
    """Return one column of a Parquet file, or of a folder of them, as text."""
    return [
        str(value) for _, _, file in _parquet_files(path) for value in file.read(columns=[name]).column(0).to_pylist()
    ]


def _open_parquet(path: str, part: str | None, id_column: str | None) -> _Opened:
    if part is not None:
        raise ValueError(f"{path}: '::{part}' has no meaning for Parquet files.")
    files = _parquet_files(path)
    names = files[0][2].schema_arrow.names
    if id_column is not None and id_column not in names:
        raise ValueError(f"{path} has no column {id_column!r} for the sample ids.")
    for name, _, file in files:
        if file.schema_arrow.names != names:
            raise ValueError(f"{name} has other columns than {files[0][0]}.")
        for column in file.schema_arrow:
            kind = str(column.type)
            if column.name != id_column and not kind.startswith(NUMERIC):
                raise ValueError(f"{name}: column {column.name!r} is not numeric but {kind}. Drop it first.")
    features = tuple(name for name in names if name != id_column)
    shape = (sum(n_rows for _, n_rows, _ in files), len(features))
    return shape, np.dtype(np.float64), _ParquetReader(features)


@dataclass(frozen=True)
class _ParquetReader:
    """Read a range of rows, by the row groups that hold them."""

    features: tuple[str, ...]

    def __call__(self, path: str, part: str | None, start: int, stop: int) -> Any:
        del part
        pieces, first = [], 0
        for _, _, file in _parquet_files(path):
            for group in range(file.num_row_groups):
                last = first + file.metadata.row_group(group).num_rows
                if first < stop and last > start:
                    table = file.read_row_group(group, columns=list(self.features))
                    table = table.slice(max(start - first, 0), min(stop, last) - max(start, first))
                    columns = [table.column(name).to_numpy().astype(np.float64) for name in self.features]
                    pieces.append(np.column_stack(columns))
                first = last
        return np.concatenate(pieces)


_OPENERS: dict[str, Callable[[str, str | None], _Opened]] = {
    ".npy": _open_npy,
    ".zarr": _open_zarr,
    ".h5": _open_hdf5,
    ".hdf5": _open_hdf5,
}
