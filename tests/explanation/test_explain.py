"""`emvc.explain`: the features that were planted are found, what is noise is not, and it says what it is worth."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import emvc
from emvc import EMVC, KernelAddition
from emvc.explanation.markers import LEVEL, leaders

NAMES = ("gene", "protein", "sound")


def planted(seed=0, shift=2.0, n=40):
    """Three views; cluster c differs in the features 6 c to 6 c + 5 of each."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1, 2], n)
    views = {name: rng.standard_normal((len(labels), 60)) for name in NAMES}
    for view in views.values():
        for c in range(3):
            view[labels == c, 6 * c : 6 * c + 6] += shift * (-1) ** c
    return views, labels


@pytest.fixture(scope="module")
def data():
    views, labels = planted()
    return views, labels, EMVC(3, random_state=0).fit(views)


def test_the_strongest_markers_are_those_that_were_planted(data):
    views, labels, model = data
    markers = emvc.explain(model, views).markers
    assert list(markers.columns) == [
        "cluster",
        "view",
        "feature",
        "direction",
        "effect",
        "difference",
        "p",
        "fdr",
        "group",
    ]
    assert len(markers) == 3 * 3 * 60
    for c, rows in markers.groupby("cluster"):
        true = np.bincount(labels[model.labels_ == c]).argmax()
        top = rows.head(10)
        assert np.mean([int(feature) // 6 == true for feature in top.feature]) >= 0.9
        assert set(top.direction) == {"down" if true == 1 else "up"}
        assert (np.sign(top.effect) == (-1 if true == 1 else 1)).all()


def test_rows_are_ordered_by_cluster_significance_and_effect(data):
    views, _, model = data
    markers = emvc.explain(model, views).markers
    key = list(zip(markers.cluster, markers.fdr > LEVEL, -markers.effect.abs(), strict=True))
    assert key == sorted(key)


def test_names_of_features_and_samples_come_from_frames():
    views, labels = planted(n=10)
    index = [f"s{i}" for i in range(30)]
    frames = {name: pd.DataFrame(v, index, [f"{name}{j}" for j in range(60)]) for name, v in views.items()}
    model = EMVC(3, random_state=0).fit(frames)
    clinic = pd.DataFrame({"type": np.array(["x", "y", "z"])[labels]}, index=index).iloc[::-1]
    found = emvc.explain(model, frames, clinic)
    assert found.markers.feature.str.match("(gene|protein|sound)[0-9]+").all()
    assert sorted(found.names()) == ["x", "y", "z"]
    assert found.agreement.ari.tolist() == [1.0]
    assert not found.notes
    used = pd.concat([clinic, frames["gene"][["gene7", "gene8"]]], axis=1)
    assert emvc.explain(model, frames, used).notes == [
        "Annotations 'gene7', 'gene8' are also in view 'gene', which the clusters were made of: an association is no "
        "evidence."
    ]


def test_rows_in_another_order_are_found_by_name():
    views, _ = planted(n=10)
    index = [f"s{i}" for i in range(30)]
    frames = {name: pd.DataFrame(v, index) for name, v in views.items()}
    model = EMVC(3, random_state=0).fit(frames)
    turned = {name: frame.iloc[::-1] for name, frame in frames.items()}
    one, other = emvc.explain(model, frames, split=True).markers, emvc.explain(model, turned, split=True).markers
    pd.testing.assert_frame_equal(one, other)
    others = {name: frame.rename(index={"s3": "x"}) for name, frame in frames.items()}
    with pytest.raises(ValueError, match="fitted to sample 's3', which these views do not have"):
        emvc.explain(model, others)


def test_missing_cells_are_left_out():
    views, _ = planted(n=20)
    rng = np.random.default_rng(0)
    whole = EMVC(3, random_state=0).fit(views)
    for view in views.values():
        view[rng.random(view.shape) < 0.05] = np.nan
    model = EMVC(3, random_state=0).fit(views)
    found = emvc.explain(model, views, split=True).markers
    assert found.effect.notna().all()
    assert (found.query("fdr < 0.05").feature.astype(int) < 18).mean() > 0.9
    assert len(found.query("fdr < 0.05")) > 0.8 * len(
        emvc.explain(whole, planted(n=20)[0], split=True).markers.query("fdr < 0.05")
    )


def test_split_finds_no_more_false_features_than_it_says_in_noise():
    """All features are null: the share of runs with a discovery is the false discovery rate (benchmarks: 200 runs)."""
    runs, found = 40, {True: 0, False: 0}
    for run in range(runs):
        rng = np.random.default_rng(run)
        views = [rng.standard_normal((50, 30)), rng.standard_t(3, (50, 30)), rng.poisson(1.0, (50, 30)).astype(float)]
        model = KernelAddition(3, random_state=0).fit(views)
        for split in found:
            found[split] += bool((emvc.explain(model, views, split=split).marker_table.fdr <= LEVEL).any())
    assert found[True] <= 6  # 2 expected at most; 7 or more have a probability of .003
    assert found[False] >= 20  # the reason for splitting


def test_split_keeps_true_features_and_says_so(data):
    views, _, model = data
    found = emvc.explain(model, views, split=True)
    significant = found.markers.query("fdr < 0.05")
    false = (significant.feature.astype(int) >= 18).mean()
    assert len(significant) > 100
    assert false <= 0.1
    assert "they hold although" in str(found)
    assert "too small" in str(emvc.explain(model, views))


def test_split_needs_two_views(data):
    view = data[0]["gene"]
    with pytest.raises(ValueError, match="split=True judges each view by the others and needs two views"):
        emvc.explain(EMVC(3, random_state=0).fit([view]), [view], split=True)


def test_missing_samples_and_noise_without_structure():
    views, _ = planted(n=15)
    views["gene"][:5] = np.nan
    model = EMVC(3, random_state=0).fit(views)
    found = emvc.explain(model, views, split=True)
    assert found.markers.effect.notna().all()
    rng = np.random.default_rng(0)
    noise = [rng.standard_normal((60, 5)) for _ in range(2)]
    none = emvc.explain(EMVC("auto", random_state=0).fit(noise), noise)
    assert not none.has_structure
    told = f"No clusters beyond chance (p = {none.structure_p_value:.2f})."
    assert none.summary() == [told, "There is one cluster: nothing to compare."]
    assert len(none.markers) == 0
    assert "nothing here speaks for clusters" in str(
        emvc.explain(EMVC(2, random_state=0).fit(noise), noise, split=True)
    )


def test_sparse_views_are_explained_alike(data):
    views, _, model = data
    whole = {name: np.where(np.abs(v) < 1, 0.0, v) for name, v in views.items()}
    sparse = {name: scipy.sparse.csr_matrix(v) for name, v in whole.items()}
    one, other = emvc.explain(model, whole).markers, emvc.explain(model, sparse).markers
    for table in (one, other):
        table.sort_values(["cluster", "view", "feature"], inplace=True)
    np.testing.assert_allclose(one.effect, other.effect, atol=1e-12)
    np.testing.assert_allclose(one.fdr, other.fdr, rtol=1e-6)


def test_redundant_features_follow_the_strongest():
    views, _ = planted(n=30)
    rng = np.random.default_rng(5)
    views["gene"][:, 5] = views["gene"][:, 0] + 0.3 * rng.standard_normal(90)
    found = emvc.explain(EMVC(3, random_state=0).fit(views), views)
    groups = found.markers.query("view == 'gene' and feature in ['0', '5'] and fdr < 0.05").groupby("cluster").group
    assert all(len(set(names)) == 1 for _, names in groups)
    assert any("1 like it" in text for c in range(3) for text in found.marker_texts(c, 20))


def test_values_are_kept_of_markers_of_every_cluster():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(20), 12)
    views = [rng.standard_normal((240, 100)) for _ in range(3)]
    for view in views:
        for c in range(20):
            view[labels == c, 5 * c : 5 * c + 5] += 6
    model = KernelAddition(20, random_state=0).fit(views)
    found = emvc.explain(model, views)
    assert len(found.values) == 60
    owners = {j // 5 for _, j in found.values}
    assert owners == set(range(20))
    for (k, j), values in found.values.items():
        np.testing.assert_array_equal(values, views[k][:, j])


def test_clusters_alone_do_not_make_features_redundant():
    labels = np.repeat([0, 1], 50)
    rows = 5.0 * labels + np.random.default_rng(0).standard_normal((3, 100))
    assert leaders(rows, labels).tolist() == [0, 1, 2]


def test_shuffled_annotations_are_not_found_and_true_ones_are(data):
    views, labels, model = data
    rng = np.random.default_rng(0)
    shuffled = {str(k): rng.permutation(labels).astype(str) for k in range(10)}
    assert (emvc.explain(model, None, shuffled).annotations.fdr <= 0.05).sum() <= 1
    table = emvc.explain(model, views, {"class": labels.astype(str)}).annotations
    assert list(table.columns) == ["column", "kind", "test", "statistic", "p", "fdr", "effect", "n_samples"]
    assert table.fdr[0] < 1e-6


def test_tables_and_text(data):
    views, labels, model = data
    rng = np.random.default_rng(0)
    time = rng.exponential(1.0 + 3 * labels)
    columns = {"type": np.array(["<b>", "y", "z"])[labels], "os": (time, np.ones(120, dtype=bool))}
    found = emvc.explain(model, views, columns)
    assert found.contingency("type").shape == (3, 3)
    with pytest.raises(KeyError, match=re.escape("no annotation 'os' by categories; there are ['type']")):
        found.contingency("os")
    assert found.annotations.set_index("column").test["os"] == "log-rank"
    assert set(found.traits.columns) >= {"cluster", "column", "level", "effect", "p", "fdr", "inside", "outside"}
    assert "<b>" not in found._repr_html_()
    assert "&lt;b&gt;" in found._repr_html_()
    assert "Cluster 0" in str(found)


@pytest.mark.parametrize(
    ("views", "message"),
    [
        (lambda v: {k: a[:50] for k, a in v.items()}, "fitted to 120 samples, but these views have 50"),
        (lambda v: list(v.values()), "fitted to the views"),
        (lambda _: None, "Nothing to explain"),
    ],
)
def test_views_that_do_not_fit(data, views, message):
    with pytest.raises(ValueError, match=message):
        emvc.explain(data[2], views(data[0]))


def test_similarities_have_no_features(data):
    labels = data[1]
    similar = [(labels[:, None] == labels) + 0.01 for _ in range(2)]
    model = EMVC(3, affinity="precomputed", random_state=0).fit(similar)
    with pytest.raises(ValueError, match="similarities, which have no features"):
        emvc.explain(model, similar)
    assert emvc.explain(model, None, {"c": labels.astype(str)}).findings


def test_unfitted_models_are_refused(data):
    with pytest.raises(ValueError, match="not fitted"):
        emvc.explain(EMVC(3), data[0])
