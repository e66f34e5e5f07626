"""A page about two runs: which clusters are the same, and which samples moved."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from emvc._array import IntArray
from emvc.report._curves import flow_chart
from emvc.report._encode import clean
from emvc.report._page import fill_page

_NONE = "no cluster"


def render_comparison(
    first: Any,
    second: Any,
    *,
    names: tuple[str, str] = ("first run", "second run"),
    title: str = "Two runs compared",
) -> str:
    """Return an HTML page about what is the same in two fitted models, and who moved.

    Clusters are matched one to one, so that as many samples as possible stay; a sample that is in another cluster of
    the second run than the match of its own has moved.

    Parameters
    ----------
    first, second : estimator
        Fitted models. Samples are matched by name if both have names, by position otherwise.
    names : (str, str)
        What the runs are called.
    title : str
        Heading of the page.

    Raises
    ------
    ValueError
        If the models have no sample in common, or different numbers of samples without names.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> one, other = SimpleNamespace(labels_=[0, 0, 1, 1]), SimpleNamespace(labels_=[1, 1, 0, 1])
    >>> "1 of 4 samples moved" in render_comparison(one, other)
    True
    """
    ids, raw, notes = _common(first, second)
    (left, one), (right, other) = (_positions(labels) for labels in raw)
    table = np.zeros((len(one), len(other)), dtype=np.int64)
    np.add.at(table, (left, right), 1)
    partner = _partners(table)
    moved = np.flatnonzero(partner[left] != right)
    data = {
        "rows": [[clean(ids[i]), one[left[i]], other[right[i]]] for i in moved],
        "runs": [clean(name) for name in names],
    }
    sections = [
        _summary(left, right, moved, notes),
        _flow(table, one, other, [clean(name) for name in names], partner),
        _moved([clean(name) for name in names]),
    ]
    return fill_page(title, sections, data, ("base.js", "compare.js", "start.js"))


def _common(first: Any, second: Any) -> tuple[list[str], tuple[IntArray, IntArray], list[str]]:
    """Return the samples that are in both runs, their labels, and notes."""
    left, right = (np.asarray(model.labels_).astype(np.int64) for model in (first, second))
    own, others = (getattr(model, "sample_names_", None) for model in (first, second))
    if own is None or others is None:
        if len(left) != len(right):
            raise ValueError(
                f"The runs have {len(left)} and {len(right)} samples, and not both have names: nobody can tell which "
                "sample is which."
            )
        return [str(i) for i in range(len(left))], (left, right), []
    one, other = ([str(name) for name in names] for names in (own, others))
    place = {name: i for i, name in enumerate(other)}
    both = [i for i, name in enumerate(one) if name in place]
    if not both:
        raise ValueError(f"The runs have no sample in common: the first are {one[0]!r} and {other[0]!r}.")
    only = len(one) - len(both), len(other) - len(both)
    told = f"{only[0]:,} samples are in the first run only, {only[1]:,} in the second only; they are left out here."
    common = [one[i] for i in both]
    return common, (left[both], right[[place[name] for name in common]]), [told] if any(only) else []


def _positions(labels: IntArray) -> tuple[IntArray, list[str]]:
    """Return the position of each sample's cluster, and their names; the samples without one come last."""
    number = int(labels.max(initial=-1)) + 1
    names = [str(c) for c in range(number)]
    if (labels < 0).any():
        names.append(_NONE)
    return np.where(labels < 0, number, labels), names


def _partners(table: IntArray) -> IntArray:
    """Return the matching cluster of the second run for each of the first, -1 if it has none."""
    partner = np.full(len(table), -1)
    rows, columns = linear_sum_assignment(-table)
    matched = table[rows, columns] > 0
    partner[rows[matched]] = columns[matched]
    return partner


def _summary(left: IntArray, right: IntArray, moved: IntArray, notes: Sequence[str]) -> str:
    ari, nmi = adjusted_rand_score(left, right), normalized_mutual_info_score(left, right)
    text = (
        f"{len(moved):,} of {len(left):,} samples moved: they are in another cluster than the one that matches theirs. "
        f"Adjusted Rand index {ari:.3f}, normalised mutual information {nmi:.3f} (1: the same clusters)."
    )
    items = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f'<section id="summary"><p class="lead">{escape(text)}</p>{items}</section>'


def _flow(table: IntArray, one: Sequence[str], other: Sequence[str], names: Sequence[str], partner: IntArray) -> str:
    left, right = ([name if name == _NONE else f"cluster {name}" for name in side] for side in (one, other))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in other)
    rows = ""
    for i, counts in enumerate(table.tolist()):
        total = max(sum(counts), 1)
        cells = "".join(
            f'<td style="--share:{count / total:.3f}">{_cell(count, one[i], other[j], moved=partner[i] != j)}</td>'
            for j, count in enumerate(counts)
        )
        rows += f'<tr><th scope="row">{escape(one[i])}</th>{cells}</tr>'
    caption = f"{escape(names[0])} (rows) and {escape(names[1])} (columns)"
    return (
        '<section class="card wide" id="flow"><h2>Clusters of both runs</h2><p class="hint">Left the clusters of '
        f"“{escape(names[0])}”, right those of “{escape(names[1])}”; a ribbon is as thick as it has samples. Choose a "
        "number in the table to list the samples.</p>"
        f'<div class="pair"><div>{flow_chart(table.tolist(), left, right)}</div><div class="scroll"><table '
        f'class="cross"><caption class="hint">{caption}</caption><thead><tr><th '
        f'scope="col">cluster</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></div></section>"
    )


def _cell(count: int, left: str, right: str, *, moved: bool) -> str:
    if not count or not moved:
        return f"{count:,}"
    return (
        f'<button type="button" class="link" data-from="{escape(left)}" data-to="{escape(right)}" '
        f'aria-label="List the {count} samples that moved from {escape(left)} to {escape(right)}">{count:,}</button>'
    )


def _moved(names: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("Sample", *names))
    return f"""<section class="card wide" id="who"><h2>Samples that moved</h2>
<div class="controls"><label>Search <input id="search" type="search" autocomplete="off" placeholder="sample or cluster">
</label><span id="matches" role="status"></span><button type="button" id="save">Save as CSV</button></div>
<div class="scroll"><table id="moved"><thead><tr>{head}</tr></thead><tbody></tbody></table></div>
<div class="controls pages"><button type="button" id="previous">Previous</button><span id="page-number"></span>
<button type="button" id="next">Next</button></div></section>"""
