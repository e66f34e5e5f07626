"""Compilation of the hot loops, with a cache where one can be kept.

numba keeps compiled functions beside their source or in the home of the user, and refuses to compile where neither can
be written, as in a container without a home. Then a folder for temporary files is used, and no cache if there is none.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def njit(*, cache: bool = False, **options: Any) -> Callable[[Any], Any]:
    """Compile a function as `numba.njit` does; ``cache`` is a wish."""

    def decorate(function: Any) -> Any:
        if cache:
            for prepare in (_as_it_is, _use_temporary_folder):
                if not prepare():
                    continue
                try:
                    return numba.njit(cache=True, **options)(function)
                except (RuntimeError, OSError):  # there is no place that can be written
                    continue
        return numba.njit(**options)(function)

    return decorate


def _as_it_is() -> bool:
    return True


def _use_temporary_folder() -> bool:
    """Have numba use a folder of this user among the temporary files; tell whether there is one."""
    if numba.config.CACHE_DIR:  # named by the user
        return False
    try:
        numba.config.CACHE_DIR = str(_temporary_folder())
    except OSError:
        return False
    return True


def _temporary_folder() -> Path:
    """Return a folder that nobody else can have put anything into: what is cached is code."""
    number = os.getuid() if hasattr(os, "getuid") else 0
    place = Path(tempfile.gettempdir())
    if place == Path.cwd():  # the last resort of `tempfile`, where data and results are
        raise FileNotFoundError("There is no folder for temporary files.")
    folder = place / f"emvc-compiled-{number}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        private = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
        if not private or (hasattr(os, "getuid") and found.st_uid != number):
            folder = Path(tempfile.mkdtemp(prefix="emvc-compiled-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
