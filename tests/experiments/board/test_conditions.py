import numpy as np
import pytest
import scipy.sparse

from emvc.experiments.board.conditions import (
    CONDITIONS,
    has_missing,
    impute,
    impute_cells,
    missing_entries,
)

ROWS = [name for name in CONDITIONS if name.startswith(("destroyed", "mismatched", "noise"))]


@pytest.fixture
def views(rng):
    dense = rng.standard_normal((100, 5)) + 3.0
    dense[7] = np.nan
    return [dense, scipy.sparse.csr_array((rng.random((100, 8)) < 0.4) * 1.0), rng.random((100, 3))]


def to_array(view):
    return view.toarray() if scipy.sparse.issparse(view) else view


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_are_wrong_are_told_and_the_others_untouched(name, views):
    damaged = CONDITIONS[name].apply(views, 0)
    for k, view in enumerate(views):
        hit = damaged.truth[:, k]
        np.testing.assert_array_equal(to_array(damaged.views[k])[~hit], to_array(view)[~hit])
        np.testing.assert_array_equal(to_array(damaged.oracle[k])[~hit], to_array(view)[~hit])
        assert np.isnan(to_array(damaged.oracle[k])[hit]).all()
        assert not np.isnan(to_array(damaged.views[k])[hit]).any()
    assert not damaged.truth[7, 0]  # what is missing cannot be wrong


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("destroyed 10 %", [0.1, 0.1, 0.1]),
        ("destroyed 30 %", [0.3, 0.3, 0.3]),
        ("destroyed 6 % everywhere", [0.06, 0.06, 0.06]),
        ("mismatched 20 % of one view", [0.0, 0.0, 0.2]),
        ("mismatched 50 % of one view", [0.0, 0.0, 0.5]),
        ("mismatched 20 % of every view", [0.2, 0.2, 0.2]),
        ("noise view", [0.0, 0.0, 1.0]),
    ],
)
def test_as_many_rows_are_wrong_as_the_name_says(name, shares, views):
    truth = CONDITIONS[name].apply(views, 0).truth
    found = truth.mean(axis=0)
    assert np.abs(np.sort(found) - shares).max() <= 0.04  # less where samples are missing or would be lost altogether


def test_the_same_samples_are_destroyed_everywhere(views):
    truth = CONDITIONS["destroyed 6 % everywhere"].apply(views, 0).truth
    np.testing.assert_array_equal(truth[:, 1], truth[:, 2])


@pytest.mark.parametrize("name", ["destroyed 30 %", "mismatched 20 % of every view"])
def test_every_sample_keeps_a_view(name, views):
    damaged = CONDITIONS[name].apply(views, 0)
    assert not (damaged.truth | missing_entries(views)).all(axis=1).any()
    assert not missing_entries(damaged.oracle).all(axis=1).any()


def test_mismatched_rows_belong_to_other_samples(views):
    damaged = CONDITIONS["mismatched 50 % of one view"].apply(views, 0)
    (k,) = np.flatnonzero(damaged.truth.any(axis=0))
    before, after = to_array(views[k]), to_array(damaged.views[k])
    hit = damaged.truth[:, k]
    assert (before[hit] != after[hit]).any(axis=1).all()
    assert sorted(map(tuple, before[hit])) == sorted(map(tuple, after[hit]))


@pytest.mark.parametrize(("name", "share"), [("missing 30 %", 0.3), ("missing 50 %", 0.5)])
def test_samples_go_missing_from_one_view_each(name, share, views):
    before, after = missing_entries(views), missing_entries(CONDITIONS[name].apply(views, 0).views)
    new = after & ~before
    assert new.sum(axis=1).max() == 1
    assert new.any(axis=1).mean() == pytest.approx(share, abs=0.02)
    assert not after.all(axis=1).any()


def test_gross_cells_are_far_off_and_missing_in_the_oracle(views):
    damaged = CONDITIONS["gross cells 10 %"].apply(views, 0)
    changed = damaged.views[2] != views[2]
    assert changed.mean() == pytest.approx(0.1, abs=0.05)
    np.testing.assert_array_equal(np.isnan(damaged.oracle[2]), changed)
    errors = (damaged.views[2] - views[2])[changed] / views[2].std()
    assert np.median(np.abs(errors)) > 3.0
    assert damaged.views[1].nnz == views[1].nnz


def test_lost_cells_are_lost(views):
    lost = CONDITIONS["missing cells 10 %"].apply(views, 0).views
    assert np.isnan(lost[2]).mean() == pytest.approx(0.1, abs=0.05)
    assert np.isnan(lost[1].data).mean() == pytest.approx(0.1, abs=0.05)
    assert has_missing(lost[1:]) == (False, True)


@pytest.mark.parametrize("name", sorted(CONDITIONS))
def test_the_seed_decides(name, views):
    one, same, other = (CONDITIONS[name].apply(views, seed) for seed in (0, 0, 1))
    for k in range(3):
        np.testing.assert_array_equal(to_array(one.views[k]), to_array(same.views[k]))
    differs = any(
        not np.array_equal(to_array(one.views[k]), to_array(other.views[k]), equal_nan=True) for k in range(3)
    )
    assert differs == (name != "clean")


def test_views_of_the_caller_stay_as_they_are(views):
    before = [to_array(view).copy() for view in views]
    for condition in CONDITIONS.values():
        condition.apply(views, 0)
    for view, old in zip(views, before, strict=True):
        np.testing.assert_array_equal(to_array(view), old)


def test_imputation_by_the_mean_of_the_column():
    view = np.array([[1.0, np.nan], [3.0, 4.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(impute([view])[0], [[1.0, 4.0], [3.0, 4.0], [2.0, 4.0]])
    cells = impute_cells([view])[0]
    np.testing.assert_array_equal(cells[:2], [[1.0, 4.0], [3.0, 4.0]])
    assert np.isnan(cells[2]).all()
    assert has_missing([view]) == (True, True)
