"""What is special to the published baselines."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from emvc import AMGL, RMSC, BestSingleView, CoRegularized, graphs
from emvc.spectral import leading_eigenvectors, scale_rows


@pytest.fixture
def noisy_views(rng):
    """Four clusters, two informative views and one of noise: (views, labels)."""
    labels = np.arange(120) % 4
    views = [2.5 * rng.standard_normal((4, 5))[labels] + rng.standard_normal((120, 5)) for _ in range(2)]
    return [*views, rng.standard_normal((120, 5))], labels


def similarities(views):
    return [graphs.normalized_affinity(graphs.rbf_affinity(graphs.scale_view(view))) for view in views]


def test_amgl_ends_at_a_fixed_point(noisy_views):
    """The weights are those of the embedding, and the embedding is the eigenspace of the weighted graphs."""
    views, _ = noisy_views
    model = AMGL(4, embedding="plain", tol=1e-12, max_iter=500, random_state=0).fit(views)
    graph = similarities(views)
    costs = [4 - np.sum(model.embedding_ * (s @ model.embedding_)) for s in graph]
    weights = 1 / (2 * np.sqrt(costs))
    np.testing.assert_allclose(model.weights_, weights / weights.sum(), rtol=1e-4)
    vectors, _ = leading_eigenvectors(np.tensordot(model.weights_, graph, axes=1), 4)
    overlap = np.linalg.svd(vectors.T @ model.embedding_, compute_uv=False)
    np.testing.assert_allclose(overlap, 1.0, atol=1e-5)


def test_amgl_objective_falls(noisy_views):
    objective = AMGL(4, random_state=0).fit(noisy_views[0]).objective_
    assert len(objective) > 1
    assert np.all(np.diff(objective) <= 1e-9)


def test_amgl_trusts_the_noise_least(noisy_views):
    assert AMGL(4, random_state=0).fit(noisy_views[0]).weights_.argmin() == 2


@pytest.mark.parametrize("kind", ["pairwise", "centroid"])
@pytest.mark.parametrize("lam", [0.01, 0.5])
def test_co_regularised_objective_rises(kind, lam, noisy_views):
    model = CoRegularized(4, kind=kind, lam=lam, random_state=0).fit(noisy_views[0])
    assert model.n_iter_ == len(model.objective_) > 1
    assert np.all(np.diff(model.objective_) >= -1e-9)


def test_co_regularised_objective_equals_that_of_exact_eigenproblems(noisy_views):
    graph, lam, n_clusters = similarities(noisy_views[0]), 0.5, 4

    def leading(matrix):
        return np.linalg.eigh(matrix)[1][:, -n_clusters:]

    embeddings = [leading(s) for s in graph]
    for _ in range(200):
        for v, similarity in enumerate(graph):
            embeddings[v] = leading(similarity + lam * sum(u @ u.T for w, u in enumerate(embeddings) if w != v))
    expected = sum(np.trace(u.T @ s @ u) for s, u in zip(graph, embeddings, strict=True))
    pairs = [(u, w) for v, u in enumerate(embeddings) for w in embeddings[:v]]
    expected += lam * sum(np.sum((u.T @ w) ** 2) for u, w in pairs)
    model = CoRegularized(n_clusters, lam=lam, tol=1e-9, max_iter=500, random_state=0).fit(noisy_views[0])
    assert model.objective_[-1] == pytest.approx(expected, rel=1e-5)


def test_co_regularisation_makes_views_agree(noisy_views):
    """With a large weight the embeddings of the views span nearly the same space."""
    views = noisy_views[0][:2]

    def agreement(lam):
        points = CoRegularized(4, lam=lam, random_state=0).fit(views).embedding_
        one, other = (np.linalg.qr(block)[0] for block in (points[:, :4], points[:, 4:]))
        return np.sum((one.T @ other) ** 2)

    assert agreement(2.0) > agreement(0.0) + 0.1


def test_co_regularised_with_weight_zero_is_plain_spectral_clustering(blobs):
    views, _ = blobs
    points = CoRegularized(3, lam=0.0, random_state=0).fit(views[0]).embedding_
    vectors, _ = leading_eigenvectors(similarities(views)[0], 3)
    expected = scale_rows(vectors)
    np.testing.assert_allclose(points @ points.T, expected @ expected.T, atol=1e-8)  # the same up to a rotation


@pytest.mark.parametrize("estimator", [AMGL, CoRegularized])
def test_running_out_of_iterations_warns(estimator, noisy_views):
    with pytest.warns(ConvergenceWarning, match=f"{estimator.__name__} reached max_iter=2"):
        estimator(4, max_iter=2, tol=1e-15, random_state=0).fit(noisy_views[0])


@pytest.mark.parametrize("solver", ["admm", "alm"])
def test_rmsc_finds_clusters_and_reports_its_gap(solver, blobs):
    views, labels = blobs
    model = RMSC(3, lam=0.02, solver=solver, random_state=0).fit(views)
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.status_ == "converged"
    assert model.duality_gap_ >= 0
    if solver == "admm":
        assert model.duality_gap_ <= 1e-3
    np.testing.assert_allclose(model.consensus_.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (RMSC, {"lam": -1}, "lam must be finite and at least 0"),
        (RMSC, {"solver": "alm-authors"}, "Unknown solver='alm-authors'; choose from 'admm', 'alm'"),
        (CoRegularized, {"kind": "both"}, "Unknown kind='both'; choose from 'pairwise', 'centroid'"),
        (CoRegularized, {"lam": float("nan")}, "lam must be finite"),
        (AMGL, {"tol": -1}, "tol must be finite and above 0"),
    ],
)
def test_bad_options(estimator, options, message, blobs):
    with pytest.raises(ValueError, match=message):
        estimator(3, **options).fit(blobs[0])


def test_best_single_view_uses_labels_only_when_given(noisy_views):
    views, labels = noisy_views
    informed = BestSingleView(4, random_state=0).fit([views[2], views[0]], labels)
    assert informed.selected_with_labels_
    assert informed.best_view_ == 1
    np.testing.assert_array_equal(informed.labels_, informed.view_labels_[1])
    guess = BestSingleView(4, random_state=0).fit([views[2], views[0]])
    assert not guess.selected_with_labels_
    np.testing.assert_array_equal(guess.view_labels_, informed.view_labels_)
    with pytest.raises(ValueError, match=r"y must have one class for each of the 120 samples, got shape \(3,\)"):
        BestSingleView(4).fit(views, [0, 1, 2])
