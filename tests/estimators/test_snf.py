"""Similarity network fusion against its formulas, written out."""

import math

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score

from emvc import SNF


def kernel_of(view, n_neighbors, mu):
    n = len(view)
    rho = [[sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) for other in view] for one in view]
    mean = [np.mean(sorted(rho[i][j] for j in range(n) if j != i)[:n_neighbors]) for i in range(n)]
    kernel = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            width = mu * (mean[i] + mean[j] + rho[i][j]) / 3
            kernel[i, j] = math.exp(-(rho[i][j] ** 2) / (2 * width**2)) / math.sqrt(2 * math.pi * width**2)
    return kernel


def fuse(views, n_neighbors=20, mu=0.5, n_iter=20, alpha=1.0):
    """Fuse the views as the formulas say, with full matrices."""
    n = len(views[0])
    networks, links = [], []
    for view in views:
        rows = np.array([row / row.sum() for row in kernel_of(view, n_neighbors, mu)])
        network = (rows + rows.T) / 2
        link = np.zeros((n, n))
        for i in range(n):
            chosen = sorted(range(n), key=lambda j, row=network[i]: -row[j])[:n_neighbors]
            link[i, chosen] = network[i, chosen] / network[i, chosen].sum()
        networks.append(network)
        links.append(link)
    for _ in range(n_iter):
        others = [np.mean([p for w, p in enumerate(networks) if w != v], axis=0) for v in range(len(views))]
        networks = [s @ p @ s.T + alpha * np.eye(n) for s, p in zip(links, others, strict=True)]
    mean = np.mean(networks, axis=0)
    mean = np.array([row / row.sum() for row in mean])
    return (mean + mean.T + np.eye(n)) / 2


@pytest.mark.parametrize(
    ("n_samples", "options"),
    [
        (30, {}),
        (25, {"n_neighbors": 4, "mu": 0.3, "n_iter": 3, "alpha": 0.2}),
        (25, {"n_neighbors": 1, "n_iter": 0}),
        (12, {}),  # fewer samples than neighbours
        (210, {"n_neighbors": 6, "n_iter": 4}),  # enough samples for sparse products
    ],
)
def test_fused_network_equals_the_formulas(n_samples, options, rng):
    views = [rng.standard_normal((n_samples, d)) for d in (2, 3, 5)]
    model = SNF(3, scale=None, random_state=0, **options).fit(views)
    np.testing.assert_allclose(model.fused_, fuse(views, **options), atol=1e-12)


def test_two_samples_by_hand():
    """The kernel is 3c on and 2c exp(-2) beside the diagonal; every product takes the second eigenvalue once more."""
    views = [np.array([[0.0], [1.0]])] * 2
    ratio = 2 * math.exp(-2) / 3
    second = (1 - ratio) / (1 + ratio)
    model = SNF(2, n_iter=1, alpha=0.0, scale=None, random_state=0).fit(views)
    near, far = (1 + second**3) / 2, (1 - second**3) / 2
    np.testing.assert_allclose(model.fused_, [[near + 0.5, far], [far, near + 0.5]], rtol=1e-12)


def test_one_view_is_fused_with_itself(rng):
    view = rng.standard_normal((40, 3))
    one, two = (SNF(3, n_neighbors=5, random_state=0).fit(views) for views in ([view], [view, view]))
    np.testing.assert_allclose(one.fused_, two.fused_, atol=1e-14)


def test_units_do_not_matter(rng):
    """Neither those of a view, nor whether deviations are divided by n or n - 1."""
    views = [rng.standard_normal((40, 3)), rng.standard_normal((40, 2))]
    scaled = [7.0 * (view - view.mean(axis=0)) / view.std(axis=0, ddof=1) for view in views]
    one = SNF(3, scale="zscore", random_state=0).fit(views)
    other = SNF(3, scale=None, random_state=0).fit(scaled)
    np.testing.assert_allclose(one.fused_, other.fused_, atol=1e-12)


def test_the_order_of_samples_does_not_matter(rng):
    """Some are equal, and distances on a grid tie everywhere."""
    views = [rng.integers(0, 3, (40, d)).astype(float) for d in (2, 3)]
    order = rng.permutation(40)
    one = SNF(3, n_neighbors=7, random_state=0).fit(views)
    other = SNF(3, n_neighbors=7, random_state=0).fit([view[order] for view in views])
    np.testing.assert_allclose(other.fused_, one.fused_[np.ix_(order, order)], atol=1e-12)


def test_links_that_tie_up_to_rounding_are_all_kept():
    """On a circle every sample has two nearest neighbours, and no sample is special."""
    angles = 2 * np.pi * np.arange(12) / 12
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    fused = SNF(2, n_neighbors=2, scale=None, random_state=0).fit([circle, 3.0 * circle]).fused_
    np.testing.assert_allclose(np.roll(fused, (1, 1), axis=(0, 1)), fused, atol=1e-12)


def test_permuted_samples_get_the_same_clusters(blobs, rng):
    views, labels = blobs
    order = rng.permutation(len(labels))
    found = SNF(3, random_state=0).fit_predict([view[order] for view in views])
    assert adjusted_rand_score(labels[order], found) == 1.0


def test_sparse_views_are_fused_alike(rng):
    views = [rng.poisson(0.5, (50, 8)).astype(float) for _ in range(2)]
    dense = SNF(3, scale="unit", random_state=0).fit(views)
    sparse = SNF(3, scale="unit", random_state=0).fit([scipy.sparse.csr_array(view) for view in views])
    np.testing.assert_allclose(sparse.fused_, dense.fused_, atol=1e-10)


def own_number(fused):
    graph = fused - np.diag(np.diag(fused))
    degree = graph.sum(axis=1)
    laplacian = (np.diag(degree) - graph) / np.sqrt(np.outer(degree, degree))
    values = np.linalg.eigvalsh(laplacian)
    scores = {c: (values[c] - values[c - 1]) * (1 - values[c - 1]) / (1 - values[c]) for c in range(2, 6)}
    return max(scores, key=scores.get)


@pytest.mark.parametrize("n_groups", [2, 3, 4, 5])
def test_number_of_clusters(n_groups, rng):
    groups = np.arange(150) % n_groups
    views = [5.0 * rng.standard_normal((n_groups, 4))[groups] + rng.standard_normal((150, 4)) for _ in range(2)]
    model = SNF("auto", n_neighbors=10, random_state=0).fit(views)
    assert model.n_clusters_ == own_number(model.fused_) == n_groups
    assert adjusted_rand_score(groups, model.labels_) > 0.9


def test_number_of_clusters_of_few_samples(blobs):
    """Eigenvalues below zero follow where samples of a cluster resemble each other alike; snfpy divides by them."""
    model = SNF("auto", random_state=0).fit(blobs[0])
    assert model.n_clusters_ == own_number(model.fused_)
    assert SNF("auto", random_state=0).fit([np.eye(2), np.eye(2)]).n_clusters_ == 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1, got 0"),
        ({"n_neighbors": "auto"}, TypeError, "n_neighbors must be an integer, got 'auto'"),
        ({"mu": 0.0}, ValueError, "mu must be finite and above 0, got 0"),
        ({"n_iter": -1}, ValueError, "n_iter must be at least 0, got -1"),
        ({"alpha": -1.0}, ValueError, "alpha must be finite and at least 0, got -1"),
        ({"n_clusters": "best"}, ValueError, "Unknown n_clusters='best'; choose from 'auto'"),
    ],
)
def test_bad_options(options, error, message, blobs):
    with pytest.raises(error, match=message):
        SNF(**{"n_clusters": 3} | options).fit(blobs[0])
