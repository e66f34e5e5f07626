import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import normalized_mutual_info_score

from emvc import EMVC
from emvc.denoising import LEAST_SIDE, noise_variance, pooled_signal, signal_components, white_noise_share
from emvc.graphs import fit_scaling, scale_view, squared_distances


def noisy(rng, n, p, rank, size, deviation=1.0):
    """Return a signal of some rank whose singular values are ``size`` times the edge of the noise, and the sum."""
    left, right = (np.linalg.qr(rng.standard_normal((side, rank)))[0] for side in (n, p))
    left -= left.mean(axis=0)
    signal = deviation * size * (np.sqrt(n) + np.sqrt(p)) * left @ right.T
    return signal, signal + deviation * rng.standard_normal((n, p))


@pytest.mark.parametrize("shape", [(400, 60), (60, 400), (200, 200), (900, 1200)])
def test_share_and_variance_of_white_noise(rng, shape):
    view = 3.0 * rng.standard_normal(shape)
    assert white_noise_share(view) == pytest.approx(1.0, abs=0.1)
    assert noise_variance(view) == pytest.approx(9.0, rel=0.1)
    rank_one = np.outer(rng.standard_normal(shape[0]), rng.standard_normal(shape[1]))
    assert white_noise_share(view + 6.0 * rank_one) == pytest.approx(0.2, abs=0.1)
    assert white_noise_share(rank_one) < 0.01
    assert white_noise_share(view[:, : LEAST_SIDE - 1]) == 0.0


def test_samples_with_errors_are_no_white_noise(rng):
    view = rng.standard_normal((300, 40))
    assert white_noise_share(view) > 0.9
    view[rng.random(300) < 0.3] *= 2.0
    assert white_noise_share(view) == 0.0


@pytest.mark.parametrize("shape", [(300, 80), (80, 300), (1100, 1050)])
def test_signal_is_found_and_noise_is_not(rng, shape):
    signal, view = noisy(rng, *shape, rank=3, size=3.0)
    mean, directions = signal_components(view)
    assert directions.shape == (shape[1], 3)
    truth = squared_distances(signal)
    error = np.linalg.norm(squared_distances((view - mean) @ directions) - truth)
    assert error < 0.2 * np.linalg.norm(truth)
    assert error < 0.25 * np.linalg.norm(squared_distances(view) - truth)
    assert signal_components(rng.standard_normal(shape)) is None
    assert signal_components(np.zeros(shape)) is None


def test_pooled_views_show_what_each_one_hides(rng):
    left = np.linalg.qr(rng.standard_normal((200, 1)))[0]
    views = []
    for _ in range(6):
        right = np.linalg.qr(rng.standard_normal((200, 1)))[0]
        views.append(0.8 * 200**0.5 * left @ right.T + rng.standard_normal((200, 200)))
    assert all(signal_components(view) is None for view in views)
    found = pooled_signal([5.0 * views[0], *views[1:]])
    assert found.shape == (200, 1)
    assert abs(np.corrcoef(found[:, 0], left[:, 0])[0, 1]) > 0.5
    assert pooled_signal([rng.standard_normal((100, 40)) for _ in range(2)]) is None


def test_scaling_takes_noise_away_from_further_samples_as_well(rng):
    _, view = noisy(rng, 300, 60, rank=2, size=1.5)
    scaling = fit_scaling(view[:200], "auto", denoise=True)
    assert scaling.kind == "denoise"
    assert scaling.apply(view).shape == (300, 2)
    np.testing.assert_allclose(scaling.apply(view)[:200], scaling.apply(view[:200]))
    np.testing.assert_allclose(scaling.apply(scipy.sparse.csr_matrix(view)), scaling.apply(view))
    np.testing.assert_allclose(scale_view(view[:200], "denoise"), scaling.apply(view[:200]))
    assert fit_scaling(view, "auto").kind is None  # only on demand
    nothing = rng.standard_normal((200, 60))
    np.testing.assert_array_equal(fit_scaling(nothing, "denoise").apply(nothing), nothing)  # nothing stands out


@pytest.mark.parametrize(("n_views", "size"), [(1, 0.45), (3, 0.3)])
def test_clusters_survive_noise_that_hides_neighbours(rng, n_views, size):
    labels = np.repeat(np.arange(4), 60)
    views = [
        size * rng.standard_normal((4, 400))[labels] + 2.0 * rng.standard_normal((240, 400)) for _ in range(n_views)
    ]
    with_noise = normalized_mutual_info_score(labels, EMVC(4, scale=None, random_state=0).fit_predict(views))
    without = normalized_mutual_info_score(labels, EMVC(4, random_state=0).fit_predict(views))
    assert without > 0.8
    assert without > with_noise + 0.05


def test_a_view_of_noise_is_still_named(rng):
    labels = np.repeat(np.arange(3), 50)
    views = [0.8 * rng.standard_normal((3, 100))[labels] + 2.0 * rng.standard_normal((150, 100)) for _ in range(3)]
    views[1] = rng.standard_normal((150, 100))
    model = EMVC(3, random_state=0).fit(views)
    assert np.argmax(model.view_errors_) == 1
    assert normalized_mutual_info_score(labels, model.labels_) > 0.9


def test_pure_noise_has_no_signal():
    """One chance direction would be a line, whose graph looks better than that of any real view."""
    found = [signal_components(np.random.default_rng(seed).standard_normal((150, 400))) for seed in range(60)]
    assert all(one is None for one in found)


def test_views_without_a_signal_of_their_own_are_pooled(rng):
    labels = np.repeat([0, 1], 150)
    views = [np.outer(2.0 * labels - 1.0, np.full(100, 0.08)) + rng.standard_normal((300, 100)) for _ in range(5)]
    assert all(signal_components(view) is None for view in views)
    found = EMVC(2, random_state=0).fit_predict(views)
    assert max(np.mean(found == labels), np.mean(found != labels)) > 0.85
