"""The report in a real browser: opens, hovers, sorts, searches, isolates, and runs nothing that is not its own."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from playwright.sync_api import expect

import emvc
from browser.conftest import WIDTHS
from emvc import EMVC, KernelAddition
from emvc.report import write_report

EVIL_SAMPLE = "<img src=x onerror=alert(1)>"
EVIL_VIEW = "</script><script>alert(1)</script>"


def make_views():
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1, 2], 20)
    views = [4.0 * rng.standard_normal((3, d))[labels] + 0.3 * rng.standard_normal((60, d)) for d in (4, 6, 5)]
    views[0][3], views[0][30] = 1e3, -1e3
    views[1][7] = np.nan
    return views


@pytest.fixture(scope="session")
def model():
    views = make_views()
    return EMVC(3, random_state=0).fit({EVIL_VIEW: views[0], "second": views[1], "third": views[2]})


@pytest.fixture(scope="session")
def names():
    return [f"sample {i}" if i != 3 else EVIL_SAMPLE for i in range(60)]


@pytest.fixture(scope="session")
def report(model, names, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(model, path, sample_ids=names, title=EVIL_SAMPLE, join_notes=[EVIL_VIEW])
    return path


def sweep(page, step=6):
    """Return what the tip says about each sample, and where: {name: [x, y, [lines]]}, by events made in the page."""
    page.locator("#map").scroll_into_view_if_needed()
    return page.evaluate(
        """(step) => {
        const map = document.getElementById("map"), box = map.getBoundingClientRect(), told = {};
        for (let x = box.left + 2; x < box.right; x += step) for (let y = box.top + 2; y < box.bottom; y += step) {
          map.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y }));
          const lines = [...document.querySelectorAll("#tip:not([hidden]) > *")].map((node) => node.textContent);
          if (lines.length) told[lines[0]] = [x, y, lines.slice(1)];
        }
        map.dispatchEvent(new PointerEvent("pointerleave"));
        return told; }""",
        step,
    )


def rows(page):
    return [row.all_inner_texts() for row in (line.locator("td") for line in page.locator("#table tbody tr").all())]


def column(page, number):
    return [row[number] for row in rows(page)]


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_opens_without_errors_and_fits_its_width(visit, report, size, scheme):
    page = visit(report, size, color_scheme=scheme)
    expect(page.locator("h1")).to_have_text(EVIL_SAMPLE)
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[size][0]
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    lightness = sum(int(part) for part in re.findall(r"\d+", paper))
    assert (lightness > 600) == (scheme == "light")
    for name in ("map", "heat", "consensus-map"):
        colours = page.evaluate(
            f"""(() => {{ const c = document.getElementById("{name}");
            const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, seen = new Set();
            for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 250) seen.add(d[i] + "," + d[i + 1] + "," + d[i + 2]);
            return seen.size; }})()"""
        )
        assert colours > 3, f"{name} is empty"


def test_hover_shows_the_sample(visit, report, model, names):
    page = visit(report)
    told = sweep(page)
    assert len(told) > 30
    for name, (x, y, lines) in list(told.items())[::10]:
        page.mouse.move(0, 0)
        expect(page.locator("#tip")).to_be_hidden()
        page.mouse.move(x, y)
        expect(page.locator("#tip b")).to_have_text(name)
        i = names.index(name)
        assert lines[0] == f"cluster {model.labels_[i]}"
        for view, error, line in zip(model.view_names_, model.sample_errors_[i], lines[-3:], strict=True):
            assert line.startswith(view)
            assert line.endswith("–" if np.isnan(error) else f"{round(250 * error) / 250:.2f}")


def test_legend_isolates_a_cluster_and_lets_go(visit, report, model, names):
    page = visit(report)
    button = page.locator("#legend button", has_text="cluster 1")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert {int(model.labels_[names.index(name)]) for name in sweep(page)} == {1}
    button.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert len({int(model.labels_[names.index(name)]) for name in sweep(page)}) == 3


def test_map_with_the_keyboard(visit, report, model, names):
    page = visit(report)
    page.locator("#map").focus()
    order = np.argsort(model.labels_, kind="stable")
    tip = page.locator("#tip")
    for i in order[:3]:
        page.keyboard.press("ArrowRight")
        expect(tip.locator("b")).to_have_text(names[i])
    page.keyboard.press("ArrowDown")
    expect(tip.locator("div").first).to_have_text("cluster 1")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()


def test_sample_is_found_by_name(visit, report):
    page = visit(report)
    page.fill("#find", "sample 44")
    page.keyboard.press("Enter")
    expect(page.locator("#tip b")).to_have_text("sample 44")
    page.fill("#find", "nobody")
    page.keyboard.press("Enter")
    expect(page.locator("#tip b")).to_have_text("No sample of that name.")
    page.click("#reset")
    expect(page.locator("#tip")).to_be_hidden()


def test_table_sorts(visit, report):
    page = visit(report)
    assert len(rows(page)) >= 2
    heading = page.locator("#table th", has_text="Error")
    heading.locator("button").click()
    values = [float(value) for value in column(page, 4)]
    assert values == sorted(values, reverse=True)
    expect(heading).to_have_attribute("aria-sort", "descending")
    heading.locator("button").press("Enter")
    assert [float(value) for value in column(page, 4)] == sorted(values)
    expect(heading).to_have_attribute("aria-sort", "ascending")


def test_table_searches(visit, report):
    page = visit(report)
    total = len(rows(page))
    page.fill("#search", "IMG onerror")
    assert column(page, 0) == [EVIL_SAMPLE]
    expect(page.locator("#matches")).to_have_text(f"1 of {total} samples")
    page.fill("#search", "no such thing")
    assert rows(page) == []
    page.fill("#search", "")
    assert len(rows(page)) == total


def test_table_leads_to_the_map(visit, report):
    page = visit(report)
    page.locator("#table button.link", has_text="sample 30").click()
    expect(page.locator("#tip b")).to_have_text("sample 30")
    expect(page.locator("#map")).to_be_in_viewport()


def test_table_has_pages(visit, tmp_path):
    n = 90
    errors = np.linspace(0.5, 1.0, n)[:, None]
    fitted = SimpleNamespace(
        labels_=np.arange(n) % 30, n_clusters_=30, embedding_=np.eye(30)[np.arange(n) % 30], sample_errors_=errors,
        outliers_=errors > 0.9, view_names_=["only"], view_errors_=np.array([0.2]),
    )  # fmt: skip
    write_report(fitted, tmp_path / "pages.html")
    page = visit(tmp_path / "pages.html")
    expect(page.locator("#page-number")).to_have_text("page 1 of 5, 90 samples")
    first = column(page, 0)
    page.click("#next")
    assert not set(first) & set(column(page, 0))
    page.click("#previous")
    assert column(page, 0) == first
    expect(page.locator("#legend button")).to_have_count(30)


def test_hostile_names_are_inert(visit, report):
    page = visit(report)
    sweep(page)
    page.locator("#table button.link", has_text="<img").click()
    expect(page.locator("#tip b")).to_have_text(EVIL_SAMPLE)
    expect(page.locator("#tip .row span").first).to_have_text(EVIL_VIEW)
    page.locator("#heat").hover(position={"x": 5, "y": 5})
    expect(page.locator("#heat-tip div").last).to_contain_text(EVIL_VIEW)
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert EVIL_VIEW in page.locator("#code").inner_text()


def test_injected_script_would_not_run(browser, report, tmp_path):
    """Second line of defence: even a name that got through as markup could do nothing."""
    text = report.read_text(encoding="utf-8").replace("<main>", "<main><script>document.title = 'broken'</script>")
    (tmp_path / "injected.html").write_text(text, encoding="utf-8")
    page = browser.new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto((tmp_path / "injected.html").as_uri())
    assert page.title() == EVIL_SAMPLE
    assert any("Content Security Policy" in text for text in refused)
    page.close()


def test_heat_maps_answer_the_pointer(visit, report):
    page = visit(report)
    page.locator("#consensus-map").hover(position={"x": 8, "y": 8})
    expect(page.locator("#consensus-tip b")).to_have_text("cluster 0 → cluster 0")
    expect(page.locator("#consensus-tip div")).to_contain_text("times the average link")
    page.locator("#heat").hover(position={"x": 8, "y": 8})
    expect(page.locator("#heat-tip")).to_contain_text("error")


def test_theme_can_be_switched(visit, report):
    page = visit(report, color_scheme="light")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").press("Enter")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.emulate_media(media="print")  # paper stays white
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_colour_by_error_repaints_the_map(visit, report):
    page = visit(report)
    picture = "document.getElementById('map').toDataURL()"
    before = page.evaluate(picture)
    expect(page.locator("#map-scale")).to_be_hidden()
    page.select_option("#colour", label="largest error")
    assert page.evaluate(picture) != before
    expect(page.locator("#map-scale")).to_contain_text("1 wrong")


@pytest.mark.parametrize("size", ["phone", "desktop"])
def test_assessed_page_leads_with_findings_and_colours_by_stability(size, visit, tmp_path):
    rng = np.random.default_rng(0)
    views = [rng.standard_normal((80, 4)) for _ in range(2)]
    model = EMVC(9, random_state=0).fit(views)
    found = emvc.assess(views, model, n_resamples=4, n_clusters=[2])
    write_report(model, tmp_path / "report.html", assessment=found)
    page = visit(tmp_path / "report.html", size)
    expect(page.locator("#findings li.warning").first).to_be_visible()
    assert page.locator("#findings").bounding_box()["y"] < page.locator("#embedding").bounding_box()["y"]
    picture = "document.getElementById('map').toDataURL()"
    before = page.evaluate(picture)
    page.select_option("#colour", label="stability")
    assert page.evaluate(picture) != before
    expect(page.locator("#map-scale")).to_contain_text("always keeps its cluster")
    expect(page.locator("#worth svg")).to_be_visible()
    page.locator("#worth summary").nth(1).click()
    expect(page.locator("#worth details").nth(1)).to_contain_text("9 clusters: 0")


def test_code_is_copied(visit, report):
    page = visit(report, permissions=["clipboard-read", "clipboard-write"])
    page.click("#copy")
    expect(page.locator("#copy")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#code").text_content()


def test_prints(visit, report):
    page = visit(report)
    assert page.pdf().startswith(b"%PDF")


def test_controls_can_be_reached_by_tab(visit, report):
    page = visit(report)
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"theme", "colour", "find", "reset", "map", "search", "link"} <= reached
    unnamed = page.evaluate(
        """[...document.querySelectorAll("button, input, select, canvas:not([aria-hidden])")].filter(
        (n) => !(n.textContent.trim() || n.getAttribute("aria-label") || (n.labels && n.labels.length))).length"""
    )
    assert unnamed == 0


def test_baseline_opens_too(visit, tmp_path):
    views = [np.nan_to_num(view) for view in make_views()]
    write_report(KernelAddition(3, random_state=0).fit(views), tmp_path / "baseline.html")
    page = visit(tmp_path / "baseline.html", "phone")
    expect(page.locator("#map")).to_be_visible()
    expect(page.locator("#table")).to_have_count(0)
    assert json.loads(page.locator("#data").text_content())["n"] == 60
