"""Hostile files are refused before they are read: bombs, files that lead to others, filters and types that run code."""

import gzip
import json
import os
import socket
import sys
import zipfile

import h5py
import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
import zarr
from pyarrow import parquet

from emvc.files import read_views
from emvc.files._gate import UnsafeFileError
from emvc.out_of_core import open_views

posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices are those of POSIX")
VALUES = np.arange(24.0).reshape(8, 3)


@pytest.fixture
def little_memory(monkeypatch):
    """A machine with 32 MiB; what would be read by the other process is read here, where that is known."""
    for module in ("_gate", "_apart"):
        monkeypatch.setattr(f"emvc.files.{module}.available_memory", lambda: 2**25)
    monkeypatch.setattr("emvc.files._gate_hdf5._room", lambda **_: 2.0**25)
    monkeypatch.setattr("emvc.files._apart._serving", True)


def refused(path, match, kind=ValueError):
    with pytest.raises(kind, match=rf"{path.name.partition('::')[0]}.*{match}") as refusal:
        read_views([path])
    assert "\n" not in str(refusal.value)


# What is no file


@posix
def test_pipes_devices_and_sockets(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zeros.npy").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as open_socket:
        before = os.getcwd()
        os.chdir(tmp_path)  # addresses of sockets are short
        open_socket.bind("socket.h5")
        os.chdir(before)
        for name in ("pipe.csv", "zeros.npy", "socket.h5"):
            refused(tmp_path / name, "device, a pipe or a socket", UnsafeFileError)


@pytest.mark.parametrize("kind", ["csv", "npy", "npz", "mat", "h5", "parquet", "h5mu", "xlsx", "csv.gz"])
def test_empty_files(kind, tmp_path):
    (tmp_path / f"a.{kind}").touch()
    refused(tmp_path / f"a.{kind}", "is empty")


# What would not fit into memory


def zeros_npz(path):
    np.savez_compressed(path, x=np.zeros((3_000_000, 2)))


def claim_npy(path):
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 9)})


def claim_npz(path):
    claim_npy(path.with_suffix(".npy"))
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(path.with_suffix(".npy"), "x.npy")


def small_integers(path):
    np.save(path, np.zeros((4_000_000, 1), dtype=np.uint8))


def packed_text(path):
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 3_000_000))


def long_text(path):
    path.write_bytes(b"a,b\n" + b"1,2\n" * 3_000_000)


def large_book(path):
    openpyxl.Workbook().save(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/more.xml", b" " * 20_000_000)


def repeated_parquet(path):
    parquet.write_table(pa.table({"a": pa.array(np.zeros(5_000_000)), "b": pa.array(np.zeros(5_000_000))}), path)


def filled_h5(path, shape=(3_000_000, 2)):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.zeros(shape), chunks=True, compression="gzip")


BOMBS = {
    "a.npz": zeros_npz,
    "b.npy": small_integers,
    "c.csv.gz": packed_text,
    "d.csv": long_text,
    "e.xlsx": large_book,
    "f.parquet": repeated_parquet,
    "g.h5": filled_h5,
}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", BOMBS)
def test_what_does_not_fit_is_refused_before_it_is_read(name, tmp_path):
    BOMBS[name](tmp_path / name)
    refused(tmp_path / name, "GiB", MemoryError)


@pytest.mark.parametrize(("name", "make"), [("a.npy", claim_npy), ("b.npz", claim_npz)])
def test_arrays_larger_than_their_files(name, make, tmp_path):
    make(tmp_path / name)
    refused(tmp_path / name, "an array of it is larger than the file")


def fill_values(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", shape=(10**5, 10**4), dtype="f8", chunks=(100, 100), fillvalue=1.5)


def zarr_of(path, *, version, shape=(8, 3), **options):
    group = zarr.open_group(path, mode="w", zarr_format=version)
    array = group.create_array(
        "x", shape=shape, chunks=(4, 3) if shape == (8, 3) else (1000, 1000), dtype="f8", **options
    )
    if shape == (8, 3):
        array[:] = VALUES
    return path


@pytest.mark.parametrize("name", ["a.h5", "a.mat", "a.h5mu", "a.h5ad"])
def test_fill_values_are_no_data_in_hdf5(name, tmp_path):
    fill_values(tmp_path / name)
    refused(tmp_path / name, "7.45 GiB of numbers, but next to none were written", UnsafeFileError)


@pytest.mark.parametrize("version", [2, 3])
def test_fill_values_are_no_data_in_zarr(version, tmp_path):
    path = zarr_of(tmp_path / "a.zarr", version=version, shape=(10**5, 10**4))
    refused(path, "7.45 GiB of numbers, but next to none", UnsafeFileError)


def test_huge_chunks_are_refused(tmp_path):
    path = zarr_of(tmp_path / "a.zarr", version=2)
    change(path / "x" / ".zarray", chunks=[2**40, 2**40])
    refused(path, "GiB", MemoryError)


def test_usual_files_pass(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["deep/x"] = VALUES
        file["other"] = h5py.SoftLink("/deep/x")
    for version in (2, 3):
        zarr_of(tmp_path / f"z{version}.zarr", version=version)
        found = read_views([f"{tmp_path}/z{version}.zarr::x"]).views
        np.testing.assert_array_equal(next(iter(found.values())), VALUES)
    np.testing.assert_array_equal(read_views([tmp_path / "a.h5"]).views["a"], VALUES)
    pd.DataFrame(VALUES, columns=list("abc")).to_parquet(tmp_path / "p.parquet")
    assert next(iter(read_views([tmp_path / "p.parquet"]).views.values())).shape == (8, 3)
    scipy.sparse.save_npz(tmp_path / "s.npz", scipy.sparse.csr_array(VALUES))
    assert read_views([tmp_path / "s.npz"]).views["s"].shape == (8, 3)


# Files of others


def external_storage(file, secret):
    file.create_dataset("x", (8, 8), dtype="u1", external=[(str(secret), 0, 64)])


def virtual(file, secret):
    layout = h5py.VirtualLayout((8, 3), "f8")
    layout[:] = h5py.VirtualSource(str(secret), "x", (8, 3))
    file.create_virtual_dataset("x", layout)


def external_link(file, secret):
    file["x"] = h5py.ExternalLink(str(secret), "/x")


@pytest.mark.parametrize("kind", ["h5", "mat", "h5ad", "h5mu"])
@pytest.mark.parametrize(
    ("make", "message"),
    [(external_storage, "from other files"), (virtual, "from other files"), (external_link, "leads to another file")],
)
def test_files_that_lead_to_others(make, message, kind, tmp_path):
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["x"] = VALUES
    with h5py.File(tmp_path / f"a.{kind}", "w") as file:
        make(file.create_group("inside"), secret)
    refused(tmp_path / f"a.{kind}", message, UnsafeFileError)
    if kind == "h5":
        with pytest.raises(UnsafeFileError, match=message):
            open_views([f"{tmp_path}/a.h5::inside/x"], chunks=2)


@posix
@pytest.mark.parametrize("place", ["x/0.0", "x"])
def test_stores_with_links(place, tmp_path):
    path = zarr_of(tmp_path / "a.zarr", version=2)
    (path / place).rename(tmp_path / "elsewhere")
    (path / place).symlink_to(tmp_path / "elsewhere")
    refused(path, "is a link", UnsafeFileError)


def test_references_that_multiply(tmp_path):
    """Ten cells of ten cells of ten cells ...: a few kB that stand for millions of matrices."""
    path = tmp_path / "a.mat"
    with h5py.File(path, "w") as file:
        refs = file.create_group("#refs#")
        inner = refs.create_dataset("x0", data=np.zeros((50, 50)))
        for level in range(1, 12):
            references = np.array([[inner.ref] * 10], dtype=h5py.ref_dtype)
            inner = refs.create_dataset(f"x{level}", data=references, dtype=h5py.ref_dtype)
        file.create_dataset("X", data=np.array([[inner.ref]], dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
    assert path.stat().st_size < 100_000
    refused(path, "GiB", MemoryError)


def test_references_to_themselves(tmp_path):
    with h5py.File(tmp_path / "a.mat", "w") as file:
        cell = file.create_dataset("X", shape=(1, 2), dtype=h5py.ref_dtype)
        cell[0, 0] = cell[0, 1] = cell.ref
    refused(tmp_path / "a.mat", "lead to each other", UnsafeFileError)


# Code


def change(path, **content):
    path.write_text(json.dumps(json.loads(path.read_text()) | content))


PICKLE = {"id": "pickle", "protocol": 5}


def in_compressor(path):
    change(path / "x" / ".zarray", compressor=PICKLE)


def in_filters(path):
    change(path / "x" / ".zarray", filters=[{"id": "delta", "dtype": "<f8"}, PICKLE])


def in_consolidated(path):
    metadata = {"x/.zarray": json.loads((path / "x" / ".zarray").read_text()) | {"compressor": PICKLE}}
    (path / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": metadata}))


def in_codecs(path):
    change(path / "x" / "zarr.json", codecs=[{"name": "numcodecs.pickle", "configuration": {}}])


def in_shards(path):
    inner = [{"name": "numcodecs.pickle", "configuration": {}}]
    sharding = {"name": "sharding_indexed", "configuration": {"codecs": inner, "chunk_shape": [2, 3]}}
    change(path / "x" / "zarr.json", codecs=[sharding])


@pytest.mark.parametrize(
    ("version", "make"),
    [(2, in_compressor), (2, in_filters), (2, in_consolidated), (3, in_codecs), (3, in_shards)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_filters_that_run_code(version, make, tmp_path):
    path = zarr_of(tmp_path / "a.zarr", version=version)
    make(path)
    refused(path, "asks for the filter '(numcodecs.)?pickle'", UnsafeFileError)
    with pytest.raises(UnsafeFileError, match="asks for the filter"):
        open_views([f"{path}::x"], chunks=2)


@pytest.mark.parametrize("name", ["arrow.py_extension_type", "other.type"])
@pytest.mark.parametrize("length", range(3))
def test_types_that_are_made_by_code(name, length, tmp_path):
    """The description of the columns is written in base64, which may begin at any place."""
    metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": "cos\nsystem\n(S'touch ran'\ntR."}
    field = pa.field("a" * (length + 1), pa.binary(), metadata=metadata)
    table = pa.table([pa.array([b"x"] * 3)], schema=pa.schema([field], metadata={"x" * length: "y"}))
    parquet.write_table(table, tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "columns of an extension type", UnsafeFileError)
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "a.parquet").rename(tmp_path / "folder.parquet" / "a.parquet")
    with pytest.raises(UnsafeFileError, match="extension type"):
        read_views([tmp_path / "folder.parquet"])
    with pytest.raises(UnsafeFileError, match="extension type"):
        open_views([tmp_path / "folder.parquet"], chunks=2)
