import base64
import json
import os
import re
from html import unescape
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from emvc import AMGL, EMVC, RMSC, BestSingleView, CoRegularized, FeatureConcatenation, KernelAddition, report
from emvc.datasets import corrupt_samples, make_digits_views
from emvc.files import column_notes
from emvc.report._charts import line_chart
from emvc.report._words import certificate_sentence, rerun_code, summary_sentences
from emvc.selection import Selection
from emvc.solvers import ADMM

EVIL_SAMPLE = "<img src=x onerror=alert(1)>"
EVIL_VIEW = "</script><script>alert(1)</script>"


class Page(HTMLParser):
    """What a browser would see: ids, tags, text and the embedded data."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.tags, self.text, self.scripts, self._stack = [], [], "", [], []
        self.feed(text)
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if "id" in dict(attrs):
            self.ids.append(dict(attrs)["id"])
        if tag == "script":
            self.scripts.append("")
        self._stack = [*self._stack, tag] if tag in {"script", "style"} else self._stack

    def handle_endtag(self, tag):
        if self._stack and self._stack[-1] == tag:
            self._stack.pop()

    def handle_data(self, data):
        if not self._stack:
            self.text += data
        elif self._stack[-1] == "script":
            self.scripts[-1] += data

    def array(self, text, dtype):
        return np.frombuffer(base64.b64decode(text), dtype=dtype)


def damaged_views(views):
    views = [view.copy() for view in views]
    views[0][3] = 1e3
    views[0][30] = -1e3
    return views


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1, 2], 20)
    views = [4.0 * rng.standard_normal((3, d))[labels] + 0.3 * rng.standard_normal((60, d)) for d in (4, 6, 5)]
    views = damaged_views(views)
    views[1][7] = np.nan
    return EMVC(3, random_state=0).fit({EVIL_VIEW: views[0], "b": views[1], "c": views[2]})


def fake(n_samples, n_views=6, n_clusters=10, n_landmarks=None, seed=0):
    """A fitted model without the fit, with every kind of gap and outlier."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n_samples)
    errors = rng.beta(0.5, 6.0, (n_samples, n_views))
    errors[rng.random(errors.shape) < 0.02] = np.nan
    outliers = (rng.random(errors.shape) < 0.1) & ~np.isnan(errors)
    outliers[: n_samples // 50] = True
    outliers &= ~np.isnan(errors)
    errors[outliers] = 0.99
    labels[outliers.all(axis=1)] = -1
    rows = np.eye(n_clusters)[np.maximum(labels, 0)] + 0.2 * rng.standard_normal((n_samples, n_clusters))
    width = n_landmarks or n_samples
    consensus = np.full((n_samples, width), 1.0 / width, dtype=np.float32)
    return SimpleNamespace(
        labels_=labels,
        n_clusters_=n_clusters,
        embedding_=rows,
        consensus_=consensus,
        sample_errors_=errors,
        outliers_=outliers,
        view_errors_=rng.random(n_views) / 2,
        view_names_=[f"view {k}" for k in range(n_views)],
    )


def test_all_panels_of_a_robust_model(model):
    page = Page(report.render_report(model, title="A <b> & c", join_notes="Two samples were dropped."))
    panels = {"summary", "embedding", "clusters", "views", "errors", "suspicious", "consensus", "convergence"}
    panels |= {"evidence", "join", "settings", "versions", "again"}
    assert panels <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert "A <b> & c" in page.text
    assert "Two samples were dropped." in page.text


def test_data_of_the_page_is_that_of_the_model(model):
    data = Page(report.render_report(model)).data
    page = Page(report.render_report(model))
    np.testing.assert_array_equal(page.array(data["labels"], "<i4"), model.labels_)
    errors = page.array(data["errors"], "u1").reshape(60, 3)
    np.testing.assert_array_equal(errors == 255, np.isnan(model.sample_errors_))
    present = ~np.isnan(model.sample_errors_)
    np.testing.assert_allclose(errors[present] / 250, model.sample_errors_[present], atol=0.0021)
    assert data["ids"] is None
    assert page.array(data["points"], "<u2").shape == (120,)
    # The average link is one unit; the square root is undone.
    cells = page.array(data["consensus"]["values"], "u1").reshape(60, 60)
    order = np.argsort(model.labels_, kind="stable")
    expected = model.consensus_[np.ix_(order, order)] * 60
    top = data["consensus"]["top"]
    np.testing.assert_allclose(cells / 255 * top, np.minimum(np.sqrt(expected), top), atol=0.003 * top)


def test_every_condemned_sample_is_in_the_table(model):
    data = Page(report.render_report(model)).data
    named = {row[0] for row in data["rows"]}
    assert {3, 30} <= set(np.flatnonzero(model.outliers_.any(axis=1))) <= named
    _, condemned, total, entry, *_ = next(row for row in data["rows"] if row[0] == 3)
    assert condemned == model.outliers_[3].sum()
    assert total >= condemned
    assert entry[0] == 0
    assert entry[2] == 1
    assert data["reasons"][entry[3]] == "far from every other sample of the view"
    assert entry[4] > 0.95


def test_corrupted_digits_are_named():
    digits = make_digits_views(200)
    views, truth = corrupt_samples(digits.views, 0.1, 0)
    names = [f"digit {i}" for i in range(200)]
    model = EMVC(10, random_state=0).fit(dict(zip(digits.view_names, views, strict=True)))
    data = Page(report.render_report(model, sample_ids=names)).data
    named = {data["ids"][row[0]] for row in data["rows"]}
    assert {names[i] for i in np.flatnonzero(truth.any(axis=1))} <= named


def test_hostile_names_are_inert(model):
    names = [EVIL_SAMPLE, *(f"s{i}\u2028\ud800" for i in range(59))]
    text = report.render_report(model, sample_ids=names, title=EVIL_SAMPLE, join_notes=[EVIL_VIEW])
    page = Page(text)
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert len(page.scripts) == 2
    assert "alert" not in page.scripts[1]
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert page.data["views"][0] == EVIL_VIEW
    assert page.data["ids"][0] == EVIL_SAMPLE
    assert "<" not in page.scripts[0]
    assert "\u2028" not in text
    text.encode()  # lone surrogates are gone


def test_only_the_script_of_the_page_may_run(model):
    import hashlib

    page = Page(report.render_report(model))
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv"))
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    told = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
    assert policy == f"{told}; script-src 'sha256-{digest}'"


def test_nothing_is_fetched(model):
    text = report.render_report(model)
    assert "://" not in text
    assert not re.search(r"<link|@import|\bfetch\(|XMLHttpRequest|\bimport\(|url\(", text)


@pytest.mark.parametrize(
    ("estimator", "present", "absent"),
    [
        (KernelAddition(3, random_state=0), {"embedding", "clusters", "views"}, {"errors", "suspicious", "consensus"}),
        (FeatureConcatenation(3, random_state=0), {"clusters"}, {"embedding", "errors", "convergence"}),
        (BestSingleView(3, random_state=0), {"clusters", "views"}, {"embedding", "errors"}),
        (AMGL(3, random_state=0), {"embedding", "views", "convergence"}, {"errors", "consensus"}),
        (CoRegularized(3, random_state=0), {"embedding", "convergence"}, {"errors", "consensus"}),
        (RMSC(3, random_state=0), {"embedding", "consensus", "convergence"}, {"errors", "suspicious"}),
        (EMVC.paper(3, 0.1, 0.1, random_state=0), {"embedding", "errors", "consensus", "convergence"}, set()),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else None,
)
def test_panels_without_data_are_left_out(estimator, present, absent, blobs):
    page = Page(report.render_report(estimator.fit(blobs[0])))
    assert present | {"summary", "settings", "versions", "again"} <= set(page.ids)
    assert not absent & set(page.ids)


def test_landmarks_labels_without_cluster_and_gaps():
    fitted = fake(400, n_landmarks=40)
    page = Page(report.render_report(fitted))
    data = page.data
    assert (data["consensus"]["height"], data["consensus"]["width"]) == (300, 40)
    assert data["consensus"]["landmarks"]
    assert sum(size for _, size in data["consensus"]["rows"]) == 400
    assert data["consensus"]["rows"][-1][0] == -1
    lost = int(np.sum(fitted.labels_ < 0))
    assert lost > 0
    assert f"{lost} samples have no cluster." in page.text
    assert "entries are missing" in page.text
    assert "no certificate" in page.text
    level = page.array(data["level"], "u1")
    nowhere = (fitted.outliers_ | np.isnan(fitted.sample_errors_)).all(axis=1)
    np.testing.assert_array_equal(level == 3, nowhere)
    # Without an error report of the model the table still names everybody who was left out.
    assert {row[0] for row in data["rows"]} >= set(np.flatnonzero(fitted.outliers_.any(axis=1)))


def test_heat_map_shows_the_worst_of_the_samples_that_share_a_column():
    fitted = fake(3000, n_views=2, n_landmarks=5)
    page = Page(report.render_report(fitted))
    heat = page.data["heat"]
    assert heat["width"] == 600
    who = page.array(heat["who"], "<i4").reshape(2, 600)
    cells = page.array(heat["values"], "u1").reshape(2, 600)
    for k in range(2):
        expected = fitted.sample_errors_[who[k], k]
        np.testing.assert_allclose(cells[k][cells[k] < 255] / 250, expected[cells[k] < 255], atol=0.0021)
    worst = int(np.nanargmax(fitted.sample_errors_[:, 0]))
    assert fitted.sample_errors_[worst, 0] == pytest.approx(cells[0][cells[0] < 255].max() / 250, abs=0.0021)


def test_bare_model_with_labels_only():
    page = Page(report.render_report(SimpleNamespace(labels_=np.array([0, 1, 1]))))
    assert "3 samples fall into 2 clusters of 1 to 2 samples." in page.text
    assert "embedding" not in page.ids


@pytest.mark.parametrize("n_views", [6, 60])
def test_ten_thousand_samples_stay_below_eight_megabytes(n_views):
    fitted = fake(10_000, n_views=n_views, n_landmarks=300)
    fitted.outliers_[:] = ~np.isnan(fitted.sample_errors_)  # the longest possible table
    names = [f"{i:05d} " + "ä" * 74 for i in range(10_000)]
    text = report.render_report(fitted, sample_ids=names)
    rows = Page(text).data["rows"]
    assert len(rows) == 10_000
    assert max(row[2] for row in rows) == n_views
    assert max(len(row) for row in rows) == 3 + min(n_views, 12)
    assert len(text.encode()) < 8e6


def test_more_samples_than_a_browser_can_draw_keep_the_suspicious_ones():
    fitted = fake(30_000, n_views=2, n_landmarks=5)
    fitted.sample_errors_[:] = np.where(np.isnan(fitted.sample_errors_), np.nan, 0.1)
    fitted.outliers_[:] = False
    fitted.outliers_[29_000:, 0] = True
    page = Page(report.render_report(fitted))
    assert page.data["n"] == 20_000
    shown = page.array(page.data["index"], "<u4")
    assert set(range(29_000, 30_000)) <= set(shown.tolist())
    assert {shown[row[0]] for row in page.data["rows"]} >= set(range(29_000, 30_000))
    assert "20,000 of 30,000 samples are drawn" in page.text


def test_long_names_are_cut(model):
    page = Page(report.render_report(model, sample_ids=["x" * 10_000] * 60))
    assert page.data["ids"][0] == "x" * 79 + "…"


def test_unreliable_view_is_said_and_its_samples_are_not_all_listed():
    fitted = fake(200, n_views=3, n_landmarks=5)
    fitted.view_errors_ = np.array([0.3, 0.95, 0.4])
    fitted.reliability_ = 1.0 - fitted.view_errors_
    fitted.sample_errors_[:, 1] = 0.8
    fitted.outliers_[:] = False
    page = Page(report.render_report(fitted))
    assert (
        "View “view 1” is unreliable: alone it finds the clusters of the others hardly better than chance" in page.text
    )
    assert "(0 is chance, 1 full agreement): 0.70 for “view 0” to 0.05 for “view 1”." in page.text
    assert len(page.data["rows"]) < 50
    # Nor does it say which samples are worst: they are ordered by the other views.
    assert page.data["reliable"] == [True, False, True]
    cells = page.array(page.data["heat"]["values"], "u1").reshape(3, 200)[:, : page.data["heat"]["groups"][0][1]]
    worst = np.where(cells == 255, 0, cells)[[0, 2]].max(axis=0).astype(int)
    assert (np.diff(worst) <= 1).all()


def test_summary_says_what_was_found(model):
    content = report.describe(model)
    text = " ".join([*summary_sentences(content), certificate_sentence(content["certificate"])])
    assert text.startswith("60 samples, each described by 3 views, fall into 3 clusters of 20 samples each.")
    assert "left out of some views" in text
    assert "One entry is missing" in text
    assert re.search(r"The solution is certified: no other can lower the objective by more than 0\.\d\d%\.", text)


def test_unfinished_solution_is_not_called_certified(blobs):
    fitted = EMVC.paper(3, 0.1, 0.1, random_state=0).fit(blobs[0])
    fitted.duality_gap_, fitted.status_ = 0.37, "reached max_iter"
    text = certificate_sentence(report.describe(fitted)["certificate"])
    assert (
        "not certified: the solver reached max_iter, and another solution may lower the objective by up to 37%" in text
    )
    fitted.duality_gap_ = np.inf
    assert "up to 100%" in report.render_report(fitted)


def test_evidence_for_weights_and_clusters(model):
    evidence = [
        {"n_clusters": float(c), "inside": 0.5, "stability": 0.9, "agreement": 0.8, "score": 0.1 * c} for c in (2, 3, 4)
    ]
    common = {"rank": 3.0, "eigengap": 0.1, "gap": 1e-4, "settled": 0.9}
    path = [{"multiplier": m, "beta": 0.1 * m, **common} for m in (1.0, 2.0)]
    page = Page(report.render_report(model, selection=Selection(3, 0.25, 0.2, 0.2, evidence, path)))
    assert "Number of clusters" in page.text
    assert "Confidence 0.25" in page.text
    assert "beta = 0.2." in page.text
    assert "inside" in page.text
    without = Page(report.render_report(model))
    assert "Number of clusters" not in without.text


def test_code_repeats_the_run(model):
    code = rerun_code(report.describe(model))
    scope = {}
    exec(compile(code.split("model.fit")[0].replace(": ...,", ": None,"), "code", "exec"), scope)
    assert list(scope["views"]) == model.view_names_
    assert repr(scope["model"].get_params()) == repr(model.get_params())
    assert code in unescape(report.render_report(model))


def test_code_says_what_it_cannot_write(blobs):
    fitted = EMVC(3, solver=ADMM(tol=1e-2)).fit(blobs[0])
    code = rerun_code(report.describe(fitted))
    compile(code, "code", "exec")
    assert re.search(r"solver=\.\.\.,  # it was ADMM\(", code)
    assert "random_state was not set" in code


def test_own_code_is_shown(model):
    page = Page(report.render_report(model, code="emvc cluster a.csv -k 3 # <b>"))
    assert "emvc cluster a.csv -k 3 # <b>" in page.text


def test_wrong_input_is_refused(model, tmp_path):
    with pytest.raises(TypeError, match="needs a fitted model, but this EMVC has no labels_"):
        report.render_report(EMVC(3))
    with pytest.raises(ValueError, match="sample_ids has 2 names, but the model was fitted to 60 samples"):
        report.render_report(model, sample_ids=["a", "b"])
    with pytest.raises(IsADirectoryError, match="is a folder"):
        report.write_report(model, tmp_path)


def test_file_appears_whole_or_not_at_all(model, tmp_path, monkeypatch):
    path = tmp_path / "new" / "report.html"
    report.write_report(model, path, title="first")
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        report.write_report(model, path, title="second")
    assert "first" in path.read_text(encoding="utf-8")
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("y", "log"),
    [([1.0, 0.5, 1e-6], True), ([0.0, 0.0], True), ([3.0, 3.0], False), ([np.nan, 2.0], False), ([-5.0, 1.0], False)],
)
def test_charts_stay_inside_their_frame(y, log):
    chart = line_chart(range(len(y)), y, x_label="x", y_label="<y>", log=log, lines=[(0.5, "a<b")])
    heights = [float(value) for value in re.findall(r'cy="([^"]*)"', chart)]
    assert heights
    assert all(10 <= value <= 215 for value in heights)
    assert "&lt;y&gt;" in chart
    assert "a&lt;b" in chart


def test_chart_of_nothing_is_empty():
    assert line_chart([1], [np.nan], x_label="x", y_label="y") == ""


def test_numbers_are_escaped_as_well(blobs):
    model = EMVC(3, random_state=0, n_jobs=1).fit(blobs[0])
    model.n_iter_ = "<b id=forged>"
    assert "forged" not in Page(report.render_report(model)).ids


def test_missing_cells_and_what_was_done_with_columns_are_told(rng):
    labels = np.repeat([0, 1, 2], 20)
    dense, gappy = (4.0 * rng.standard_normal((3, 5))[labels] + rng.standard_normal((60, 5)) for _ in range(2))
    gappy[rng.random((60, 5)) < 0.1] = np.nan
    dose = [f"{value:.2f}".replace(".", ",") for value in dense[:, 0]]
    frame = pd.DataFrame(dense, columns=list("abcde")).assign(dose=dose)
    model = EMVC(3, random_state=0).fit({"table": frame, "gappy": gappy})
    page = report.render_report(model)
    assert "missing cells" in page
    assert f"{model.missing_cells_[1]:.1%}" in page
    assert page.count("was read as numbers with a decimal comma") == 1
    (told,) = column_notes(model.intake_)
    assert report.render_report(model, join_notes=[told]).count("with a decimal comma") == 1
