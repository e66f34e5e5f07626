import numpy as np
import pytest

from emvc import fusion
from emvc.fusion import JOINT_SHARE, Distances, fuse, joint_distances, view_quality
from emvc.graphs import local_graph, squared_distances, transition_matrix


def make_views(rng, n=120, n_views=3, n_clusters=3):
    labels = np.arange(n) % n_clusters
    views = [5 * rng.standard_normal((n_clusters, 6))[labels] + rng.standard_normal((n, 6)) for _ in range(n_views)]
    return views, labels


def run_fuse(views, observed=None, **options):
    distances = [squared_distances(view) for view in views]
    affinities = [local_graph(d.copy(), 10) for d in distances]
    observed = np.ones((len(views[0]), len(views)), dtype=bool) if observed is None else observed
    return fuse(affinities, Distances(distances), observed, 3, n_neighbors=10, **options)


def test_chains_are_row_stochastic_and_joint_has_its_share(rng):
    views, _ = make_views(rng)
    chains = run_fuse(views)
    assert chains.transitions.shape == (4, 120, 120)
    np.testing.assert_allclose(chains.transitions.sum(axis=2), 1.0)
    assert chains.weights.mean() == pytest.approx(1.0)
    assert chains.weights[-1] / chains.weights.sum() == pytest.approx(JOINT_SHARE)
    assert chains.n_effective == 3


def test_the_joint_view_counts_for_less_where_samples_are_incomplete(rng):
    views, _ = make_views(rng)
    observed = np.ones((120, 3), dtype=bool)
    observed[:60, 1] = False
    chains = run_fuse(views, observed)
    assert chains.weights[-1] / chains.weights.sum() == pytest.approx(0.7 * JOINT_SHARE)
    assert chains.n_shown == 3.5


def test_without_distances_there_is_no_joint_view(rng):
    views, _ = make_views(rng)
    affinities = [local_graph(squared_distances(view), 10) for view in views]
    chains = fuse(affinities, None, np.ones((120, 3), dtype=bool), 3, n_neighbors=10, weigh=False)
    assert chains.transitions.shape == (3, 120, 120)
    np.testing.assert_array_equal(chains.weights, 1.0)


def test_a_view_of_noise_loses_its_weight(rng):
    views, _ = make_views(rng)
    views[1] = rng.standard_normal(views[1].shape)
    chains = run_fuse(views)
    assert chains.quality.argmin() == 1
    assert chains.weights[1] < 0.2 * chains.weights[0]
    assert chains.n_effective == 2


def test_hidden_samples_have_no_influence(rng):
    views, _ = make_views(rng)
    observed = np.ones((120, 3), dtype=bool)
    observed[:15, 0] = False
    changed = [view.copy() for view in views]
    changed[0][:15] = 1e3 * rng.standard_normal((15, 6))
    one, other = run_fuse(views, observed), run_fuse(changed, observed)
    # The graph of the view itself was drawn with the hidden samples in it; those of the estimator are not.
    np.testing.assert_allclose(one.transitions[-1], other.transitions[-1])
    np.testing.assert_array_equal(one.observed[0], observed[:, 0])
    np.testing.assert_allclose(one.transitions.sum(axis=2), 1.0)


def test_rows_are_scaled_to_the_mass_of_observed_samples(rng):
    views, _ = make_views(rng)
    observed = np.ones((120, 3), dtype=bool)
    observed[::2, 0] = False
    chains = run_fuse(views, observed)
    seen = observed[:, 0]
    np.testing.assert_allclose(
        chains.transitions[0][np.ix_(seen, seen)].sum(axis=1), chains.transitions[-1][np.ix_(seen, seen)].sum(axis=1)
    )


def test_joint_distances_are_the_mean_of_those_at_hand():
    one, other = np.array([[0.0, 2.0, 4.0], [2.0, 0.0, 6.0], [4.0, 6.0, 0.0]]), np.ones((3, 3)) - np.eye(3)
    everybody = np.ones((3, 2), dtype=bool)
    joint = joint_distances([one, other], everybody, np.ones(2))
    np.testing.assert_allclose(joint, 0.5 * (one / 4.0 + other))
    nobody = np.array([[True, False], [True, False], [False, True]])
    joint = joint_distances([one, other], nobody, np.ones(2))
    assert joint[0, 2] == joint[1, 2] > joint[0, 1]


@pytest.mark.parametrize("n_views", [2, 3])
def test_few_incomplete_samples_are_treated_as_many_would_be(n_views, rng, monkeypatch):
    views, _ = make_views(rng, n_views=n_views)
    observed = np.ones((120, n_views), dtype=bool)
    observed[7, 0] = observed[[3, 50], 1] = False
    few = run_fuse(views, observed)
    monkeypatch.setattr(fusion, "_FEW_INCOMPLETE", -1.0)
    many = run_fuse(views, observed)
    np.testing.assert_allclose(few.transitions, many.transitions, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(few.quality, many.quality, rtol=1e-12)


def test_mean_of_fewer_distances_is_shrunk_so_that_neighbours_are_fairly_shared(rng):
    """Without it, pairs that share one view only take most of the nearest places."""
    distances = [squared_distances(rng.standard_normal((200, 5))) for _ in range(4)]
    observed = np.ones((200, 4), dtype=bool)
    observed[:100, 1:] = False
    joint = joint_distances(distances, observed, np.ones(4))
    np.fill_diagonal(joint, np.inf)
    nearest = np.argsort(joint[100:], axis=1)[:, :20]
    assert 0.2 < np.mean(nearest < 100) < 0.7


def test_mismatches_are_found_in_the_view_that_stands_out_if_there_are_two_others(rng):
    views, _ = make_views(rng, n_views=3)
    graphs = [local_graph(squared_distances(view), 10) for view in views]
    row, other = 0, len(views[0]) - 1  # of another cluster
    for line in (graphs[1], graphs[1].T):
        line[row] = line[other]
    observed = np.ones((len(views[0]), 3), dtype=bool)
    chains = fuse(iter(graphs), None, observed, 3, n_neighbors=10)
    assert chains.mismatched[row, 1]
    assert chains.mismatched.sum() <= 2
    assert chains.contrast[row].argmax() == 1
    assert not fuse(iter(graphs), None, observed, 3, n_neighbors=10, screen=False).mismatched.any()
    observed[row, 0] = False
    assert not fuse(iter(graphs), None, observed, 3, n_neighbors=10).mismatched[row].any()


@pytest.mark.parametrize("copies", [False, True])
def test_a_view_that_splits_what_the_others_merge_is_believed(copies, rng):
    labels = np.repeat(np.arange(7), [70, 70, 70, 25, 25, 25, 25])
    merged = np.minimum(labels, 3)
    views = [
        4 * rng.standard_normal((7, 8))[which] + rng.standard_normal((310, 8)) for which in (merged, merged, labels)
    ]
    if copies:
        views[1] = views[0] + 0.1 * rng.standard_normal((310, 8))
    assert run_fuse(views).mismatched[:, 2].mean() < 0.01


def test_quality_of_identical_views_is_high_and_of_one_cluster_neutral(rng):
    views, _ = make_views(rng, n_views=1)
    chain = transition_matrix(local_graph(squared_distances(views[0]), 10))
    observed = np.ones((120, 2), dtype=bool)
    assert view_quality(np.stack([chain, chain]), observed, 3).min() > 0.8
    np.testing.assert_array_equal(view_quality(np.stack([chain, chain]), observed, 1), 1.0)
