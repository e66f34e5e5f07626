"""The gate for files of HDF5: other files they lead to, and what they claim to hold.

This needs the library, which damaged files can crash: it is called in the process that reads (`emvc.files._apart`).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from emvc.files._gate import UnsafeFileError, _compare, _room, check_written

_MOST_OBJECTS = 100_000
_DEEPEST = 50


def check_hdf5(path: Path, *, whole: bool = True) -> float:
    """Refuse a file that leads to others, or claims more than fits into memory; return the bytes it claims.

    Parameters
    ----------
    path : Path
        The file.
    whole : bool
        Whether all of it will be read into memory.

    Raises
    ------
    UnsafeFileError
        If it has external or virtual data, links to other files, or references that multiply.
    MemoryError
        If it would not fit into memory.
    """
    import h5py

    try:
        file = h5py.File(path, "r")
    except OSError:
        return 0.0  # the reader says what is wrong with it
    with file:
        walk = _Walk(path, h5py)
        walk.group(file, 0)
        claimed = walk.claimed + walk.follow_references(file)
    _compare(path, 2 * claimed, _room(whole=whole))
    return claimed


class _Walk:
    """What was found in a file: bytes claimed by plain arrays, and arrays of references."""

    def __init__(self, path: Path, h5py: Any) -> None:
        self.path, self._h5py = path, h5py
        self.claimed = 0.0
        self._references: dict[int, Any] = {}
        self._sizes: dict[int, float] = {}
        self._seen: set[int] = set()

    def group(self, group: Any, depth: int) -> None:
        """Look at all that a group holds, each thing once."""
        h5py = self._h5py
        if depth > _DEEPEST:
            raise UnsafeFileError(f"{self.path.name} has groups inside groups, more than {_DEEPEST} deep.")
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                raise UnsafeFileError(f"{self.path.name} leads to another file ({Path(link.filename).name!r}).")
            if isinstance(link, h5py.SoftLink):
                continue  # to something that is found elsewhere in the file, or nowhere
            item = group.get(name)
            if item is None:
                continue
            address = h5py.h5o.get_info(item.id).addr
            if address in self._seen:
                continue
            self._seen.add(address)
            if len(self._seen) > _MOST_OBJECTS:
                raise UnsafeFileError(f"{self.path.name} holds more than {_MOST_OBJECTS} arrays and groups.")
            if isinstance(item, h5py.Group):
                self.group(item, depth + 1)
            elif isinstance(item, h5py.Dataset):
                self._dataset(item, address)

    def _dataset(self, item: Any, address: int) -> None:
        if item.external or item.is_virtual:
            raise UnsafeFileError(f"{self.path.name}: {item.name} takes its values from other files.")
        count = float(math.prod(item.shape)) if item.shape is not None else 0.0
        size = count * max(8, item.dtype.itemsize)
        check_written(self.path, size, item.id.get_storage_size())
        chunk = 8.0 * math.prod(item.chunks) if item.chunks else 0.0
        _compare(self.path, chunk, _room(whole=True))
        self._sizes[address] = size
        self.claimed += size
        if self._h5py.check_ref_dtype(item.dtype) is self._h5py.Reference:
            self._references[address] = item

    def follow_references(self, file: Any) -> float:
        """Return the bytes of all that references lead to, as often as they lead there."""
        found: dict[int, float] = {}
        return sum(self._follow(file, address, found, ()) for address in self._references)

    def _follow(self, file: Any, address: int, found: dict[int, float], above: tuple[int, ...]) -> float:
        if address in above or len(above) > _DEEPEST:
            raise UnsafeFileError(f"{self.path.name} has references that lead to each other without an end.")
        if address in found:
            return found[address]
        total = self._sizes.get(address, 0.0)
        item = self._references.get(address)
        if item is not None and item.size < _MOST_OBJECTS:
            for reference in item[()].ravel():
                if reference:
                    inner = self._h5py.h5o.get_info(file[reference].id).addr
                    total += self._follow(file, inner, found, (*above, address))
        found[address] = total
        if total > 2.0**62:
            raise UnsafeFileError(f"{self.path.name} has references that multiply without bounds.")
        return total
