"""What is said about missing cells: their share in every view, and columns without a single value."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from emvc._array import IntArray
from emvc._validation import Views
from emvc.cells import count_present

_MOST_NAMED = 5


def gaps_of(views: Views, caller: str) -> dict[str, Any]:
    """Return the attributes that tell about missing cells, and warn of columns without a single value."""
    counts = [count_present(view) for view in views.shown_rows()]
    return describe_gaps(counts, (~views.missing).sum(axis=0), views.names, views.feature_names, caller)


def describe_gaps(
    counts: Sequence[IntArray], shown: IntArray, names: Sequence[str], columns: Sequence[Any], caller: str
) -> dict[str, Any]:
    """Return the attributes that tell about missing cells, and warn of columns without a single value.

    Parameters
    ----------
    counts : sequence of ndarray of int
        Of each view, how many cells each column has.
    shown : ndarray of int of shape (n_views,)
        How many samples each view shows.
    names, columns : sequence
        Names of the views, and of their columns where they have any.
    caller : str
        Name used in the warning.

    Returns
    -------
    dict
        ``missing_cells_`` is the share of cells that are missing in each view, of the samples that it shows;
        ``dropped_columns_`` has the columns without a value by view, their names or numbers.
    """
    shares = [1.0 - float(of.sum()) / max(int(n) * len(of), 1) for of, n in zip(counts, shown, strict=True)]
    dropped: dict[str, Any] = {}
    for k, (name, of) in enumerate(zip(names, counts, strict=True)):
        empty = np.flatnonzero(of == 0)
        if len(empty):
            known = columns[k] if len(columns) and columns[k] is not None else np.arange(len(of))
            dropped[name] = np.asarray(known)[empty]
    if dropped:
        listed = "; ".join(f"view {name!r}: {_listed(of.tolist())}" for name, of in dropped.items())
        warnings.warn(f"{caller} leaves out columns without a single value, {listed}.", UserWarning, stacklevel=5)
    return {"missing_cells_": np.array(shares), "dropped_columns_": dropped}


def _listed(columns: Sequence[Any]) -> str:
    more = f" and {len(columns) - _MOST_NAMED} more" if len(columns) > _MOST_NAMED else ""
    return ", ".join(map(repr, columns[:_MOST_NAMED])) + more
