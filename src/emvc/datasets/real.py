"""Real data sets, read from local files whose checksum is verified.

The files are looked for in ``data_home``, then in the folder named by the environment variable ``EMVC_DATA``, then in
the user's cache folder ``~/.cache/emvc`` (or ``XDG_CACHE_HOME``).
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.io

from emvc.datasets._base import MultiViewDataset


@dataclass(frozen=True)
class _Entry:
    file: str
    sha256: str
    view_names: tuple[str, ...]


_REGISTRY = {
    "100leaves": _Entry(
        "100leaves.mat",
        "4af6d9f6588a720df763580d273dc08014476ac5f64570b0bada8b63b9952f45",
        ("margin", "shape", "texture"),
    ),
    "3sources": _Entry(
        "3sources.mat",
        "8a94f0e554c5782bc87561314f1bad8ca206910125734f4dbe2492956528c9ae",
        ("bbc", "guardian", "reuters"),
    ),
    "bbcsport": _Entry(
        "bbcsport.mat",
        "98dbf2c405c132cc7e6558fd5da904626e7069915c510392e71baeaf4925d708",
        ("segment1", "segment2"),
    ),
    "ccv": _Entry(
        "ccv.mat",
        "48f33d171100ba4a0daf11f3a8a07bfb05738d566fecbac1f799ee6e1d6543f6",
        ("view1", "view2", "view3"),
    ),
    "citeseer": _Entry(
        "citeseer.mat",
        "ca42d050f27aa0ae5d23855e93aa8b3bec4fb73ac6487b56c2ea6042d11cd77b",
        ("citations", "words"),
    ),
    "handwritten": _Entry(
        "handwritten.mat",
        "6092a69891afa22785bffd5a4348f52d49a764aa5d40751ec2c4dc0f6ed48a44",
        ("profiles", "fourier", "karhunen-loeve", "morphology", "pixels", "zernike"),
    ),
    "hdigit": _Entry(
        "hdigit.mat",
        "5ec8b26ab443c5296c7f6d71074a6827d722ab49ab7144cfa5b832891b053aa7",
        ("source1", "source2"),
    ),
    "msrc_v1": _Entry(
        "msrc_v1.mat",
        "8710728172bdd4f90c8735b2889baecead85d6dbe8bc6200547d765ae937a770",
        ("colour", "hog", "gist", "lbp", "centrist"),
    ),
    "scene15": _Entry(
        "scene15.mat",
        "92954c6838314e6da4ecd7ff090d26947e7d1d8f2191f74ee89eeaed47a88c00",
        ("view1", "view2", "view3"),
    ),
    "webkb": _Entry(
        "webkb.mat",
        "a1a3e7c50dac79ade224d556e1ff371a190fbb56c174eadfe05bad74bcec52ea",
        ("link", "page"),
    ),
}


def available() -> list[str]:
    """Return the names that `load` knows.

    Examples
    --------
    >>> "webkb" in available()
    True
    """
    return sorted(_REGISTRY)


def load(name: str, data_home: str | os.PathLike[str] | None = None) -> MultiViewDataset:
    """Load a real data set by name.

    Parameters
    ----------
    name : str
        One of `available`.
    data_home : path, optional
        Folder to look in before ``EMVC_DATA`` and the cache folder.

    Raises
    ------
    ValueError
        If the name is unknown, or a file is not the expected one.
    FileNotFoundError
        If no folder holds the file; the message lists them.
    """
    if not isinstance(name, str) or name not in _REGISTRY:
        raise ValueError(f"Unknown data set {name!r}; choose from {', '.join(available())}.")
    entry = _REGISTRY[name]
    path = _find(entry.file, data_home)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != entry.sha256:
        raise ValueError(
            f"{path} is not the expected version of data set {name!r}: its SHA-256 is {digest}, not {entry.sha256}."
        )
    content = scipy.io.loadmat(path)
    views = [np.asarray(view, dtype=np.float64) for view in content["X"].ravel()]
    classes = content["y"] if "y" in content else content["Y"]
    labels = np.unique(classes.ravel(), return_inverse=True)[1]
    return MultiViewDataset(views, labels, list(entry.view_names), name)


def _find(file: str, data_home: str | os.PathLike[str] | None) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "emvc"
    folders = [Path(folder) for folder in (data_home, os.environ.get("EMVC_DATA"), cache) if folder]
    for folder in folders:
        if (folder / file).is_file():
            return folder / file
    looked = ", ".join(str(folder) for folder in folders)
    raise FileNotFoundError(
        f"{file} was not found in {looked}. Put it into one of these folders, or name its folder by data_home or by "
        "the environment variable EMVC_DATA."
    )
