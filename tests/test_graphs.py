import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import adjusted_rand_score

from emvc import EMVC, graphs

NAMED = sorted(graphs.AFFINITIES)


def text_view(rng, n=40, d=30):
    return rng.poisson(0.15, (n, d)).astype(float)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("sparse", [False, True])
def test_transitions_are_row_stochastic(name, sparse, rng):
    view = text_view(rng)
    view[3] = 0.0  # an empty row
    view[7] = view[8]  # a duplicate
    affinity = graphs.compute_affinity(scipy.sparse.csr_array(view) if sparse else view, name)
    assert affinity.min() >= 0
    np.testing.assert_allclose(affinity, affinity.T, atol=1e-12)
    transitions = graphs.transition_matrix(affinity)
    assert np.isfinite(transitions).all()
    assert transitions.min() >= 0
    np.testing.assert_allclose(transitions.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", NAMED)
def test_sparse_and_dense_views_give_the_same_graph(name, rng):
    view = text_view(rng)
    dense = graphs.compute_affinity(view, name)
    sparse = graphs.compute_affinity(scipy.sparse.csr_array(view), name)
    np.testing.assert_allclose(sparse, dense, atol=1e-9)


@pytest.mark.parametrize("name", NAMED)
def test_graph_does_not_depend_on_the_order_of_samples(name, rng):
    """Sparse data are full of tied distances; breaking ties by index would fail here."""
    view = text_view(rng, 60, 12)
    order = rng.permutation(60)
    graph = graphs.compute_affinity(view, name)
    shuffled = graphs.compute_affinity(view[order], name)
    np.testing.assert_allclose(shuffled, graph[np.ix_(order, order)], atol=1e-10)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("view", [np.ones((6, 2)), np.zeros((6, 2)), np.repeat([[0.0], [1.0]], [5, 1], axis=0)])
def test_degenerate_views(name, view):
    transitions = graphs.transition_matrix(graphs.compute_affinity(view, name, n_neighbors=3))
    np.testing.assert_allclose(transitions.sum(axis=1), 1.0)


def test_isolated_samples_get_the_uniform_row():
    affinity = np.diag([1.0, 0.0, 2.0])
    expected = [[1, 0, 0], [1 / 3] * 3, [0, 0, 1]]
    np.testing.assert_allclose(graphs.transition_matrix(affinity), expected)


def test_tiny_affinities_keep_their_proportions():
    np.testing.assert_allclose(graphs.transition_matrix(np.array([[1e-320, 1e-320], [1e308, 1e308]])), 0.5)


def test_transition_matrix_does_not_touch_its_input():
    affinity = np.array([[1.0, 3.0], [0.0, 0.0]])
    graphs.transition_matrix(affinity)
    np.testing.assert_array_equal(affinity, [[1.0, 3.0], [0.0, 0.0]])


def test_squared_distances(rng):
    view = rng.standard_normal((20, 4)) + 1e3
    np.testing.assert_allclose(graphs.squared_distances(view), squareform(pdist(view)) ** 2, atol=1e-9)
    twice = np.vstack([view, view])
    assert (np.diag(graphs.squared_distances(twice)[:20, 20:]) == 0).all()


def test_bandwidths_by_hand():
    view = np.array([[0.0], [1.0], [3.0]])  # distances 1, 2, 3: median 2
    assert graphs.rbf_affinity(view)[0, 1] == pytest.approx(np.exp(-1 / 8))
    assert graphs.rbf_literal_affinity(view)[0, 1] == pytest.approx(np.exp(-1 / 2))
    assert graphs.rbf_t100_affinity(view)[1, 2] == pytest.approx(1.0)  # both are the unit vector
    # With three samples the "7th" neighbour is the farthest: scales 3, 2, 3.
    assert graphs.self_tuning_affinity(view)[0, 1] == pytest.approx(np.exp(-1 / 6))


def test_cosine_by_hand():
    view = np.array([[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0], [0.0, 0.0]])
    affinity = graphs.cosine_affinity(view)
    assert affinity[0, 1] == pytest.approx(np.sqrt(0.5))
    assert affinity[0, 2] == 0.0
    assert not affinity[3].any()


def test_local_graph_by_literal_loops(rng):
    view, k = rng.standard_normal((15, 3)), 4
    distances = squareform(pdist(view))
    weights = np.zeros((15, 15))
    scale = [np.mean(sorted(distances[i])[1 : k + 1]) for i in range(15)]
    for i in range(15):
        for j in np.argsort(distances[i])[1 : k + 1]:
            width = 0.35 * (scale[i] + scale[j] + distances[i, j]) / 3
            weights[i, j] = np.exp(-(distances[i, j] ** 2) / (2 * width**2))
        weights[i] /= weights[i].sum()
    np.testing.assert_allclose(graphs.local_affinity(view, k), weights + weights.T, atol=1e-10)


def test_scaling_by_hand():
    view = np.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(graphs.scale_view(view, "unit"), [[0.6, 0.8], [0, 0]])
    np.testing.assert_allclose(graphs.scale_view(view, "zscore"), [[1, 1], [-1, -1]])
    assert graphs.scale_view(view, None) is view
    constant = np.array([[5.0, 1.0], [5.0, 3.0]])
    np.testing.assert_allclose(graphs.scale_view(constant, "zscore"), [[0, -1], [0, 1]])


def test_automatic_scaling_tells_text_from_measurements(rng):
    text = text_view(rng)
    lengths = np.linalg.norm(graphs.scale_view(text), axis=1)
    np.testing.assert_allclose(lengths[text.any(axis=1)], 1.0)
    measured = rng.standard_normal((20, 3)) * [1.0, 10.0, 100.0]
    np.testing.assert_allclose(graphs.scale_view(measured), graphs.scale_view(measured, "zscore"), atol=0.5)
    assert graphs.scale_view(np.ones((5, 2))).std() == 0.0


def test_gross_cells_do_no_harm(rng):
    """A few huge values neither shrink the rest of their column nor rule their row."""
    view = rng.standard_normal((200, 3))
    spoiled = view.copy()
    spoiled[::20, 0] = 10.0
    usual = np.arange(200) % 20 != 0
    scaled = graphs.scale_view(spoiled)
    assert scaled[usual, 0].std() > 0.7  # a plain z-score leaves .4
    np.testing.assert_allclose(scaled[:, 1:], graphs.scale_view(view)[:, 1:])
    assert graphs.scale_view(spoiled, "zscore")[usual, 0].std() < 0.5  # asked for by name, scaling is the plain one
    assert np.abs(scaled).max() <= 2 * graphs.CLIP
    text = (rng.random((50, 40)) < 0.2).astype(float)
    text[:, 0] = 1.0
    text[3, 0] = 1e6
    assert graphs.scale_view(text, "unit")[3, 0] > 0.99
    capped = graphs.scale_view(text)
    assert capped[3, 0] < 0.9
    np.testing.assert_allclose(np.linalg.norm(capped, axis=1), 1.0)


def test_sparse_scaling_stays_sparse_and_keeps_distances(rng):
    view = text_view(rng) - 2.0 * (rng.random((40, 30)) < 0.05)  # negative values: z-scores
    for scale in ("unit", "zscore"):
        scaled = graphs.scale_view(scipy.sparse.csr_array(view), scale)
        assert scipy.sparse.issparse(scaled)
        expected = graphs.squared_distances(graphs.scale_view(view, scale))
        np.testing.assert_allclose(graphs.squared_distances(scaled), expected, atol=1e-9)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1000.1])
def test_constant_columns_of_sparse_views_are_harmless(value, rng):
    view = rng.standard_normal((60, 4))
    padded = scipy.sparse.csr_array(np.hstack([view, np.full((60, 1), value)]))
    expected = graphs.squared_distances(graphs.scale_view(view, "zscore"))
    np.testing.assert_allclose(graphs.squared_distances(graphs.scale_view(padded, "zscore")), expected, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-13, 1.0, 1e13])
@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array])
def test_units_do_not_matter(unit, convert, rng):
    view = rng.standard_normal((30, 4))
    expected = graphs.squared_distances(graphs.scale_view(view, "zscore"))
    scaled = graphs.scale_view(convert(unit * view), "zscore")
    np.testing.assert_allclose(graphs.squared_distances(scaled), expected, atol=1e-9)


def test_container_does_not_change_the_scaling(rng):
    for view in (text_view(rng), np.abs(rng.standard_normal((40, 5)))):
        dense = graphs.squared_distances(graphs.scale_view(view))
        sparse = graphs.squared_distances(graphs.scale_view(scipy.sparse.csr_array(view)))
        np.testing.assert_allclose(sparse, dense, atol=1e-9)


def test_normalized_affinity():
    affinity = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(graphs.normalized_affinity(affinity), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])


def test_default_neighborhood():
    assert graphs.default_n_neighbors(1000, 5) == 25
    assert graphs.default_n_neighbors(1000, 200) == 10
    assert graphs.default_n_neighbors(8, 2) == 7


def test_callable_affinity_is_checked():
    view = np.ones((4, 2))
    with pytest.raises(ValueError, match=r"view 'words' from the callable must be 4 x 4, got shape \(4, 2\)"):
        graphs.compute_affinity(view, lambda v: v, name="words")
    with pytest.raises(ValueError, match=r"must not be negative, but entry \(0, 0\) is"):
        graphs.compute_affinity(view, lambda v: -v @ v.T, name="words")
    with pytest.raises(ValueError, match="view 'words' from the callable is not numeric"):
        graphs.compute_affinity(view, lambda _: np.full((4, 4), "x"), name="words")
    with pytest.raises(ValueError, match="view 'words' from the callable is complex"):
        graphs.compute_affinity(view, lambda v: 1j * v @ v.T, name="words")


@pytest.mark.parametrize("n_samples", [12, 300])
@pytest.mark.parametrize("sparse", [False, True])
def test_neighbour_distances_are_those_of_all_distances(rng, n_samples, sparse):
    view = np.round(rng.standard_normal((n_samples, 4)), 1)
    view[5] = view[3]
    expected = np.sort(graphs.squared_distances(view), axis=1)[:, 1:]
    given = scipy.sparse.csr_matrix(view) if sparse else view
    for k in (1, 7):
        np.testing.assert_allclose(graphs.kth_squared_distance(given, k), expected[:, k - 1], atol=1e-12)
    assert graphs.kth_squared_distance(view, 1)[5] == 0.0


def dummies(rng, labels):
    odds = rng.dirichlet(np.full(5, 0.5), (4, 8))
    cells = [np.eye(5)[[rng.choice(5, p=odds[c, j]) for c in labels]] for j in range(8)]
    return np.concatenate(cells, axis=1)


@pytest.mark.parametrize("kind", ["library size", "signed", "heavy tails", "rare and large"])
def test_one_column_of_another_kind_does_not_rule_a_view(kind, rng):
    labels = rng.integers(4, size=200)
    views = []
    for _ in range(2):
        column = {
            "library size": 1e6 * rng.lognormal(0, 1, 200),
            "signed": 1e3 * rng.standard_normal(200),
            "heavy tails": 1e3 * rng.standard_cauchy(200),
            "rare and large": (rng.random(200) < 0.3) * 1e5 * rng.lognormal(0, 2, 200),
        }[kind]
        views.append(np.column_stack([dummies(rng, labels), column]))
    wide = views[0]
    assert graphs.is_mostly_zero(wide)
    assert adjusted_rand_score(labels, EMVC(4, random_state=0).fit(views).labels_) > 0.9
    scaled = graphs.scale_view(wide)
    assert graphs.column_variances(scaled)[-1] < 0.15 * graphs.column_variances(scaled).sum()
    sparse = graphs.scale_view(scipy.sparse.csr_matrix(wide))
    np.testing.assert_allclose(sparse.toarray(), scaled, atol=1e-12)


def test_columns_that_do_not_rule_are_left_alone(rng):
    words = rng.poisson(0.3, (50, 40)).astype(float)
    assert graphs.fit_scaling(words).factors is None
    few = np.hstack([rng.poisson(0.3, (50, 3)), np.zeros((50, 3))])
    assert graphs.fit_scaling(few).factors is None
    few[:, 0] = 9.0
    assert 0 < graphs.fit_scaling(few).factors[0] < 1
    np.testing.assert_array_equal(graphs.fit_scaling(few).factors[1:], 1.0)
    assert graphs.fit_scaling(np.zeros((50, 3))).factors is None
