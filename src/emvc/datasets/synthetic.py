"""Synthetic data of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from emvc._validation import check_generator, check_integer
from emvc.datasets._base import MultiViewDataset

_WIDE = np.array([[1.0, 0.5], [0.5, 1.5]])
_NARROW = np.array([[0.3, 0.0], [0.0, 0.6]])
_LOW, _HIGH = np.array([1.0, 1.0]), np.array([2.0, 2.0])

PAPER_MIXTURE = (
    ((_LOW, _WIDE), (_HIGH, _NARROW)),
    ((_HIGH, _NARROW), (_LOW, _WIDE)),
)
"""Mean and covariance by view and cluster, Eq. 29 of the paper."""


def make_paper_synthetic(n_per_cluster: int = 500, random_state: Any = None) -> MultiViewDataset:
    """Draw the two-view, two-cluster Gaussian mixture of the paper (equation 29).

    The clusters overlap in both views: no method can be reliably above an accuracy of 0.861 (the Bayes limit).

    Parameters
    ----------
    n_per_cluster : int
        Samples per cluster.
    random_state : int, Generator, RandomState or None
        Seed.

    Examples
    --------
    >>> make_paper_synthetic(n_per_cluster=10, random_state=0)
    MultiViewDataset('paper-synthetic': 20 samples, 2 classes; view1 2, view2 2)
    """
    check_integer(n_per_cluster, "n_per_cluster", least=1)
    rng = check_generator(random_state)
    labels = np.repeat([0, 1], n_per_cluster)
    views = [
        np.vstack([rng.multivariate_normal(mean, covariance, n_per_cluster) for mean, covariance in clusters])
        for clusters in PAPER_MIXTURE
    ]
    return MultiViewDataset(views, labels, ["view1", "view2"], "paper-synthetic")
