from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from emvc import layout
from emvc.layout import block_argmax, block_edges, block_means, cluster_order, plane_layout, state_labels


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 10, 40])
def test_clusters_become_islands(n_clusters, rng):
    labels = np.repeat(np.arange(n_clusters), 12)
    rows = np.eye(n_clusters)[labels] + 0.02 * rng.standard_normal((len(labels), n_clusters))
    points = plane_layout(rows, labels)
    assert points.shape == (len(labels), 2)
    assert points.min() >= 0
    assert points.max() <= 1
    if n_clusters > 1:
        apart = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
        np.fill_diagonal(apart, np.inf)
        assert np.mean(labels[apart.argmin(axis=1)] == labels) > 0.9


def test_an_undecided_sample_lies_between_its_clusters(rng):
    labels = np.append(np.repeat([0, 1], 20), 0)
    rows = np.eye(2)[labels] + 0.01 * rng.standard_normal((41, 2))
    rows[-1] = 0.5
    points = plane_layout(rows, labels)
    to_own, to_other = (np.linalg.norm(points[-1] - points[:40][labels[:40] == c].mean(axis=0)) for c in (0, 1))
    between = np.linalg.norm(points[:20].mean(axis=0) - points[20:40].mean(axis=0))
    assert to_own > 0.25 * between
    assert to_other < between


def test_layout_is_repeatable_and_survives_odd_input():
    rows = np.zeros((6, 3))
    rows[0, 0] = np.nan
    labels = np.array([0, 0, 1, 1, -1, -1])
    first = plane_layout(rows, labels)
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, plane_layout(rows, labels))
    assert np.isfinite(plane_layout(np.ones((3, 1)), np.full(3, -1))).all()


def test_order_by_cluster_and_inside_it():
    labels = np.array([1, 0, -1, 1, 0])
    assert cluster_order(labels).tolist() == [1, 4, 0, 3, 2]
    assert cluster_order(labels, np.array([0.1, 0.2, 0.9, 0.5, 0.7])).tolist() == [4, 1, 3, 0, 2]


def test_landmarks_belong_to_the_cluster_that_moves_there():
    matrix = np.array([[0.7, 0.3], [0.1, 0.9], [0.5, 0.5]])
    assert state_labels(matrix, np.array([2, 5, -1])).tolist() == [2, 5]
    assert state_labels(matrix, np.full(3, -1)).tolist() == [-1, -1]
    assert state_labels(np.eye(3), np.array([2, 5, -1])).tolist() == [2, 5, -1]


@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array])
def test_block_means(convert, rng):
    matrix = rng.random((7, 5))
    rows, columns = rng.permutation(7), rng.permutation(5)
    ordered = matrix[np.ix_(rows, columns)]
    found = block_means(convert(matrix), rows, columns, 3)
    down, across = block_edges(7, 3), block_edges(5, 3)
    expected = [[ordered[a:b, c:d].mean() for c, d in pairwise(across)] for a, b in pairwise(down)]
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(block_means(convert(matrix), rows, columns, 100), ordered)


def test_block_argmax_passes_over_gaps():
    assert block_argmax(np.array([np.nan, 0.2, np.nan, np.nan]), [0, 2, 4]).tolist() == [1, 2]


def test_a_curve_of_components_is_drawn_as_a_heap(rng):
    """Spectral coordinates are functions of each other; the picture must not show a bow where there is a heap."""
    first, other = rng.standard_normal((2, 400))
    rows = np.column_stack([first, 0.4 * (first**2 - 1.0), 0.3 * other])
    offsets = layout._local_offsets(rows)
    bend = np.polynomial.polynomial.polyfit(offsets[:, 0], offsets[:, 1], 2)
    assert abs(bend[2]) < 0.2
    assert abs(np.corrcoef(offsets.T)[0, 1]) < 0.1
    assert abs(np.corrcoef(offsets[:, 1], other)[0, 1]) > 0.9
    assert np.quantile(np.linalg.norm(offsets, axis=1), 0.99) < 1.1


def test_clusters_of_one_line_or_one_point_are_drawn_as_such():
    line = layout._local_offsets(np.linspace(0, 1, 9)[:, None] * [1.0, 2.0])
    assert np.ptp(line[:, 0]) > 0
    np.testing.assert_array_equal(line[:, 1], 0.0)
    np.testing.assert_array_equal(layout._local_offsets(np.ones((5, 3))), 0.0)
