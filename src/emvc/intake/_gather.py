"""Views of tables become views of numbers over the same samples, which are matched by their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from pandas.api import types

from emvc._containers import Table, align, is_frame
from emvc.intake._coding import Coding, ColumnRecord, column_names
from emvc.intake._frame import encode_frame


@dataclass(frozen=True, eq=False)
class Gathered:
    """One view as numbers, and what is known about it.

    Attributes
    ----------
    values : array-like or sparse matrix
        A row of NaN where the view does not have a sample.
    columns : tuple of str or None
        Names of the columns of ``values``.
    coding : Coding or None
        How a table became numbers.
    records : tuple of ColumnRecord
        What was done with columns that are not plainly numeric.
    index : pandas.Index or None
        Ids of the samples.
    """

    values: Any
    columns: tuple[str, ...] | None = None
    coding: Coding | None = None
    records: tuple[ColumnRecord, ...] = ()
    index: Any = None


def gather(
    named: Sequence[tuple[str, Any]],
    *,
    codings: Mapping[str, Coding] | None = None,
    order: Any = None,
    precomputed: bool = False,
) -> tuple[list[Gathered], Any]:
    """Return views as numbers over the same samples, and the names of the samples if there are any.

    Parameters
    ----------
    named : sequence of pairs
        Names and views: DataFrames, `Table` or arrays.
    codings : dict, optional
        How the tables of the fit became numbers, by view; None for a fit.
    order : sequence, optional
        Order of the samples; that in which they appear if not given.
    precomputed : bool
        Whether the views are affinities, whose rows and columns are samples.

    Raises
    ------
    ValueError
        If a table cannot be encoded or rows cannot be matched; the message names the view.
    """
    views = [_read(name, view, codings, precomputed) for name, view in named]
    if order is None:
        views = [replace(view, index=_counted(view.index)) for view in views]
    names = [name for name, _ in named]
    indices = [view.index for view in views]
    _check_ids(names, indices)
    _check_id_columns(named, views)
    first = next((index for index in indices if index is not None), None)
    if first is None:
        return views, None
    if order is None and all(index is None or index.equals(first) for index in indices):
        return views, _sample_names(first)
    if precomputed:
        raise ValueError("The affinities have different row indices. Bring them into one order first, with .loc.")
    wanted = pd.Index(order) if order is not None else _union(names, indices, [view.values.shape[0] for view in views])
    views = [replace(view, values=align(view.values, list(view.index), list(wanted))) for view in views]
    return views, _sample_names(wanted)


def _read(name: str, view: Any, codings: Mapping[str, Coding] | None, precomputed: bool) -> Gathered:
    """Return one view as numbers."""
    table = view if isinstance(view, Table) else Table(view)
    index = view.index if is_frame(view) else None if table.ids is None else pd.Index(table.ids)
    if not is_frame(table.values):
        return _read_matrix(name, table, None if codings is None else codings.get(name), index)
    if precomputed:
        return Gathered(table.values, index=index)
    if codings is None and len(table.values.columns) and all(map(_is_sparse, table.values.dtypes.unique())):
        coding = Coding.plain(table.values, name)
        return Gathered(table.values.sparse.to_coo().tocsr(), coding.names, coding, index=index)
    if codings is None:
        encoded = encode_frame(table.values, view=name)
    else:
        encoded = (codings[name] if name in codings else Coding.plain(table.values, name)).apply(table.values)
    return Gathered(encoded.values, encoded.columns, encoded.coding, encoded.records, index)


def _read_matrix(name: str, table: Table, coding: Coding | None, index: Any) -> Gathered:
    """Return a matrix, whose columns are put into the order of the fit if they have names."""
    if table.columns is None:
        return Gathered(table.values, index=index)
    columns = column_names(table)
    if coding is None:
        named = columns != tuple(map(str, range(len(columns))))
        return Gathered(table.values, columns, Coding(name, columns, {}, named), index=index)
    if coding.rules:
        dense = table.values.toarray() if scipy.sparse.issparse(table.values) else table.values
        encoded = coding.apply(pd.DataFrame(dense, columns=list(columns)))
        return Gathered(encoded.values, encoded.columns, coding, encoded.records, index)
    by_name = coding.named or set(columns) == set(coding.names)
    places = coding.places(columns) if by_name else list(range(len(columns)))
    same = places == list(range(len(columns)))
    return Gathered(table.values if same else table.values[:, places], coding.columns, coding, index=index)


def _is_sparse(kind: Any) -> bool:
    return isinstance(kind, pd.SparseDtype) and types.is_numeric_dtype(kind) and kind.fill_value == 0


def _sample_names(index: Any) -> Any:
    names = np.asarray(index)
    return names.astype(np.int64) if names.dtype.kind in "iu" else np.array([str(name) for name in index])


def _check_ids(names: Sequence[str], indices: Sequence[Any]) -> None:
    """Reject samples without an id, and ids that appear twice."""
    for name, index in zip(names, indices, strict=True):
        if index is None:
            continue
        if not isinstance(index, pd.MultiIndex) and index.hasnans:
            row = int(np.flatnonzero(index.isna())[0])
            raise ValueError(f"view {name!r}: row {row} has no id in the index. Give it one, or drop it.")
        if len(names) > 1 and not index.is_unique:
            again = index[index.duplicated()][0]
            raise ValueError(
                f"view {name!r}: the id {again!r} appears twice in the index. Drop or rename one, or drop the index of "
                "every view with .reset_index(drop=True) if the rows are in the same order."
            )


def _check_id_columns(named: Sequence[tuple[str, Any]], views: Sequence[Gathered]) -> None:
    """Reject tables that are paired by place although a column of ids in both of them tells otherwise."""
    seen: dict[str, tuple[str, pd.Series]] = {}
    for (name, table), view in zip(named, views, strict=True):
        if not is_frame(table) or view.coding is None or not _is_default(table.index):
            continue
        for column in sorted(set(view.coding.dropped) & set(table.columns)):
            ids = table[column]
            if not isinstance(ids, pd.Series) or not ids.is_unique:  # a name that appears twice gives a table
                continue
            first, known = seen.setdefault(column, (name, ids))
            if len(ids) == len(known) and ids.isin(known).mean() > 0.5 and ids.tolist() != known.tolist():
                raise ValueError(
                    f"Column {column!r} holds ids in another order in view {name!r} than in view {first!r}. Have the "
                    f"rows joined on it, with .set_index({column!r})."
                )


def _union(names: Sequence[str], indices: Sequence[Any], lengths: Sequence[int]) -> Any:
    """Return all ids in the order in which they appear, of views whose ids differ."""
    counted = [name for name, index in zip(names, indices, strict=True) if index is not None and _is_default(index)]
    arrays = [name for name, index in zip(names, indices, strict=True) if index is None]
    if len(counted) == len(names):
        raise ValueError(
            f"All views must have the same samples: view {names[0]!r} has {lengths[0]} rows, "
            + next(f"view {n!r} has {m}" for n, m in zip(names, lengths, strict=True) if m != lengths[0])
            + ". Their index is a mere count; set one of sample ids to have them joined."
        )
    if arrays:
        raise ValueError(
            f"view {arrays[0]!r} has no sample ids, but the ids of the others differ, so that its rows cannot be "
            "matched. Give it as a DataFrame with the ids as index."
        )
    for name, index in zip(names, indices, strict=True):
        others = [other for other in indices if other is not index]
        if len(index) and not any(index.isin(other).any() for other in others):
            raise ValueError(_nothing_in_common(name, index, others))
    return pd.Index(list(dict.fromkeys(label for index in indices for label in index)))


def _nothing_in_common(name: str, index: Any, others: Sequence[Any]) -> str:
    message = f"view {name!r} has no sample id in common with the other views"
    if _is_default(index):
        return message + ": its index is a mere count. Set its ids as index, with .set_index."
    other = next(iter(others))
    kinds = [("numbers" if types.is_numeric_dtype(one.dtype) else "text") for one in (index, other)]
    hint = f" ({kinds[0]} and {kinds[1]})" if kinds[0] != kinds[1] else ""
    return message + f": {index[0]!r} here, {other[0]!r} there{hint}."


def _counted(index: Any) -> Any:
    """Return a mere count for the names that an AnnData without names gives to its observations."""
    count = pd.RangeIndex(0 if index is None else len(index))
    return (
        count
        if index is not None and not types.is_numeric_dtype(index.dtype) and index.equals(count.astype(str))
        else index
    )


def _is_default(index: Any) -> bool:
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1
