"""The report of an explanation: what it holds is what was found, it stays small, and names are never markup."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

import emvc
from emvc.report import describe, render_comparison, render_report
from emvc.report._curves import flow_chart, survival_chart

EVIL = "</script><img src=x onerror=alert(1)>"


def model_of(labels, **more):
    labels = np.asarray(labels)
    number = int(labels.max()) + 1
    embedding = np.eye(number)[np.maximum(labels, 0)] + 0.05 * np.random.default_rng(0).standard_normal(
        (len(labels), number)
    )
    return SimpleNamespace(labels_=labels, n_clusters_=number, embedding_=embedding, **more)


@pytest.fixture(scope="module")
def explained():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 30)
    views = {EVIL: rng.standard_normal((90, 20)), "b": rng.standard_normal((90, 20))}
    for view in views.values():
        for c in range(3):
            view[labels == c, 4 * c : 4 * c + 4] += 3
    views["b"][4] = np.nan
    model = model_of(
        labels, view_names_=list(views), sample_errors_=np.zeros((90, 2)), outliers_=np.zeros((90, 2), bool)
    )
    columns = {
        "type": np.array([EVIL, "well", "ill"])[labels],
        "os": (rng.exponential(1.0 + labels), rng.random(90) < 0.7),
        "age": rng.normal(50, 9, 90),
    }
    return model, emvc.explain(model, views, columns)


def test_cards_say_what_was_found(explained):
    model, found = explained
    content = describe(model, explanation=found)["explanation"]
    assert [card["size"] for card in content["cards"]] == [30, 30, 30]
    for cluster, card in enumerate(content["cards"]):
        for k, view in enumerate(card["markers"]):
            names = {feature["name"] for feature in view["features"]}
            assert names
            table = found.markers.query(f"cluster == {cluster} and fdr < 0.05")
            assert names <= set(table[table.view == found.marker_table.view_names[k]].feature)
        assert all(model.labels_[i] == cluster for i, _ in card["typical"] + card["doubtful"])
    assert content["annotations"][0]["table"] == [[30, 0, 0], [0, 0, 30], [0, 30, 0]]
    assert [len(record["curves"]) for record in content["survival"]] == [3]


def test_clusters_are_named_on_request(explained):
    model, found = explained
    assert describe(model, explanation=found)["data"]["names"] == {}
    assert describe(model, explanation=found, name_clusters=True)["data"]["names"]["1"] == "well"


def test_doubtful_samples_are_those_between_clusters():
    model = model_of([0] * 10 + [1] * 10)
    model.embedding_ = np.column_stack([np.r_[np.zeros(9), 0.45, np.ones(10)], np.zeros(20)])
    found = emvc.explain(model, None, {"x": np.arange(20.0)})
    card = describe(model, explanation=found)["explanation"]["cards"][0]
    assert card["doubtful"][0][0] == 9
    assert 9 not in [i for i, _ in card["typical"]]


def test_names_are_never_markup(explained):
    page = render_report(explained[0], explanation=explained[1], sample_ids=[f"{EVIL}{i}" for i in range(90)])
    assert "<img" not in page
    assert len(re.findall("</script>", page)) == 2
    assert "&lt;img" in page


def test_a_page_of_ten_thousand_samples_is_small():
    """Only the strongest markers are in the page, however many features there are."""
    rng = np.random.default_rng(0)
    n, labels = 10_000, rng.integers(0, 8, 10_000)
    views = [rng.standard_normal((n, 50)) for _ in range(2)]
    for view in views:
        view[np.arange(n), labels] += 2
    model = model_of(labels, view_names_=["0", "1"])
    columns = {f"column {k}": rng.integers(0, 5, n).astype(str) for k in range(20)}
    page = render_report(
        model, explanation=emvc.explain(model, views, columns), sample_ids=[f"sample number {i:06d}" for i in range(n)]
    )
    assert len(page.encode()) < 8e6


def test_explanations_without_views_or_annotations_have_their_parts_only(explained):
    model, _ = explained
    page = render_report(model, explanation=emvc.explain(model, None, {"age": np.arange(90.0)}))
    assert 'id="annotations"' in page
    assert 'id="markers"' not in page
    assert 'id="explained"' not in render_report(model)


def test_curves_and_flows_are_drawn_to_scale():
    chart = survival_chart([{"cluster": 0, "times": [0.0, 1, 2], "shares": [1.0, 0.5, 0.5]}], "time")
    xs = [float(point.split(",")[0]) for point in re.search('points="([^"]+)"', chart)[1].split()]
    assert xs == sorted(xs)
    flow = flow_chart([[2, 0], [1, 3]], ["<a>", "b"], ["c", "d"])
    assert flow.count("ribbon") == 3
    assert "<a>" not in flow


def test_two_runs_are_matched_and_who_moved_is_listed():
    one, other = model_of([0, 0, 0, 1, 1, 1]), model_of([1, 1, 0, 0, 0, 0])
    page = render_comparison(one, other)
    data = json.loads(re.search('id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["rows"] == [["2", "0", "0"]]
    assert "1 of 6 samples moved" in page


def test_runs_are_joined_on_names():
    one, other = model_of([0, 0, 1, 1]), model_of([0, 1, 1])
    one.sample_names_, other.sample_names_ = list("abcd"), list("dca")
    page = render_comparison(one, other)
    assert "of 3 samples moved" in page
    assert "1 samples are in the first run only, 0 in the second only" in page
    other.sample_names_ = list("xyz")
    with pytest.raises(ValueError, match="no sample in common: the first are 'a' and 'x'"):
        render_comparison(one, other)
    with pytest.raises(ValueError, match="4 and 3 samples, and not both have names"):
        render_comparison(model_of([0, 0, 1, 1]), other)
