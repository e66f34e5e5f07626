"""All output goes through here: it appears whole or not at all, and nothing that others wrote is lost.

A run works in the folder `WORK` inside its output folder and holds a lock there, which the system takes back when the
process ends, however it ends. So the next run knows whether it has to stay away or to tidy up. What is finished is
moved into place after a marker says so; a run that was killed in between is completed by the next one.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

WORK = ".emvc-run"
"""Where a run works inside its output folder."""

_COMPLETE, _NEW, _OLD, _MANIFEST, _LOCK = "complete", "new", "old", "manifest.json", "lock"


def write_file(path: str | os.PathLike[str], content: bytes | Callable[[IO[bytes]], Any]) -> None:
    """Write a file that appears whole or not at all, and is on the disk when this returns.

    Parameters
    ----------
    path : path
        The file; an existing one is replaced. Two processes that write it wait for each other.
    content : bytes or callable
        What to write, or a function that writes it to the binary stream that it is given.

    Raises
    ------
    IsADirectoryError
        If ``path`` is a folder.
    OSError
        If it cannot be written; what was there before is still there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(f"{folder}/a.txt", b"whole")
    ...     Path(f"{folder}/a.txt").read_text(), os.listdir(folder)
    ('whole', ['a.txt'])
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder, not a file.")
    temporary = target.with_name(f".{target.name}.emvc-part")
    stream = _open_locked(temporary, wait=True)
    try:
        with stream:
            stream.truncate(0)
            if isinstance(content, bytes):
                stream.write(content)
            else:
                content(stream)
            stream.flush()
            os.fsync(stream.fileno())
            if sys.platform != "win32":  # still locked: nobody else may write to it until it has its name
                os.replace(temporary, target)
        if sys.platform == "win32":  # which does not rename open files
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


@contextmanager
def locked(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Create a folder if there is none, and keep other runs out of it; yield a folder inside to work in.

    What a killed run has left there is removed first.

    Raises
    ------
    NotADirectoryError
        If it exists and is no folder.
    BlockingIOError
        If another run writes to it.
    """
    target = Path(folder).absolute()
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{target} exists and is not a folder.")
    was_there = target.exists()
    target.mkdir(parents=True, exist_ok=True)
    work = target / WORK
    try:
        try:
            stream = _lock_work(work)
        except BlockingIOError:
            raise BlockingIOError(
                f"Another run is writing to {target}. Wait until it has ended, or choose another folder."
            ) from None
        with stream:
            try:
                _settle(target)
                _clear(work)
                yield work
            finally:
                _clear(work)
                with suppress(OSError):  # another run may have come already
                    (work / _LOCK).unlink()
    finally:
        with suppress(OSError):
            work.rmdir()
        if not was_there:
            with suppress(OSError):  # not empty: there are results
                target.rmdir()


@contextmanager
def new_results(target: str | os.PathLike[str], known: Collection[str], *, force: bool) -> Iterator[Path]:
    """Yield a folder for results, which take their places in ``target`` together at the end, or go if anything fails.

    Parameters
    ----------
    target : path
        The output folder.
    known : collection of str
        Names of the files of such results; those of an earlier one are replaced with ``force``. Other files stay.
    force : bool
        Whether an earlier result may be replaced.

    Raises
    ------
    FileExistsError
        If the folder is not empty, at the start or at the end.
    """
    target = Path(target).absolute()
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{target} exists and is not a folder.")
    with locked(target) as work:
        _check_replaceable(target, known, force=force)
        folder = work / _NEW
        folder.mkdir()
        yield folder
        _check_replaceable(target, known, force=force)  # it may have been filled meanwhile
        names = sorted(path.name for path in folder.iterdir())
        old = [name for name in known if name not in names and (target / name).is_file()]
        (folder / _MANIFEST).write_text(json.dumps({"names": names, "old": old}), encoding="utf-8")
        for name in (*names, _MANIFEST):
            _sync(folder / name)
        _sync_folder(folder)
        os.rename(folder, work / _COMPLETE)  # from here on the results are there, whatever happens
        _sync_folder(work)
        _settle(target)


def _check_replaceable(target: Path, known: Collection[str], *, force: bool) -> None:
    there = sorted(path.name for path in target.iterdir() if path.name != WORK)
    if there and not force:
        raise FileExistsError(f"{target} exists and is not empty; choose another folder, or --force to replace it.")
    foreign = [name for name in there if name not in known or not (target / name).is_file()]
    if foreign:
        raise FileExistsError(f"{target} holds other files ({foreign[0]!r}), which --force does not delete.")


def _settle(target: Path) -> None:
    """Move complete results into place; after a kill this goes on where it was, after an error the old ones return."""
    complete, aside = target / WORK / _COMPLETE, target / WORK / _OLD
    if not (complete / _MANIFEST).is_file():
        return
    manifest = json.loads((complete / _MANIFEST).read_text(encoding="utf-8"))
    aside.mkdir(exist_ok=True)
    try:
        for name in manifest["names"]:
            if (complete / name).exists():
                _move_if_there(target / name, aside / name)
                os.replace(complete / name, target / name)
        for name in manifest["old"]:
            _move_if_there(target / name, aside / name)
        _sync_folder(target)
    except BaseException:
        for name in (*manifest["names"], *manifest["old"]):
            _move_if_there(aside / name, target / name)
        shutil.rmtree(complete, ignore_errors=True)
        raise
    shutil.rmtree(complete)


def _move_if_there(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        os.replace(source, target)


def _clear(work: Path) -> None:
    """Remove everything but the lock, and results that are complete with what they replace."""
    kept = {_LOCK, _COMPLETE, _OLD} if (work / _COMPLETE / _MANIFEST).is_file() else {_LOCK}
    with suppress(OSError):
        for path in list(work.iterdir()):
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _lock_work(work: Path) -> IO[bytes]:
    while True:
        with suppress(FileExistsError):
            work.mkdir(parents=True)
        try:
            return _open_locked(work / _LOCK, wait=False)
        except FileNotFoundError:  # the run before has just removed its folder
            continue


def _open_locked(path: Path, *, wait: bool) -> IO[bytes]:
    """Open a file that nobody else has open in this way; the lock ends with the process."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        stream = os.fdopen(os.open(path, flags, 0o666), "r+b")
        try:
            _lock(stream.fileno(), wait=wait)
            if os.path.samestat(os.fstat(stream.fileno()), os.stat(path)):
                return stream
        except FileNotFoundError:  # renamed or removed by the process that had it
            pass
        except BaseException:
            stream.close()
            raise
        stream.close()


if sys.platform == "win32":  # pragma: no cover

    def _lock(handle: int, *, wait: bool) -> None:
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from None

else:

    def _lock(handle: int, *, wait: bool) -> None:
        import errno
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):  # some file systems know no locks
                raise


def _sync(path: Path) -> None:
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder written to the disk, where the system can."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
