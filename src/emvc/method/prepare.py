"""From checked views to a reference and its rows; samples that no view shows are set aside and placed afterwards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from emvc import graphs
from emvc._array import BoolArray, FloatArray, IntArray
from emvc._validation import Views
from emvc.method.reference import Reference, Rows, Screening, Settings


@dataclass(frozen=True, eq=False)
class Prepared:
    """Views, measured.

    Attributes
    ----------
    reference : Reference
        Its states are the kept samples.
    rows : Rows
        The kept samples.
    screening : Screening
        Of all samples.
    kept, lost : ndarray of int
        Samples that take part, and those that are probably wrong wherever they are.
    """

    reference: Reference
    rows: Rows
    screening: Screening
    kept: IntArray
    lost: IntArray


def prepare(views: Views, settings: Settings, dtype: type = np.float32) -> Prepared:
    """Look for samples that stand alone, set those aside that no view can be believed about, and measure the others."""
    if settings.has_features:
        views = replace(views, arrays=tuple(graphs.compact(array) for array in views.arrays))
    screening = Screening.fit(views, settings)
    believable: BoolArray = np.asarray(screening.shown(views.missing).any(axis=1))
    if believable.sum() <= settings.n_clusters or callable(settings.affinity):
        # Nothing would be left to cluster, or the lost could not be placed: believe everybody.
        lost = np.flatnonzero(~believable)
        screening.ruined[lost] = screening.suspicious[lost] = 0.0
        believable[lost] = True
    kept, lost = np.flatnonzero(believable), np.flatnonzero(~believable)
    inside = views.take(kept, square=not settings.has_features)
    reference, rows = Reference.fit(inside, screening.take(kept), settings, dtype)
    return Prepared(reference, rows, screening, kept, lost)


def place(reference: Reference, views: Views, screening: Screening) -> FloatArray:
    """Return the consensus rows of samples that no view can be believed about, as if all of theirs could."""
    outside = np.full(views.n_samples, -1)
    return reference.rows(views, outside, screening.forgiving()).problem.solve().consensus


def assemble(kept: Any, lost: Any, prepared: Prepared) -> Any:
    """Return what is known about kept and lost samples in their order."""
    if not len(prepared.lost):
        return kept
    full = np.empty((len(kept) + len(lost), *kept.shape[1:]), dtype=kept.dtype)
    full[prepared.kept], full[prepared.lost] = kept, lost
    return full
