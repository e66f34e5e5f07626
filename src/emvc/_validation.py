"""The one place where input is judged: views, options and the memory they will need."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_array

from emvc._array import LARGEST, BoolArray, FloatArray, IntArray
from emvc._containers import Table, expand, is_frame, is_mudata
from emvc._memory import available_memory
from emvc._sparse import check_if_sparse

_SMALLEST = 1e-150  # squares of smaller values are rounded to few digits, or to none
_MOST_WEIGHT = 1e9

TAKE_GAPS = ("EMVC", "NEMO", "SNF", "GMC", "ETLMSC", "RMSC", "AMGL", "CoRegularized", "KernelAddition")
"""Estimators that can do with missing cells: those that see views only through the distances between samples."""

View = Any
"""A checked view: a two-dimensional float64 array or a CSR matrix."""


@dataclass(frozen=True)
class Views:
    """Checked views: finite, two-dimensional, of the same number of samples."""

    arrays: tuple[View, ...]
    names: tuple[str, ...]
    single: bool
    """Whether the caller passed one array instead of several."""
    missing: BoolArray
    """Which samples a view does not have, of shape (n_samples, n_views); their rows in the arrays are zero."""
    sample_names: Any = None
    """Names of the samples as integers or strings, if the container has any."""
    feature_names: tuple[Any, ...] = ()
    """Names of the columns of each array, None where there are none."""
    codings: Mapping[str, Any] = field(default_factory=dict)
    """How tables became numbers (`emvc.intake.Coding`), by view."""
    records: tuple[Any, ...] = ()
    """What was done with columns that are not plainly numeric (`emvc.intake.ColumnRecord`)."""

    @property
    def n_samples(self) -> int:
        """Number of samples, common to all views."""
        return int(self.arrays[0].shape[0])

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of features of each view."""
        return tuple(int(array.shape[1]) for array in self.arrays)

    def shown_rows(self) -> tuple[View, ...]:
        """Return of each view the samples that it shows."""
        parts = zip(self.arrays, self.missing.T, strict=True)
        return tuple(array[np.flatnonzero(~absent)] if absent.any() else array for array, absent in parts)

    def take(self, rows: IntArray, *, square: bool = False) -> Views:
        """Return some of the samples; with ``square``, of affinities also their columns."""
        if len(rows) == self.n_samples:
            return self
        arrays = tuple(array[rows][:, rows] if square else array[rows] for array in self.arrays)
        return Views(arrays, self.names, self.single, self.missing[rows])


def check_views(
    views: Any,
    *,
    precomputed: bool = False,
    allow_missing: bool = False,
    allow_gaps: bool = False,
    least_samples: int = 2,
    caller: str = "emvc",
    fitted: Any = None,
) -> Views:
    """Check ``views`` and return them as float64 arrays or CSR matrices with names.

    Parameters
    ----------
    views : list, tuple or dict of array-likes, AnnData, MuData, or one array-like
        Arrays, DataFrames or scipy sparse matrices. One two-dimensional array is one view. DataFrames, AnnData and the
        modalities of a MuData are matched by their ids, all others have the same rows.
    precomputed : bool
        Whether each view is a square matrix of non-negative affinities.
    allow_missing : bool
        Whether a row of NaN in a view means that the view does not have this sample. Of several views, each sample
        must be in one at least.
    allow_gaps : bool
        Whether single cells may be missing (NaN). A sparse view with such cells becomes an array.
    least_samples : int
        Least number of samples, of all views together and of each.
    caller : str
        Name used in messages.
    fitted : estimator, optional
        A fitted model whose views these are, of new samples.

    Raises
    ------
    ValueError, TypeError
        If a view cannot be used; the message names the view and, where there is one, the sample.
    """
    order = views.obs_names if is_mudata(views) else None
    expanded = expand(views)
    named, single = _name_views(expanded)
    if fitted is not None:
        by_name = isinstance(expanded, Mapping) and not scipy.sparse.issparse(expanded)
        if fitted._training.single and len(named) == 1:
            named, single = [(fitted.view_names_[0], named[0][1])], True
        else:
            named = _match(named, fitted.view_names_, by_name=by_name, allow_missing=allow_missing)
    codings = None if fitted is None else getattr(fitted, "_codings_", {})
    names = tuple(name for name, _ in named)
    gathered, samples = _gather(named, codings=codings, order=order, precomputed=precomputed)
    raw = [_as_array(view.values, n, single=single, caller=caller) for n, view in zip(names, gathered, strict=True)]
    first = raw[0].shape[0]
    for name, array in zip(names, raw, strict=True):
        if array.shape[0] != first:
            raise ValueError(
                f"All views must have the same samples: view {names[0]!r} has {first} rows, "
                f"view {name!r} has {array.shape[0]}."
            )
    missing = np.zeros((first, len(raw)), dtype=bool)
    arrays = []
    for k, (name, array) in enumerate(zip(names, raw, strict=True)):
        if allow_missing and len(raw) > 1:
            missing[:, k] = _missing_rows(array)
            array = _without_missing(array, missing[:, k], precomputed=precomputed)  # noqa: PLW2901
        at = Places(samples=samples, columns=gathered[k].columns)
        arrays.append(_check_cells(array, name, at, gaps=allow_gaps and not precomputed))
    _check_presence(missing, names, least_samples, Places(samples=samples))
    if first < least_samples:
        raise ValueError(f"{caller} needs at least {least_samples} samples, got n_samples = {first}.")
    for name, array in zip(names, arrays, strict=True):
        if not precomputed and least_samples > 1:  # a new sample may be nearly zero, a view may not
            _check_size(array, name)
    if precomputed:
        for name, array in zip(names, arrays, strict=True):
            check_affinity(array, f"view {name!r}")
    columns = tuple(view.columns for view in gathered)
    known = {name: view.coding for name, view in zip(names, gathered, strict=True) if view.coding is not None}
    records = tuple(record for view in gathered for record in view.records)
    return Views(tuple(arrays), names, single, missing, samples, columns, known, records)


def _gather(named: list[tuple[str, Any]], **options: Any) -> tuple[list[Any], Any]:
    """Return tables as numbers over the same samples; arrays stay as they are, and do not wait for pandas."""
    if any(isinstance(view, Table) or is_frame(view) for _, view in named):
        from emvc.intake import gather

        return gather(named, **options)
    return [_Plain(view) for _, view in named], None


@dataclass(frozen=True, eq=False)
class _Plain:
    """An array, of whose rows and columns nothing is known."""

    values: Any
    columns: None = None
    coding: None = None
    records: tuple[()] = ()


def is_dask(view: Any) -> bool:
    """Tell whether a view is a Dask array, without importing Dask."""
    return type(view).__module__.split(".")[0] == "dask" and hasattr(view, "to_delayed")


def has_dask(views: Any) -> bool:
    """Tell whether some view is a Dask array."""
    if isinstance(views, Mapping):
        views = list(views.values())
    return is_dask(views) or (isinstance(views, list | tuple) and any(is_dask(view) for view in views))


def check_rows(arrays: Sequence[Any], names: tuple[str, ...], *, single: bool, first: int) -> Views:
    """Check a block of consecutive rows of views whose shapes are known to be right; ``first`` is its first row."""
    missing = np.zeros((len(arrays[0]), len(arrays)), dtype=bool)
    checked = []
    for k, (name, raw) in enumerate(zip(names, arrays, strict=True)):
        if np.asarray(raw).dtype.kind not in "fiub":
            raise TypeError(f"view {name!r} is not numeric: its type is {np.asarray(raw).dtype}.")
        array = np.asarray(raw, dtype=np.float64)
        if len(arrays) > 1:
            missing[:, k] = _missing_rows(array)
            array = _without_missing(array, missing[:, k], precomputed=False)
        checked.append(_check_cells(array, name, Places(first), gaps=True))
    _check_somewhere(missing, Places(first))
    return Views(tuple(checked), names, single, missing)


def _name_views(views: Any) -> tuple[list[tuple[str, Any]], bool]:
    """Return (name, view) pairs and whether ``views`` was one array."""
    if isinstance(views, Mapping) and not scipy.sparse.issparse(views):  # DOK matrices are mappings
        if not views:
            raise ValueError("No views: the dictionary is empty.")
        names = [str(name) for name in views]
        if len(set(names)) < len(names):
            raise ValueError(f"Two views have the same name: {', '.join(map(repr, names))}.")
        return list(zip(names, views.values(), strict=True)), False
    if isinstance(views, list | tuple):
        if not views:
            raise ValueError("No views: the list is empty.")
        if any(_n_dims(view) >= 2 for view in views):
            return [(str(index), view) for index, view in enumerate(views)], False
        if any(hasattr(view, "ndim") for view in views):
            raise ValueError(
                f"The {len(views)} views have one dimension each. A view of one feature is a column: "
                "view.reshape(-1, 1). If these are the rows of one view, pass np.array(rows)."
            )
    elif not (hasattr(views, "shape") or hasattr(views, "__array__")):
        raise TypeError(
            f"views must be a list, tuple or dict of two-dimensional arrays, or one such array; got {views!r} "
            f"of type {type(views).__name__}."
        )
    elif _n_dims(views) == 3:
        return [(str(index), view) for index, view in enumerate(views)], False
    return [("0", views)], True


def _match(
    named: list[tuple[str, Any]], names: Sequence[str], *, by_name: bool, allow_missing: bool
) -> list[tuple[str, Any]]:
    """Return new views as those of a fit: by their names, or else by their places.

    Raises
    ------
    ValueError
        If a name is missing or unknown.
    """
    if not by_name:
        same = len(named) == len(names)
        return [(name, view) for name, (_, view) in zip(names, named, strict=True)] if same else named
    given = dict(named)
    for one, others, what in ((names, given, "missing"), (given, names, "unknown")):
        for name in one:
            if name not in others:
                advice = (
                    " If the new samples do not have it, give rows of NaN."
                    if allow_missing and what == "missing"
                    else ""
                )
                fitted = ", ".join(map(repr, names))
                raise ValueError(f"view {name!r} is {what}; the model was fitted to {fitted}.{advice}")
    return [(name, given[name]) for name in names]


def _n_dims(view: Any) -> int:
    if hasattr(view, "ndim"):
        return int(view.ndim)
    if not isinstance(view, list | tuple):
        return 0
    return 1 + max((_n_dims(item) for item in view[:1]), default=0)


def _as_array(view: Any, name: str, *, single: bool, caller: str) -> View:
    if isinstance(view, np.ma.MaskedArray):
        raise TypeError(f"view {name!r} is a masked array, whose mask would be lost. Fill or drop the masked values.")
    if any(getattr(dtype, "kind", None) in ("m", "M") for dtype in _dtypes(view)):
        raise TypeError(
            f"view {name!r} holds dates or times. Turn them into numbers first, such as days: "
            "(times - times.min()) / np.timedelta64(1, 'D')."
        )
    view = check_if_sparse(view, f"view {name!r}")
    try:
        array = check_array(view, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, estimator=caller)
        return array.astype(np.float64, copy=False)
    except (ValueError, TypeError, OverflowError) as error:
        prefix = "" if single else f"view {name!r}: "
        raise type(error)(f"{prefix}{_about_text(view) or error}") from error


def _about_text(view: Any) -> str:
    """Return which column of an array is text, if one is."""
    array = np.asarray(view) if _n_dims(view) == 2 and not scipy.sparse.issparse(view) else np.empty((0, 0))
    if array.dtype.kind not in "OU":
        return ""
    for column in range(array.shape[1]):
        for cell in array[:, column]:
            if isinstance(cell, str) and not _is_number(cell):
                return (
                    f"column {column} is text ({cell!r}). Give the view as a pandas DataFrame to have its columns of "
                    "text, dates and categories encoded, or drop the column."
                )
    return ""


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _dtypes(view: Any) -> list[Any]:
    """Return the types of a view, or of its columns."""
    dtypes = getattr(view, "dtypes", None)
    return [getattr(view, "dtype", None)] if dtypes is None else list(dtypes)


def _missing_rows(array: View) -> BoolArray:
    """Return which rows are entirely NaN."""
    if scipy.sparse.issparse(array):
        rows = array.tocoo().row[np.isnan(array.data)]
        return np.asarray(np.bincount(rows, minlength=array.shape[0]) == array.shape[1])
    # The first column decides for nearly all rows.
    missing = np.isnan(array[:, 0])
    missing[missing] = np.isnan(array[missing]).all(axis=1)
    return np.asarray(missing)


def _without_missing(array: View, missing: BoolArray, *, precomputed: bool) -> View:
    """Return a copy with zeros in place of missing samples: their rows, and of affinities also their columns."""
    if not missing.any():
        return array
    if scipy.sparse.issparse(array):
        array = array.tolil(copy=True)
        array[missing] = 0.0
        if precomputed:
            array[:, missing] = 0.0
        return array.tocsr()
    array = array.copy()
    array[missing] = 0.0
    if precomputed:
        array[:, missing] = 0.0
    return array


@dataclass(frozen=True, eq=False)
class Places:
    """What rows and columns of an array are called in messages: by name, or else by number, rows from ``first``."""

    first: int = 0
    samples: Any = None
    columns: Any = None

    def sample(self, row: int) -> str:
        """Return what to call the sample in a row."""
        return str(self.first + row) if self.samples is None else repr(self.samples[row].item())

    def column(self, number: int) -> str:
        """Return what to call a column."""
        return str(number) if self.columns is None else repr(self.columns[number])


def _check_presence(missing: BoolArray, names: tuple[str, ...], least_samples: int, at: Places) -> None:
    """Reject samples that no view has, and views with next to no sample."""
    _check_somewhere(missing, at)
    for name, absent in zip(names, missing.T, strict=True):
        if least_samples > 1 and absent.any() and (~absent).sum() < least_samples:
            raise ValueError(
                f"view {name!r} has fewer than {least_samples} samples; the others are missing (rows of NaN). Drop it."
            )


def _check_somewhere(missing: BoolArray, at: Places) -> None:
    """Reject samples that no view has."""
    nowhere = np.flatnonzero(missing.all(axis=1))
    if len(nowhere):
        more = f" and {len(nowhere) - 1} more" if len(nowhere) > 1 else ""
        raise ValueError(
            f"sample {at.sample(nowhere[0])}{more} is missing (a row of NaN) in every view. Drop it first."
        )


def _check_cells(array: View, name: str, at: Places, *, gaps: bool) -> View:
    """Reject infinities, values whose squares overflow, and NaN but for ``gaps``, naming the first offender.

    Return the view, as an array if cells are missing.
    """
    values = array.data if scipy.sparse.issparse(array) else array
    if values.size == 0 or (values.min() >= -LARGEST and values.max() <= LARGEST):
        return array
    _reject_missing(array, name, at)
    if gaps and np.nanmin(values) >= -LARGEST and np.nanmax(values) <= LARGEST:
        if scipy.sparse.issparse(array):
            check_memory(2, array.shape, advice=f"Missing cells make view {name!r} an array; drop them first.")
        return to_dense(array)
    if scipy.sparse.issparse(array):
        array = array.tocoo()
        size = np.abs(array.data)
        bad = int(np.flatnonzero(size > LARGEST if gaps else ~(size <= LARGEST))[0])
        row, column, value = int(array.row[bad]), int(array.col[bad]), float(array.data[bad])
    else:
        bad = np.abs(array) > LARGEST if gaps else ~(np.abs(array) <= LARGEST)
        row, column = (int(index[0]) for index in np.nonzero(bad))
        value = float(array[row, column])
    where, sample = at.column(column), at.sample(row)
    if np.isfinite(value):
        raise ValueError(
            f"view {name!r}: the value {value:g} of sample {sample} in column {where} is too large to be squared. "
            "Rescale the view."
        )
    owner = f"view {name!r}: sample {sample}"
    if np.isnan(value):
        advice = f"Methods that compare samples can work without it ({', '.join(TAKE_GAPS)}); impute or drop it."
        raise ValueError(f"{owner} contains NaN in column {where}. {advice}")
    raise ValueError(f"{owner} contains infinity (inf) in column {where}. Correct or drop it first.")


def _check_size(array: View, name: str) -> None:
    """Reject views whose squares are lost to rounding, all of them."""
    values = array.data if scipy.sparse.issparse(array) else array
    if values.size == 0:
        return
    largest = max(np.fmax.reduce(values, axis=None), -np.fmin.reduce(values, axis=None))
    if 0.0 < largest < _SMALLEST:
        raise ValueError(
            f"view {name!r}: no value is larger than {largest:g}, which is too small to be squared. Rescale the view."
        )


def _reject_missing(array: View, name: str, at: Places) -> None:
    """Reject samples whose row is entirely NaN, which is how a sample is marked as missing from a view."""
    missing = np.flatnonzero(_missing_rows(array))
    if len(missing):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(
            f"view {name!r}: sample {at.sample(missing[0])}{more} is missing (a row of NaN). Only EMVC and NEMO with "
            "several views can work without it: use one of them, or drop the sample from every view."
        )


def check_affinity(affinity: Any, owner: str, n_samples: int | None = None) -> None:
    """Check that ``affinity`` is a square, finite, non-negative matrix."""
    shape: tuple[int, ...] = getattr(affinity, "shape", ())
    if len(shape) != 2 or shape[0] != shape[1] or n_samples not in (None, shape[0]):
        wanted = "square" if n_samples is None else f"{n_samples} x {n_samples}"
        raise ValueError(f"The affinity of {owner} must be {wanted}, got shape {tuple(shape)}.")
    affinity = check_if_sparse(affinity, f"The affinity of {owner}")
    values = affinity.data if scipy.sparse.issparse(affinity) else np.asarray(affinity)
    if values.size and not np.isfinite(values).all():
        raise ValueError(f"The affinity of {owner} contains NaN or infinity.")
    if values.size and values.min() < 0:
        if scipy.sparse.issparse(affinity):
            affinity = affinity.toarray()
        row, column = (int(index[0]) for index in np.nonzero(np.asarray(affinity) < 0))
        raise ValueError(f"The affinity of {owner} must not be negative, but entry ({row}, {column}) is.")


def check_n_clusters(n_clusters: Any, n_samples: int, *, least: int = 2) -> int:
    """Check that ``n_clusters`` is an integer between ``least`` and the number of samples."""
    number = check_integer(n_clusters, "n_clusters", least=least)
    if number > n_samples:
        raise ValueError(f"n_clusters={number} is larger than the number of samples, n_samples={n_samples}.")
    return number


def check_integer(value: Any, name: str, *, least: int) -> int:
    """Check that an option is an integer of at least ``least``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    number = int(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}.")
    return number


def check_number(value: Any, name: str, *, least: float = 0.0, strict: bool = False) -> float:
    """Check that an option is a finite number not below (or strictly above) ``least``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    number = float(value)
    if not np.isfinite(number) or number < least or (strict and number == least):
        raise ValueError(f"{name} must be finite and {'above' if strict else 'at least'} {least:g}, got {number:g}.")
    return number


def check_weight(value: Any, name: str, *, strict: bool = False) -> float:
    """Check a weight of an objective, products with which must not overflow, in single precision either."""
    number = check_number(value, name, strict=strict)
    if number > _MOST_WEIGHT:
        raise ValueError(f"{name}={number:g} is too large; at {_MOST_WEIGHT:g} it rules the objective already.")
    return number


def check_choice(value: Any, name: str, choices: Sequence[Any]) -> Any:
    """Check that an option is one of ``choices``."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise ValueError(f"Unknown {name}={value!r}; choose from {', '.join(map(repr, choices))}.")
    return value


def check_generator(random_state: Any) -> np.random.Generator:
    """Return a generator from a seed, a generator, a legacy RandomState or None."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is None or random_state is np.random:
        return np.random.default_rng()
    try:
        return np.random.default_rng(check_integer(random_state, "random_state", least=0))
    except TypeError as error:
        raise ValueError(
            f"random_state={random_state!r} cannot be used to seed: give a non-negative integer, a Generator, a "
            "RandomState or None."
        ) from error


def check_memory(n_arrays: float, shape: tuple[int, int], *, advice: str) -> None:
    """Compare the memory for ``n_arrays`` float64 matrices of ``shape`` with what is available.

    Raises
    ------
    MemoryError
        Before anything is allocated; the message says how much is needed and what to do.
    """
    needed = n_arrays * shape[0] * shape[1] * np.dtype(np.float64).itemsize
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"About {needed / 2**30:.1f} GiB are needed for {shape[0]} samples ({n_arrays:g} matrices of "
            f"{shape[0]} x {shape[1]}), but only {available / 2**30:.1f} GiB are available. {advice}"
        )


def to_dense(view: View) -> FloatArray:
    """Return a view as an array, whether it is sparse or not."""
    return np.asarray(view.toarray() if scipy.sparse.issparse(view) else view)
