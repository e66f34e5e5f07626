import numpy as np
import pytest
import scipy.sparse

from emvc.method import places
from emvc.method.places import Components, Places, Regression
from emvc.spectral import scale_rows


@pytest.fixture
def data(rng):
    view = rng.standard_normal((60, 9)) * np.linspace(3.0, 0.1, 9) + 1.0
    return view, rng.standard_normal((60, 4)) + view[:, :4], rng.uniform(0.1, 1.0, 60)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("number", [3, 9, 20])
def test_components_are_the_leading_singular_vectors(data, sparse, number):
    view = data[0] * (np.abs(data[0]) > 1.0)
    components = Components.fit(scipy.sparse.csr_matrix(view) if sparse else view, number)
    _, values, directions = np.linalg.svd(view - view.mean(axis=0), full_matrices=False)
    assert components.directions.shape == (9, min(number, 9))
    np.testing.assert_allclose(components.directions.T @ components.directions, np.eye(min(number, 9)), atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(components.scores(view), axis=0), values[:number], rtol=1e-6)
    overlap = np.abs(np.sum(components.directions * directions[:number].T, axis=0))
    np.testing.assert_allclose(overlap, 1.0, atol=1e-5)


def test_columns_that_are_constant_have_no_component():
    view = np.column_stack([np.arange(30.0), np.full(30, 7.0)])
    assert Components.fit(view, 2).directions.shape == (2, 1)
    assert Components.fit(view[:, 1:], 2).directions.shape == (1, 0)


def ridge(scores, embedding, beliefs, penalty, at):
    """The weighted ridge regression with an intercept that is not penalised, by its normal equations."""
    design = np.column_stack([np.ones(len(scores)), scores])
    matrix = design.T @ (beliefs[:, None] * design) + penalty * np.diag([0.0] + [1.0] * scores.shape[1])
    return np.append(1.0, at) @ np.linalg.solve(matrix, design.T @ (beliefs[:, None] * embedding))


def test_every_sample_is_predicted_from_all_others(data, monkeypatch):
    scores, embedding, beliefs = data
    share = 0.01
    monkeypatch.setattr(places, "PENALTIES", np.array([share]))
    found = Regression.fit(scores, embedding, beliefs).places(scores, np.arange(60), embedding)
    center = beliefs @ scores / beliefs.sum()
    variances = np.linalg.eigvalsh((beliefs[:, None] * (scores - center)).T @ (scores - center))
    for i in (0, 17, 59):
        rest = np.delete(np.arange(60), i)
        shifted = scores - center  # the penalty does not depend on where the scores begin
        expected = ridge(shifted[rest], embedding[rest], beliefs[rest], share * variances.max(), shifted[i])
        np.testing.assert_allclose(found[i], expected, rtol=1e-8)


def test_new_samples_are_predicted_from_all(data):
    scores, embedding, beliefs = data
    model = Regression.fit(scores, embedding, beliefs)
    np.testing.assert_allclose(
        model.places(scores, np.full(60, -1), embedding), (scores - model.center) @ model.slopes + model.mean
    )


def test_the_penalty_has_the_least_error_of_such_predictions(data, monkeypatch):
    scores, embedding, beliefs = data
    embedding = embedding + 5.0 * np.random.default_rng(1).standard_normal(embedding.shape)
    best = Regression.fit(scores, embedding, beliefs)

    def error(model):
        return beliefs @ np.sum((model.places(scores, np.arange(60), embedding) - embedding) ** 2, axis=1)

    errors = []
    for penalty in places.PENALTIES.copy():
        monkeypatch.setattr(places, "PENALTIES", np.array([penalty]))
        errors.append(error(Regression.fit(scores, embedding, beliefs)))
    assert error(best) == pytest.approx(min(errors))
    assert max(errors) > 1.02 * min(errors)


def test_places_leave_out_what_a_view_says_of_the_sample_itself(data, rng):
    """Its own step and its own place in the embedding; what it does not show is nowhere."""
    view, embedding, _ = data
    chain = rng.random((60, 60))
    chain /= chain.sum(axis=1, keepdims=True)
    beliefs = rng.uniform(0.1, 1.0, (60, 1))
    shown = np.ones((60, 1), dtype=bool)
    shown[5] = False
    measured = Places.fit(embedding, [view], beliefs)
    (found,) = measured.of(chain[None], [view], np.arange(60), shown)
    assert found.shape == (60, 8)
    assert not found[5].any()
    for i in (0, 30):
        step = np.where(np.arange(60) == i, 0.0, chain[i] * beliefs[:, 0]) @ embedding
        np.testing.assert_allclose(found[i, :4], scale_rows(step[None])[0])
    prediction = measured.regressions[0].places(view, np.arange(60), embedding)
    np.testing.assert_allclose(found[[0, 30], 4:], scale_rows(prediction)[[0, 30]])


def test_views_without_features_are_placed_by_their_chains_alone(data, rng):
    chain = rng.random((1, 60, 60))
    (found,) = Places.fit(data[1], [], np.ones((60, 1))).of(chain, [], np.arange(60), np.ones((60, 1), dtype=bool))
    assert found.shape == (60, 4)


def test_no_more_components_than_the_rank(rng):
    view = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 30)) + 5.0
    assert Components.fit(view, 10).directions.shape == (30, 3)


def test_a_linear_map_is_predicted_exactly(rng):
    scores = rng.standard_normal((80, 3)) + np.array([1.0, -2.0, 0.5])
    embedding = scores @ rng.standard_normal((3, 2)) + [4.0, -7.0]
    regression = Regression.fit(scores, embedding, np.ones(80))
    new = rng.standard_normal((5, 3))
    found = regression.places(new, np.full(5, -1), embedding)
    wanted = (
        embedding.mean(axis=0)
        + (new - scores.mean(axis=0))
        @ np.linalg.lstsq(scores - scores.mean(axis=0), embedding - embedding.mean(axis=0), rcond=None)[0]
    )
    np.testing.assert_allclose(found, wanted, atol=0.05)
