from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

import emvc
from emvc import AMGL, EMVC, FeatureConcatenation, KernelAddition, plot
from emvc.selection import Selection

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


def test_large_consensus_is_drawn_as_block_means(ax):
    labels = np.repeat([0, 1], 1000)
    fitted = SimpleNamespace(labels_=labels, consensus_=(labels[:, None] == labels).astype(np.float32) / 1000)
    plot.consensus(fitted, ax)
    assert ax.images[0].get_array().shape == (1000, 1000)
    assert ax.get_xlim() == (-0.5, 1999.5)  # the axes still count samples


def test_consensus_with_landmarks_orders_them_by_cluster(ax):
    labels = np.array([0, 1, 0, 1, -1])
    matrix = np.where(labels[:, None] == [1, 0, 1], 0.5, 0.01)
    plot.consensus(SimpleNamespace(labels_=labels, consensus_=matrix), ax)
    shown = ax.images[0].get_array() ** 2
    np.testing.assert_allclose(shown[:4], np.where([[1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 1, 1]], 0.5, 0.01))
    assert ax.get_xlabel() == "landmark"


def test_samples_that_are_not_believed_are_crosses(model, ax):
    outliers = np.zeros_like(model.outliers_)
    outliers[:3] = True
    fitted = SimpleNamespace(**{name: getattr(model, name) for name in ("embedding_", "n_clusters_", "sample_errors_")})
    fitted.outliers_, fitted.labels_ = outliers, np.where(np.arange(60) < 3, -1, model.labels_)
    plot.embedding(fitted, ax)
    assert sum(len(collection.get_offsets()) for collection in ax.collections) == 60
    assert len(ax.collections[-1].get_offsets()) == 3
    assert ax.get_legend().get_texts()[-1].get_text() == "none"


def test_errors_count_the_samples_that_are_there(model, ax):
    errors = model.sample_errors_.copy()
    errors[5, 0] = np.nan
    plot.errors(SimpleNamespace(sample_errors_=errors, view_names_=["left", "right"]), ax)
    assert [max(line.get_ydata()) for line in ax.lines[:2]] == [59, 60]


def test_errors_name_the_views(model, ax):
    plot.errors(model, ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["left", "right"]


def test_convergence_shows_the_gap(model, ax):
    plot.convergence(model, ax)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), model.history_.iteration)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), model.history_.gap, atol=1e-15)  # zero is not on the axis


def test_convergence_of_the_published_solver_shows_residuals(ax, blobs):
    plot.convergence(EMVC(3, solver="alm", random_state=0).fit(blobs[0]), ax)
    assert ax.get_ylabel() == "constraint residual"


def test_convergence_of_a_baseline_shows_its_objective(ax, blobs):
    fitted = AMGL(3, random_state=0).fit(blobs[0])
    plot.convergence(fitted, ax)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), fitted.objective_)
    assert ax.get_ylabel() == "objective"


def test_weights_show_the_reliability_of_the_views(model, ax):
    plot.weights(model, ax)
    lengths = {text.get_text(): bar.get_width() for text, bar in zip(ax.get_yticklabels(), ax.patches, strict=True)}
    assert lengths == pytest.approx(dict(zip(model.view_names_, 1 - model.view_errors_, strict=True)))


def test_weights_of_a_baseline_are_relative(ax, blobs):
    plot.weights(AMGL(3, random_state=0).fit(blobs[0]), ax)
    assert max(bar.get_width() for bar in ax.patches) == 1.0
    assert ax.get_xlabel() == "weight"


def test_weights_of_a_selection_show_its_path(ax):
    path = [{"beta": beta, "settled": settled, "rank": 3.0} for beta, settled in ((0.1, 0.4), (0.2, 1.0))]
    plot.weights(Selection(3, 1.0, 0.2, 0.2, [], path), ax)
    assert ax.lines[0].get_ydata().tolist() == [0.4, 1.0]
    assert ax.lines[1].get_xdata()[0] == 0.2
    with pytest.raises(ValueError, match="no path of weights"):
        plot.weights(Selection(3, 1.0, 0.2, 0.2), ax)


@pytest.mark.parametrize("name", ["consensus", "errors", "convergence", "weights"])
def test_a_model_without_the_attribute_is_refused(name, blobs):
    fitted = KernelAddition(3, random_state=0).fit(blobs[0])
    with pytest.raises(ValueError, match=r"This KernelAddition has no .*_ to draw"):
        getattr(plot, name)(fitted)


def test_embedding_needs_one(blobs):
    with pytest.raises(ValueError, match="This FeatureConcatenation has no embedding_ to draw"):
        plot.embedding(FeatureConcatenation(3, random_state=0).fit(blobs[0]))


def test_own_figure_is_made_on_request(model):
    import matplotlib.pyplot as plt

    ax = plot.errors(model)
    assert ax.figure.number in plt.get_fignums()
    plt.close(ax.figure)


def test_plane_coordinates_need_no_labels(rng):
    assert plot.plane_coordinates(rng.standard_normal((40, 3))).shape == (40, 2)


@pytest.fixture(scope="module")
def assessment(model):
    views = dict(zip(model.view_names_, model._training.views, strict=True))
    return emvc.assess(views, model, n_resamples=2, n_clusters=[2, 4])


def test_evidence_shows_score_and_stability(assessment, model, ax):
    plot.evidence(assessment, ax)
    score, stability = (line.get_ydata() for line in ax.lines)
    assert ax.lines[0].get_xdata().tolist() == [2, 3, 4]
    assert score.max() == 1.0
    assert stability == pytest.approx([record["stability"] for record in assessment.by_n_clusters])
    with pytest.raises(ValueError, match="no by_n_clusters or n_clusters_evidence_"):
        plot.evidence(model)


def test_tree_has_a_mark_for_every_cluster_and_a_line_for_every_split(assessment, ax):
    plot.tree(assessment, ax)
    assert len(ax.collections) == 2 + 3 + 4
    assert len(ax.lines) == 3 + 4
    with pytest.raises(ValueError, match="needs several"):
        plot.tree(SimpleNamespace(by_n_clusters=assessment.by_n_clusters[:1]))
