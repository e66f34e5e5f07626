"""Missing cells: distances over those that samples share, statistics over those that are there."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import nan_euclidean_distances

import emvc
from emvc import (
    AMGL,
    EMVC,
    ETLMSC,
    GMC,
    LMVSC,
    NEMO,
    RMSC,
    SNF,
    BestSingleView,
    CoRegularized,
    FeatureConcatenation,
    KernelAddition,
    cells,
    graphs,
)
from emvc._validation import check_views
from emvc.estimators._gaps import describe_gaps
from emvc.method.isolation import Isolation
from emvc.method.places import Components

NAN = np.nan


def with_gaps(view, share, seed=0):
    """Take cells away at random, the first of every row never."""
    gone = np.random.default_rng(seed).random(view.shape) < share
    gone[:, 0] = False
    return np.where(gone, NAN, view)


@pytest.fixture
def gappy(blobs):
    views, labels = blobs
    return [with_gaps(view, 0.2, k) for k, view in enumerate(views)], labels


def test_statistics_are_those_of_the_cells_that_are_there(rng):
    view = with_gaps(rng.standard_normal((50, 6)), 0.3)
    mean, spread = cells.column_moments(view)
    np.testing.assert_allclose(mean, np.nanmean(view, axis=0))
    np.testing.assert_allclose(spread, np.nanstd(view, axis=0))
    np.testing.assert_array_equal(graphs.column_ranges(view), [np.nanmin(view, axis=0), np.nanmax(view, axis=0)])
    np.testing.assert_allclose(graphs.column_variances(view), np.nanvar(view, axis=0))
    scaled = graphs.scale_view(view, "zscore")
    np.testing.assert_allclose(np.nanmean(scaled**2, axis=0), 1.0)
    np.testing.assert_array_equal(np.isnan(scaled), np.isnan(view))


def test_a_view_is_mostly_zero_by_the_cells_that_are_there():
    view = np.array([[0.0, 0.0, 0.0, 1.0], [NAN, NAN, NAN, 2.0], [0.0, NAN, 0.0, 3.0]])
    assert graphs.is_mostly_zero(view)
    assert not graphs.is_mostly_zero(np.where(view == 0, NAN, view))


def test_unit_rows_have_the_length_that_all_their_cells_would_have(rng):
    view = np.abs(rng.standard_normal((40, 500)))
    lengths = np.sqrt(np.nansum(graphs.scale_view(with_gaps(view, 0.4), "unit") ** 2, axis=1))
    assert np.abs(lengths - np.sqrt(0.6)).max() < 0.1


def test_without_a_gap_distances_are_what_they_were(rng):
    view = rng.standard_normal((30, 7))
    np.testing.assert_allclose(cells.squared_distances_between(view, view), graphs.squared_distances(view), atol=1e-10)
    view[0, 0] = NAN  # of one row: the others are as far apart as before
    expected = graphs.squared_distances(view[1:])
    np.testing.assert_allclose(graphs.squared_distances(view)[1:, 1:], expected, rtol=1e-9, atol=1e-10)


def literal_distance(x, y, mean, variance):
    x, y = x - mean, y - mean
    both, either = ~np.isnan(x) & ~np.isnan(y), np.isnan(x) != np.isnan(y)
    lengths = np.sum(x[both] ** 2 + y[both] ** 2) + 6.0 * variance.mean()
    alike = 2.0 * np.sum(x[both] * y[both]) / lengths
    known = np.where(np.isnan(x), y, x)[either]
    one = np.sum((1 - alike) ** 2 * known**2 + (1 - alike**2) * variance[either])
    none = np.sum(2 * (1 - alike) * variance[np.isnan(x) & np.isnan(y)])
    return np.sum((x[both] - y[both]) ** 2) + one + none


def test_distances_are_what_the_formula_says(rng):
    view = with_gaps(rng.standard_normal((12, 5)) @ rng.standard_normal((5, 5)), 0.4)
    view[:, 4] = rng.standard_normal(12)  # a column that all have
    mean, variance = np.nanmean(view, axis=0), np.nanvar(view, axis=0)
    expected = np.array([[literal_distance(x, y, mean, variance) for y in view] for x in view])
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(graphs.squared_distances(view), expected)
    between = graphs.squared_distances_between(view[:5], view)
    np.testing.assert_allclose(between[~np.eye(5, 12, dtype=bool)], expected[:5][~np.eye(5, 12, dtype=bool)])


def test_duplicates_and_strangers(rng):
    view = rng.standard_normal((400, 6))
    view[1] = view[0]
    assert cells.squared_distances_between(view, view)[0, 1] == 0.0
    view[0, :3], view[2, 3:] = NAN, NAN  # share no cell
    squares = graphs.squared_distances(view)
    known = 0.5 * np.nansum(view[[0, 2]] ** 2)  # of the expected 6
    assert squares[0, 2] == pytest.approx(squares.mean() * (6.0 + 2.0 * known) / 12.0, rel=0.1)


def kept(full, squares):
    pairs = np.triu_indices(len(full), 1)
    return np.corrcoef(full[pairs], squares[pairs])[0, 1]


@pytest.mark.parametrize("kind", ["words", "factors"])
def test_distances_keep_more_than_scaled_up_sums_do(kind, rng):
    if kind == "words":  # rows that hardly overlap: sums over other cells have other lengths
        topics = rng.dirichlet(np.full(300, 0.05), 5)[rng.integers(0, 5, 150)]
        view = graphs.scale_view(rng.poisson(60 * topics).astype(float), "unit")
    else:
        view = graphs.scale_view(rng.standard_normal((150, 3)) @ rng.standard_normal((3, 20)), "zscore")
    gaps = with_gaps(view, 0.4)
    full = graphs.squared_distances(view)
    ours, scaled_up = kept(full, graphs.squared_distances(gaps)), kept(full, nan_euclidean_distances(gaps) ** 2)
    assert ours > scaled_up + 0.01


def test_few_shared_cells_say_little(rng, monkeypatch):
    view = rng.standard_normal((200, 6))
    gaps = with_gaps(view, 0.6)
    full, cautious = graphs.squared_distances(view), graphs.squared_distances(gaps)
    monkeypatch.setattr(cells, "UNRELATED", 1e-9)
    assert kept(full, cautious) > kept(full, graphs.squared_distances(gaps)) + 0.02


def test_clusters_are_found(gappy):
    views, labels = gappy
    model = EMVC(3, random_state=0).fit(views)
    assert adjusted_rand_score(labels, model.labels_) == 1.0
    np.testing.assert_allclose(model.missing_cells_, [np.isnan(view).mean() for view in views])
    assert model.dropped_columns_ == {}
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    few = EMVC(3, n_landmarks=30, random_state=0).fit(views)
    assert adjusted_rand_score(labels, few.labels_) == 1.0
    np.testing.assert_allclose(few.missing_cells_, model.missing_cells_)


def test_one_view_may_have_gaps(gappy):
    views, labels = gappy
    assert adjusted_rand_score(labels, EMVC(3, random_state=0).fit(views[1]).labels_) > 0.9
    assert EMVC().__sklearn_tags__().input_tags.allow_nan
    assert not EMVC(affinity="precomputed").__sklearn_tags__().input_tags.allow_nan


@pytest.mark.parametrize("method", [NEMO, SNF, GMC, ETLMSC, RMSC, AMGL, CoRegularized, KernelAddition])
def test_methods_that_compare_samples_take_gaps(method, gappy):
    views, labels = gappy
    model = method(3, random_state=0).fit(views)
    assert adjusted_rand_score(labels, model.labels_) > 0.8
    assert model.missing_cells_.shape == (2,)


@pytest.mark.parametrize("method", [LMVSC, FeatureConcatenation, BestSingleView])
def test_methods_that_need_all_cells_say_which_do_not(method, gappy):
    with pytest.raises(ValueError, match=r"view '0': sample \d+ contains NaN.*can work without it \(EMVC, NEMO, SNF"):
        method(3).fit(gappy[0])


def test_affinities_have_no_gaps():
    affinity = np.ones((30, 30))
    affinity[4, 5] = NAN
    with pytest.raises(ValueError, match=r"sample 4 contains NaN in column 5"):
        EMVC(3, affinity="precomputed").fit([affinity, np.ones((30, 30))])


@pytest.mark.parametrize("affinity", sorted(graphs.AFFINITIES))
@pytest.mark.parametrize("scale", graphs.SCALES)
def test_every_graph_takes_gaps(affinity, scale, gappy):
    views, labels = gappy
    model = EMVC(3, affinity=affinity, scale=scale, random_state=0).fit(views)
    found = model.predict(views)
    if affinity != "rbf-t100":  # almost constant
        assert adjusted_rand_score(labels, model.labels_) > 0.8
        assert (found == model.labels_).mean() > 0.9


def test_sparse_views_with_gaps_are_the_same_as_dense_ones(rng):
    labels = np.repeat([0, 1, 2], 20)
    views = [rng.poisson(np.kron(np.eye(3), np.full(10, 3.0))[labels] + 0.05).astype(float) for _ in range(2)]
    views = [with_gaps(view, 0.1, k) for k, view in enumerate(views)]
    dense = EMVC(3, random_state=0).fit(views)
    sparse = EMVC(3, random_state=0).fit([scipy.sparse.csr_matrix(view) for view in views])
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)
    assert adjusted_rand_score(labels, dense.labels_) > 0.9


def test_new_samples_with_gaps_meet_a_sparse_fit(rng):
    labels = np.repeat([0, 1, 2], 30)
    full = [rng.poisson(np.kron(np.eye(3), np.full(60, 0.5))[labels]).astype(float) * (rng.random((90, 180)) < 0.5)]
    full.append(full[0][:, ::-1])
    model = EMVC(3, random_state=0).fit([scipy.sparse.csr_matrix(view) for view in full])
    assert (model.predict([with_gaps(view, 0.1) for view in full]) == model.labels_).mean() > 0.95


def test_columns_without_a_value_are_as_if_not_there(gappy):
    views, _ = gappy
    wide = [np.insert(views[0], 1, NAN, axis=1), views[1]]
    with pytest.warns(UserWarning, match="EMVC leaves out columns without a single value, view '0': 1"):
        model = EMVC(3, screen=False, random_state=0).fit(wide)
    assert {name: of.tolist() for name, of in model.dropped_columns_.items()} == {"0": [1]}
    plain = EMVC(3, screen=False, random_state=0).fit(views)
    np.testing.assert_allclose(model.consensus_, plain.consensus_, atol=1e-6)
    wide[0][:, 1] = 7.0  # nor do values of new samples count
    np.testing.assert_array_equal(model.predict(wide), plain.predict(views))


def test_columns_are_named_and_views_that_do_not_show_a_sample_are_not_blamed():
    counts = [np.array([3, 0, 3, 0]), np.array([2, 2])]
    with pytest.warns(UserWarning, match="view 'a': 'y', 'w'"):
        found = describe_gaps(counts, np.array([3, 3]), ["a", "b"], [np.array(list("xyzw")), None], "EMVC")
    np.testing.assert_allclose(found["missing_cells_"], [0.5, 1 / 3])
    views = [np.arange(12.0).reshape(4, 3), np.arange(8.0).reshape(4, 2)]
    views[0][2], views[1][1, 0] = NAN, NAN
    checked = check_views(views, allow_missing=True, allow_gaps=True)
    np.testing.assert_array_equal(checked.missing, [[False, False], [False, False], [True, False], [False, False]])
    assert [part.shape for part in checked.shown_rows()] == [(3, 3), (4, 2)]


def test_infinite_values_stay_errors_beside_gaps(gappy):
    views, _ = gappy
    for value, message in ((np.inf, "contains infinity"), (1e200, "too large")):
        views[1][7, 3] = value
        with pytest.raises(ValueError, match=f"view '1'.*sample 7.*{message}|view '1': .*{message}|sample 7"):
            EMVC(3).fit(views)
        with pytest.raises(ValueError, match="sample 7"):
            EMVC(3).fit([views[0], scipy.sparse.csr_matrix(views[1])])


def test_models_with_gaps_are_saved(gappy, tmp_path):
    views, _ = gappy
    model = EMVC(3, random_state=0).fit(views)
    model.save(tmp_path / "model.emvc")
    again = emvc.load(tmp_path / "model.emvc")
    np.testing.assert_array_equal(again.predict(views), model.predict(views))
    np.testing.assert_array_equal(again.missing_cells_, model.missing_cells_)


def test_destroyed_rows_are_told_among_rows_with_gaps(rng):
    view = rng.standard_normal((150, 4)) @ rng.standard_normal((4, 30))
    view[:8] = rng.uniform(view.min(axis=0), view.max(axis=0), (8, 30))
    model, (ruined, _) = Isolation.fit(with_gaps(view, 0.3))
    assert np.sum(ruined[:8] > 0.5) >= 7
    assert (ruined[8:] > 0.5).mean() < 0.03
    assert np.sum(model.probabilities(with_gaps(view, 0.3, 1)[:8])[0] > 0.5) >= 7


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_not_left_out_for_the_cells_that_they_lack(seed):
    """In a narrow view, a guess about missing cells would make rows without them look alone."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=150)
    view = np.column_stack([np.eye(3)[labels], rng.gamma(2.0, size=150) + labels, rng.integers(2, size=150)])
    lacking = rng.random(150) < 0.2
    view[lacking, :3] = np.nan
    assert (Isolation.fit(view)[1][0][lacking] > 0.5).mean() < 0.1


def test_components_do_not_see_gaps(rng):
    view = rng.standard_normal((100, 2)) @ rng.standard_normal((2, 40))
    full, gaps = (Components.fit(part, 2).scores(part) for part in (view, with_gaps(view, 0.1)))
    assert np.linalg.svd(np.linalg.qr(full)[0].T @ np.linalg.qr(gaps)[0])[1].min() > 0.97


@pytest.mark.parametrize("skewed", [False, True])
def test_gaps_alone_are_no_structure(skewed, rng):
    views = [rng.standard_normal((120, 8)) for _ in range(2)]
    views = [np.exp(view) if skewed else view for view in views]
    often = np.repeat([0.1, 0.5], 60)[:, None]  # half of the samples lack many cells
    views = [np.where(rng.random(view.shape) < often * (np.arange(8) > 0), NAN, view) for view in views]
    assert EMVC("auto", random_state=0).fit(views).n_clusters_ == 1


def test_structure_is_found_in_spite_of_gaps(gappy):
    views, _ = gappy
    assert EMVC(3)._test_structure(check_views(views, allow_gaps=True)).found


def test_without_gaps_nobody_warns(blobs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(EMVC(3, random_state=0).fit(blobs[0]).missing_cells_, [0.0, 0.0])
