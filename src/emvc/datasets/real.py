"""Real data sets: found on disk or downloaded, and always verified by checksum.

A file is looked for in ``data_home``, then in the folder named by the environment variable ``EMVC_DATA``, then in the
user's cache folder (``~/.cache/emvc``, or ``emvc`` in ``XDG_CACHE_HOME``). What is not there is downloaded into
``data_home`` or the cache folder.
"""

from __future__ import annotations

import csv
import hashlib
import os
import time
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.io

from emvc._array import FloatArray
from emvc._output import write_file
from emvc.datasets._base import MultiViewDataset
from emvc.datasets._registry import REGISTRY, SUPPLIED, RemoteFile

_TIMEOUT = 30  # seconds without an answer before a download is given up
_LARGEST_FILE = 2**26  # bytes; more, or for longer, is not downloaded
_LONGEST = 1800.0  # seconds


class DatasetNotFoundError(FileNotFoundError):
    """A data set is not on this machine and could not be downloaded."""


def available() -> list[str]:
    """Return the names that `load` knows, ``fox`` and ``cnn`` included, whose files the user must supply.

    Examples
    --------
    >>> "webkb" in available()
    True
    """
    return sorted([*REGISTRY, *SUPPLIED])


def load(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    progress: bool = False,
) -> MultiViewDataset:
    """Load a real data set by name.

    Parameters
    ----------
    name : str
        One of `available`.
    data_home : path, optional
        Folder to look in first, and to download into.
    download : bool
        Whether to download what is not on this machine.
    progress : bool
        Show a progress bar on standard error while downloading.

    Raises
    ------
    ValueError
        If the name is unknown, or a file is not the expected one.
    DatasetNotFoundError
        If a file is neither on this machine nor to be downloaded; the message says what to do.
    """
    if isinstance(name, str) and name in SUPPLIED:
        return _load_supplied(name, data_home)
    if not isinstance(name, str) or name not in REGISTRY:
        raise ValueError(f"Unknown data set {name!r}; choose from {', '.join(available())}.")
    entry = REGISTRY[name]
    paths = fetch(name, data_home, download=download, progress=progress)
    if name == "nutrimouse":
        gene, lipid, diet = (_read_csv(path) for path in paths)
        views = [np.asarray(table, dtype=np.float64) for table in (gene, lipid)]
        classes: Any = np.ravel(diet)
    else:
        views, classes = _read_mat(paths[0])
    labels = np.unique(classes, return_inverse=True)[1]
    return MultiViewDataset(views, labels, list(entry.view_names), name)


def fetch(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    progress: bool = False,
) -> list[Path]:
    """Return the verified files of a data set, downloaded first where necessary (see `load`)."""
    return [_locate(name, file, data_home, download, progress) for file in REGISTRY[name].files]


def _folders(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders to look in; the first and the last are also those to download into."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "emvc"
    return [Path(folder) for folder in (data_home, os.environ.get("EMVC_DATA"), cache) if folder]


def _locate(
    name: str, file: RemoteFile, data_home: str | os.PathLike[str] | None, download: bool, progress: bool
) -> Path:
    folders = _folders(data_home)
    for folder in folders:
        path = folder / file.name
        if path.is_file():
            _verify(path, name, file.sha256)
            return path
    looked = ", ".join(str(folder) for folder in folders)
    advice = (
        f"It comes from {file.address}. Put it into one of these folders as {file.name}, or name its folder by "
        "data_home or by the environment variable EMVC_DATA."
    )
    if not download:
        raise DatasetNotFoundError(f"{file.name} of data set {name!r} was not found in {looked}. {advice}")
    target = Path(data_home) if data_home else folders[-1]
    try:
        return _download(file, target, progress=progress)
    except (OSError, ValueError) as error:
        raise DatasetNotFoundError(
            f"{file.name} of data set {name!r} was not found in {looked} and could not be downloaded ({error}). "
            f"{advice}"
        ) from error


def _verify(path: Path, name: str, sha256: str) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != sha256:
        raise ValueError(
            f"{path} is not the expected version of data set {name!r}: its SHA-256 is {digest}, not {sha256}. "
            "Delete it to have it downloaded again."
        )


def _download(file: RemoteFile, folder: Path, *, progress: bool) -> Path:
    """Download one file; it appears in ``folder`` only when complete and verified."""
    import pooch

    from emvc.datasets._progress import DownloadProgress

    path = folder / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    bar: Any = DownloadProgress(file.name) if progress else False
    pooch.get_logger().setLevel("ERROR")
    download = pooch.HTTPDownloader(progressbar=bar, timeout=_TIMEOUT)

    def write(stream: IO[bytes]) -> None:
        counted = _Verified(stream)
        download(file.address, counted, None)
        counted.compare(file.sha256)

    try:
        write_file(path, write)
    finally:
        if bar:
            bar.close()
    return path


class _Verified:
    """A stream that keeps a checksum of what is written to it, and takes no more than a data set can have."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._digest, self._size, self._start = stream, hashlib.sha256(), 0, time.monotonic()

    def write(self, content: bytes) -> int:
        self._size += len(content)
        if self._size > _LARGEST_FILE:
            raise ValueError(f"it is larger than {_LARGEST_FILE} bytes, which is no data set")
        if time.monotonic() - self._start > _LONGEST:
            raise TimeoutError(f"it took more than {_LONGEST:g} s")
        self._digest.update(content)
        return self._stream.write(content)

    def flush(self) -> None:
        """Do nothing: the file is flushed once, at its end."""

    def compare(self, sha256: str) -> None:
        if self._digest.hexdigest() != sha256:
            raise ValueError(f"its SHA-256 is {self._digest.hexdigest()}, not {sha256}")


def _read_mat(path: Path) -> tuple[list[FloatArray], Any]:
    content = scipy.io.loadmat(path)
    classes = content["y"] if "y" in content else content["Y"]
    return [np.asarray(view, dtype=np.float64) for view in content["X"].ravel()], classes.ravel()


def _read_csv(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))[1:]


def _load_supplied(name: str, data_home: str | os.PathLike[str] | None) -> MultiViewDataset:
    """Load a set that has no public source from a file that the user has put in place."""
    n_samples, n_features, n_clusters = SUPPLIED[name]
    folders = _folders(data_home)
    shape = f"{n_samples} samples, views of {' and '.join(map(str, n_features))} features, {n_clusters} classes"
    for folder in folders:
        path = folder / f"{name}.mat"
        if path.is_file():
            try:
                views, classes = _read_mat(path)
            except Exception as error:
                message = f"{path} cannot be read as a .mat file with the keys X (cell of views) and y: {error}"
                raise ValueError(message) from error
            found = tuple(view.shape for view in views)
            if found != tuple((n_samples, d) for d in n_features) or len(np.unique(classes)) != n_clusters:
                raise ValueError(
                    f"{path} is not data set {name!r}: expected {shape}, got views of shapes {found} and "
                    f"{len(np.unique(classes))} classes."
                )
            labels = np.unique(classes, return_inverse=True)[1]
            return MultiViewDataset(views, labels, ["text", "image"], name)
    looked = ", ".join(str(folder) for folder in folders)
    raise DatasetNotFoundError(
        f"Data set {name!r} has no public source. If you have it, put it as {name}.mat into one of {looked}: keys X "
        f"(cell of views) and y; {shape}."
    )
