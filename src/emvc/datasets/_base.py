"""The record that every data set comes in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from emvc._array import IntArray


@dataclass(frozen=True)
class MultiViewDataset:
    """Samples seen in several views, with their true classes.

    Attributes
    ----------
    views : list of ndarray
        One array of shape (n_samples, n_features) per view.
    labels : ndarray of shape (n_samples,)
        True classes, numbered from 0.
    view_names : list of str
        Names of the views.
    name : str
        Name of the data set.
    """

    views: list[Any]
    labels: IntArray
    view_names: list[str]
    name: str

    @property
    def n_clusters(self) -> int:
        """Number of true classes."""
        return len(np.unique(self.labels))

    def __repr__(self) -> str:
        views = ", ".join(f"{name} {view.shape[1]}" for name, view in zip(self.view_names, self.views, strict=True))
        return f"MultiViewDataset({self.name!r}: {len(self.labels)} samples, {self.n_clusters} classes; {views})"
