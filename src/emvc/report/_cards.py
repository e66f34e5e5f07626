"""HTML of an explanation: a card for each cluster, the heat map of the markers, annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from emvc.report._curves import survival_chart

_MOST_LEVELS = 30  # of a cross table


def cards_section(content: Mapping[str, Any]) -> str:
    """Return the cards of the clusters."""
    found = content["explanation"]
    if found is None:
        return ""
    told = "".join(f"<li>{escape(sentence)}</li>" for sentence in found["told"])
    hint = (
        "Effect of a marker: the share of pairs in which a sample of the cluster has the larger value, minus "
        "the share in which it has the smaller one. Choose a marker to colour the map by it, a sample to see it there."
    )
    names = content["data"].get("names", {})
    cards = "".join(_card(card, names, found["split"]) for card in found["cards"])
    return (
        f'<section class="card wide" id="explained"><h2>What sets the clusters apart</h2><p class="hint">{hint}</p>'
        f'<ul id="told">{told}</ul><div class="cluster-cards">{cards}</div></section>'
    )


def _card(card: Mapping[str, Any], names: Mapping[str, str], split: bool) -> str:
    c = card["cluster"]
    name = escape(names.get(str(c), f"cluster {c}"))
    facts = [f"{card['size']:,} samples"]
    if "stability" in card:
        facts.append(f"stability {card['stability']:.2f}")
    parts = [
        f'<header><h3><span data-name-of="{c}" data-before="cluster ">{name}</span></h3>'
        f'<button type="button" data-rename="{c}" aria-label="Rename cluster {c}">Rename</button></header>'
        f'<p class="facts">{", ".join(facts)}</p>'
    ]
    if "support" in card:
        told = ", ".join(f"{escape(view)} {value:.2f}" for view, value in card["support"])
        parts.append(f'<p class="facts">believed rows by view: {told}</p>')
    parts += [_markers(view) for view in card["markers"] if view["features"]]
    if card["markers"] and not any(view["features"] for view in card["markers"]):
        why = "the other views see no such difference" if split else "none is significant"
        parts.append(f"<h4>Markers</h4><p>No feature sets it apart: {why}.</p>")
    if card["traits"]:
        items = "".join(f"<li><span>{escape(trait)}</span></li>" for trait in card["traits"])
        parts.append(f"<h4>Annotations</h4><ul>{items}</ul>")
    parts += [_samples("Most typical", card["typical"]), _samples("Most doubtful", card["doubtful"])]
    return f'<article class="cluster-card colour{c % 10}">{"".join(parts)}</article>'


def _markers(view: Mapping[str, Any]) -> str:
    items = []
    for feature in view["features"]:
        name = escape(feature["name"])
        if feature["colour"] is not None:
            name = f'<button type="button" class="link" data-colour="x{feature["colour"]}">{name}</button>'
        like = feature["like"]
        more = f' <small title="{escape(", ".join(like))}">and {len(like)} like it</small>' if like else ""
        kind, arrow = ("up", "▲") if feature["effect"] > 0 else ("down", "▼")
        value = f'<b class="{kind}"><span aria-hidden="true">{arrow}</span> {feature["effect"]:+.2f}</b>'
        items.append(f"<li><span>{name}{more}</span>{value}</li>")
    return f"<h4>Markers in {escape(view['view'])}</h4><ul>{''.join(items)}</ul>"


def _samples(heading: str, samples: Sequence[Sequence[Any]]) -> str:
    if not samples:
        return ""
    links = ", ".join(
        f'<button type="button" class="link" data-sample="{int(i)}">{escape(name)}</button>' for i, name in samples
    )
    return f"<h4>{heading}</h4><p>{links}</p>"


def marker_section(content: Mapping[str, Any]) -> str:
    """Return the heat map of the markers."""
    if "markers" not in content["data"]:
        return ""
    return (
        '<section class="card wide" id="markers"><h2>Markers by sample</h2><p class="hint">One row for each '
        "of the strongest "
        "markers, one column for each sample (or a few beside each other), both ordered by cluster. The "
        "colour is the rank of the value among all samples.</p>"
        '<div class="heat-wrap"><div id="marker-names" class="heat-names" aria-hidden="true"></div>'
        '<div class="canvas-wrap"><canvas id="marker-map" role="img" aria-label="Markers by sample; the cards of the '
        'clusters say the same in words"></canvas><div id="marker-tip" class="tip" hidden></div></div></div>'
        '<div id="marker-axis" class="heat-axis" aria-hidden="true"></div>'
        '<div class="scale" aria-hidden="true"><span>smallest</span><i class="ramp-marker"></i><span>largest</span>'
        '<i class="missing"></i><span>missing</span></div></section>'
    )


def annotation_section(content: Mapping[str, Any]) -> str:
    """Return the annotations: one table of tests, cross tables, survival curves."""
    found = content["explanation"]
    if found is None or not found["annotations"]:
        return ""
    hint = (
        "What else is known about the samples, compared with all clusters at once; FDR: the p-value corrected for "
        "the number of columns."
    )
    body = _tests(found["annotations"])
    crossed = [a for a in found["annotations"] if "table" in a and len(a["levels"]) <= _MOST_LEVELS]
    parts = [_cross(a) for a in crossed] + [_survival(record) for record in found["survival"]]
    return (
        f'<section class="card wide" id="annotations"><h2>Annotations</h2><p class="hint">{hint}</p>{body}'
        f'<div class="pair">{"".join(f"<div>{part}</div>" for part in parts)}</div></section>'
    )


def _tests(annotations: Sequence[Mapping[str, Any]]) -> str:
    heads = ("annotation", "test", "samples", "effect", "p", "FDR", "ARI", "NMI")
    rows = "".join(
        f'<tr><th scope="row">{escape(a["name"])}</th><td>{escape(a["test"])}</td><td>{a["n"]:,}</td>'
        f"<td>{a['effect']:.2f}</td><td>{_small(a['p'])}</td><td>{_small(a['fdr'])}</td>"
        f"<td>{_score(a.get('ari'))}</td><td>{_score(a.get('nmi'))}</td></tr>"
        for a in annotations
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _small(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _cross(annotation: Mapping[str, Any]) -> str:
    """Return clusters by values, shaded by the share of each value among the samples of the cluster."""
    head = "".join(f'<th scope="col">{escape(level)}</th>' for level in annotation["levels"])
    rows = []
    for cluster, counts in enumerate(annotation["table"]):
        total = max(sum(counts), 1)
        cells = "".join(f'<td style="--share:{count / total:.3f}">{count:,}</td>' for count in counts)
        name = f'<span data-name-of="{cluster}">{cluster}</span>'
        rows.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    return (
        f"<h3>{escape(annotation['name'])}</h3>"
        f'<div class="scroll"><table class="cross"><thead><tr><th scope="col">cluster</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _survival(record: Mapping[str, Any]) -> str:
    p_value = f"log-rank p = {_small(record['p'])}"
    legend = "".join(
        f'<span><i class="dot-mark colour{c["cluster"] % 10}"></i><span data-name-of="{c["cluster"]}" '
        f'data-before="cluster ">cluster {c["cluster"]}</span>: {c["events"]} of {c["n"]}'
        f"{_ratio(record['ratios'][c['cluster']])}</span>"
        for c in record["curves"]
    )
    return (
        f"<h3>Survival: {escape(record['name'])}</h3><p>{p_value}. Events of samples, and how many times the "
        f"expected number "
        f'they are:</p>{survival_chart(record["curves"], record["name"])}<div class="levels">{legend}</div>'
    )


def _ratio(value: float | None) -> str:
    return "" if value is None else f" (×{value:.2f})"
