import matplotlib
import numpy as np
import pytest

from emvc import EMVC, plot

matplotlib.use("agg")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    views = [3 * rng.standard_normal((3, 4))[labels] + 0.5 * rng.standard_normal((60, 4)) for _ in range(2)]
    return EMVC(3, random_state=0).fit(dict(zip(("left", "right"), views, strict=True)))


@pytest.fixture
def ax():
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_embedding_draws_every_sample_in_the_colour_of_its_cluster(model, ax):
    assert plot.embedding(model, ax) is ax
    sizes = [len(collection.get_offsets()) for collection in ax.collections]
    assert sizes == np.bincount(model.labels_).tolist()
    colours = {tuple(collection.get_facecolor()[0]) for collection in ax.collections}
    assert len(colours) == 3


def test_consensus_is_ordered_by_cluster(model, ax):
    plot.consensus(model, ax)
    shown = ax.images[0].get_array()
    order = np.argsort(model.labels_, kind="stable")
    np.testing.assert_allclose(shown, np.sqrt(model.consensus_[np.ix_(order, order)]))
    assert len(ax.lines) == 4  # two borders, horizontal and vertical


def test_errors_name_the_views(model, ax):
    plot.errors(model, ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["left", "right"]


def test_convergence_shows_the_gap(model, ax):
    plot.convergence(model, ax)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), model.history_.iteration)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.history_.gap)


def test_convergence_of_the_published_solver_shows_residuals(ax, blobs):
    plot.convergence(EMVC(3, solver="alm", random_state=0).fit(blobs[0]), ax)
    assert ax.get_ylabel() == "constraint residual"


def test_own_figure_is_made_on_request(model):
    import matplotlib.pyplot as plt

    ax = plot.errors(model)
    assert ax.figure.number in plt.get_fignums()
    plt.close(ax.figure)


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_plane_coordinates(n_components, rng):
    assert plot.plane_coordinates(rng.standard_normal((40, n_components))).shape == (40, 2)
