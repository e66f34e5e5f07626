from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import emvc
from emvc import EMVC
from emvc.assessment import _stability
from emvc.estimators._confidence import matched, memberships, rising_curve, votes_of
from emvc.findings import find


def blobs(rng, sizes=(60, 50, 40), n_views=3, apart=4.0):
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centers = [apart * rng.standard_normal((len(sizes), 6)) for _ in range(n_views)]
    return {f"v{k}": c[labels] + rng.standard_normal((len(labels), 6)) for k, c in enumerate(centers)}, labels


@pytest.fixture(scope="module")
def fitted():
    views, labels = blobs(np.random.default_rng(0))
    return views, labels, EMVC(3, random_state=0).fit(views)


def test_clear_clusters_come_back(fitted):
    views, _, model = fitted
    found = emvc.assess(views, model, n_resamples=8)
    assert found.has_structure
    assert found.cluster_stability.shape == (3,)
    assert found.cluster_stability.min() > 0.95
    assert found.sample_stability.shape == model.labels_.shape
    assert np.nanmean(found.sample_stability) > 0.97
    numbers = [record["n_clusters"] for record in found.by_n_clusters]
    assert numbers == sorted(numbers)
    assert 3 in numbers
    assert max(found.by_n_clusters, key=lambda record: record["stability"])["n_clusters"] <= 3
    assert [view["name"] for view in found.views] == list(views)
    assert min(view["agreement"] for view in found.views) > 0.9


def test_noise_is_neither_structure_nor_stable(rng):
    views = [rng.standard_normal((120, 6)) for _ in range(2)]
    found = emvc.assess(views, EMVC(4, random_state=0).fit(views), n_resamples=6, n_clusters=[2])
    assert not found.has_structure
    assert found.cluster_stability.max() < 0.75
    assert "No clusters beyond chance" in str(found)
    assert "No clusters beyond chance" in found._repr_html_()


def test_same_seed_same_assessment(fitted):
    views, _, model = fitted
    one, other = (emvc.assess(views, model, n_resamples=3, n_clusters=[2], random_state=1) for _ in range(2))
    np.testing.assert_array_equal(one.sample_stability, other.sample_stability)
    assert str(one) == str(other)


def test_tree_says_who_splits_from_whom(rng):
    views, labels = blobs(rng, sizes=(50, 50, 50, 50), n_views=2, apart=5.0)
    views = {name: view + 60.0 * (labels >= 2)[:, None] for name, view in views.items()}
    model = EMVC(4, random_state=0).fit(views)
    found = emvc.assess(views, model, n_resamples=2, n_clusters=[2])
    tree = found.tree()
    assert len(tree) == 4
    assert all(parent[0] == 2 and child[0] == 4 and share == 1.0 for parent, child, share in tree)
    first, second = ({child[1] for parent, child, _ in tree if parent[1] == name} for name in (0, 1))
    assert len(first) + len(second) == 4
    assert min(len(first), len(second)) >= 1


def test_stability_by_hand():
    labels = np.array([0, 0, 0, 1, 1, 1])
    parts = [(np.array([0, 1, 3, 4]), np.array([1, 1, 0, 0])), (np.array([0, 2, 3, 5]), np.array([0, 1, 1, 1]))]
    clusters, samples = _stability(labels, 2, parts)
    np.testing.assert_allclose(clusters, [(1 + 1 / 2) / 2, (1 + 2 / 3) / 2])
    np.testing.assert_allclose(samples, [1, 1, 0, 1, 1, 1])


def test_labels_are_matched_one_to_one():
    np.testing.assert_array_equal(matched(np.array([2, 2, 0, 1]), np.array([0, 0, 1, 2]), 3), [0, 0, 1, 2])
    np.testing.assert_array_equal(matched(np.array([0, 0, 1, 1]), np.array([1, 1, -1, -1]), 2), [1, 1, 0, 0])


def test_membership_and_confidence(fitted):
    views, _, model = fitted
    assert model.membership_.shape == (150, 3)
    np.testing.assert_allclose(model.membership_.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.confidence_, model.membership_[np.arange(150), model.labels_])
    assert model.confidence_.mean() > 0.95
    new = {name: view[:7] for name, view in views.items()}
    probabilities = model.predict_proba(new)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), model.predict(new))
    assert model.transform(new).shape == (7, model.embedding_.shape[1])


def test_confidence_says_how_often_samples_keep_their_cluster(rng):
    views, _ = blobs(rng, sizes=(80, 80, 80), n_views=2, apart=0.75)
    model = EMVC(3, random_state=0).fit(views)
    assert np.ptp(model.confidence_) > 0.2
    kept = emvc.assess(views, model, n_resamples=20, n_clusters=[2], random_state=5).sample_stability
    bins = np.minimum((10 * model.confidence_).astype(int), 9)
    error = sum(
        (bins == b).mean() * abs(model.confidence_[bins == b].mean() - kept[bins == b].mean()) for b in np.unique(bins)
    )
    assert error <= 0.08


def test_the_rest_of_membership_goes_where_links_go():
    votes = np.array([[0.5, 0.4, 0.1], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    curve = np.array([[0.0, 1.0], [0.0, 0.8]])
    found = memberships(votes, np.array([0, 0, -1]), curve)
    np.testing.assert_allclose(found, [[0.4, 0.48, 0.12], [0.8, 0.1, 0.1], [0.2, 0.3, 0.5]])


def test_confidence_keeps_the_order_of_the_links(rng):
    model = EMVC(3, random_state=0).fit([rng.standard_normal((120, 5)), rng.standard_normal((120, 4))])
    own = votes_of(model)[np.arange(120), model.labels_]
    order = np.argsort(own)
    steps, rises = np.diff(own[order]), np.diff(model.confidence_[order])
    inside = own[order][1:] < model._curve()[0, -1]
    assert np.all(rises[inside & (steps > 1e-6)] > 0)


def test_a_rising_curve_joins_the_centres_of_blocks():
    shares, kept = np.array([0.1, 0.2, 0.6, 0.9]), np.array([0.5, 0.3, 0.9, 0.8])
    curve = rising_curve(shares, kept, np.array([1.0, 3.0, 1.0, 1.0]))
    np.testing.assert_allclose(curve, [[0.0, 0.175, 0.75], [0.0, 0.35, 0.85]])


def test_a_curve_that_starts_at_no_links_keeps_its_value_there():
    curve = rising_curve(np.array([0.0, 1.0]), np.array([0.2, 1.0]), np.ones(2))
    np.testing.assert_allclose(curve, [[0.0, 1.0], [0.2, 1.0]])


def test_confidence_survives_saving(fitted, tmp_path):
    _, _, model = fitted
    model.save(tmp_path / "m.emvc")
    again = emvc.load(tmp_path / "m.emvc")
    np.testing.assert_array_equal(again.confidence_, model.confidence_)
    np.testing.assert_array_equal(again.reliability_, model.reliability_)


def test_refit_forgets_what_was_computed_for_the_last_fit(rng):
    views, _ = blobs(rng, n_views=2)
    model = EMVC(3, random_state=0).fit(views)
    before = model.reliability_.copy(), model.confidence_.copy()
    model.fit([rng.standard_normal((150, 5)) for _ in range(2)])
    assert model.reliability_.max() < before[0].min()
    assert model.confidence_.mean() < before[1].mean()


@pytest.mark.parametrize("affinity", ["auto", "precomputed"])
def test_rows_with_ids_may_come_in_another_order(fitted, affinity):
    views = {name: pd.DataFrame(view).rename("s{}".format) for name, view in fitted[0].items()}
    if affinity == "precomputed":
        views = {name: pd.DataFrame(rbf_kernel(view), view.index, view.index) for name, view in views.items()}
    model = EMVC(3, affinity=affinity, random_state=0).fit(views)
    order = np.random.default_rng(0).permutation(150)
    turned = {name: v.iloc[order, order if affinity == "precomputed" else slice(None)] for name, v in views.items()}
    one, other = (emvc.assess(given, model, n_resamples=2, n_clusters=[]) for given in (views, turned))
    np.testing.assert_allclose(other.cluster_stability, one.cluster_stability)
    turned["v0"] = turned["v0"].rename(index={"s3": "t"}, columns={"s3": "t"})
    with pytest.raises(ValueError, match=r"fitted to 150 samples, but these views have 151|row indices"):
        emvc.assess(turned, model)


def test_other_views_than_those_of_the_fit_are_refused(fitted):
    views, _, model = fitted
    with pytest.raises(ValueError, match="150 samples"):
        emvc.assess({name: view[:100] for name, view in views.items()}, model)
    with pytest.raises(ValueError, match="fitted to the views"):
        emvc.assess(list(views.values()), model)
    with pytest.raises(ValueError, match="n_clusters"):
        emvc.assess(views, model, n_clusters=[150])


def kinds(model, assessment=None):
    return [finding.kind for finding in find(model, assessment)]


def test_clear_clusters_need_no_warning(fitted):
    _, _, model = fitted
    assert not [finding for finding in find(model) if finding.severity == "warning"]


def test_wrong_join_is_found(fitted, rng):
    views = dict(fitted[0])
    for name in ("v1", "v2"):
        views[name] = views[name][rng.permutation(150)]
    assert "wrong join" in kinds(EMVC(3, random_state=0).fit(views))


def test_unreliable_view_is_found(fitted, rng):
    views = fitted[0] | {"v1": rng.standard_normal((150, 4))}
    found = [finding for finding in find(EMVC(3, random_state=0).fit(views)) if finding.kind == "unreliable view"]
    assert len(found) == 1
    assert "“v1”" in found[0].text


def test_dominating_column_is_found(fitted, rng):
    views = {name: np.column_stack([view, 0.0 * view[:, 0]]) for name, view in fitted[0].items()}
    views["v2"][:, -1] = 1e3 * rng.standard_normal(150)
    assert "dominating column" in kinds(EMVC(3, scale=None, random_state=0).fit(views))
    assert "dominating column" not in kinds(EMVC(3, random_state=0).fit(views))
    frames = {name: pd.DataFrame(view).add_prefix("x") for name, view in views.items()}
    (found,) = (f for f in find(EMVC(3, scale=None, random_state=0).fit(frames)) if f.kind == "dominating column")
    assert found.text.startswith(f"Column 'x{views['v2'].shape[1] - 1}' of view “v2” makes up")


def test_constant_columns_do_not_make_another_one_dominate(fitted):
    views = {name: np.column_stack([view[:, :2], np.ones(150)]) for name, view in fitted[0].items()}
    assert "dominating column" not in kinds(EMVC(3, random_state=0).fit(views))


def test_unstable_clusters_and_few_samples_are_found(rng):
    views = [rng.standard_normal((70, 6)) for _ in range(2)]
    model = EMVC(8, random_state=0).fit(views)
    found = replace(emvc.assess(views, model, n_resamples=5, n_clusters=[2]), structure_p_value=0.4)
    assert {"no structure", "unstable cluster", "few samples"} <= set(kinds(model, found))
    unstable = next(finding for finding in find(model, found) if finding.kind == "unstable cluster")
    assert set(unstable.samples) == set(
        np.flatnonzero(np.isin(model.labels_, np.flatnonzero(found.cluster_stability < 0.5)))
    )


def test_damaged_samples_are_a_note(fitted):
    views = {name: view.copy() for name, view in fitted[0].items()}
    views["v0"][[3, 70]] = 50.0 * np.random.default_rng(1).standard_normal((2, 6))
    notes = [finding for finding in find(EMVC(3, random_state=0).fit(views)) if finding.kind == "damaged samples"]
    assert {3, 70} <= set(notes[0].samples)
    assert notes[0].severity == "note"


def test_warnings_come_first(rng):
    views = [rng.standard_normal((60, 6)) for _ in range(2)]
    views[0][5] = 1e4
    severities = [finding.severity for finding in find(EMVC("auto", random_state=0).fit(views))]
    assert severities == sorted(severities, key=lambda severity: severity != "warning")
    assert set(severities) == {"warning", "note"}
