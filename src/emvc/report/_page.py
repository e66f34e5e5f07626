"""From the plain data of a report to its HTML page. Every text that a user can choose is escaped here."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from string import Template
from typing import Any

from emvc._version import __version__
from emvc.report._cards import annotation_section, cards_section, marker_section
from emvc.report._charts import bars, line_chart
from emvc.report._words import certificate_sentence, list_names, rerun_code, summary_sentences

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"


def render_page(
    content: Mapping[str, Any],
    *,
    title: str,
    introduction: str = "",
    notes: Sequence[str] = (),
    records: Sequence[Mapping[str, Any]] = (),
    code: str | None = None,
) -> str:
    """Return the page; ``content`` is from `emvc.report.describe`, the rest as for `emvc.report.render_report`."""
    parts = _evidence_parts(content)
    evidence = _evidence(content, parts)
    sections = [
        _summary(content, introduction),
        _map(content),
        cards_section(content),
        marker_section(content),
        annotation_section(content),
        _columns(_clusters(content), _views(content)),
        _worth(content),
        _error_map(content),
        _suspicious(content),
        _methods(records),
        # One chart fits beside the consensus, several need the width.
        _columns(_consensus(content), _convergence(content) + (evidence if len(parts) < 2 else "")),
        evidence if len(parts) > 1 else "",
        _columns(_settings(content) + _notes(notes), _versions(content)),
        _code(code if code is not None else rerun_code(content)),
    ]
    scripts = ("base.js", "page.js", *(["explain.js"] if content["explanation"] is not None else []), "start.js")
    return fill_page(title, sections, content["data"], scripts)


def fill_page(title: str, sections: Sequence[str], data: Any, scripts: Sequence[str]) -> str:
    """Return a page of these sections that holds its data and runs these scripts, which share one scope."""
    script = '(() => {\n"use strict";\n' + "".join(_file(name) for name in scripts) + "})();\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_file("page.html")).substitute(
        title=escape(title),
        policy=f"{_POLICY}; script-src 'sha256-{digest}'",
        style=_file("page.css"),
        sections="\n".join(part for part in sections if part),
        data=_json(data),
        script=script,
        version=escape(__version__),
        date=datetime.now(UTC).strftime("%d %B %Y"),
    )


def _file(name: str) -> str:
    return resources.files("emvc.report").joinpath(name).read_text(encoding="utf-8")


def _json(data: Any) -> str:
    """Return JSON that can stand inside a script element: no tag can start and no line separator can end it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _card(name: str, heading: str, hint: str, body: str, *, wide: bool = False) -> str:
    kind = "card wide" if wide else "card"
    lead = f'<p class="hint">{hint}</p>' if hint else ""
    return f'<section class="{kind}" id="{name}"><h2>{heading}</h2>{lead}{body}</section>'


def _columns(*stacks: str) -> str:
    """Return stacks of cards side by side; empty ones take no room."""
    filled = [f'<div class="stack">{stack}</div>' for stack in stacks if stack]
    return f'<div class="columns">{"".join(filled)}</div>' if filled else ""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, kind: str = "") -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _summary(content: Mapping[str, Any], introduction: str) -> str:
    flagged = content["n_lost"] + content["n_partly"] + content["n_suspicious"]
    bad = sum(view["unreliable"] for view in content["views"])
    tiles = [(f"{content['n_samples']:,}", "samples", "")]
    if content["views"]:
        tiles.append((str(len(content["views"])), f"views, {bad} unreliable" if bad else "views", "bad" if bad else ""))
    tiles.append((str(content["n_clusters"]), "clusters", ""))
    if content["has_errors"]:
        tiles.append((f"{flagged:,}", "suspicious samples", "bad" if flagged else "good"))
    warnings = sum(finding["severity"] == "warning" for finding in content["findings"])
    tiles.append((str(warnings), "warning" if warnings == 1 else "warnings", "bad" if warnings else "good"))
    shown = "".join(
        f'<div class="tile {kind}"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for value, name, kind in tiles
    )
    lead = f"<p>{escape(introduction)}</p>" if introduction else ""
    text = escape(" ".join(summary_sentences(content)))
    return (
        f'<section id="summary">{lead}{_findings(content)}<p class="lead">{text}</p>'
        f'<div class="tiles">{shown}</div></section>'
    )


def _findings(content: Mapping[str, Any]) -> str:
    """Return what there is to know first, in the words of `emvc.findings`."""
    items = "".join(
        f'<li class="{escape(finding["severity"])}"><b>{escape(finding["text"])}</b> {escape(finding["advice"])}</li>'
        for finding in content["findings"]
    )
    return f'<ul id="findings" class="findings">{items}</ul>' if items else ""


def _worth(content: Mapping[str, Any]) -> str:
    """Return what an assessment says: stability by number of clusters, the tree, and what each view contributes."""
    found = content["assessment"]
    if found is None:
        return ""
    hint = (
        f"Fits to {found['n_resamples']} parts of the samples, 80 % each. Stability 1: the same clusters every time. "
        "Score: what the gap in the spectrum speaks for."
    )
    records = found["by_n_clusters"]
    body = line_chart(
        [record["n_clusters"] for record in records],
        [record["stability"] for record in records],
        x_label="number of clusters",
        y_label="stability",
        mark=content["n_clusters"],
        limits=(0.0, 1.0),
    ) + _details("All numbers", _record_table(records))
    if found["tree"]:
        rows = [
            [f"{child[0]} clusters: {child[1]}", f"{parent[0]} clusters: {parent[1]}", f"{share:.0%}"]
            for parent, child, share in found["tree"]
        ]
        body += _details("Who splits from whom", _table(["cluster", "comes from", "share of its samples"], rows))
    if len(found["views"]) > 1:
        rows = [[v["name"], f"{v['reliability']:.2f}", f"{v['agreement']:.2f}"] for v in found["views"]]
        body += _table(["view", "reliability", "agreement of the clusters without it"], rows)
    return _card("worth", "What the clusters are worth", hint, body)


def _methods(records: Sequence[Mapping[str, Any]]) -> str:
    if not records:
        return ""
    names = [name for name in records[0] if name != "method"]
    rows = [[str(record["method"]), *(f"{record[name]:.3f}" for name in names)] for record in records]
    hint = "The same views, clustered by several methods and compared with the true classes. Less entropy is better."
    return _card("methods", "Methods", hint, _table(["method", *names], rows, kind="numbers"), wide=True)


def _map(content: Mapping[str, Any]) -> str:
    if "points" not in content["data"]:
        return ""
    shown, total = content["n_shown"], content["n_samples"]
    hint = (
        "Each mark is a sample; samples between two islands are undecided. Point at one, or move with the arrow keys, "
        "to see what is known about it; Enter selects it."
    )
    if content["has_errors"]:
        hint += " A ring: left out of some views. A cross: not believed in any view."
    if shown < total:
        hint += f" {shown:,} of {total:,} samples are drawn, suspicious ones first."
    options = '<option value="cluster">cluster</option>'
    if content["has_errors"]:
        options += '<option value="worst">largest error</option>' + "".join(
            f'<option value="{k}">error in {escape(view["name"])}</option>' for k, view in enumerate(content["views"])
        )
    if "stability" in content["data"]:
        options += '<option value="stability">stability</option>'
    options += "".join(
        f'<option value="x{k}">{escape(column["name"])}</option>'
        for k, column in enumerate(content["data"].get("colours", ()))
    )
    body = f"""
<div class="controls">
<label>Colour by <select id="colour">{options}</select></label>
<label>Find a sample <input id="find" type="search" autocomplete="off" placeholder="name, then Enter"></label>
<button type="button" id="reset">Reset</button></div>
<div class="controls"><button type="button" id="area" aria-pressed="false">Select an area</button>
<button type="button" id="clear" disabled>Clear the selection</button>
<button type="button" id="save">Save as CSV</button></div>
<div class="map-grid"><div class="canvas-wrap"><canvas id="map" tabindex="0" role="application"
 aria-label="Map of the samples. Left and right move from sample to sample, up and down from cluster to cluster."
></canvas>
<div id="tip" class="tip" role="status" aria-live="polite" hidden></div></div>
<div id="legend" class="legend" role="group" aria-label="Clusters: press one to isolate it"></div></div>
<div id="map-scale" class="scale" hidden><span id="map-low"></span><i class="ramp-error"></i><span id="map-high"></span>
<i class="missing"></i><span>missing</span></div><div id="map-levels" class="levels" hidden></div>"""
    return _card("embedding", "Map of the samples", hint, body, wide=True)


def _clusters(content: Mapping[str, Any]) -> str:
    most = max((cluster["size"] for cluster in content["clusters"]), default=1) or 1
    rows = []
    for cluster in content["clusters"]:
        cells = [f"{cluster['size']:,}"] + ([f"{cluster['suspicious']:,}"] if content["has_errors"] else [])
        cells += [f"{cluster['stability']:.2f}"] if "stability" in cluster else []
        rows.append((cluster["name"], cluster["size"] / most, cells, f"colour{int(cluster['name']) % 10}"))
    if content["n_unassigned"]:
        blank = [""] * (len(rows[0][2]) - 1 if rows else 0)
        rows.append(("none", content["n_unassigned"] / most, [f"{content['n_unassigned']:,}", *blank], "colourless"))
    columns = ["cluster", "samples"] + (["suspicious"] if content["has_errors"] else [])
    columns += ["stability"] if content["assessment"] is not None else []
    return _card("clusters", "Cluster sizes", "", bars(rows, columns=columns))


_VIEW_FORMATS = {"weight": ".2f", "missing cells": ".1%"}


def _views(content: Mapping[str, Any]) -> str:
    views = content["views"]
    if not views:
        return ""
    if "reliability" in views[0]:
        kind, name, text = "reliability", "Reliability of the views", "reliability"
        hint = "How far a view alone finds the clusters of the others: 0 is what chance gives, 1 full agreement."
    elif "weight" in views[0]:
        kind, name, text = "weight", "Weights of the views", "weight"
        hint = "Relative to the view with the largest weight."
    elif "score" in views[0]:
        kind, name, text = "score", "Scores of the views", "score"
        hint = "The view with the highest score was kept."
    else:
        return _card("views", "Views", "", _table(["view"], [[view["name"]] for view in views]))
    counts = ("weight", "condemned", "missing", "missing cells")
    extra = [key for key in counts if key != kind and any(view.get(key) for view in views)]
    rows = []
    for view in sorted(views, key=lambda view: -view[kind]):
        shown = f"{view[kind]:.2f}"
        cells = [shown] + [format(view[key], _VIEW_FORMATS.get(key, ",")) for key in extra]
        label = view["name"] + (" (unreliable)" if view["unreliable"] else "")
        rows.append((label, view[kind], cells, "unreliable" if view["unreliable"] else ""))
    columns = ["view", text, *("left out" if key == "condemned" else key for key in extra)]
    return _card("views", name, hint, bars(rows, columns=columns))


def _error_map(content: Mapping[str, Any]) -> str:
    if "heat" not in content["data"]:
        return ""
    hint = (
        "One column per sample, ordered by cluster and, inside a cluster, worst first; where many samples share a "
        "column, the worst is shown. 0 is usual in its view, 1 is wrong."
    )
    body = (
        '<div class="heat-wrap"><div id="heat-names" class="heat-names" aria-hidden="true"></div>'
        '<div class="canvas-wrap"><canvas id="heat" role="img" '
        'aria-label="Errors by view and sample; the table of suspicious samples says the same in words"></canvas>'
        '<div id="heat-tip" class="tip" hidden></div></div></div>'
        '<div id="heat-axis" class="heat-axis" aria-hidden="true"></div>'
        '<div class="scale" aria-hidden="true"><span>0 usual</span><i class="ramp-error"></i><span>1 wrong</span>'
        '<i class="missing"></i><span>missing</span></div>'
    )
    return _card("errors", "Errors of the samples", hint, body, wide=True)


def _suspicious(content: Mapping[str, Any]) -> str:
    rows = content["data"].get("rows")
    if rows is None:
        return ""
    if not rows:
        return _card("suspicious", "Suspicious samples", "", "<p>No sample is suspicious.</p>", wide=True)
    heads = (("sample", "Sample"), ("cluster", "Cluster"), ("verdict", "Verdict"), ("view", "Worst view"),
             ("error", "Error"), ("why", "Why"))  # fmt: skip
    head = "".join(
        f'<th scope="col" data-key="{key}"><button type="button">{name}<span aria-hidden="true"></span></button></th>'
        for key, name in heads
    )
    unreliable = [view["name"] for view in content["views"] if view["unreliable"]]
    hint = (
        "Choose a heading to sort, a sample to see it on the map. In brackets: the probability that the row is wrong."
        + (
            f" Of {escape(list_names(unreliable))}, unreliable as a whole, only samples that were left out are named."
            if unreliable
            else ""
        )
    )
    body = f"""
<div class="controls"><label>Search <input id="search" type="search" autocomplete="off"
 placeholder="sample, cluster, view or reason"></label><span id="matches" role="status"></span></div>
<div class="scroll"><table id="table"><thead><tr>{head}</tr></thead><tbody></tbody></table></div>
<div class="controls pages"><button type="button" id="previous">Previous</button><span id="page-number"></span>
<button type="button" id="next">Next</button></div>"""
    return _card("suspicious", "Suspicious samples", hint, body, wide=True)


def _consensus(content: Mapping[str, Any]) -> str:
    if "consensus" not in content["data"]:
        return ""
    what = "landmark" if content["data"]["consensus"]["landmarks"] else "sample"
    hint = (
        f"How likely the shared chain moves from a sample (row) to a {what} (column), ordered by cluster: blocks on "
        "the diagonal are clusters, blocks beside it are clusters that are close."
        + (" Empty columns are samples that no view can be believed about." if content["n_lost"] else "")
    )
    body = (
        '<div class="canvas-wrap"><canvas id="consensus-map" role="img" '
        'aria-label="Consensus matrix ordered by cluster"></canvas>'
        '<div id="consensus-tip" class="tip" hidden></div></div>'
    )
    return _card("consensus", "Consensus", hint, body)


def _convergence(content: Mapping[str, Any]) -> str:
    curve = content["convergence"]
    if curve is None:
        return ""
    certificate = content["certificate"]
    hint = {
        "relative duality gap": "An upper bound on how much better any other solution can be, along the iterations.",
        "constraint residual": "How far the iterates were from a valid solution.",
        "objective": "What the method minimises or maximises, along the iterations.",
    }[curve["name"]]
    chart = line_chart(
        curve["x"],
        curve["y"],
        x_label="iteration",
        y_label=curve["name"],
        log=curve["log"],
        lines=curve.get("lines", ()),
    )
    text = ""
    if certificate is not None:
        text = (
            f"<p>The solver {escape(certificate['status'])} after {escape(str(certificate['n_iter']))} iterations. "
            f"Certified duality gap at the end: {certificate['gap']:.2g}.</p>"
        )
    return _card("convergence", f"Convergence: {curve['name']}", hint, chart + text)


def _evidence_parts(content: Mapping[str, Any]) -> list[str]:
    """Return one text with a chart for each choice that there is evidence for."""
    evidence, parts = content["evidence"], []
    if "clusters" in evidence:
        records = evidence["clusters"]
        confidence = evidence.get("confidence")
        text = f" Confidence {confidence:.2f} (0: a close second, 1: no rival)." if confidence is not None else ""
        parts.append(
            f"<h3>Number of clusters</h3><p>{escape(str(content['n_clusters']))} was used.{text}</p>"
            + line_chart(
                [record["n_clusters"] for record in records],
                [record.get("score", float("nan")) for record in records],
                x_label="number of clusters",
                y_label="score",
                mark=content["n_clusters"] if any(r["n_clusters"] == content["n_clusters"] for r in records) else None,
            )
            + _details("All candidates", _record_table(records))
        )
    if "weights" in evidence:
        records = evidence["weights"]
        parts.append(
            "<h3>Weights</h3><p>Agreement of the clusters with those of the next larger weight: the smallest weight "
            f"from which on they no longer change is taken, beta = {evidence['chosen_beta']:.3g}.</p>"
            + line_chart(
                [record["beta"] for record in records],
                [record["settled"] for record in records],
                x_label="beta",
                y_label="agreement with the next weight",
                mark=evidence["chosen_beta"],
                limits=(0.0, 1.0),
            )
            + _details("All weights", _record_table(records))
        )
    if len(evidence.get("eigenvalues", ())) > 1:
        values = evidence["eigenvalues"]
        parts.append(
            "<h3>Eigenvalues</h3><p>One eigenvalue near 1 for every cluster that is well separated.</p>"
            + line_chart(range(1, len(values) + 1), values, x_label="eigenvalue", y_label="value")
        )
    return parts


def _evidence(content: Mapping[str, Any], parts: Sequence[str]) -> str:
    if not parts:
        return ""
    body = '<div class="thirds">' + "".join(f"<div>{part}</div>" for part in parts) + "</div>"
    used = [f"{name} = {content['fitted'][name]}" for name in ("beta_", "lam_", "rank_") if name in content["fitted"]]
    if used:
        body += f"<p>Used: {escape(', '.join(used))}.</p>"
    return _card("evidence", "Evidence for the settings", "", body)


def _record_table(records: Sequence[Mapping[str, float]]) -> str:
    names = list(records[0])
    return _table(
        names, [[f"{record.get(name, float('nan')):.4g}" for name in names] for record in records], kind="numbers"
    )


def _details(name: str, body: str) -> str:
    return f"<details><summary>{name}</summary>{body}</details>"


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{escape(str(note))}</li>" for note in notes)
    return _card("join", "How the views were joined", "", f"<ul>{items}</ul>")


def _settings(content: Mapping[str, Any]) -> str:
    changed = [item for item in content["settings"] if item["changed"]]
    same = [item for item in content["settings"] if not item["changed"]]
    body = ""
    if changed:
        body += _table(["option", "value"], [[item["name"], item["value"]] for item in changed])
    if same:
        body += _details(
            "Options at their defaults", _table(["option", "value"], [[i["name"], i["value"]] for i in same])
        )
    return _card("settings", "Settings", "", body) if body else ""


def _versions(content: Mapping[str, Any]) -> str:
    rows = [[name, value] for name, value in content["fitted"].items()]
    body = _table(["found by the fit", "value"], rows) if rows else ""
    told = escape(certificate_sentence(content["certificate"]))
    body += f"<p>{told} That is about the problem, not the clusters.</p>"
    versions = ", ".join(f"{name} {value}" for name, value in content["versions"].items())
    return _card("versions", "Results and versions", "", body + f"<p>{escape(versions)}.</p>")


def _code(code: str) -> str:
    body = (
        '<div class="code"><button type="button" id="copy">Copy</button>'
        f'<pre tabindex="0"><code id="code">{escape(code)}</code></pre></div>'
    )
    return _card("again", "Repeat this run", "", body, wide=True)
