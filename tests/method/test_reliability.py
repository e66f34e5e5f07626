import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from emvc import EMVC
from emvc.method.reliability import _factors, keep_alone, rand_index, reliabilities


def views_of(labels, rng, n_views=3, apart=8.0):
    centers = [apart * rng.standard_normal((labels.max() + 1, 6)) for _ in range(n_views)]
    return [center[labels] + rng.standard_normal((len(labels), 6)) for center in centers]


def test_rand_index_is_that_of_scikit_learn(rng):
    one, other = rng.integers(4, size=100), rng.integers(6, size=100)
    assert rand_index(one, other) == pytest.approx(adjusted_rand_score(one, other))


@pytest.mark.parametrize("sizes", [[60, 60], [150, 20, 30], [20] * 8])
@pytest.mark.parametrize("n_views", [2, 4])
def test_perfect_views_have_reliability_one(sizes, n_views, rng):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    model = EMVC(len(sizes), random_state=0).fit(views_of(labels, rng, n_views))
    assert model.reliability_.min() >= 0.9


@pytest.mark.parametrize("n_views", [2, 5])
def test_noise_has_reliability_zero(n_views, rng):
    model = EMVC(3, random_state=0).fit([rng.standard_normal((200, 10)) for _ in range(n_views)])
    assert model.reliability_.mean() <= 0.05


def test_one_view_of_noise_is_named(rng):
    views = views_of(rng.integers(3, size=200), rng, 4)
    views[2] = rng.standard_normal(views[2].shape)
    model = EMVC(3, random_state=0).fit(views)
    assert model.reliability_[2] <= 0.1
    assert np.delete(model.reliability_, 2).min() >= 0.9
    np.testing.assert_allclose(model.view_errors_, 1.0 - model.reliability_)


def test_products_are_divided_evenly():
    np.testing.assert_allclose(_factors([(0, 1)], np.array([0.25]), 2), 0.5, atol=1e-3)
    np.testing.assert_allclose(
        _factors([(0, 1), (0, 2), (1, 2)], np.array([0.4, 0.32, 0.2]), 3), [0.8, 0.5, 0.4], atol=0.01
    )
    np.testing.assert_array_equal(_factors([(0, 1), (0, 2), (1, 2)], np.array([0.0, 0.9, 0.0]), 3)[1], 0.0)
    np.testing.assert_array_equal(_factors([], np.empty(0), 2), 0.0)


def test_one_cluster_or_one_view_cannot_be_compared(rng):
    chains = rng.random((2, 50, 50))
    alone = keep_alone(chains, np.ones((50, 2), dtype=bool))
    np.testing.assert_array_equal(reliabilities(alone, 1), 0.0)
    np.testing.assert_array_equal(reliabilities(alone[:1], 3), 1.0)


def test_views_are_compared_on_the_samples_that_both_show(rng):
    labels = rng.integers(3, size=240)
    views = views_of(labels, rng, 3)
    views[0][:120], views[1][100:200] = np.nan, np.nan
    assert EMVC(3, random_state=0).fit(views).reliability_.min() >= 0.9
    views[0][:], views[1][:] = np.nan, views_of(labels, rng, 1)[0]
    views[0][:10] = 1.0 * labels[:10, None]
    assert EMVC(3, random_state=0).fit(views).reliability_[0] == 0.0  # ten samples tell nothing


def test_a_few_states_are_kept():
    chains = np.zeros((2, 2000, 2000), dtype=np.float32)
    alone = keep_alone(chains, np.ones((2000, 2), dtype=bool))
    assert [len(members) for members, _ in alone] == [500, 500]
    assert alone[0][1].shape == (500, 500)
