"""The words of a report: its summary and the code that repeats the run, as plain text."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def list_names(names: Sequence[str], most: int = 5) -> str:
    """Return the names in quotes, as a list in a sentence."""
    quoted = [f"“{name}”" for name in names[:most]]
    if len(names) > most:
        quoted.append(f"{len(names) - most} more")
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " and " + quoted[-1]


def summary_sentences(content: Mapping[str, Any]) -> list[str]:
    """Return the summary in plain words."""
    views, sizes = content["views"], [cluster["size"] for cluster in content["clusters"]]
    described = f", each described by {_count(len(views), 'view')}," if views else ""
    sentences = [f"{_count(content['n_samples'], 'sample')}{described} fall into {_count(len(sizes), 'cluster')}"]
    if len(sizes) > 1:
        low, high = min(sizes), max(sizes)
        sentences[0] += f" of {low:,} to {high:,} samples" if low < high else f" of {_count(low, 'sample')} each"
    sentences[0] += "."
    if content["n_unassigned"]:
        verb = "has" if content["n_unassigned"] == 1 else "have"
        sentences.append(f"{_count(content['n_unassigned'], 'sample')} {verb} no cluster.")
    if len(sizes) > 1:  # reliability is about clusters
        sentences += _view_sentences(views)
    if content["has_errors"]:
        sentences += _sample_sentences(content)
    return sentences


def certificate_sentence(certificate: Mapping[str, Any] | None) -> str:
    """Return what is known about the solution of the problem, which is not about the clusters."""
    if certificate is None:
        return "This method gives no certificate of how close its solution is to the best one."
    if certificate["certified"]:
        return f"The solution is certified: no other can lower the objective by more than {certificate['gap']:.2%}."
    return (
        f"The solution is not certified: the solver {certificate['status']}, and another solution may lower the "
        f"objective by up to {min(certificate['gap'], 1.0):.0%}."
    )


def _view_sentences(views: Sequence[Mapping[str, Any]]) -> list[str]:
    if not views or "reliability" not in views[0] or len(views) < 2:
        return []
    best = max(views, key=lambda view: view["reliability"])
    worst = min(views, key=lambda view: view["reliability"])
    if f"{best['reliability']:.2f}" == f"{worst['reliability']:.2f}":
        return [f"Reliability of each view: {best['reliability']:.2f} (0 is chance, 1 full agreement)."]
    return [
        f"Reliability of the views (0 is chance, 1 full agreement): {best['reliability']:.2f} for “{best['name']}” to "
        f"{worst['reliability']:.2f} for “{worst['name']}”."
    ]


def _sample_sentences(content: Mapping[str, Any]) -> list[str]:
    sentences = []
    lost, partly, doubtful = content["n_lost"], content["n_partly"], content["n_suspicious"]
    if lost:
        sentences.append(f"{_count(lost, 'sample')} cannot be believed in any view.")
    if partly:
        who = f"{partly:,} more" if lost else _count(partly, "sample")
        sentences.append(f"{who} {'was' if partly == 1 else 'were'} left out of some views and placed by the others.")
    if doubtful:
        who = f"{doubtful:,} more" if lost or partly else _count(doubtful, "sample")
        sentences.append(f"{who} {'is' if doubtful == 1 else 'are'} suspicious but took part.")
    if not (lost or partly or doubtful):
        sentences.append("No sample is suspicious.")
    if content["n_missing"]:
        many = "One entry is" if content["n_missing"] == 1 else f"{content['n_missing']:,} entries are"
        sentences.append(f"{many} missing: a view does not show the sample.")
    return sentences


def rerun_code(content: Mapping[str, Any]) -> str:
    """Return code that repeats the run once the views are filled in.

    Examples
    --------
    >>> content = {"method": "EMVC", "n_samples": 5, "views": [{"name": "a"}],
    ...            "settings": [{"name": "n_clusters", "value": "3", "changed": True}]}
    >>> print(rerun_code(content))
    from emvc import EMVC
    from emvc.report import write_report
    <BLANKLINE>
    # The arrays of the views, with the same 5 samples in the same order.
    views = {
        'a': ...,
    }
    model = EMVC(
        n_clusters=3,
    )
    model.fit(views)
    write_report(model, "report.html")
    """
    lines = [f"from emvc import {content['method']}", "from emvc.report import write_report", ""]
    lines.append(f"# The arrays of the views, with the same {content['n_samples']} samples in the same order.")
    lines.append("views = {")
    lines += [f"    {view['name']!r}: ...," for view in content["views"]]
    lines.append("}")
    changed = [item for item in content["settings"] if item["changed"]]
    lines.append(f"model = {content['method']}(")
    for item in changed:
        try:
            ast.literal_eval(item["value"])
        except (ValueError, SyntaxError):
            # An object cannot be written as code: say what it was.
            lines.append(f"    {item['name']}=...,  # it was {' '.join(item['value'].split())}")
        else:
            lines.append(f"    {item['name']}={item['value']},")
    lines.append(")")
    if not any(item["name"] == "random_state" for item in changed) and any(
        item["name"] == "random_state" for item in content["settings"]
    ):
        lines.insert(-1, "    # random_state was not set: starts of k-means, and with them labels, may differ.")
    lines += ["model.fit(views)", 'write_report(model, "report.html")']
    return "\n".join(lines)
