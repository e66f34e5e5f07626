"""Fitted models as files, without pickle: loading runs no code from the file.

A model is a zip archive of uncompressed members: ``model.json`` (format and package version, class, parameters and
plain attributes), ``arrays/0.npy``, ``arrays/1.npy``, ... (numbers, booleans and strings only), and ``sha256``, the
checksum of all others in this order. What the JSON may hold is listed here: names of classes, of attributes and of
records; everything else is refused. The checksum finds damage, not forgery.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse

from emvc._model_fields import RULES, check_fields
from emvc._output import write_file
from emvc._sparse import check_sparse
from emvc._version import __version__

FORMAT = "emvc-model"
FORMAT_VERSION = 2
CLASSES = (
    *("AMGL", "EMVC", "ETLMSC", "GMC", "LMVSC", "NEMO", "RMSC", "SNF"),
    *("BestSingleView", "CoRegularized", "FeatureConcatenation", "KernelAddition"),
)
ATTRIBUTES = frozenset(RULES)
"""Attributes that a model may have."""
RECORDS = {
    "History": "emvc.solvers",
    "ADMM": "emvc.solvers",
    "ALM": "emvc.solvers",
    "Training": "emvc.estimators._predict",
    "ColumnRecord": "emvc.intake",
    "Coding": "emvc.intake",
    "Rule": "emvc.intake",
}
"""Small records that may be inside a model, and where they are defined."""

_KINDS = "biufU"  # booleans, integers, floats, strings: nothing that could hold an object
_MOST_NESTED = 20


class ModelFileError(ValueError):
    """A file is not a model, is damaged, or was written by another version."""


def save(model: Any, path: str | os.PathLike[str], *, training: bool = True) -> None:
    """Write a fitted model to a file; it appears whole or not at all.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of this package.
    path : path
        The file; an existing one is replaced.
    training : bool
        Whether the values of the training samples are kept, which `emvc.EMVC` predicts from. Without them the model
        cannot predict, and the file tells names, labels, errors and links of the samples, but not the data.

    Raises
    ------
    TypeError
        If a parameter cannot be written, such as a function or a random generator.

    Examples
    --------
    >>> import tempfile, emvc
    >>> from emvc.datasets import make_paper_synthetic
    >>> model = emvc.KernelAddition(2, random_state=0).fit(make_paper_synthetic(50, random_state=0).views)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.emvc")
    ...     emvc.load(f"{folder}/model.emvc")
    KernelAddition(n_clusters=2, random_state=0)
    """
    name = type(model).__name__
    if name not in CLASSES:
        raise TypeError(f"{name} cannot be saved; only {', '.join(CLASSES)} can.")
    arrays: list[Any] = []
    params = {
        key: _encode(value, key, arrays) for key, value in model.get_params(deep=False).items() if key != "memory"
    }
    fitted = {
        key: value for key, value in vars(model).items() if key.endswith("_") or (key == "_training" and training)
    }
    fitted.pop("problem_", None)  # as large as all views together, and made again by a fit
    for key in fitted:
        if key not in ATTRIBUTES:
            raise TypeError(f"{name} has the attribute {key!r}, which the file format does not know.")
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "emvc_version": __version__,
        "class": name,
        "params": params,
        "attributes": {key: _encode(value, key, arrays) for key, value in sorted(fitted.items())},
    }
    members = {"model.json": json.dumps(content, allow_nan=False, indent=1).encode()}
    members |= {f"arrays/{i}.npy": _to_npy(array) for i, array in enumerate(arrays)}
    _write(Path(path), members)


def _encode(value: Any, owner: str, arrays: list[Any]) -> Any:  # noqa: PLR0911
    """Return a value as JSON; arrays are appended to ``arrays`` and referred to by number."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, np.generic):
        return _encode(value.item(), owner, arrays)
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if scipy.sparse.issparse(value):
        matrix = check_sparse(value, owner)
        arrays.extend((matrix.data, matrix.indices, matrix.indptr))
        return {"sparse": len(arrays) - 3, "shape": list(matrix.shape)}
    if isinstance(value, list):
        return [_encode(item, owner, arrays) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_encode(item, owner, arrays) for item in value]}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _encode(item, owner, arrays) for key, item in value.items()}}
    if type(value).__name__ in RECORDS and dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        return {
            "record": type(value).__name__,
            "fields": {key: _encode(item, owner, arrays) for key, item in fields.items()},
        }
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.floating)):
        return np.dtype(value).name
    what = "a function" if callable(value) else f"of type {type(value).__name__}"
    raise TypeError(
        f"{owner} is {what} and cannot be written without pickle. Where it is no longer needed, replace it first, for "
        f"instance by set_params({owner}=None)."
    )


def _to_npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _checksum(members: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in members.items():
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _write(path: Path, members: dict[str, bytes]) -> None:
    def write(stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for name, content in (members | {"sha256": _checksum(members).encode()}).items():
                archive.writestr(zipfile.ZipInfo(name), content)

    write_file(path, write)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` has written.

    Raises
    ------
    ModelFileError
        If the file is damaged, is no model, or holds anything that this version does not know.

    Examples
    --------
    >>> import tempfile
    >>> from emvc import EMVC
    >>> from emvc.datasets import make_paper_synthetic
    >>> model = EMVC(2, random_state=0).fit(make_paper_synthetic(n_per_cluster=20, random_state=0).views)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.emvc")
    ...     bool((load(f"{folder}/model.emvc").labels_ == model.labels_).all())
    True
    """
    path = Path(path)
    path.open("rb").close()  # is there, and may be read
    try:
        members = _read(path)
        content = _parse(members["model.json"])
        arrays = [_from_npy(data) for name, data in members.items() if name != "model.json"]
        return _restore(content, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except Exception as error:  # what reads archives and headers raises whatever a damaged file leads it to
        told = " ".join(str(error).split()) or type(error).__name__
        raise ModelFileError(f"{path} is not a model file, or is damaged ({told}).") from None


def _read(path: Path) -> dict[str, bytes]:
    """Return the members of an archive after checking their names, sizes and checksum."""
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        names = [info.filename for info in infos]
        expected = ["model.json", *(f"arrays/{i}.npy" for i in range(len(names) - 2)), "sha256"]
        if len(names) < 2 or names != expected:
            odd = next((name for name in names if name not in expected), None)
            reason = f"unexpected member {odd!r}" if odd else "its members are incomplete or out of order"
            raise ModelFileError(f"not a model file: {reason}.")
        # Nothing is compressed, so that a small file cannot grow into a large one.
        if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in infos):
            raise ModelFileError("not a model file: its members are compressed.")
        if sum(info.file_size for info in infos) > size:
            raise ModelFileError("not a model file: its members are larger than the file.")
        members = {name: archive.read(name) for name in names}
    told = members.pop("sha256")
    if told != _checksum(members).encode():
        raise ModelFileError("the checksum does not match: the file was changed or damaged.")
    return members


def _parse(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelFileError("its description is not JSON.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelFileError("not a model file: its description says something else.")
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"format version {version!r} (written by emvc {content.get('emvc_version')!r}) is not known to emvc "
            f"{__version__}, which reads version {FORMAT_VERSION}."
        )
    return content


def _from_npy(data: bytes) -> Any:
    """Return an array; the size of the data is compared with the header before anything is allocated."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = reader(stream)
    except ValueError:
        raise ModelFileError("an array has a damaged header.") from None
    start, count = stream.tell(), math.prod(shape)
    if dtype.kind not in _KINDS or count * dtype.itemsize != len(data) - start or min(shape, default=0) < 0:
        raise ModelFileError("an array does not have the size or the type that it claims.")
    return np.frombuffer(data, dtype, count, start).reshape(shape, order="F" if fortran else "C").copy()


def _restore(content: Mapping[str, Any], arrays: list[Any]) -> Any:
    name, params, fitted = (content.get(key) for key in ("class", "params", "attributes"))
    if name not in CLASSES:
        raise ModelFileError(f"unknown class {name!r}.")
    if not isinstance(params, dict) or not isinstance(fitted, dict):
        raise ModelFileError("parameters or attributes are missing.")
    estimator = getattr(importlib.import_module("emvc.estimators"), str(name))
    unknown = sorted(set(params) - set(estimator().get_params(deep=False))) + sorted(set(fitted) - ATTRIBUTES)
    if unknown:
        raise ModelFileError(f"unknown parameter or attribute {unknown[0]!r} of {name}.")
    try:
        # The place of a cache belongs to the machine of the fit, and what lies there is unpickled.
        params = {key: value for key, value in params.items() if key != "memory"}
        model = estimator(**{key: _decode(value, arrays) for key, value in params.items()})
        for key, value in fitted.items():
            setattr(model, key, _decode(value, arrays))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"its content does not fit together ({error}).") from None
    try:
        check_fields(model)
    except (ValueError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{str(error).rstrip('.')}.") from None
    return model


def _decode(value: Any, arrays: list[Any], depth: int = 0) -> Any:  # noqa: PLR0911
    if depth > _MOST_NESTED:
        raise ModelFileError("its content is nested too deeply.")
    if isinstance(value, list):
        return [_decode(item, arrays, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[_index(value["array"])]
    if "sparse" in value:
        return _sparse(_index(value["sparse"]), value["shape"], arrays)
    if "float" in value:
        return float(value["float"])
    if "tuple" in value:
        return tuple(_decode(item, arrays, depth + 1) for item in value["tuple"])
    if "dict" in value:
        return {key: _decode(item, arrays, depth + 1) for key, item in value["dict"].items()}
    record = value.get("record")
    if record not in RECORDS:
        raise ModelFileError(f"unknown record {record!r}.")
    known = getattr(importlib.import_module(RECORDS[record]), record)
    return known(**{key: _decode(item, arrays, depth + 1) for key, item in value["fields"].items()})


def _index(number: Any) -> int:
    if not isinstance(number, int) or number < 0:
        raise ModelFileError(f"array {number!r} does not exist.")
    return number


def _sparse(first: int, shape: Any, arrays: list[Any]) -> Any:
    matrix = scipy.sparse.csr_matrix(tuple(arrays[first : first + 3]), shape=tuple(shape))
    return check_sparse(matrix, "a matrix")
