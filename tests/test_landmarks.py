"""Landmarks: the exact method with fewer states."""

import itertools
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from emvc import EMVC, datasets, landmarks, pilot, screening
from emvc._validation import check_views
from emvc.metrics import clustering_accuracy, clustering_scores
from emvc.problem import Problem
from emvc.rows import LocalRows
from emvc.solvers import ADMM, run
from emvc.solvers.blocks import Block, BlockADMM, BlockProblem, pack, threshold_gram


def blobs(n_samples, n_clusters=4, n_views=3, n_features=8, seed=0, spread=2.5):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n_samples)
    centers = [spread * rng.standard_normal((n_clusters, n_features)) for _ in range(n_views)]
    return [center[labels] + rng.standard_normal((n_samples, n_features)) for center in centers], labels


def in_blocks(transitions, observed, cuts):
    edges = [0, *cuts, transitions.shape[1]]
    return LocalRows(
        Block(transitions=np.ascontiguousarray(transitions[:, a:b]), observed=np.ascontiguousarray(observed[:, a:b]))
        for a, b in itertools.pairwise(edges)
    )


@pytest.fixture(scope="module")
def digits():
    return datasets.make_digits_views(n_samples=400)


@pytest.mark.parametrize("cuts", [(), (1, 2, 90)])
def test_blocks_repeat_the_solver_of_the_whole(cuts):
    """The same iterates as ADMM, whatever the blocks, with samples and states that are not observed."""
    data = datasets.make_digits_views(n_samples=120)
    views = [view.copy() for view in data.views]
    views[0][3], views[1][60] = np.nan, np.nan
    chains = EMVC(10)._prepare(check_views(views, allow_missing=True), 10).chains
    weights = (0.4, 0.4, chains.weights, chains.observed)
    exact = run(ADMM(tol=1e-4), Problem(chains.transitions, *weights), max_iter=60)
    rows = in_blocks(chains.transitions, chains.observed, cuts)
    problem = BlockProblem(rows, chains.transitions.shape[1:], *weights)
    found = run(BlockADMM(tol=1e-4), problem, max_iter=60)
    consensus = np.vstack([block.consensus for block in rows.blocks])
    np.testing.assert_allclose(consensus, exact.consensus, atol=1e-8)
    assert found.n_iter == exact.n_iter
    assert found.objective == pytest.approx(exact.objective, rel=1e-5)
    assert found.bound == pytest.approx(exact.bound, rel=1e-5)
    assert found.bound <= exact.objective * (1 + 1e-9)


def test_contrast_to_all_samples_as_landmarks_is_that_of_the_graphs(rng):
    chains = rng.random((4, 30, 30)) ** 3
    chains /= chains.sum(axis=2, keepdims=True)
    observed = np.ones((30, 4), dtype=bool)
    found = landmarks.contrast(chains, observed, np.arange(30), chains)
    np.testing.assert_allclose(found, screening.contrast(chains, observed), atol=1e-5)
    assert np.isnan(landmarks.contrast(chains, observed, np.arange(30), None)).all()


def test_certificate_of_a_tall_problem_holds():
    rng = np.random.default_rng(0)
    transitions = rng.dirichlet(np.full(12, 0.3), size=(3, 90))
    ones, states = np.ones((3, 90)), np.ones((3, 12))
    states[1, 4] = 0.0
    solution = run(
        BlockADMM(tol=1e-4), BlockProblem(in_blocks(transitions, ones, (40,)), (90, 12), 0.3, 0.9, np.ones(3), states)
    )
    tall = run(ADMM(tol=1e-7), Problem(transitions, 0.3, 0.9, None, ones, states), max_iter=3000)
    assert solution.bound <= tall.objective * (1 + 1e-9)
    assert solution.objective >= tall.bound * (1 - 1e-9)
    assert solution.gap <= 1e-4


def test_sparse_transitions_are_the_same_transitions():
    transitions = np.zeros((2, 5, 20))
    transitions[:, np.arange(5), np.arange(5)] = 1.0
    packed = pack(transitions)
    assert len(packed) == 2
    block = Block(transitions=packed, observed=np.ones((2, 5)))
    np.testing.assert_array_equal(block.chains(), transitions)
    assert sys.getsizeof(block) < transitions.nbytes
    dense = np.full((2, 5, 20), 0.05)
    assert pack(dense) is dense


def test_a_block_refuses_to_repeat_a_step():
    rows = in_blocks(np.full((1, 4, 2), 0.5), np.ones((1, 4)), ())
    solver, problem = BlockADMM(), BlockProblem(rows, (4, 2), 1.0, 1.0, np.ones(1), np.ones((1, 2)))
    state = solver.step(problem, solver.init(problem, np.random.default_rng(0)))
    state.clock -= 1
    with pytest.raises(RuntimeError, match="at step 1 but was asked to go on from step 0"):
        solver.step(problem, state)


@pytest.mark.parametrize("threshold", [0.0, 4.0, 6.0, 100.0])
def test_threshold_gram_is_the_proximal_step(threshold):
    matrix = np.random.default_rng(0).standard_normal((30, 6))
    factors, spectrum = threshold_gram(matrix.T @ matrix, threshold)
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    result = matrix
    for factor in factors:
        result = result @ factor
    np.testing.assert_allclose(result, (u * np.maximum(s - threshold, 0)) @ vt, atol=1e-10)
    assert spectrum.rank == np.sum(s > threshold)
    assert spectrum.nuclear_norm == pytest.approx(np.maximum(s - threshold, 0).sum())


def test_duplicates_do_not_make_everybody_else_an_outlier():
    """Most samples coincide in one view: distances between them are rounding, and rounding is no scale."""
    views, labels = blobs(400)
    views[1] = views[1][labels]  # one point per cluster, plus
    views[1][:40] += 0.3 * np.random.default_rng(0).standard_normal((40, 8))
    model = EMVC(4, n_landmarks=60, random_state=0).fit(views)
    exact = EMVC(4, random_state=0).fit(views)
    np.testing.assert_allclose(model.isolation_[:, 1], exact.isolation_[:, 1], atol=1e-6)
    assert adjusted_rand_score(labels, model.labels_) > 0.9


def test_embedding_is_the_singular_vectors_of_the_bipartite_matrix():
    consensus = np.random.default_rng(0).dirichlet(np.ones(7), size=50)
    mass = consensus.sum(axis=0)
    image, values = landmarks.embedding_map(consensus.T @ consensus, mass, 3)
    u, s, _ = np.linalg.svd(consensus / np.sqrt(mass + 1e-3 * mass.mean()), full_matrices=False)
    np.testing.assert_allclose(np.abs(u[:, :3].T @ (consensus @ image)), np.eye(3), atol=1e-6)
    np.testing.assert_allclose(values, s[:3] ** 2)


def test_all_samples_as_landmarks_are_the_exact_method():
    views, _ = blobs(150)
    exact = EMVC(4, random_state=0).fit(views)
    same = EMVC(4, n_landmarks=150, random_state=0).fit(views)
    np.testing.assert_array_equal(same.labels_, exact.labels_)
    np.testing.assert_array_equal(same.consensus_, exact.consensus_)


def test_landmark_chains_with_all_landmarks_are_the_rows_of_the_local_graph():
    """Without the symmetric part, which a row cannot know, every row is that of `local_graph`."""
    from emvc import graphs

    view = np.random.default_rng(0).standard_normal((60, 4))
    views, rows = check_views([view]), np.arange(60)
    plan = pilot.make_plan(views, rows, 60, weights=np.ones(1), n_neighbors=7, scale=None, screening=False, joint=False)
    found = landmarks.describe(plan, views, rows, np.float64)
    squares = graphs.squared_distances(view)
    scale = landmarks.neighbor_scale(squares, rows, 7)
    expected = graphs.local_rows(squares, rows, 7, scale, scale, graphs.least_width(scale))
    np.testing.assert_allclose(found.transitions[0], expected, atol=1e-10)
    np.testing.assert_allclose(expected + expected.T, graphs.local_graph(squares.copy(), 7), atol=1e-12)


def test_fewer_landmarks_find_the_same_clusters(digits):
    exact = EMVC(10, random_state=0).fit(digits.views)
    model = EMVC(10, n_landmarks=120, random_state=0).fit(digits.views)
    scores = [clustering_scores(digits.labels, labels)["nmi"] for labels in (exact.labels_, model.labels_)]
    assert scores[1] > scores[0] - 0.05
    assert model.status_ == "converged"
    assert model.duality_gap_ <= 1e-3
    assert model.consensus_.shape == (400, 120)
    np.testing.assert_allclose(model.consensus_.sum(axis=1), 1.0, atol=1e-5)
    assert model.consensus_.min() >= 0
    assert model.embedding_.shape == (400, 10)
    assert len(np.unique(model.landmarks_)) == 120
    for name in ("sample_errors_", "outliers_", "isolation_", "disagreement_"):
        assert getattr(model, name).shape == (400, 3)
    assert model.view_errors_.shape == model.view_weights_.shape == (3,)
    assert model.labels_[0] == 0  # numbered in the order of appearance
    again = EMVC(10, n_landmarks=120, random_state=0).fit(digits.views)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert "Errors in 3 views of 400 samples" in str(model.error_report())


def test_destroyed_samples_are_found_and_own_no_cluster(digits):
    views, truth = datasets.corrupt_samples(digits.views, 0.06, 0)
    model = EMVC(10, n_landmarks=120, random_state=0).fit(views)
    clean = EMVC(10, n_landmarks=120, random_state=0).fit(digits.views)
    accuracy = [clustering_scores(digits.labels, m.labels_)["accuracy"] for m in (model, clean)]
    assert accuracy[0] > 0.94 * accuracy[1] + 0.06 * 0.1 - 0.05
    assert roc_auc_score(truth.ravel(), model.sample_errors_.ravel()) > 0.99
    assert not truth[model.landmarks_].any()
    labelled = EMVC(10, n_landmarks=120, random_state=0, outliers="label").fit_predict(views)
    assert np.mean(truth[labelled == -1].all(axis=1)) > 0.9


def test_mismatched_samples_are_named():
    views, _ = blobs(900)
    damaged, truth = datasets.mismatch_samples(views, 0.08, 0, views_hit=1)
    model = EMVC(4, n_landmarks=150, random_state=0).fit(damaged)
    assert roc_auc_score(truth[:, 1], model.sample_errors_[:, 1]) > 0.85
    assert model.outliers_[:, 1].sum() > 3 * model.outliers_[:, [0, 2]].sum()


def test_missing_samples_are_placed_by_their_other_views():
    views, labels = blobs(500)
    rng = np.random.default_rng(0)
    for i in rng.choice(500, 150, replace=False):
        views[rng.integers(3)][i] = np.nan
    model = EMVC(4, n_landmarks=50, random_state=0).fit(views)
    assert adjusted_rand_score(labels, model.labels_) > 0.9
    assert np.isnan(model.sample_errors_).sum() == 150


@pytest.mark.parametrize("options", [{"joint_view": False}, {"screen": False}, {"embedding": "plain"}, {"beta": 0.0}])
def test_options_reach_the_landmarks(options):
    views, labels = blobs(300)
    model = EMVC(4, n_landmarks=40, random_state=0, **options).fit(views)
    assert adjusted_rand_score(labels, model.labels_) > 0.9
    if options.get("screen") is False:
        assert not model.outliers_.any()


def test_one_view_and_sparse_views():
    views, labels = blobs(400, spread=4.0)
    assert adjusted_rand_score(labels, EMVC(4, n_landmarks=40, random_state=0).fit_predict(views[0])) > 0.9
    sparse = [scipy.sparse.csr_matrix(np.where(np.abs(view) > 0.5, view, 0.0)) for view in views]
    assert adjusted_rand_score(labels, EMVC(4, n_landmarks=40, random_state=0).fit_predict(sparse)) > 0.9


def test_number_of_clusters_is_chosen_on_the_pilot():
    views, _ = blobs(400, spread=5.0)
    assert EMVC("auto", n_landmarks=60, random_state=0).fit(views).n_clusters_ == 4


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_landmarks": 4}, ValueError, "n_landmarks must be at least 5, got 4"),
        ({"n_landmarks": 301}, ValueError, "n_landmarks=301 is larger than the number of samples, n_samples=300"),
        ({"n_landmarks": 10.0}, TypeError, "n_landmarks must be an integer"),
        ({"n_landmarks": 40, "solver": "alm"}, ValueError, "n_landmarks needs solver='admm' and affinity='local'"),
        ({"n_landmarks": 40, "affinity": "rbf"}, ValueError, "n_landmarks needs solver='admm' and affinity='local'"),
    ],
)
def test_bad_numbers_of_landmarks(options, error, message):
    with pytest.raises(error, match=message):
        EMVC(4, **options).fit(blobs(300)[0])


def test_landmarks_are_chosen_when_the_exact_method_would_not_fit(monkeypatch):
    views, labels = blobs(500)
    monkeypatch.setattr("emvc.estimators._landmarks.available_memory", lambda: 30_000_000)
    with pytest.warns(UserWarning, match="n_landmarks=200 is used instead"):
        model = EMVC(4, random_state=0).fit(views)
    assert model.consensus_.shape == (500, 200)
    assert adjusted_rand_score(labels, model.labels_) > 0.9
    monkeypatch.setattr("emvc._validation.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"GiB are needed for 500 samples.*Use fewer landmarks"):
        EMVC(4, n_landmarks=50).fit(views)


def test_pilot_depends_on_the_numbers_alone():
    rows = pilot.pilot_rows(10**8, 100)
    np.testing.assert_array_equal(rows, pilot.pilot_rows(10**8, 100))
    assert len(rows) == pilot.PILOT
    assert np.all(np.diff(rows) > 0)
    np.testing.assert_array_equal(pilot.pilot_rows(50, 10), np.arange(50))


def test_new_samples_are_placed_after_a_fit_with_landmarks(rng):
    labels = np.arange(240) % 3
    views = [4.0 * rng.standard_normal((3, 4))[labels] + rng.standard_normal((240, 4)) for _ in range(2)]
    model = EMVC(3, n_landmarks=40, random_state=0).fit([view[:200] for view in views])
    predicted = model.predict(views)
    assert np.mean(predicted[:200] == model.labels_) >= 0.98
    assert clustering_accuracy(labels[200:], predicted[200:]) >= 0.95
