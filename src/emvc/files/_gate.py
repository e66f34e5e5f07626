"""The gate before all readers: what a file claims to hold is looked at before anything is read.

A file may ask for more memory than there is, may have other files of the machine read into the data, or may hold
instructions instead of numbers. Sizes, filters and references are found here without the libraries that would follow
them, as far as that is possible; what needs these libraries is done in a process of its own (`emvc.files._apart`).
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from emvc._memory import available_memory

_TEXT_GROWTH = 8  # bytes of memory for a byte of text, while a table is parsed
_BOOK_GROWTH = 8  # for a byte of an unpacked workbook
MOST_PACKED = 1032
"""How many times zlib can shrink anything."""
_FULLEST = 2000  # times the size of a file: values that were written take more room than this
_SMALL = 2**26  # bytes that need no doubt
_LARGEST_NAMES = 2**26  # bytes of descriptions in one store
_FOOTER = 8
_CODECS = frozenset(
    {
        *("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"),  # compression
        *("astype", "bitround", "delta", "fixedscaleoffset", "packbits", "quantize", "shuffle"),  # numbers to numbers
        *("adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"),  # checksums
        *("bytes", "endian", "sharding_indexed", "transpose"),  # layout
        *("vlen-bytes", "vlen-utf8", "string"),  # text
    }
)
"""Filters of Zarr that compute and cannot run anything."""


class UnsafeFileError(ValueError):
    """A file asks for something that files of numbers do not need."""


def check_file(path: Path, kind: str, *, whole: bool = True) -> None:
    """Look at a file before it is read.

    Parameters
    ----------
    path : Path
        A file or folder that exists.
    kind : str
        Ending that tells the format, such as ``".csv.gz"``.
    whole : bool
        Whether all of it will be read into memory.

    Raises
    ------
    UnsafeFileError
        If it is no file but a device or a pipe, or asks for programs or other files.
    MemoryError
        If it would not fit into memory.
    """
    _check_regular(path)
    if kind.endswith(".gz"):
        _check_packed_text(path, _room(whole=whole))
    elif kind in _KINDS:
        _KINDS[kind](path, _room(whole=whole))
    elif path.is_file() and kind in (".csv", ".tsv", ".txt", ".tab", ".dat"):
        _compare(path, _TEXT_GROWTH * path.stat().st_size, _room(whole=whole))


def _room(*, whole: bool) -> float:
    available = available_memory() if whole else None
    return math.inf if available is None else float(available)


def _compare(path: Path, needed: float, room: float) -> None:
    """Refuse what does not fit."""
    if needed > room:
        raise MemoryError(
            f"{path.name} needs about {needed / 2**30:.3g} GiB of memory, but only {room / 2**30:.3g} GiB are "
            "available. Use a part of it, or a machine with more memory."
        )


def check_written(path: Path, claimed: float, written: float) -> None:
    """Refuse arrays of which next to nothing was written: reading them makes values up, as many as the file claims."""
    if claimed > _SMALL and claimed > _FULLEST * max(written, 1):
        raise UnsafeFileError(
            f"{path.name} claims to hold {claimed / 2**30:.3g} GiB of numbers, but next to none were written to it."
        )


def _check_regular(path: Path) -> None:
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UnsafeFileError(f"{path.name} is a device, a pipe or a socket, not a file. Copy its content to a file.")
    if stat.S_ISREG(mode) and path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty.")


def _check_packed_text(path: Path, room: float) -> None:
    """Unpack a text without keeping it, if it could be too large; sizes told by the file mean nothing."""
    if _TEXT_GROWTH * MOST_PACKED * path.stat().st_size <= min(room, _FULLEST * _SMALL):
        return
    size = 0
    try:
        with gzip.open(path, "rb") as stream:
            while block := stream.read(2**20):
                size += len(block)
                _compare(path, _TEXT_GROWTH * size, room)
    except (OSError, EOFError, zlib.error):
        return  # the reader says what is wrong with it


def _check_npy(path: Path, room: float) -> None:
    with path.open("rb") as stream:
        try:
            _check_header(path, stream, path.stat().st_size, room)
        except EOFError:
            return


def _check_header(path: Path, stream: Any, size: int, room: float) -> int:
    """Compare the header of an array with the bytes that are there; return the memory for it as floats."""
    try:
        version = np.lib.format.read_magic(stream)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = reader(stream)
    except (ValueError, EOFError):
        return 0  # the reader says what is wrong with it
    count = math.prod(shape)
    if dtype.hasobject:
        return 0  # refused by the reader
    if min(shape, default=0) < 0 or count * dtype.itemsize > size:
        raise ValueError(f"{path.name} is damaged: an array of it is larger than the file.")
    _compare(path, 2 * 8 * count, room)
    return 8 * count


def _check_npz(path: Path, room: float) -> None:
    needed = 0
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            _compare(path, sum(info.file_size for info in infos), room)
            for info in infos:
                with archive.open(info) as stream:
                    needed += _check_header(path, stream, info.file_size, room)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, zlib.error):
        return  # the reader says what is wrong with it
    _compare(path, 2 * needed, room)


def _check_book(path: Path, room: float) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(info.file_size for info in archive.infolist())
    except zipfile.BadZipFile:
        return
    _compare(path, _BOOK_GROWTH * size, room)


def _check_parquet(path: Path, room: float) -> None:
    """Look at the footer for types that are made by code; sizes are compared by `check_parquet_sizes`."""
    del room
    for file in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
        _check_regular(file)
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            if size < 2 * _FOOTER:
                continue
            stream.seek(size - _FOOTER)
            (length,) = struct.unpack("<I", stream.read(4))
            if not 0 < length <= min(size - _FOOTER, _LARGEST_NAMES):
                continue
            stream.seek(size - _FOOTER - length)
            footer = stream.read(length)
        if any(b"ARROW:extension:name" in text for text in _decoded(footer)):
            raise UnsafeFileError(
                f"{file.name} has columns of an extension type, which other programs define. Write them as plain "
                "numbers or text."
            )


def _decoded(footer: bytes) -> Iterator[bytes]:
    """Yield the footer and what is written in base64 inside it, where Arrow keeps its description of the columns."""
    yield footer
    for found in re.finditer(rb"[A-Za-z0-9+/]{40,}={0,2}", footer):
        text = found.group().rstrip(b"=")
        for skipped in range(4):  # a letter before it, by chance, belongs to something else
            part = text[skipped:]
            part = part[: len(part) // 4 * 4]
            yield base64.b64decode(part)


def check_parquet_sizes(path: Path) -> float:
    """Compare the row groups of a Parquet table with the available memory; return the bytes that they claim."""
    from pyarrow import parquet

    needed = 0.0
    for file in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
        try:
            metadata = parquet.read_metadata(file)
        except (OSError, ValueError):
            return 0.0  # the reader says what is wrong with it
        groups = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        needed += max(groups, 8 * metadata.num_rows * metadata.num_columns)
        check_written(file, 8.0 * metadata.num_rows * metadata.num_columns, _FULLEST * file.stat().st_size)
    _compare(path, 2 * needed, _room(whole=True))
    return needed


def check_zarr(path: Path, room: float) -> float:
    """Look at the descriptions of all arrays in a store: filters, and sizes against what is stored.

    Returns
    -------
    claimed : float
        Bytes that its arrays take as floats.
    """
    if path.is_file():
        raise UnsafeFileError(f"{path.name} is a file; unpack it, a Zarr store is a folder.")
    claimed, written, read = 0.0, 0, 0
    for folder, folders, names in os.walk(path):
        for name in (*folders, *names):
            if (Path(folder) / name).is_symlink():
                raise UnsafeFileError(f"{path.name} leads to other files ({name!r} is a link).")
        for name in names:
            file = Path(folder) / name
            _check_regular_part(path, file)
            written += file.lstat().st_size
            if name in (".zarray", ".zgroup", ".zmetadata", "zarr.json"):
                read += file.lstat().st_size
                if read > _LARGEST_NAMES:
                    raise UnsafeFileError(f"{path.name} has more to say about its arrays than arrays need.")
                claimed += _claims(path, _json(path, file), room)
    check_written(path, claimed, written)
    _compare(path, 2 * claimed, room)
    return claimed


def _check_regular_part(path: Path, file: Path) -> None:
    if not stat.S_ISREG(file.lstat().st_mode):
        raise UnsafeFileError(f"{path.name} holds a device, a pipe or a socket ({file.name!r}).")


def _json(path: Path, file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"{path.name} is damaged: {file.name} is not JSON.") from None


def _claims(path: Path, description: Any, room: float) -> float:
    """Return the bytes that arrays claim as floats; their filters and chunks are looked at wherever they are named."""
    if isinstance(description, list):
        return sum(_claims(path, item, room) for item in description)
    if not isinstance(description, Mapping):
        return 0.0
    claimed = _array_claims(path, description, room) if "shape" in description else 0.0
    for key, value in description.items():
        if key in ("compressor", "filters", "codecs", "index_codecs"):
            _check_codecs(path, value)
        if key not in ("attributes", "chunk_grid"):
            claimed += _claims(path, value, room)
    return claimed


def _array_claims(path: Path, array: Mapping[str, Any], room: float) -> float:
    grid = array.get("chunk_grid")
    inside = grid.get("configuration") if isinstance(grid, Mapping) else None
    chunk = inside.get("chunk_shape") if isinstance(inside, Mapping) else array.get("chunks")
    sizes = []
    for shape in (array["shape"], chunk if chunk is not None else []):
        if not isinstance(shape, list) or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise ValueError(f"{path.name} is damaged: an array has no proper shape.")
        sizes.append(8.0 * math.prod(shape))
    _compare(path, 2 * sizes[1], room if math.isfinite(room) else 2.0**62)
    return sizes[0]


def _check_codecs(path: Path, value: Any) -> None:
    for codec in value if isinstance(value, list) else [value]:
        if codec is None:
            continue
        name = codec.get("id", codec.get("name")) if isinstance(codec, Mapping) else codec
        plain = str(name).removeprefix("numcodecs.").lower()
        if plain not in _CODECS:
            raise UnsafeFileError(
                f"{path.name} asks for the filter {str(name)[:40]!r}, which is not among those that only compute. "
                "Write it with another one, for instance zstd."
            )
        if isinstance(codec, Mapping) and isinstance(codec.get("configuration"), Mapping):
            for part in ("codecs", "index_codecs"):
                _check_codecs(path, codec["configuration"].get(part, []))


_KINDS: dict[str, Callable[[Path, float], Any]] = {
    ".npy": _check_npy,
    ".npz": _check_npz,
    ".xlsx": _check_book,
    ".xlsm": _check_book,
    ".parquet": _check_parquet,
    ".zarr": check_zarr,
}
