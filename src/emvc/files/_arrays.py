"""NumPy and MATLAB files, which hold arrays without names of samples and features."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from emvc._containers import require
from emvc._sparse import check_sparse
from emvc.files._base import FileView, check_ids, is_label_name
from emvc.files._ids import is_id_name

_SPARSE_KEYS = {"format", "shape", "data"}


def read_npy(path: Path) -> list[FileView]:
    """Read one array, or a stack of views."""
    with path.open("rb") as stream:
        try:
            content = np.load(stream, allow_pickle=False)
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise _unreadable(path, error) from None
    return _views({path.stem: content}, path)


def read_npz(path: Path) -> list[FileView]:
    """Read the arrays of an archive, or one sparse matrix as SciPy writes it."""
    with path.open("rb") as stream:
        try:
            archive = np.load(stream, allow_pickle=False)
            content = {name: archive[name] for name in archive.files}
        except (ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
            raise _unreadable(path, error) from None
    if content.keys() >= _SPARSE_KEYS:
        try:
            return _views({path.stem: scipy.sparse.load_npz(path)}, path)
        except (ValueError, KeyError, NotImplementedError) as error:
            raise ValueError(f"{path.name} is not a readable sparse matrix ({error}).") from None
    return _views(content, path)


def _unreadable(path: Path, error: Exception) -> ValueError:
    if "pickle" in str(error):
        return ValueError(f"{path.name} holds Python objects instead of numbers, or is damaged; these are not read.")
    return ValueError(f"{path.name} cannot be read: it is damaged or of another format ({error}).")


def read_mat(path: Path) -> list[FileView]:
    """Read the matrices and cells of a MATLAB file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about variables that are no numbers
            content = scipy.io.loadmat(path)
    except NotImplementedError:  # version 7.3 is HDF5
        content = _read_hdf5(path)
    except OSError:
        raise
    except Exception as error:  # the reader raises whatever a damaged file leads it to
        raise ValueError(f"{path.name} cannot be read as a MATLAB file ({str(error).splitlines()[0]}).") from None
    return _views({name: value for name, value in content.items() if not name.startswith(("__", "#"))}, path)


def _read_hdf5(path: Path) -> dict[str, Any]:
    h5py = require("h5py", "mat73", f"Reading {path.name}, a MATLAB file of version 7.3,")
    with h5py.File(path, "r") as file:
        return {name: _from_hdf5(file, item, h5py) for name, item in file.items() if not name.startswith("#")}


def _from_hdf5(file: Any, item: Any, h5py: Any) -> Any:
    """Return a matrix, a sparse matrix or a cell; MATLAB stores them by columns, so axes are exchanged."""
    if isinstance(item, h5py.Group):
        if "MATLAB_sparse" not in item.attrs:
            return None
        shape = (int(item.attrs["MATLAB_sparse"]), len(item["jc"]) - 1)
        data = item["data"][()] if "data" in item else np.zeros(0)
        indices = item["ir"][()] if "ir" in item else np.zeros(0, dtype=np.int64)
        return scipy.sparse.csc_matrix((data, indices.astype(np.int64), item["jc"][()].astype(np.int64)), shape=shape)
    if item.attrs.get("MATLAB_class") == b"char":
        return None
    if h5py.check_ref_dtype(item.dtype) is None:
        return item[()].T
    references = item[()].T.ravel()
    cell = np.empty(len(references), dtype=object)
    for i, reference in enumerate(references):
        cell[i] = _from_hdf5(file, file[reference], h5py)
    return cell


def _views(content: Mapping[str, Any], path: Path) -> list[FileView]:
    """Return the views among named variables, oriented by the labels if there are any."""
    source = path.name
    views: list[FileView] = []
    notes: list[str] = []
    n_samples: int | None = None
    ids: tuple[str, ...] | None = None
    for name, value in content.items():
        vector = _vector(value)
        if vector is not None and vector.dtype.kind == "U" and is_id_name(name):
            ids = check_ids(vector.tolist(), source)
        elif vector is not None and len(vector) > 1 and is_label_name(name):
            notes.append(f"{source}: {name!r} looks like true classes and was left out.")
            n_samples = len(vector)
        else:
            found = list(_matrices(name, value, source))
            if not found:
                notes.append(f"{source}: {name!r} is no matrix of numbers and was left out.")
            views.extend(FileView(label, matrix, source) for label, matrix in found)
    if not views:
        raise ValueError(f"{source} holds no matrix of numbers.")
    if ids is not None:
        n_samples = len(ids)
    if n_samples is not None or len(views) > 1:
        views = orient(views, n_samples)
    if ids is not None:
        views = [replace(view, ids=ids) for view in views]
    views[0] = replace(views[0], notes=(*notes, *views[0].notes))
    return views


def _vector(value: Any) -> Any:
    """Return an array with one axis longer than one as a vector, else None."""
    if not isinstance(value, np.ndarray) or value.ndim not in (1, 2) or value.dtype.kind not in "biufU":
        return None
    return value.ravel() if value.ndim == 1 or 1 in value.shape else None


def _matrices(name: str, value: Any, source: str) -> Iterable[tuple[str, Any]]:
    """Yield the matrices of a variable: itself, its layers, or its cells."""
    if scipy.sparse.issparse(value):
        yield name, check_sparse(value, f"{source}: {name or 'a cell'}").astype(np.float64)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        cells = [part for cell in value.ravel() for _, part in _matrices("", cell, source)]
        for i, cell in enumerate(cells):
            yield (f"{name}{i + 1}" if len(cells) > 1 else name), cell
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.size > 1:
        if value.ndim == 2:
            yield name, value.astype(np.float64)
        elif value.ndim == 3:
            for i, layer in enumerate(value):
                yield f"{name}{i + 1}", layer.astype(np.float64)


def orient(views: list[FileView], n_samples: int | None) -> list[FileView]:
    """Transpose views so that all have the same number of rows.

    Raises
    ------
    ValueError
        If no number of samples fits all of them.
    """
    if n_samples is None:
        rows = {view.n_samples for view in views}
        if len(rows) == 1:
            return views
        common = set.intersection(*({view.n_samples} if view.fixed else set(view.values.shape) for view in views))
        if len(common) != 1:
            shapes = ", ".join(f"{view.name} {view.values.shape[0]} x {view.values.shape[1]}" for view in views)
            raise ValueError(f"{views[0].source}: the views do not have the same samples: {shapes}.")
        n_samples = common.pop()
    oriented = []
    for view in views:
        if view.n_samples == n_samples:
            oriented.append(view)
        elif not view.fixed and view.ids is None and view.values.shape[1] == n_samples:
            oriented.append(view.transposed())
        else:
            raise ValueError(
                f"{view.source}: {view.name} is {view.values.shape[0]} x {view.values.shape[1]}, but there are "
                f"{n_samples} samples."
            )
    return oriented
