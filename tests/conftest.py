import os

import numpy as np
import pytest

from emvc import datasets


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def blobs():
    """Two views of three well separated clusters: (views, labels)."""
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1, 2], 20)
    views = [4.0 * rng.standard_normal((3, d))[labels] + 0.3 * rng.standard_normal((60, d)) for d in (4, 6)]
    return views, labels


@pytest.fixture(scope="session")
def webkb():
    return load_or_skip("webkb")


def load_or_skip(name):
    """Load a real data set; skip where it cannot be had, but never where EMVC_DATA promises it."""
    try:
        return datasets.load(name, download=False)
    except datasets.DatasetNotFoundError:
        if os.environ.get("EMVC_DATA"):
            raise
        pytest.skip(f"needs data set {name!r}: 'emvc datasets fetch {name}', or EMVC_DATA")


def random_transitions(rng, n_views, n_samples, n_states=None):
    """Random row-stochastic matrices, some rows with zeros."""
    shape = (n_views, n_samples, n_states or n_samples)
    weights = rng.random(shape) * (rng.random(shape) < 0.7) + 1e-3
    return weights / weights.sum(axis=2, keepdims=True)
