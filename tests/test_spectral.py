import numpy as np
import pytest
import scipy.linalg

from conftest import random_transitions
from emvc import spectral
from emvc.graphs import local_affinity, transition_matrix
from emvc.spectral import (
    cluster_embedding,
    diffusion_weights,
    leading_eigenvectors,
    number_by_appearance,
    scale_rows,
    spectral_embedding,
    stationary_distribution,
)


def blocks(sizes, leak=0.0):
    """A chain with one block per size and a little leakage between them."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    weights = (labels[:, None] == labels) + leak
    return weights / weights.sum(axis=1, keepdims=True), labels


def test_stationary_distribution_is_the_left_eigenvector(rng):
    transitions = random_transitions(rng, 1, 50)[0]
    pi = stationary_distribution(transitions, teleport=1e-8)
    assert pi.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(pi @ transitions, pi, atol=1e-8)
    assert not np.allclose(transitions @ pi, pi, atol=1e-4)  # the right eigenvector of the print is another one


@pytest.mark.parametrize("teleport", [1e-3, 1e-1])
def test_stationary_distribution_with_teleportation_by_literal_solve(teleport):
    transitions, _ = blocks([3, 5, 1])  # disconnected, with an isolated sample
    google = (1 - teleport) * transitions + teleport / 9
    values, vectors = np.linalg.eig(google.T)
    expected = np.real(vectors[:, np.argmax(np.real(values))])
    np.testing.assert_allclose(
        stationary_distribution(transitions, teleport=teleport), expected / expected.sum(), atol=1e-8
    )


@pytest.mark.parametrize("n", [40, 260])  # dense and Lanczos
def test_embedding_solves_the_generalised_problem_of_the_paper(n, rng):
    transitions, teleport = random_transitions(rng, 1, n)[0], 1e-3
    vectors, values = spectral_embedding(transitions, 4, embedding="plain", teleport=teleport)
    chain = (1 - teleport) * transitions + teleport / n
    degree = np.diag(stationary_distribution(transitions, teleport=teleport))
    laplacian = degree - (degree @ chain + chain.T @ degree) / 2
    expected = scipy.linalg.eigh(laplacian, degree, eigvals_only=True)[:4]
    np.testing.assert_allclose(1 - values, expected, atol=1e-8)
    np.testing.assert_allclose(laplacian @ vectors, degree @ vectors * (1 - values), atol=1e-8)
    assert values[0] == pytest.approx(1.0)


@pytest.mark.parametrize("sizes", [(30, 20, 10), (150, 100, 50)])
@pytest.mark.parametrize("leak", [0.0, 0.01])
@pytest.mark.parametrize("embedding", ["diffusion", "unit-rows", "plain"])
def test_blocks_are_found_connected_or_not(sizes, leak, embedding):
    transitions, labels = blocks(sizes, leak)
    points, _ = spectral_embedding(transitions, 3, embedding=embedding)
    found = cluster_embedding(points, 3, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found, labels)


def test_isolated_sample_does_not_break_the_embedding():
    transitions, _ = blocks([20, 20, 1])
    points, values = spectral_embedding(transitions, 2)
    assert np.isfinite(points).all()
    assert np.isfinite(values).all()


def test_unit_rows_have_unit_length(rng):
    points, _ = spectral_embedding(random_transitions(rng, 1, 30)[0], 3)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0)


@pytest.mark.parametrize("n", [30, 260])
def test_signs_are_fixed(n, rng):
    points, _ = spectral_embedding(random_transitions(rng, 1, n)[0], 4, embedding="plain", teleport=1e-9)
    root = np.sqrt(stationary_distribution(random_transitions(np.random.default_rng(0), 1, n)[0], teleport=1e-9))
    vectors = points * root[:, None]
    assert (vectors[np.abs(vectors).argmax(axis=0), np.arange(4)] > 0).all()


def test_degenerate_matrices_are_embedded_reproducibly():
    """Lanczos breaks down on a matrix of rank one and restarts from a random vector, which must be seeded."""
    uniform = np.full((300, 300), 1 / 300)
    first, second = (spectral_embedding(uniform, 3)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_more_components_than_clusters(rng, monkeypatch):
    """The remaining eigenvalues are zero up to rounding, where Lanczos would go on forever."""
    monkeypatch.setattr(spectral, "_RESTARTS", 5)
    transitions, labels = blocks([100, 120, 130], leak=0.1)
    transitions = transitions * (1.0 + 1e-8 * rng.random(transitions.shape))
    transitions /= transitions.sum(axis=1, keepdims=True)
    vectors, values = spectral_embedding(transitions, 12, embedding="plain")
    assert np.all(values[:3] > 0.5)
    np.testing.assert_allclose(values[3:], 0.0, atol=1e-6)
    assert np.all(np.isfinite(vectors))
    for k in range(3):
        np.testing.assert_allclose(vectors[labels == k, :3] - vectors[labels == k, :3].mean(axis=0), 0.0, atol=1e-5)


def test_copies_of_an_eigenvalue_are_found(rng):
    block = rng.random((40, 40))
    transitions = np.kron(np.eye(8), block / block.sum(axis=1, keepdims=True))
    _, values = spectral_embedding(transitions, 8)
    np.testing.assert_allclose(values[1:], 1.0 - 1e-3, atol=1e-8)


def test_slowly_mixing_chain_has_an_accurate_distribution():
    n, teleport = 300, 1e-3
    cycle = np.roll(np.eye(n), 1, axis=1)
    cycle[0] = 0.0
    cycle[0, [1, 150]] = 0.5
    pi = stationary_distribution(cycle, teleport=teleport)
    np.testing.assert_allclose((1 - teleport) * pi @ cycle + teleport / n, pi, rtol=1e-8)


def test_leading_eigenvectors_with_a_pull(rng):
    matrix = rng.standard_normal((50, 50))
    matrix, pull = matrix + matrix.T, rng.standard_normal((50, 3))
    vectors, values = leading_eigenvectors(matrix, 4, pull=pull, weight=0.7)
    full = matrix + 0.7 * pull @ pull.T
    np.testing.assert_allclose(full @ vectors, vectors * values, atol=1e-8)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(full)[::-1][:4])
    span, _ = leading_eigenvectors(None, 2, pull=pull, weight=1.0)
    np.testing.assert_allclose(pull @ (pull.T @ span), span * scipy.linalg.svdvals(pull)[:2] ** 2, atol=1e-8)


def test_labels_are_numbered_by_appearance():
    np.testing.assert_array_equal(number_by_appearance(np.array([7, 7, 2, 9, 2])), [0, 0, 1, 2, 1])


@pytest.mark.parametrize("n_clusters", [2, 5, 10])
def test_diffusion_goes_on_until_half_of_every_further_cluster_is_left(n_clusters, rng):
    values = np.append(1.0, np.sort(rng.uniform(0.3, 1.0, 30))[::-1])
    weights = diffusion_weights(values, n_clusters)
    assert weights[0] == 1.0
    assert np.sum(weights[1:] ** 2) == pytest.approx(0.5 * (n_clusters - 1), rel=1e-6)
    steps = np.log(weights[1:]) / np.log(values[1:])
    np.testing.assert_allclose(steps, steps[0])  # one number of steps for all


@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0], [1.0, 0.5, -1e-17, -0.2]])
def test_diffusion_of_degenerate_spectra(values):
    weights = diffusion_weights(np.array(values), 3)
    assert np.isfinite(weights).all()
    assert (np.diff(weights) <= 0.0).all()
    assert (weights >= 0.0).all()


def test_diffusion_embedding_weighs_eigenvectors():
    chain = transition_matrix(local_affinity(np.random.default_rng(0).standard_normal((50, 3)), 6))
    plain, plain_values = spectral_embedding(chain, 20, embedding="unit-rows")
    found, values = spectral_embedding(chain, 3, embedding="diffusion")
    assert found.shape == (50, 20)
    np.testing.assert_allclose(values, plain_values, atol=1e-10)
    expected = scale_rows(plain * diffusion_weights(values, 3))
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_samples_changes_no_start_of_kmeans(seed):
    """Points without clusters, where every start ends somewhere else."""
    points = np.random.default_rng(seed).standard_normal((200, 5))
    order = np.random.default_rng(seed + 10).permutation(200)
    one = cluster_embedding(points, 8, n_init=1, rng=np.random.default_rng(0))
    other = cluster_embedding(points[order], 8, n_init=1, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(number_by_appearance(one[order]), other)


def test_sparse_and_dense_operators_have_the_same_spectrum(rng):
    transitions, _ = blocks([30] * 10, leak=0.0)
    transitions *= rng.random(transitions.shape) < 0.4
    transitions += 1e-3 * np.eye(300)
    transitions /= transitions.sum(axis=1, keepdims=True)
    assert not isinstance(spectral.thin_out(transitions), np.ndarray)
    _, values = spectral_embedding(transitions, 12)
    np.testing.assert_allclose(values, spectral.leading_eigenvalues(transitions, 12), atol=1e-8)
