"""What sets clusters apart, in a real browser: cards, colours, names, files made by the page, two runs compared."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

import emvc
from emvc import EMVC
from emvc.report import render_comparison, write_report

EVIL = "<img src=x onerror=alert(1)>"
PICTURE = "document.getElementById('map').toDataURL()"


@pytest.fixture(scope="session")
def explained():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    ids = [f'p "{i}", x' if i == 7 else f"p{i}" for i in range(60)]
    views = {}
    for name in ("gene", EVIL):
        values = rng.standard_normal((60, 12))
        for c in range(3):
            values[labels == c, 3 * c : 3 * c + 3] += 3
        views[name] = pd.DataFrame(values, ids, [f"{name}{j}" for j in range(12)])
    model = EMVC(3, random_state=0).fit(views)
    clinic = pd.DataFrame(
        {"type": np.array(["ill", "well", EVIL])[labels], "age": rng.normal(50, 9, 60),
         "time": rng.exponential(1 + 3 * labels), "event": rng.random(60) < 0.8}, index=ids,
    )  # fmt: skip
    return model, emvc.explain(model, views, clinic, split=True), ids


@pytest.fixture(scope="session")
def report(explained, tmp_path_factory):
    model, found, ids = explained
    path = tmp_path_factory.mktemp("explained") / "report.html"
    write_report(model, path, sample_ids=ids, explanation=found)
    return path


def saved(page, button):
    """Press a button that makes the browser save a file; return its rows."""
    with page.expect_download() as download:
        page.click(button)
    text = download.value.path().read_text(encoding="utf-8")
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_there_is_a_card_for_each_cluster(visit, report, explained, size):
    page = visit(report, size)
    cards = page.locator(".cluster-card")
    expect(cards).to_have_count(3)
    for cluster, card in enumerate(cards.all()):
        expect(card.locator("h3")).to_have_text(f"cluster {cluster}")
        expect(card).to_contain_text(f"{np.sum(explained[0].labels_ == cluster)} samples")
        expect(card.locator("h4")).to_contain_text(["Markers in gene", f"Markers in {EVIL}", "Annotations"])
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    assert page.locator("img").count() == 0
    expect(page.locator("#annotations .cross tbody tr")).to_have_count(3)
    expect(page.locator("#annotations .step")).to_have_count(3)
    expect(page.locator("#annotations table").first).to_contain_text("log-rank")


def test_a_marker_colours_the_map(visit, report):
    page = visit(report)
    before = page.evaluate(PICTURE)
    marker = page.locator(".cluster-card button[data-colour]").first
    name = marker.inner_text()
    marker.press("Enter")
    assert page.evaluate(PICTURE) != before
    expect(page.locator("#colour option:checked")).to_contain_text(name)
    expect(page.locator("#map-scale")).to_be_visible()


def test_an_annotation_colours_the_map_and_the_tip_says_its_value(visit, report):
    page = visit(report)
    before = page.evaluate(PICTURE)
    page.select_option("#colour", label="type")
    assert page.evaluate(PICTURE) != before
    levels = page.locator("#map-levels")
    expect(levels).to_be_visible()
    assert sorted(levels.locator("> span").all_inner_texts()) == sorted([EVIL, "ill", "well"])
    page.fill("#find", "p3")
    page.keyboard.press("Enter")
    expect(page.locator("#tip")).to_contain_text("type: ill")
    page.select_option("#colour", label="cluster")
    expect(levels).to_be_hidden()


def test_clusters_can_be_renamed_and_keep_their_names(visit, report):
    page = visit(report)
    card = page.locator(".cluster-card").nth(1)
    card.locator("button[data-rename]").press("Enter")
    field = card.locator("input")
    expect(field).to_be_focused()
    field.fill(EVIL)
    field.press("Enter")
    for where in (card.locator("h3"), page.locator("#legend button").nth(1), page.locator(".cross tbody tr").nth(1),
                  page.locator("#clusters tbody th").nth(1), page.locator("#marker-axis span").nth(1)):  # fmt: skip
        expect(where).to_contain_text(EVIL)
    expect(card.locator("button[data-rename]")).to_be_focused()
    assert page.locator("img").count() == 0
    page.reload()
    expect(card.locator("h3")).to_have_text(EVIL)
    card.locator("button[data-rename]").click()
    field.fill("")
    field.press("Enter")
    expect(card.locator("h3")).to_have_text("cluster 1")
    card.locator("button[data-rename]").click()
    field.fill("nothing")
    field.press("Escape")
    expect(card.locator("h3")).to_have_text("cluster 1")


def test_a_cluster_is_saved_by_the_browser(visit, report, explained):
    page = visit(report)
    model, _, ids = explained
    page.locator("#legend button").nth(2).click()
    expect(page.locator("#save")).to_contain_text("cluster 2")
    header, *rows = saved(page, "#save")
    assert header == ["sample", "cluster", "name", "verdict", "error gene", f"error {EVIL}"]
    assert [row[0] for row in rows] == [ids[i] for i in np.flatnonzero(model.labels_ == 2)]


def test_a_selection_by_keyboard_and_by_area_is_saved(visit, report, explained):
    page = visit(report)
    ids = explained[2]
    page.fill("#find", ids[7])
    page.keyboard.press("Enter")
    page.locator("#map").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#save")).to_have_text("Save as CSV: selection, 1 samples")
    page.select_option("#colour", label="type")
    header, row = saved(page, "#save")
    assert row[0] == ids[7]
    assert (header[-1], row[-1]) == ("type", "ill")
    page.click("#clear")
    expect(page.locator("#clear")).to_be_disabled()
    page.click("#area")
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2)
    page.mouse.up()
    expect(page.locator("#save")).to_have_text("Save as CSV: selection, 60 samples")


def test_samples_of_a_card_lead_to_the_map(visit, report):
    page = visit(report)
    link = page.locator(".cluster-card button[data-sample]").first
    name = link.inner_text()
    link.click()
    expect(page.locator("#tip b")).to_have_text(name)


def test_the_heat_map_of_the_markers_answers_the_pointer(visit, report):
    page = visit(report)
    page.locator("#marker-map").hover(position={"x": 30, "y": 8})
    expect(page.locator("#marker-tip")).to_contain_text("a marker of cluster 0")
    expect(page.locator("#marker-tip")).to_contain_text("% of all samples")


def test_everything_new_can_be_reached_by_tab_and_is_named(visit, report):
    page = visit(report)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached |= set(page.evaluate("[document.activeElement.id, ...Object.keys(document.activeElement.dataset)]"))
    assert {"area", "save", "rename", "colour", "sample"} <= reached


def test_noise_is_said_to_be_noise(visit, tmp_path):
    rng = np.random.default_rng(0)
    views = [rng.standard_normal((60, 5)) for _ in range(2)]
    model = EMVC(2, random_state=0).fit(views)
    found = emvc.assess(views, model, n_resamples=2, n_clusters=[3])
    explained = emvc.explain(model, views, split=True, assessment=found)
    write_report(model, tmp_path / "noise.html", assessment=found, explanation=explained)
    page = visit(tmp_path / "noise.html")
    expect(page.locator("#findings")).to_contain_text("No clusters beyond chance")
    expect(page.locator("#told")).to_contain_text("No clusters beyond chance")
    expect(page.locator(".cluster-card").first).to_contain_text("No feature sets it apart")


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_two_runs_side_by_side(visit, explained, tmp_path, size):
    model, _, ids = explained
    other = EMVC(3, random_state=0)
    other.__dict__.update(model.__dict__)
    other.labels_ = (model.labels_ + 1) % 3
    moved = np.flatnonzero(model.labels_ == 1)[:5]
    other.labels_[moved] = model.labels_[moved]
    path = tmp_path / "comparison.html"
    path.write_text(render_comparison(model, other, names=(EVIL, "b")), encoding="utf-8")
    page = visit(path, size)
    expect(page.locator("#summary")).to_contain_text("5 of 60 samples moved")
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    assert page.locator("#moved tbody tr td:first-child").all_inner_texts() == [ids[i] for i in moved]
    page.fill("#search", ids[moved[0]])
    expect(page.locator("#moved tbody tr")).to_have_count(1)
    page.locator("#flow button[data-from]").press("Enter")
    header, *rows = saved(page, "#save")
    assert header == ["sample", EVIL, "b"]
    assert rows == [[ids[i], "1", "1"] for i in moved]
    assert page.locator("img").count() == 0
    assert page.pdf().startswith(b"%PDF")
