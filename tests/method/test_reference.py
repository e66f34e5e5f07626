import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from emvc import EMVC, graphs
from emvc._validation import check_views
from emvc.experiments.board.ladder import Mean
from emvc.method.blocks import flagged
from emvc.method.prepare import place, prepare
from emvc.method.reference import EVEN, Screening, Settings, _complete, _positions, believed
from emvc.metrics import clustering_scores

SETTINGS = Settings(n_clusters=3, n_neighbors=12)


def blobs(seed=0, n_samples=150, n_clusters=3, spread=(3.0, 3.0, 3.0), n_features=20):
    rng = np.random.default_rng(seed)
    labels = np.arange(n_samples) % n_clusters
    centers = [width * rng.standard_normal((n_clusters, n_features)) for width in spread]
    return [center[labels] + rng.standard_normal((n_samples, n_features)) for center in centers], labels, rng


def damaged():
    """Blobs with rows that are missing, mismatched and ruined."""
    views, labels, rng = blobs()
    views[0][:30] = np.nan
    views[1][30:45] = np.nan
    views[1][50:70] = views[1][np.roll(np.arange(50, 70), 1)]
    views[2][100:104] = rng.uniform(views[2].min(axis=0), views[2].max(axis=0), (4, 20))
    return views, labels


def measured(views, settings=SETTINGS, dtype=np.float32):
    checked = check_views(views, allow_missing=True)
    return checked, prepare(checked, settings, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [blobs, damaged])
def test_states_seen_again_are_what_they_were(make, dtype):
    views, prepared = measured(make()[0], dtype=dtype)
    own = np.arange(views.n_samples)
    again = prepared.reference.rows(views, own, prepared.screening)
    known = prepared.rows
    np.testing.assert_array_equal(again.problem.weights, known.problem.weights)
    pairs = (
        (again.problem.solve().consensus, known.problem.solve().consensus),
        (again.problem.transitions, known.problem.transitions),
        (again.wrong, known.wrong),
    )
    for found, expected in pairs:
        if dtype is np.float32:
            np.testing.assert_allclose(found, expected, atol=1e-5)
        else:  # ranks may differ by one where two samples are equally close up to rounding, and so may neighbours
            assert np.mean(np.abs(found - expected) > 0.005) < 0.01


def test_some_rows_are_rows_of_all():
    views, prepared = measured(damaged()[0])
    some = np.array([3, 33, 60, 102, 149])
    part = prepared.reference.rows(views.take(some), some, prepared.screening.take(some))
    np.testing.assert_allclose(part.problem.solve().consensus, prepared.rows.problem.solve().consensus[some], atol=1e-5)


def test_what_is_missing_or_ruined_has_no_weight():
    _, prepared = measured(damaged()[0])
    hidden = np.isnan(np.stack([view[:, 0] for view in damaged()[0]], axis=1))
    hidden[100:104, 2] = True
    np.testing.assert_array_equal(prepared.rows.problem.weights[:3].T == 0, hidden)
    np.testing.assert_array_equal(prepared.rows.shown, ~hidden)
    assert (prepared.rows.wrong[100:104, 2] > 0.5).all()
    assert not prepared.rows.contradicted[hidden].any()


def test_the_joint_view_weighs_as_much_as_every_view_that_shows_a_sample_and_has_no_limits():
    rows = measured(damaged()[0])[1].rows
    problem = rows.problem
    np.testing.assert_allclose(problem.weights.sum(axis=0), 1.0)
    np.testing.assert_allclose(problem.weights[-1], 1.0 / (rows.shown.sum(axis=1) + 1))
    np.testing.assert_allclose(problem.weights[:-1].T, rows.shown * problem.weights[-1][:, None])
    assert np.isinf(problem.beta[-1]).all()
    assert np.isfinite(problem.beta[:-1]).all()


def test_limits_are_the_usual_length_of_errors_times_the_odds_of_being_right():
    rows = measured(damaged()[0])[1].rows
    belief = np.where(rows.shown, 1.0 - rows.contradicted, 0.0)
    belief /= belief.max(axis=1, keepdims=True)
    odds = np.minimum(belief / np.maximum(1.0 - belief, 1e-6), 1e6)
    np.testing.assert_allclose(rows.problem.beta[:3].T[rows.shown], (rows.usual * odds)[rows.shown], rtol=1e-3)
    assert (rows.problem.beta[1, 50:70] < rows.problem.beta[1, 75:].min()).mean() > 0.8


def test_links_to_samples_that_a_view_is_wrong_about_are_replaced_by_what_all_say():
    """A row keeps its proportions on states that are believed, and the mass that all views together put there."""
    views, labels, rng = blobs(n_samples=300)
    views[1][:50] = views[1][rng.permutation(50)]
    raw = measured(views, SETTINGS.without_limits(), np.float64)[1].rows.problem.transitions[1]
    prepared = measured(views, dtype=np.float64)[1]
    found, beliefs = prepared.rows.problem.transitions[1], prepared.reference.beliefs[:, 1]
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    doubted = beliefs < 0.1
    assert doubted[:50].sum() >= 15  # a third belongs to the same cluster all the same
    assert not doubted[50:].any()
    sure, right = np.flatnonzero(beliefs == 1.0), np.arange(50, 300)
    row, before = found[right][:, sure], raw[right][:, sure]
    np.testing.assert_allclose(
        row / row.sum(axis=1, keepdims=True), before / before.sum(axis=1, keepdims=True), atol=1e-9
    )
    stray = labels[right][:, None] != labels[doubted]  # links to rows that belong to samples of other clusters
    assert (found[right][:, doubted] * stray).sum() < 0.3 * (raw[right][:, doubted] * stray).sum()


def test_beliefs_are_odds_and_never_nothing():
    shown = np.array([[True, True, True, True, False]])
    found = believed(shown, np.array([[0.0, 0.4, 0.75, 1.0, 0.0]]))
    np.testing.assert_allclose(found, [[1.0, 1.0, 1.0 / 3.0, 1e-3, 0.0]])


def test_what_a_view_does_not_show_is_filled_with_what_the_others_say():
    """A row that is shown keeps its proportions, and the mass that the others put on the states that are shown."""
    views = blobs()[0][:2]
    views[0][:30] = np.nan
    _, prepared = measured(views, dtype=np.float64)
    partial, whole = prepared.rows.problem.transitions[:2]
    np.testing.assert_allclose(partial.sum(axis=1), 1.0)
    np.testing.assert_allclose(partial[:30, :30], whole[:30, :30], rtol=0.0, atol=0.5)
    np.testing.assert_array_equal(prepared.rows.problem.weights[0] > 0, np.arange(150) >= 30)
    # Its own graph is that of the samples that it shows, with a neighbourhood that is as wide.
    shown = graphs.scale_view(views[0][30:], "zscore")
    own = graphs.transition_matrix(graphs.local_affinity(shown, round(12 * 120 / 150)))
    inside = partial[30:, 30:]
    np.testing.assert_allclose(inside / inside.sum(axis=1, keepdims=True), own, atol=1e-9)
    guess = np.where(np.arange(150) < 30, whole, 0.0)[30:]
    between = 0.5 * (np.pad(own, ((0, 0), (30, 0))) + whole[30:])
    mean = np.where(np.arange(150) < 30, guess, between)
    mean /= mean.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(partial[30:, :30], mean[:, :30], atol=1e-9)


def test_without_limits_the_consensus_is_the_weighted_mean():
    problem = measured(damaged()[0], SETTINGS.without_limits())[1].rows.problem
    assert np.isinf(problem.beta).all()
    shares = problem.weights / problem.weights.sum(axis=0)
    np.testing.assert_allclose(
        problem.solve().consensus, np.einsum("ki,kij->ij", shares, problem.transitions), atol=1e-6
    )
    limited = measured(damaged()[0])[1].rows.problem.solve().consensus
    assert np.abs(limited - problem.solve().consensus).max() > 0.01


def test_suspicion_alone_leaves_out_nobody():
    rng = np.random.default_rng(2)
    wide = np.where(rng.random(200) < 0.25, 1.55, 1.0)[:, None]
    views = [rng.standard_normal((200, 20)) * wide, rng.standard_normal((200, 20))]
    prepared = measured(views[:1])[1]
    suspicious = prepared.screening.suspicious
    isolated = suspicious[:, 0] > 0.9
    assert isolated.sum() >= 20
    np.testing.assert_allclose(prepared.rows.wrong, EVEN * suspicious)  # damage, or a sparse cluster
    assert prepared.rows.shown.all()
    assert measured(views)[1].rows.wrong[isolated, 0].max() < 1.0 - SETTINGS.false_alarms


def test_nothing_is_looked_for_without_a_rate_of_false_alarms():
    settings = Settings(3, 12, false_alarms=None)
    rows = measured(damaged()[0], settings)[1].rows
    assert not rows.wrong.any()
    assert np.isinf(rows.problem.beta).all()
    np.testing.assert_array_equal(rows.shown[100:104], True)


def test_samples_that_are_ruined_wherever_they_are_are_set_aside_and_placed():
    views, _, _ = blobs()
    for view in views:
        view[[7, 90]] = 100.0 * np.arange(1.0, 41.0).reshape(2, 20)
    checked, prepared = measured(views)
    np.testing.assert_array_equal(prepared.lost, [7, 90])
    np.testing.assert_array_equal(prepared.kept, np.delete(np.arange(150), [7, 90]))
    assert prepared.reference.n_states == 148
    found = place(prepared.reference, checked.take(prepared.lost), prepared.screening.take(prepared.lost))
    assert found.shape == (2, 148)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)


def test_everybody_is_believed_if_too_few_were_left():
    views, _, _ = blobs()
    for view in views:
        view[[7, 90]] = 100.0 * np.arange(1.0, 41.0).reshape(2, 20)
    prepared = measured(views, Settings(148, 12))[1]
    assert not len(prepared.lost)
    assert prepared.reference.n_states == 150


def test_rows_of_a_view_that_leads_nowhere_new_are_refused():
    views = [np.exp(-cdist(view, view)) for view in blobs()[0]]
    checked, prepared = measured(views, Settings(3, 12, affinity="precomputed", joint=False))
    with pytest.raises(ValueError, match="cannot be extended to new samples"):
        prepared.reference.rows(checked, np.full(150, -1), prepared.screening)


def test_order_of_samples_and_views_does_not_matter():
    views, labels, rng = blobs()
    views[1][50:70] = views[1][np.roll(np.arange(50, 70), 1)]
    found = EMVC(3, random_state=0, n_jobs=1).fit(views).labels_
    assert adjusted_rand_score(labels, found) >= 0.99
    order = rng.permutation(150)
    shuffled = EMVC(3, random_state=0, n_jobs=1).fit([view[order] for view in views]).labels_
    assert adjusted_rand_score(found[order], shuffled) >= 0.99
    assert adjusted_rand_score(found, EMVC(3, random_state=0, n_jobs=1).fit(views[::-1]).labels_) >= 0.99


def test_the_solver_is_worth_more_than_the_mean():
    """The view that shows the clusters best is mismatched in three rows of ten."""
    gains = []
    for seed in range(5):
        views, labels, rng = blobs(seed, n_samples=300, n_clusters=4, spread=(3.0, 0.6, 0.6))
        rows = rng.choice(300, 90, replace=False)
        views[0][rows] = views[0][np.roll(rows, 1)]
        scores = [
            clustering_scores(labels, method(4, random_state=0, n_jobs=1).fit(views).labels_)["nmi"]
            for method in (EMVC, Mean)
        ]
        gains.append(scores[0] - scores[1])
    assert min(gains) > 0.0
    assert np.mean(gains) > 0.15


@pytest.mark.parametrize("joint_view", [True, False])
def test_views_may_be_copies_of_each_other(joint_view):
    views, labels, _ = blobs()
    model = EMVC(3, joint_view=joint_view, random_state=0, n_jobs=1).fit(3 * views[:1])
    assert adjusted_rand_score(labels, model.labels_) == 1.0


def test_a_small_cluster_is_not_a_group_of_ruined_samples():
    """Eight samples that belong together in all views, fewer than the neighbours whose distances are the score."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3], [64, 64, 64, 8])
    views = [3.0 * rng.standard_normal((4, 8))[labels] + rng.standard_normal((200, 8)) for _ in range(3)]
    assert adjusted_rand_score(labels, EMVC(4, random_state=0, n_jobs=1).fit(views).labels_) > 0.95


def test_nothing_is_flagged_where_nobody_looks():
    wrong, ruined, missing = np.ones((3, 2)), np.ones((3, 2)), np.zeros((3, 2), dtype=bool)
    assert not flagged(wrong, ruined, missing, None).any()
    assert flagged(wrong, ruined, missing, 0.05).all()


def test_forgiving_screening_says_nothing():
    forgiven = Screening((None,), np.ones((4, 1)), np.ones((4, 1))).forgiving()
    assert not forgiven.ruined.any()
    assert not forgiven.suspicious.any()
    assert forgiven.shown(np.zeros((4, 1), dtype=bool)).all()


def test_states_that_a_view_does_not_show_have_no_position():
    found = _positions(np.array([2, 5, 9]), np.array([5, 3, -1, 9, 10]))
    np.testing.assert_array_equal(found, [1, -1, -1, 2, -1])


def test_a_row_without_any_link_becomes_uniform():
    chains = np.zeros((2, 4, 4))
    chains[:, :3, :3] = 1.0 / 3.0
    shown = np.array([[True, True]] * 3 + [[True, False]])
    _complete(chains, shown, shown.astype(float), shown.astype(float), False)
    np.testing.assert_allclose(chains[1, 3], 0.25)
