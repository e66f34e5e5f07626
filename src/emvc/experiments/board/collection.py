"""The data sets of the board: found in folders, each with its kind, its family and its half.

A data set is one file. In a ``.npz`` file, view k is the array ``x0``, ``x1``, ... or, if sparse, the four arrays
``x0_data``, ``x0_indices``, ``x0_indptr`` and ``x0_shape`` of a CSR matrix; ``y`` holds the classes. In a ``.mat``
file, ``X`` is a cell of views and ``y`` (or ``Y``) holds the classes. A row of NaN is a sample that the view does not
have; single NaN are cells that are not there. A file ``MANIFEST.json`` beside the files may tell the kind and the
family of each.

**Halves.** Whatever is chosen, is chosen on one half and confirmed on the other. Families (sets that share samples,
features or a source) are never torn apart. The first version was tuned on eight sets: these belong to ``choose``. The
other known families alternate in the order of their names within their kind (`HALVES`); a family that is not known
belongs where the checksum of its name says, so that nobody decides.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from emvc._sparse import check_sparse
from emvc.datasets import MultiViewDataset, load

KINDS = ("omics", "image", "text", "graph", "sensor", "other")

HALVES = {
    "choose": {
        "omics": ("aml", "kipan", "microbiome", "scgem", "snareseq", "uvm"),
        "image": ("100leaves", "ccv", "handwritten", "image_segmentation", "msrc", "pie", "scene15"),
        "text": ("3sources", "bbcsport", "webkb"),
        "graph": ("blogcatalog", "citeseer", "wiki"),
        "sensor": ("basic_motions",),
    },
    "confirm": {
        "omics": ("brca", "liver", "nutrimouse", "scmt", "tara"),
        "image": ("buaa", "eyaleb", "mnist", "urban"),
        "text": (),
        "graph": ("acm", "lazega"),
        "sensor": ("robot",),
    },
}
"""Known families by half and kind; the eight sets of the first version are all in the first half."""

_FAMILY_OF = {"mb_": "microbiome", "hdigit": "mnist"}
"""Beginnings of names that differ from that of their family."""

_FOLDERS = {"nutrimouse": "gene.csv"}
"""Data sets that are a folder of tables, and a file that tells them."""


@dataclass(frozen=True)
class BoardSet:
    """A data set of the board, not yet read.

    Attributes
    ----------
    name : str
        Name of the file.
    path : str
        Where it is.
    digest : str
        Beginning of its SHA-256: a file that was changed is another data set.
    kind, family, half : str
        What it is, what it is related to, and which half of the board it belongs to.
    n_samples : int
        Number of samples.
    """

    name: str
    path: str
    digest: str
    kind: str
    family: str
    half: str
    n_samples: int

    def read(self) -> MultiViewDataset:
        """Return the data."""
        return _read(self.path, self.digest)


def find_sets(folders: Iterable[str | os.PathLike[str]], *, most_samples: int | None = None) -> list[BoardSet]:
    """Return the data sets in some folders and the folders inside them, small ones first.

    Parameters
    ----------
    folders : iterable of paths
        Folders, or single files.
    most_samples : int, optional
        Leave out larger ones.

    Raises
    ------
    FileNotFoundError
        If a folder does not exist, or there is no data set in any.
    ValueError
        If two data sets have the same name, or a file is not one.
    """
    found: dict[str, BoardSet] = {}
    for folder in map(Path, folders):
        if not folder.exists():
            raise FileNotFoundError(f"There is no folder {folder}.")
        for path in _candidates(folder):
            entry = _describe(path)
            if entry.name in found and found[entry.name].digest != entry.digest:
                raise ValueError(f"Two data sets are called {entry.name}: {found[entry.name].path} and {path}.")
            found[entry.name] = entry
    if not found:
        raise FileNotFoundError(
            "There is no data set (.npz or .mat) in " + ", ".join(str(folder) for folder in folders) + "."
        )
    chosen = [entry for entry in found.values() if most_samples is None or entry.n_samples <= most_samples]
    return sorted(chosen, key=lambda entry: (entry.n_samples, entry.name))


def half_of(family: str) -> str:
    """Return the half that a family belongs to.

    Examples
    --------
    >>> half_of("webkb"), half_of("tara")
    ('choose', 'confirm')
    """
    for half, kinds in HALVES.items():
        if any(family in families for families in kinds.values()):
            return half
    even = hashlib.sha256(family.encode()).digest()[0] % 2 == 0
    return "choose" if even else "confirm"


def _known(name: str) -> tuple[str, str]:
    """Return family and kind of a data set by its name; its own name and "other" if it is not known."""
    for beginning, family in _FAMILY_OF.items():
        if name.startswith(beginning):
            return family, _kind_of(family)
    families = [family for kinds in HALVES.values() for names in kinds.values() for family in names]
    for family in sorted(families, key=len, reverse=True):
        if name.startswith(family):
            return family, _kind_of(family)
    return name, "other"


def _kind_of(family: str) -> str:
    return next(kind for kinds in HALVES.values() for kind, families in kinds.items() if family in families)


def _candidates(folder: Path) -> Sequence[Path]:
    if folder.is_file():
        return [folder]
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in (".npz", ".mat") and path.is_file()]
    tables = [folder / name for name, file in _FOLDERS.items() if (folder / name / file).is_file()]
    return files + tables


def _describe(path: Path) -> BoardSet:
    name = path.stem
    digest = _digest(path)
    family, kind = _known(name)
    listed = _manifest(str(path.parent)).get(name, {})
    family, kind = str(listed.get("family", family)), str(listed.get("kind", kind))
    kind = kind if kind in KINDS else "other"
    return BoardSet(name, str(path), digest, kind, family, half_of(family), _count(path, digest))


def _digest(path: Path) -> str:
    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    total = hashlib.sha256()
    for file in files:
        total.update(file.read_bytes())
    return total.hexdigest()[:16]


@lru_cache(maxsize=16)
def _manifest(folder: str) -> dict[str, dict[str, Any]]:
    path = Path(folder) / "MANIFEST.json"
    if not path.is_file():
        return {}
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return {str(entry["name"]): dict(entry) for entry in entries}
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is not a list of data sets, each with a name: {error}") from error


def _count(path: Path, digest: str) -> int:
    """Return the number of samples, if possible without reading the views."""
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as stored:
                return len(stored["y"])
        if path.suffix == ".mat":
            shapes = {name: shape for name, shape, _ in scipy.io.whosmat(path)}
            return int(np.prod(shapes["y" if "y" in shapes else "Y"]))
    except Exception as error:
        raise ValueError(f"{path} is not a data set: it needs views and the classes y ({error}).") from error
    return len(_read(str(path), digest).labels)


@lru_cache(maxsize=2)
def _read(path: str, digest: str) -> MultiViewDataset:
    del digest  # so that a file that was changed is read anew
    file = Path(path)
    if file.is_dir():
        return load(file.name, file.parent, download=False)
    try:
        views, classes = _read_npz(file) if file.suffix == ".npz" else _read_mat(file)
    except Exception as error:
        raise ValueError(f"{path} cannot be read as a data set: {error}") from error
    labels = np.unique(np.ravel(classes), return_inverse=True)[1]
    if not views or any(view.shape[0] != len(labels) for view in views):
        shapes = ", ".join(str(view.shape) for view in views)
        raise ValueError(f"{path} has {len(labels)} classes y, but views of shape {shapes or 'none'}.")
    return MultiViewDataset(views, labels, [str(k) for k in range(len(views))], file.stem)


def _read_npz(path: Path) -> tuple[list[Any], Any]:
    with np.load(path, allow_pickle=False) as stored:
        views: list[Any] = []
        while (name := f"x{len(views)}") in stored or f"{name}_data" in stored:
            if name in stored:
                views.append(np.asarray(stored[name], dtype=np.float64))
                continue
            parts = (stored[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
            views.append(
                _sparse(check_sparse(scipy.sparse.csr_array(tuple(parts), shape=tuple(stored[f"{name}_shape"])), name))
            )
        return views, stored["y"]


def _read_mat(path: Path) -> tuple[list[Any], Any]:
    content = scipy.io.loadmat(path)
    views = [
        _sparse(scipy.sparse.csr_array(check_sparse(view, "a view")))
        if scipy.sparse.issparse(view)
        else np.asarray(view, dtype=np.float64)
        for view in np.ravel(content["X"])
    ]
    return views, content["y"] if "y" in content else content["Y"]


def _sparse(view: Any) -> Any:
    view.check_format(full_check=True)
    return view.astype(np.float64)
