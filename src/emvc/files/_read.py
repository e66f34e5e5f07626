"""From paths to joined views."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from emvc.files._annotated import read_h5ad, read_h5mu
from emvc.files._apart import KINDS, plain_error, read_apart
from emvc.files._arrays import read_mat, read_npy, read_npz
from emvc.files._base import FileView, ReadOptions
from emvc.files._gate import check_file
from emvc.files._join import JoinedViews, distinct_names, join
from emvc.files._stored import NeedsMemoryError, is_stored, open_stored, read_stored
from emvc.files._tables import read_excel, read_parquet, stem
from emvc.files._text import read_text
from emvc.out_of_core import split_path

TEXTS = (".csv", ".tsv", ".txt", ".tab", ".dat")
BOOKS = (".xlsx", ".xlsm")
FORMATS = (
    *TEXTS,
    *(f"{kind}.gz" for kind in TEXTS),
    *BOOKS,
    *(".parquet", ".h5ad", ".h5mu", ".npz", ".npy", ".mat", ".h5", ".hdf5", ".zarr"),
)
_ELSEWHERE = {
    ".rds": "In R, write the table with write.csv(x, 'x.csv') and use that file.",
    ".rda": "In R, load it and write each table with write.csv(x, 'x.csv').",
    ".rdata": "In R, load it and write each table with write.csv(x, 'x.csv').",
    ".xls": "Save it as .xlsx first.",
    ".ods": "Save it as .xlsx or .csv first.",
    ".feather": "In Python, write it with pandas.read_feather(...).to_parquet('x.parquet').",
    ".dta": "In Python, write it with pandas.read_stata(...).to_parquet('x.parquet').",
    ".sav": "In Python, write it with pandas.read_spss(...).to_parquet('x.parquet').",
    ".sas7bdat": "In Python, write it with pandas.read_sas(...).to_parquet('x.parquet').",
    ".pkl": "Pickles can run code and are not read; write the table with to_parquet.",
    ".pickle": "Pickles can run code and are not read; write the table with to_parquet.",
    ".loom": "In Python, write it with anndata.read_loom(...).write_h5ad('x.h5ad').",
    ".json": "In Python, write it with pandas.read_json(...).to_csv('x.csv').",
    ".zip": "Unpack it first.",
    ".gz": "Unpack it first.",
}


def read_views(
    paths: Sequence[str | os.PathLike[str]],
    *,
    id_column: str | None = None,
    header: bool | None = None,
    transpose: Sequence[str] = (),
    match_ids: str = "exact",
    options: Mapping[str, ReadOptions] | None = None,
    chunks: int | None = None,
) -> JoinedViews:
    r"""Read views from files of any of the `FORMATS` and join them on the ids of the samples.

    Parameters
    ----------
    paths : sequence of paths
        One or several files. Workbooks and .npz, .mat, .h5ad and .h5mu files may hold several views, all others hold
        one; ``"file.h5::name"``, ``"folder.zarr::name"``, ``"file.h5ad::name"`` and ``"file.xlsx::name"`` name an array
        or sheet inside the file, and ``"name=file.csv"`` names the view.
    id_column : str, optional
        Column of the sample ids in tables, ``""`` if there is none. By default a column named like one, a first column
        of text, or a column that all files have in common.
    header : bool, optional
        Whether text files start with the names of the columns; found out by default.
    transpose : sequence of str
        Names of views, or of their files, that have features in rows and samples in columns.
    match_ids : {"exact", "loose"}
        Whether ids that differ in case, '.', '-', '_', blanks or leading zeros are the same.
    options : dict of ReadOptions, optional
        How single files are to be read, by path, name of the file, or name of the view.
    chunks : int, optional
        Leaves the views in their files if the files allow it, as Dask arrays with so many rows per chunk: .npy,
        .parquet, .zarr, .h5 and .hdf5 files with the same samples in the same order do. A note says why not.

    Raises
    ------
    ValueError
        If a file cannot be used, or the files do not fit together; one line that names the file, and row and column
        where there are any.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = Path(folder) / "gene.csv", Path(folder) / "lipid.csv"
    ...     _ = one.write_text("id,a,b\ns1,1,2\ns2,3,4\n")
    ...     _ = other.write_text("id,c\ns2,5.5\ns1,6\ns3,7\n")
    ...     joined = read_views([one, other])
    >>> joined.sample_ids, joined.views["lipid"]["c"].tolist()
    (['s1', 's2', 's3'], [6.0, 5.5, 7.0])
    >>> for note in joined.notes:
    ...     print(note)
    gene.csv: UTF-8 text, separated by commas, header in the first line; sample ids from column 'id'.
    lipid.csv: UTF-8 text, separated by commas, header in the first line; sample ids from column 'id'.
    gene: 1 of 3 samples is missing ('s3').
    """
    if not paths:
        raise ValueError("No files to read.")
    common = ReadOptions(id_column=id_column, header=header)
    each = options_of(paths, common=common, transpose=transpose, options=options or {})
    notes = []
    if chunks is not None:
        try:
            return _open(paths, each, chunks=chunks)
        except NeedsMemoryError as reason:
            notes.append(f"All files were read into memory: {reason}.")
    found = [view for path, how in zip(paths, each, strict=True) for view in read_file(path, options=how)]
    joined = join(found, match_ids=match_ids)
    return replace(joined, notes=[*notes, *joined.notes])


def options_of(
    paths: Sequence[str | os.PathLike[str]],
    *,
    common: ReadOptions,
    transpose: Sequence[str] = (),
    options: Mapping[str, ReadOptions],
) -> list[ReadOptions]:
    """Return how each file is to be read.

    Raises
    ------
    ValueError
        If a name belongs to no file.
    """
    called = [names_of(path) for path in paths]
    for name in (*transpose, *options):
        if not any(name in names for names in called):
            known = ", ".join(min(names, key=len) for names in called)
            raise ValueError(f"There is no file or view {name!r} among those to read: {known}.")
    each = []
    for names in called:
        own = next((options[name] for name in names if name in options), common)
        if own is not common:
            own = replace(
                own,
                id_column=common.id_column if own.id_column is None else own.id_column,
                header=common.header if own.header is None else own.header,
            )
        each.append(replace(own, transpose=True) if any(name in names for name in transpose) else own)
    return each


def split_name(path: str | os.PathLike[str]) -> tuple[str | None, str]:
    """Split ``"name=file"`` into the name of the view and its file.

    Examples
    --------
    >>> split_name("gene=new.csv"), split_name("new.csv")
    (('gene', 'new.csv'), (None, 'new.csv'))
    """
    text = str(path)
    name, sign, rest = text.partition("=")
    if not sign or not name or "/" in name or Path(split_path(text)[0]).exists():
        return None, text
    return name, rest


def names_of(path: str | os.PathLike[str]) -> list[str]:
    """Return the names by which a file may be called."""
    given, address = split_name(path)
    file, part = split_path(address)
    names = [address, file, Path(file).name, stem(Path(file)), *([part] if part else [])]
    return [given, *names] if given else names


def _open(paths: Sequence[str | os.PathLike[str]], each: Sequence[ReadOptions], *, chunks: int) -> JoinedViews:
    """Join views that stay in their files."""
    for path, how in zip(paths, each, strict=True):
        if not is_stored(path):
            raise NeedsMemoryError(f"rows of {Path(path).name} cannot be read without the others")
        if how.transpose or how.drop:
            raise NeedsMemoryError(f"{Path(path).name} has to be changed")
    try:
        arrays, ids = open_stored(paths, id_columns=[how.id_column for how in each], chunks=chunks)
    except ImportError as error:
        raise NeedsMemoryError(str(error).rstrip(".")) from error
    n_samples = {int(array.shape[0]) for _, array in arrays}
    if len(n_samples) > 1:
        raise NeedsMemoryError("they have different numbers of rows")
    names = distinct_names([name for name, _ in arrays])
    views = dict(zip(names, (array for _, array in arrays), strict=True))
    sample_ids = list(ids) if ids is not None else [str(i) for i in range(n_samples.pop())]
    return JoinedViews(views, sample_ids, ids is not None, [])


def read_file(path: str | os.PathLike[str], *, options: ReadOptions | None = None) -> list[FileView]:
    """Read the views of one file; see `read_views`."""
    name, address = split_name(path)
    found = _checked(address, options or ReadOptions())
    if name is None:
        return found
    if len(found) > 1:
        raise ValueError(f"{found[0].source} holds {len(found)} views, which cannot all be {name!r}.")
    return [replace(found[0], name=name)]


def kind_of(path: Path) -> str:
    """Return the ending that tells the format, in lower case.

    Raises
    ------
    ValueError
        If it is none of the `FORMATS`.
    """
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    kind = "".join(endings) if endings[-1:] == [".gz"] else (endings[-1] if endings else "")
    if kind in FORMATS:
        return kind
    last = endings[-1] if endings else ""
    if last in _ELSEWHERE:
        raise ValueError(f"{path.name}: {last} files are not read here. {_ELSEWHERE[last]}")
    raise ValueError(f"{path.name}: unknown kind of file {last!r}; known are {', '.join(FORMATS)}.")


def _checked(address: str, options: ReadOptions) -> list[FileView]:
    """Read a file behind the gate, in a process of its own where damaged files can crash the reader."""
    path = Path(split_path(address)[0])
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir() and path.suffix not in (".zarr", ".parquet"):
        raise IsADirectoryError(f"{path} is a folder: name the files in it, one for each view.")
    kind = kind_of(path)
    try:
        check_file(path, kind)
        return list(read_apart(address, options)) if kind in KINDS else _read(address, options)
    except Exception as error:
        raise plain_error(error, path) from error


def _read(address: str, options: ReadOptions) -> list[FileView]:
    text, part = split_path(address)
    path = Path(text)
    kind = kind_of(path)
    if kind in (".h5", ".hdf5", ".zarr"):
        return [read_stored(address)]
    if path.is_dir() and kind != ".parquet":
        raise IsADirectoryError(f"{path} is a folder, not a file.")
    if kind.removesuffix(".gz") in TEXTS:
        return [read_text(path, options)]
    if kind in BOOKS:
        return read_excel(path, options, part)
    if kind == ".parquet":
        return [read_parquet(path, options)]
    if kind == ".h5ad":
        return read_h5ad(path, part)
    readers = {".npy": read_npy, ".npz": read_npz, ".mat": read_mat, ".h5mu": read_h5mu}
    return readers[kind](path)
