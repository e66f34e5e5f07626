import numpy as np
import pytest

from emvc import graphs
from emvc.method.joint import JointView
from emvc.method.local import LocalGraph


def make_squares(rng, n_samples=40):
    """Squared distances of three views in different units."""
    return [unit * graphs.squared_distances(rng.standard_normal((n_samples, 5))) for unit in (1.0, 100.0, 1e-4)]


def in_units(squares):
    """A view in units of its mean squared distance between two samples."""
    return squares / squares[~np.eye(len(squares), dtype=bool)].mean()


def test_views_that_are_believed_are_averaged_in_their_units(rng):
    squares = make_squares(rng)
    joint, found = JointView.fit(squares, np.ones((40, 3)), 7)
    np.testing.assert_allclose(found, np.mean([in_units(part) for part in squares], axis=0), atol=1e-12)
    rows, expected = np.empty((40, 40)), np.empty((40, 40))
    joint.rows(squares, np.ones((40, 3)), np.ones((40, 3)), np.arange(40), rows)
    LocalGraph.fit(found, 7).rows(found, np.arange(40), expected)
    np.testing.assert_allclose(rows, expected, atol=1e-12)


def test_distances_are_weighed_by_the_beliefs_in_both_ends(rng):
    squares, beliefs = make_squares(rng, 12), rng.uniform(0.1, 1.0, (12, 3))
    _, found = JointView.fit(squares, beliefs, 7)
    units = [in_units(part) for part in squares]
    for i in range(12):
        for j in range(12):
            weights = beliefs[i] * beliefs[j]
            expected = sum(weight * part[i, j] for weight, part in zip(weights, units, strict=True)) / weights.sum()
            assert found[i, j] == pytest.approx(expected)


def test_what_is_not_believed_in_moves_the_distances_to_the_other_views(rng):
    squares = make_squares(rng)
    beliefs = np.ones((40, 3))
    beliefs[:5, 0] = 1e-3
    _, plain = JointView.fit(squares, np.ones((40, 3)), 7)
    _, found = JointView.fit(squares, beliefs, 7)
    others = np.mean([in_units(part) for part in squares[1:]], axis=0)
    np.testing.assert_allclose(found[:5], others[:5], rtol=0.02)
    assert np.abs(plain[:5] - others[:5]).max() > 0.2
    np.testing.assert_allclose(found[5:, 5:], plain[5:, 5:])


def test_units_are_those_of_what_views_show(rng):
    squares = make_squares(rng)
    beliefs = np.ones((40, 3))
    beliefs[30:, 0] = 0.0
    blind = [part.copy() for part in squares]
    blind[0][30:] = blind[0][:, 30:] = 0.0  # as distances of samples that a view does not have
    joint, found = JointView.fit(blind, beliefs, 7)
    assert 1.0 / joint.units[0] == pytest.approx(squares[0][:30, :30].sum() / (30 * 29))
    np.testing.assert_allclose(found[30:], np.mean([in_units(part) for part in squares[1:]], axis=0)[30:], atol=1e-12)


def test_samples_that_share_no_view_are_farther_than_all_others(rng):
    squares = make_squares(rng)[:2]
    beliefs = np.ones((40, 2))
    beliefs[:10, 0] = beliefs[30:, 1] = 0.0
    joint, found = JointView.fit(squares, beliefs, 7)
    apart = np.outer(beliefs[:, 0] == 0, beliefs[:, 1] == 0)
    apart |= apart.T
    assert np.isfinite(found).all()
    assert not np.diagonal(found).any()
    np.testing.assert_array_equal(found[apart], joint.far)
    assert joint.far == pytest.approx(2.0 * found[~apart].max())
    rows = np.empty((40, 40))
    joint.rows(squares, beliefs, beliefs, np.arange(40), rows)
    assert not rows[apart].any()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    joint.rows([part[:3] for part in squares], beliefs[:3], beliefs, np.full(3, -1), rows[:3])
    assert not rows[:3][apart[:3]].any()


def test_a_view_without_any_distance_says_nothing(rng):
    squares = make_squares(rng)
    squares[1] = np.zeros((40, 40))
    _, found = JointView.fit(squares, np.ones((40, 3)), 7)
    np.testing.assert_allclose(found, 0.5 * (in_units(squares[0]) + in_units(squares[2])), atol=1e-12)
    joint, found = JointView.fit([squares[1]], np.ones((40, 1)), 7)
    assert joint.far == 1.0
    assert np.isfinite(found).all()


@pytest.mark.parametrize("plain", [True, False])
def test_rows_of_some_samples_are_rows_of_all(plain, rng):
    squares = make_squares(rng)
    beliefs = np.ones((40, 3)) if plain else rng.uniform(0.1, 1.0, (40, 3))
    joint, found = JointView.fit(squares, beliefs, 7)
    rows, some = np.empty((40, 40)), np.array([4, 17, 30])
    joint.graph.rows(found, np.arange(40), rows)
    part = np.empty((3, 40))
    joint.rows([part[some] for part in squares], beliefs[some], beliefs, some, part)
    np.testing.assert_allclose(part, rows[some], atol=1e-9)
