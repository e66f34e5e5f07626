"""NEMO against its formulas, written out; samples that views do not have."""

import math

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from emvc import NEMO


def graph_of(view, n_neighbors):
    """Return the symmetric graph of one view of all samples that it has."""
    n = len(view)
    rho = [[sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) for other in view] for one in view]
    mean = [np.mean(sorted(rho[i][j] for j in range(n) if j != i)[:n_neighbors]) for i in range(n)]
    links = np.zeros((n, n))
    for i in range(n):
        row = np.zeros(n)
        for j in range(n):
            width = 0.5 * (mean[i] + mean[j] + rho[i][j]) / 3
            row[j] = math.exp(-(rho[i][j] ** 2) / (2 * width**2)) / math.sqrt(2 * math.pi * width**2)
        threshold = sorted(row, reverse=True)[n_neighbors - 1]
        total = sum(value for value in row if value >= threshold)
        for j in range(n):
            links[i, j] = row[j] / total if row[j] >= threshold else 0.0
    return links + links.T


def affinity_of(views, n_neighbors=None):
    """Return the mean of the graphs, pair by pair."""
    n = len(views[0])
    there = [[i for i in range(n) if not np.isnan(view[i]).all()] for view in views]
    graphs = [
        graph_of(view[here], n_neighbors or round(len(here) / 6)) for view, here in zip(views, there, strict=True)
    ]
    affinity = np.full((n, n), np.nan)
    for i in range(n):
        for j in range(n):
            both = [
                graph[here.index(i), here.index(j)]
                for graph, here in zip(graphs, there, strict=True)
                if i in here and j in here
            ]
            if both:
                affinity[i, j] = np.mean(both)
    known = [affinity[i, j] for i in range(n) for j in range(i) if not np.isnan(affinity[i, j])]
    affinity[np.isnan(affinity)] = np.mean(known)
    return affinity


def clusters_of(affinity, n_clusters):
    """Return the clusters of the authors' program, with full matrices."""
    n = len(affinity)
    root = np.diag(1 / np.sqrt(affinity.sum(axis=1)))
    _, vectors = np.linalg.eigh(np.eye(n) - root @ affinity @ root)
    columns = [column if column.sum() > 0 else -column for column in vectors.T[:n_clusters]]
    rows = np.array([row / np.linalg.norm(row) for row in np.column_stack(columns)])
    axes = [rows[round(n / 2) - 1]]
    while len(axes) < n_clusters:
        axes.append(min(rows, key=lambda row: sum(abs(row @ axis) for axis in axes)))
    rotation = np.column_stack(axes)
    for _ in range(20):
        indicator = np.zeros((n, n_clusters))
        for i, row in enumerate(rows @ rotation):
            indicator[i, row.argmax()] = 1
        left, _, right = np.linalg.svd(indicator.T @ rows)
        rotation = right.T @ left.T
    return indicator.argmax(axis=1)


def without(views, rng, share=0.3):
    """Take samples out of one view each."""
    views = [view.copy() for view in views]
    for sample in rng.choice(len(views[0]), round(share * len(views[0])), replace=False):
        views[rng.integers(len(views))][sample] = np.nan
    return views


@pytest.fixture
def noisy_views(rng):
    labels = np.arange(60) % 4
    return [2.0 * rng.standard_normal((4, d))[labels] + rng.standard_normal((60, d)) for d in (3, 4, 5)]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_neighbors", ["auto", 5])
def test_affinity_and_clusters_equal_the_formulas(missing, n_neighbors, noisy_views, rng):
    views = without(noisy_views, rng) if missing else noisy_views
    model = NEMO(4, n_neighbors=n_neighbors, scale=None).fit(views)
    expected = affinity_of(views, None if n_neighbors == "auto" else n_neighbors)
    np.testing.assert_allclose(model.fused_, expected, atol=1e-12)
    assert adjusted_rand_score(clusters_of(expected, 4), model.labels_) == 1.0


@pytest.mark.parametrize("seed", [3, 23, 53])
def test_clusters_that_are_empty_for_a_while(seed):
    """Then the signs of the eigenvectors decide."""
    rng = np.random.default_rng(seed)
    model = NEMO(12, scale=None).fit([rng.standard_normal((40, 3)) for _ in range(2)])
    assert adjusted_rand_score(clusters_of(model.fused_, 12), model.labels_) == 1.0


def test_pairs_without_a_common_view_get_the_mean(rng):
    views = [rng.standard_normal((20, 2)) for _ in range(2)]
    views[0][:4] = np.nan
    views[1][4:9] = np.nan
    model = NEMO(2, scale=None).fit(views)
    assert model.n_neighbors_ == [3, 2]  # of 16 and of 15 samples
    np.testing.assert_allclose(model.fused_, affinity_of(views), atol=1e-12)
    assert np.ptp(model.fused_[:4, 4:9]) == 0
    assert model.fused_[0, 4] > 0
    assert NEMO(2, n_neighbors=16, scale=None).fit(views).n_neighbors_ == [16, 15]


def test_three_equally_distant_samples_by_hand():
    """All links tie, so all are kept; the kernel is 3c/2 on and c exp(-2) beside the diagonal."""
    near, far = 1.5, math.exp(-2)
    expected = 2 * (np.full((3, 3), far) + (near - far) * np.eye(3)) / (near + 2 * far)
    np.testing.assert_allclose(NEMO(2, n_neighbors=2, scale=None).fit(np.eye(3)).fused_, expected, rtol=1e-12)


def test_a_sample_whose_only_link_is_to_itself():
    np.testing.assert_allclose(NEMO(2, n_neighbors=1, scale=None).fit(np.eye(4)[:, :2]).fused_.diagonal().min(), 1.0)
    np.testing.assert_allclose(NEMO(2, n_neighbors=1, scale=None).fit([[0.0], [1.0], [3.0]]).fused_, 2 * np.eye(3))


def test_missing_samples_are_placed_by_their_other_view(blobs, rng):
    views, labels = blobs
    np.testing.assert_array_equal(NEMO(3).fit_predict(without(views, rng)), labels)


def test_scales_come_from_the_samples_that_are_there(noisy_views, rng):
    views = without(noisy_views, rng)
    scaled = [(view - np.nanmean(view, axis=0)) / np.nanstd(view, axis=0) for view in views]
    one, other = NEMO(4, scale="zscore").fit(views), NEMO(4, scale=None).fit(scaled)
    np.testing.assert_allclose(one.fused_, other.fused_, atol=1e-12)


def test_the_order_of_samples_does_not_matter(blobs, rng):
    views, labels = without(blobs[0], rng), blobs[1]
    order = rng.permutation(len(labels))
    one, other = NEMO(3).fit(views), NEMO(3).fit([view[order] for view in views])
    np.testing.assert_allclose(other.fused_, one.fused_[np.ix_(order, order)], atol=1e-12)
    assert adjusted_rand_score(one.labels_[order], other.labels_) == 1.0


def test_nothing_is_random_but_k_means(noisy_views):
    first, second = (NEMO(4, random_state=seed).fit(noisy_views) for seed in (0, 1))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    means = NEMO(4, assign_labels="kmeans", random_state=0).fit(noisy_views)
    assert adjusted_rand_score(first.labels_, means.labels_) > 0.8


def own_number(affinity):
    graph = affinity - np.diag(np.diag(affinity))
    degree = graph.sum(axis=1)
    values = np.linalg.eigvalsh((np.diag(degree) - graph) / np.sqrt(np.outer(degree, degree)))
    scores = {c: c * (values[c] - values[c - 1]) for c in range(2, 16)}
    return max(scores, key=scores.get)


def test_number_of_clusters(blobs, rng):
    model = NEMO("auto").fit(blobs[0])
    assert model.n_clusters_ == own_number(model.fused_) == 3
    np.testing.assert_array_equal(model.labels_, blobs[1])
    for n_groups in (2, 6, 12):
        groups = np.arange(120) % n_groups
        views = [4.0 * rng.standard_normal((n_groups, 6))[groups] + rng.standard_normal((120, 6)) for _ in range(2)]
        model = NEMO("auto", n_neighbors=8).fit(without(views, rng))
        assert model.n_clusters_ == own_number(model.fused_) == n_groups
    for _ in range(5):
        model = NEMO("auto").fit([rng.standard_normal((60, 4)) for _ in range(2)])
        assert model.n_clusters_ == own_number(model.fused_)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_neighbors": 60}, ValueError, "n_neighbors=60 must be smaller than the number of samples, 60"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1, got 0"),
        ({"n_neighbors": "many"}, TypeError, "n_neighbors must be an integer, got 'many'"),
        ({"assign_labels": "qr"}, ValueError, "Unknown assign_labels='qr'; choose from 'discretize', 'kmeans'"),
        ({"n_clusters": "best"}, ValueError, "Unknown n_clusters='best'; choose from 'auto'"),
    ],
)
def test_bad_options(options, error, message, blobs):
    with pytest.raises(error, match=message):
        NEMO(**{"n_clusters": 3} | options).fit(blobs[0])


def test_a_sample_without_any_view_is_rejected(blobs):
    views = [view.copy() for view in blobs[0]]
    for view in views:
        view[7] = np.nan
    with pytest.raises(ValueError, match=r"sample 7 is missing .* in every view"):
        NEMO(3).fit(views)
