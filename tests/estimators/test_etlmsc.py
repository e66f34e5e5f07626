"""ETLMSC: its two norms against literal ones, and what the order of the samples does to either."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from conftest import random_transitions
from emvc import ETLMSC
from emvc.estimators import etlmsc


@pytest.fixture
def sorted_views():
    """Four overlapping clusters, one after the other: (views, labels)."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 30)
    return [0.8 * rng.standard_normal((4, 10))[labels] + rng.standard_normal((120, 10)) for _ in range(3)], labels


def shrunk(matrix, step):
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return (left * np.maximum(values - step, 0.0)) @ right


def literal(tensor, step):
    """Shrink the frontal slices of a tensor of shape (a, b, c) after a Fourier transform along its last axis."""
    slices = np.fft.fft(tensor, axis=2)
    for k in range(tensor.shape[2]):
        slices[:, :, k] = shrunk(slices[:, :, k], step)
    found = np.fft.ifft(slices, axis=2)
    assert np.abs(found.imag).max() < 1e-12
    return found.real


@pytest.mark.parametrize("n_samples", [7, 8])
@pytest.mark.parametrize("step", [0.2, 1.0])
def test_released_prox_is_the_literal_one(n_samples, step, rng):
    tensor = rng.standard_normal((3, n_samples, n_samples))
    rotated = tensor.transpose(2, 0, 1)  # N x K x N, rows last
    expected = literal(rotated, step).transpose(1, 2, 0)
    np.testing.assert_allclose(etlmsc.shrink_along_samples(tensor, step), expected, atol=1e-10)


def test_two_views_are_transformed_along_the_views(rng):
    tensor, step = rng.standard_normal((2, 6, 6)), 0.7
    expected = literal(tensor.transpose(1, 2, 0), step * np.sqrt(2)).transpose(2, 0, 1)
    np.testing.assert_allclose(etlmsc.shrink_along_views(tensor, step), expected, atol=1e-10)


def invariant_norm(views):
    """The order-invariant norm of cvxpy expressions."""
    mean = sum(views) / len(views)
    deviations = [view - mean for view in views]
    spread = cp.normNuc(cp.hstack(deviations)) if len(views) > 1 else 0
    return np.sqrt(len(views)) * cp.normNuc(mean) + spread


@pytest.mark.parametrize("n_views", [1, 3])
def test_invariant_prox_is_the_minimiser(n_views, rng):
    tensor, step = rng.standard_normal((n_views, 4, 4)), 0.5
    views = [cp.Variable((4, 4)) for _ in tensor]
    distance = sum(cp.sum_squares(z - t) for z, t in zip(views, tensor, strict=True))
    cp.Problem(cp.Minimize(step * invariant_norm(views) + distance / 2)).solve()
    np.testing.assert_allclose(etlmsc.shrink_along_views(tensor, step), [z.value for z in views], atol=1e-4)


def test_a_slow_penalty_reaches_the_minimum(rng):
    """The whole decomposition against a general solver."""
    transitions, lam = random_transitions(rng, 3, 5), 0.9
    views = [cp.Variable((5, 5)) for _ in transitions]
    errors = cp.vstack([t - z for z, t in zip(views, transitions, strict=True)])
    problem = cp.Problem(cp.Minimize(invariant_norm(views) + lam * cp.sum(cp.norm(errors, 2, axis=0))))
    problem.solve()
    found, residuals = etlmsc._decompose(transitions, etlmsc.shrink_along_views, lam, 2000, 1e-7, growth=1.01)
    assert residuals[-1] <= 1e-7
    for z, value in zip(views, found, strict=True):
        z.value = value
    assert np.abs(transitions - found).max() > 0.1
    assert problem.objective.value == pytest.approx(problem.value, rel=1e-4)


@pytest.mark.parametrize("n_views", [1, 2, 3])
def test_order_of_the_samples_has_no_effect(n_views, rng):
    labels = np.repeat(np.arange(4), 30)  # clear enough for k-means to find the same optimum from any start
    views = [2.0 * rng.standard_normal((4, 10))[labels] + rng.standard_normal((120, 10)) for _ in range(n_views)]
    model = ETLMSC(4, random_state=0).fit(views)
    order = np.random.default_rng(1).permutation(120)
    shuffled = ETLMSC(4, random_state=0).fit([view[order] for view in views])
    assert adjusted_rand_score(model.labels_[order], shuffled.labels_) == 1.0
    np.testing.assert_allclose(shuffled.consensus_, model.consensus_[np.ix_(order, order)], atol=1e-9)


def test_order_of_the_views_has_no_effect(sorted_views):
    views = [*sorted_views[0], sorted_views[0][0][:, :4]]  # Fourier components of four views would depend on it
    model, turned = (ETLMSC(4, random_state=0).fit([views[v] for v in order]) for order in ((0, 1, 2, 3), (2, 0, 1, 3)))
    assert adjusted_rand_score(model.labels_, turned.labels_) == 1.0
    np.testing.assert_allclose(turned.consensus_, model.consensus_, atol=1e-9)


def test_released_form_reads_labels_from_the_order(sorted_views):
    """Perfect where classes follow one another, at chance where they do not, with the same samples."""
    views, labels = sorted_views
    order = np.random.default_rng(1).permutation(120)

    def quality(model, order):
        return normalized_mutual_info_score(labels[order], model.fit_predict([view[order] for view in views]))

    released, invariant = ETLMSC(4, published=True, random_state=0), ETLMSC(4, random_state=0)
    assert quality(released, np.arange(120)) > 0.95
    assert quality(released, order) < 0.3
    assert quality(invariant, order) == pytest.approx(quality(invariant, np.arange(120)))
    assert quality(invariant, order) > 0.7


def test_fitted_attributes(blobs):
    model = ETLMSC(3, random_state=0).fit(blobs[0])
    assert model.lam_ == pytest.approx(10 / np.sqrt(60))
    assert ETLMSC(3, published=True, random_state=0).fit(blobs[0]).lam_ == 0.04
    assert model.n_iter_ == len(model.residuals_)
    assert model.residuals_[-1] <= 1e-6
    np.testing.assert_allclose(model.consensus_.sum(axis=1), 1.0)


def test_running_out_of_iterations_warns(blobs):
    with pytest.warns(ConvergenceWarning, match="ETLMSC reached max_iter=2") as caught:
        ETLMSC(3, max_iter=2, random_state=0).fit(blobs[0])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": "best"}, "Unknown lam='best'; choose from 'auto'"),
        ({"lam": -1.0}, "lam must be finite and at least 0"),
        ({"tol": 0.0}, "tol must be finite and above 0"),
    ],
)
def test_bad_options(options, message, blobs):
    with pytest.raises(ValueError, match=message):
        ETLMSC(3, **options).fit(blobs[0])
