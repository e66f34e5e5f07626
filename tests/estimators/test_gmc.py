"""GMC: its graphs, its updates and what it says about the number of components."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from emvc import GMC, graphs
from emvc.estimators import gmc


@pytest.fixture
def noisy_views(rng):
    """Four clusters, two informative views and one of noise: (views, labels)."""
    labels = np.arange(100) % 4
    views = [2.0 * rng.standard_normal((4, 5))[labels] + rng.standard_normal((100, 5)) for _ in range(2)]
    return [*views, rng.standard_normal((100, 5))], labels


def test_graph_of_a_view_has_the_closed_form(rng):
    view, k = rng.standard_normal((30, 4)), 5
    found = gmc._ViewGraph(view, k).graph
    for i, squares in enumerate(graphs.squared_distances(view)):
        order = np.argsort(squares)[1 : k + 2]
        nearest = squares[order]
        expected = np.zeros(30)
        expected[order] = (nearest[k] - nearest) / (k * nearest[k] - nearest[:k].sum())
        np.testing.assert_allclose(found[i], expected, atol=1e-12)


def test_equally_far_neighbours_share_the_weight():
    """Whatever the order of the samples: a duplicate has three others, which count the same."""
    view = np.repeat(np.eye(3), 4, axis=0)
    graph = gmc._ViewGraph(view, 2).graph
    np.testing.assert_allclose(graph, (np.kron(np.eye(3), np.ones((4, 4))) - np.eye(12)) / 3)


def minimum(cost, row, allowed):
    """Minimise over the simplex of the allowed entries by a general solver."""
    cp.Problem(cp.Minimize(cost), [row >= 0, cp.sum(row) == 1, row[~allowed] == 0]).solve()
    return row.value


def test_graph_of_a_view_is_updated_to_the_minimiser(noisy_views):
    state = gmc._Graphs([gmc._ViewGraph(view, 6) for view in noisy_views[0]], 4)
    view, weight, row = state.views[0], state.weights()[0], 3
    state.update_views()
    s = cp.Variable(100)
    cost = view.distances[row] @ s + view.beta[row, 0] * cp.sum_squares(s)
    expected = minimum(cost + weight * cp.sum_squares(s - state.unified[row]), s, view.near[row])
    np.testing.assert_allclose(view.graph[row], expected, atol=1e-5)


def test_unified_graph_is_updated_to_the_minimiser(noisy_views):
    state = gmc._Graphs([gmc._ViewGraph(view, 6) for view in noisy_views[0]], 4)
    weights, lam, row = state.weights(), 30.0, 3
    distances = graphs.squared_distances(state.vectors)[row]
    u = cp.Variable(100)
    cost = sum(w * cp.sum_squares(u - view.graph[row]) for w, view in zip(weights, state.views, strict=True))
    expected = minimum(cost + lam * distances @ u, u, state.near[row])
    state.update_unified(lam)
    np.testing.assert_allclose(state.unified[row], expected, atol=1e-5)


@pytest.mark.parametrize("lam", [0.1, 5.0, 200.0])
def test_objective_never_increases_while_lambda_stays(lam, noisy_views):
    state = gmc._Graphs([gmc._ViewGraph(view, 10) for view in noisy_views[0]], 4)
    objective = [state.objective(lam)]
    for _ in range(15):
        state.sweep(lam)
        objective.append(state.objective(lam))
    assert objective[-1] < objective[0] - 1e-3
    assert np.all(np.diff(objective) <= 1e-10 * objective[0])


def test_recorded_objective_never_increases(noisy_views):
    model = GMC(4, random_state=0).fit(noisy_views[0])
    assert 2 <= len(model.objective_) <= model.n_iter_ + 1
    assert np.all(np.diff(model.objective_) <= 1e-10 * model.objective_[0])


def test_labels_are_the_components(noisy_views):
    views, labels = noisy_views
    model = GMC(4, random_state=0).fit(views)
    assert (model.labels_from_, model.n_components_) == ("components", 4)
    assert adjusted_rand_score(labels, model.labels_) > 0.8
    assert not model.unified_[model.labels_[:, None] != model.labels_].any()
    np.testing.assert_allclose(model.unified_.sum(axis=1), 1.0)
    assert model.weights_.argmin() == 2
    assert model.weights_.sum() == pytest.approx(1.0)


def test_more_components_than_clusters_are_clustered_by_k_means(blobs):
    """Three groups that no graph connects cannot become two components."""
    model = GMC(2, random_state=0).fit(blobs[0])
    assert (model.labels_from_, model.n_components_) == ("k-means", 3)
    assert set(model.labels_) == {0, 1}
    assert all(len(set(model.labels_[blobs[1] == label])) == 1 for label in range(3))


def test_order_of_samples_and_units_do_not_matter(noisy_views):
    views, _ = noisy_views
    model = GMC(4, scale=None, random_state=0).fit(views)
    order = np.random.default_rng(0).permutation(100)
    shuffled = GMC(4, scale=None, random_state=0).fit([1e-3 * view[order] for view in views])
    assert adjusted_rand_score(model.labels_[order], shuffled.labels_) == 1.0
    np.testing.assert_allclose(shuffled.unified_, model.unified_[np.ix_(order, order)], atol=1e-6)


def test_running_out_of_sweeps_warns(noisy_views):
    enough = GMC(4, random_state=0).fit(noisy_views[0]).n_iter_
    with pytest.warns(ConvergenceWarning, match=f"GMC reached max_iter={enough}") as caught:
        GMC(4, max_iter=enough, tol=1e-300, random_state=0).fit(noisy_views[0])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n_neighbors": 0}, "n_neighbors must be at least 1"), ({"tol": 0.0}, "tol must be finite and above 0")],
)
def test_bad_options(options, message, blobs):
    with pytest.raises(ValueError, match=message):
        GMC(3, **options).fit(blobs[0])
