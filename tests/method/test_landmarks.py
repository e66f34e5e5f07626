import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from emvc import EMVC
from emvc.method import landmarks
from emvc.method.isolation import Isolation
from emvc.method.landmarks import check_n_landmarks, default_n_landmarks, draw, embedding_map


def blobs(n_samples=400, n_clusters=4, seed=0, n_features=20):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n_samples)
    centers = [3.0 * rng.standard_normal((n_clusters, n_features)) for _ in range(3)]
    return [center[labels] + rng.standard_normal((n_samples, n_features)) for center in centers], labels


def damaged():
    """Blobs with rows that are missing, mismatched and ruined."""
    views, labels = blobs()
    rng = np.random.default_rng(1)
    views[2][300:320] = rng.uniform(views[2].min(axis=0), views[2].max(axis=0), (20, 20))
    others = [rng.choice(np.flatnonzero(labels != label)) for label in labels[200:260]]
    views[1][200:260] = views[1][others] + 0.1 * rng.standard_normal((60, 20))
    views[0][:60] = np.nan
    return views, labels


def fit(views, n_landmarks, **options):
    return EMVC(4, n_landmarks=n_landmarks, random_state=0, n_jobs=1, **options).fit(views)


@pytest.mark.parametrize("n_landmarks", [60, 100, 200])
@pytest.mark.parametrize("make", [blobs, damaged])
def test_clusters_are_found(make, n_landmarks):
    views, labels = make()
    assert adjusted_rand_score(labels, fit(views, n_landmarks).labels_) > 0.95


@pytest.mark.parametrize("make", [blobs, damaged])
def test_nearly_all_samples_as_landmarks_are_nearly_the_exact_method(make):
    views, _ = make()
    exact, found = fit(views, None), fit(views, 399)
    assert adjusted_rand_score(exact.labels_, found.labels_) >= 0.98
    np.testing.assert_allclose(found.isolation_, exact.isolation_, atol=0.1)
    assert np.mean(found.outliers_ == exact.outliers_) > 0.98


def test_all_samples_as_landmarks_are_the_exact_method():
    views, _ = blobs(150)
    exact, same = fit(views, None), fit(views, 150)
    np.testing.assert_array_equal(same.consensus_, exact.consensus_)


def test_errors_are_found_among_all_samples():
    model = fit(damaged()[0], 200)
    assert model.outliers_[300:320, 2].mean() > 0.9
    mismatched = np.isin(np.arange(400), np.arange(200, 260))
    assert roc_auc_score(mismatched, model.sample_errors_[:, 1]) > 0.95
    assert np.median(model.sample_errors_[200:260, 2]) < 0.1
    np.testing.assert_array_equal(np.isnan(model.sample_errors_[:, 0]), np.arange(400) < 60)
    assert not model.outliers_[:60, 0].any()
    clean = np.delete(model.outliers_, np.r_[200:260, 300:320], axis=0)
    assert clean.mean() < 0.02


def test_landmarks_are_judged_as_samples_among_the_others():
    """Not as new samples, which would be neighbours of themselves."""
    rng = np.random.default_rng(0)
    view = rng.standard_normal((400, 6)) * np.exp(0.5 * rng.standard_normal((400, 1)))
    views = [view, *blobs()[0][:2]]
    model = fit(views, 200)
    assert len(model.landmarks_) == 200
    expected = Isolation.fit(view[draw(400, 200)])[1].max(axis=0)
    assert expected.max() > 0.1
    np.testing.assert_allclose(model.isolation_[model.landmarks_, 0], expected, atol=1e-6)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_blocks_do_not_matter(size, monkeypatch):
    views, _ = damaged()
    whole = fit(views, 80)
    monkeypatch.setattr(landmarks, "rows_per_block", lambda _: size)
    found = fit(views, 80)
    np.testing.assert_array_equal(found.labels_, whole.labels_)
    # A rank may differ by one where two samples are equally close up to rounding.
    assert np.mean(np.abs(found.consensus_ - whole.consensus_).max(axis=1) > 1e-5) < 0.02
    assert np.nanmean(np.abs(found.sample_errors_ - whole.sample_errors_)) < 1e-3
    assert found.objective_ == pytest.approx(whole.objective_, rel=1e-3)


def test_attributes():
    views, _ = blobs()
    model = fit(views, 100)
    assert model.consensus_.shape == (400, 100)
    assert model.embedding_.shape == (400, 20)
    assert model.eigenvalues_.shape == (20,)
    for name in ("sample_errors_", "outliers_", "isolation_", "disagreement_"):
        assert getattr(model, name).shape == (400, 3)
    for name in ("view_errors_", "reliability_", "view_weights_"):
        assert getattr(model, name).shape == (3,)
    np.testing.assert_array_equal(model.landmarks_, draw(400, 100))
    np.testing.assert_allclose(model.consensus_.sum(axis=1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(np.unique(model.labels_, return_index=True)[1].argsort(), np.arange(4))
    assert model.view_weights_.sum() == pytest.approx(1.0)
    assert 0.0 <= model.duality_gap_ < 1e-3
    assert not hasattr(model, "problem_")


def test_samples_that_are_ruined_everywhere():
    views, labels = blobs()
    number = int(np.setdiff1d(np.arange(400), draw(400, 100))[0])
    for view in views:
        view[[number, draw(400, 100)[3]]] = 100.0 * np.arange(1.0, 41.0).reshape(2, 20)
    lost = np.isin(np.arange(400), [number, draw(400, 100)[3]])
    model = fit(views, 100, outliers="label")
    np.testing.assert_array_equal(model.labels_ == -1, lost)
    assert model.outliers_[lost].all()
    views[0][number] = np.nan
    np.testing.assert_array_equal(fit(views, 100).outliers_[number], [False, True, True])
    assert len(model.landmarks_) == 99
    assigned = fit(views, 100).labels_
    assert set(assigned) == {0, 1, 2, 3}
    assert adjusted_rand_score(labels[~lost], assigned[~lost]) > 0.95


@pytest.mark.parametrize("n_shown", [0, 1, 2])
def test_a_view_may_show_next_to_no_landmarks(n_shown):
    views, labels = blobs()
    chosen = draw(400, 100)
    hidden = np.ones(400, dtype=bool)
    hidden[np.setdiff1d(np.arange(400), chosen)[:30]] = hidden[chosen[:n_shown]] = False
    views[0][hidden] = np.nan
    assert adjusted_rand_score(labels, fit(views, 100).labels_) > 0.95


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [blobs, damaged])
def test_new_samples_join_their_clusters(make, seed):
    views, labels = make()
    model = EMVC(4, n_landmarks=100, random_state=seed, n_jobs=1).fit([view[:360] for view in views])
    new = [view[360:].copy() for view in views]
    new[0][:5] = np.nan
    new[1][5] = 1e4
    known = [int(model.labels_[labels[:360] == label][0]) for label in range(4)]
    np.testing.assert_array_equal(model.predict(new), np.array(known)[labels[360:]])
    assert np.mean(model.predict([view[:360] for view in views]) == model.labels_) > 0.98


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (4, ValueError, "n_landmarks must be at least 5, got 4"),
        (401, ValueError, "n_landmarks=401 is larger than the number of samples, n_samples=400"),
        (50.0, TypeError, "n_landmarks must be an integer, got 50.0"),
        (True, TypeError, "n_landmarks must be an integer, got True"),
    ],
)
def test_wrong_numbers_of_landmarks(wanted, error, message):
    with pytest.raises(error, match=message):
        check_n_landmarks(wanted, 400, 4)
    with pytest.raises(error, match=message):
        fit(blobs()[0], wanted)


@pytest.mark.parametrize("options", [{"solver": "admm"}, {"beta": 1.0}, {"affinity": "rbf"}])
def test_landmarks_need_the_row_problem_and_the_local_graph(options):
    with pytest.raises(ValueError, match="n_landmarks needs solver='auto' without weights and affinity='local'"):
        fit(blobs()[0], 100, **options)


def test_right_numbers_of_landmarks():
    assert [check_n_landmarks(number, 400, 4) for number in (5, 400)] == [5, 400]
    assert default_n_landmarks(10_000, 4) == 200
    assert default_n_landmarks(10_000, 30) == 600
    assert default_n_landmarks(10_000, 99) == 1000
    assert default_n_landmarks(10_000, 2000) == 2001
    assert default_n_landmarks(100, 4) == 99


def test_landmarks_are_drawn_by_number():
    found = draw(400, 100)
    assert np.diff(found).min() > 0
    assert found.min() >= 0
    assert found.max() < 400
    np.testing.assert_array_equal(found, draw(400, 100))


def test_embedding_is_the_singular_vectors_of_the_bipartite_matrix():
    consensus = np.random.default_rng(0).dirichlet(np.ones(7), size=50)
    mass = consensus.sum(axis=0)
    image, values = embedding_map(consensus.T @ consensus, mass, 3)
    left, singular, _ = np.linalg.svd(consensus / np.sqrt(mass), full_matrices=False)
    np.testing.assert_allclose(np.abs(left[:, :3].T @ (consensus @ image)), np.eye(3), atol=1e-4)
    np.testing.assert_allclose(values, singular[:3] ** 2, rtol=1e-5)


def test_landmarks_that_nobody_leads_to_own_no_eigenvector():
    consensus = np.random.default_rng(0).dirichlet(np.ones(7), size=50)
    image, values = embedding_map(consensus.T @ consensus, consensus.sum(axis=0), 3)
    wider = np.pad(consensus, ((0, 0), (0, 2)))
    found, again = embedding_map(wider.T @ wider, wider.sum(axis=0), 3)
    np.testing.assert_allclose(found[:7], image, atol=1e-5)
    assert not found[7:].any()
    np.testing.assert_allclose(again, values, rtol=1e-5)
