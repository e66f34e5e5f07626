"""From the records of a board to its files: one HTML page, Markdown, CSV and pictures.

The page is one file, loads nothing and runs nothing. Every text is escaped here.
"""

from __future__ import annotations

import base64
import csv
import io
import re
from collections import defaultdict
from collections.abc import Sequence
from html import escape
from importlib import resources
from statistics import fmean
from typing import Any

from emvc.experiments.board.content import Board, Part, Picture, Section, Table, about_sets
from emvc.experiments.board.figures import render_png, render_svg
from emvc.experiments.board.scores import METRICS, condition_order, score
from emvc.experiments.board.sections import make_sections
from emvc.experiments.runner import Record

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"
_KEY = ("dataset", "error", "oracle", "method", "seed")
_MEASURED = ("seconds", "peak_memory", "flagged", "rank", "gap")


def board_files(
    records: Sequence[Record],
    *,
    reference: str,
    stages: Sequence[tuple[str, str]] = (),
    title: str = "The board",
    notes: Sequence[str] = (),
    earlier: Sequence[Record] = (),
) -> dict[str, bytes]:
    """Return the files of a board by name.

    Parameters
    ----------
    records : sequence of dict
        One for each run; the order does not matter.
    reference : str
        The method that all others are compared with.
    stages : sequence of (str, str)
        The ladder: a method and the one it is compared with.
    title : str
        Heading of the page.
    notes : sequence of str
        Sentences about this run.
    earlier : sequence of dict
        Records of an earlier version of the program: its methods get " (earlier)" after their names.

    Returns
    -------
    dict of bytes
        ``board.html``, ``board.md``, ``board.csv`` (one row for each data set, method and condition), ``records.csv``
        and the pictures that there are data for.

    Raises
    ------
    ValueError
        If there are no records, or none of the reference.
    """
    known = [*records, *({**record, "method": f"{record['method']} (earlier)"} for record in earlier)]
    if not any(not record["oracle"] for record in known):
        raise ValueError("There are no records to show; run at least one method on one data set.")
    methods = sorted({record["method"] for record in known})
    if reference not in methods:
        raise ValueError(f"The reference {reference!r} has no records; choose from {', '.join(methods)}.")
    known = _sorted(known)
    sections = make_sections(Board(known, reference, stages, notes))
    pictures = [part for section in sections for part in section.parts if isinstance(part, Picture)]
    texts = {
        "board.html": _html(title, sections),
        "board.md": _markdown(title, sections),
        "board.csv": _means_csv(known),
        "records.csv": _records_csv(known),
    }
    files = {name: text.encode() for name, text in texts.items()}
    return files | {f"{picture.name}.png": render_png(picture.figure) for picture in pictures}


def _sorted(records: Sequence[Record]) -> list[Record]:
    """Return the records in an order that does not depend on when they were finished."""
    order = {error: i for i, error in enumerate(condition_order(record["error"] for record in records))}
    return sorted(
        records, key=lambda r: (r["dataset"], order[r["error"]], int(r["oracle"] or 0), r["method"], r["seed"])
    )


def _html(title: str, sections: Sequence[Section]) -> str:
    links = "".join(f'<li><a href="#{section.name}">{escape(section.heading)}</a></li>' for section in sections)
    body = "\n".join(_html_section(section) for section in sections)
    style = resources.files("emvc.experiments.board").joinpath("page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><nav aria-label="Sections"><ul>{links}</ul></nav></header>
<main>
{body}
</main>
<footer>This page is one file and loads nothing from anywhere. The numbers are in board.csv and records.csv.</footer>
</body>
</html>
"""


def _html_section(section: Section) -> str:
    parts = "\n".join(_html_part(part) for part in section.parts)
    return f'<section class="card" id="{section.name}"><h2>{escape(section.heading)}</h2>\n{parts}</section>'


def _html_part(part: Part) -> str:
    if isinstance(part, str):
        return f"<p>{_text(part)}</p>"
    if isinstance(part, Picture):
        return _html_picture(part)
    table = _html_table(part)
    if part.folded:
        return f"<details><summary>{escape(part.heading)}</summary>{table}</details>"
    return (f"<h3>{escape(part.heading)}</h3>" if part.heading else "") + table


def _html_picture(picture: Picture) -> str:
    width, height = (round(96 * float(inches)) for inches in picture.figure.get_size_inches())
    data = base64.b64encode(render_svg(picture.figure).encode()).decode()
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="Picture"><img class="{picture.name}" '
        f'src="data:image/svg+xml;base64,{data}" width="{width}" height="{height}" alt="{escape(picture.alt)}"></div>'
    )


def _html_table(table: Table) -> str:
    kinds = ["words" if j in table.words else "" for j in range(len(table.header))]
    head = "".join(f'<th scope="col"{_kind(k)}>{_text(n)}</th>' for k, n in zip(kinds, table.header, strict=True))
    rows = []
    for i, (name, *cells) in enumerate(table.rows):
        marks = [_kind("best" if (i, j) in table.strong else kinds[j]) for j in range(1, len(table.header))]
        tail = "".join(f"<td{mark}>{_text(cell)}</td>" for mark, cell in zip(marks, cells, strict=True))
        rows.append(f'<tr><th scope="row">{_text(name)}</th>{tail}</tr>')
    label = escape(table.heading or table.header[0])
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="Table: {label}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _kind(name: str) -> str:
    return f' class="{name}"' if name else ""


def _text(text: str) -> str:
    """Return an escaped text in which lines do not break before a per cent sign or around a stroke."""
    return escape(text).replace(" %", "&nbsp;%").replace(" / ", "&nbsp;/&nbsp;")


def _markdown(title: str, sections: Sequence[Section]) -> str:
    blocks = [f"# {_plain(title)}"]
    for section in sections:
        blocks.append(f"## {_plain(section.heading)}")
        for part in section.parts:
            if isinstance(part, str):
                blocks.append(_plain(part))
            elif isinstance(part, Picture):
                blocks.append(f"![{_plain(part.alt)}]({part.name}.png)")
            else:
                blocks += [f"### {_plain(part.heading)}"] if part.heading else []
                blocks.append(_markdown_table(part))
    return "\n\n".join(blocks) + "\n"


def _markdown_table(table: Table) -> str:
    rows = [[_plain(cell) for cell in row] for row in table.rows]
    for i, j in table.strong:
        rows[i][j] = f"**{rows[i][j]}**"
    rule = ["---" if j in (0, *table.words) else "---:" for j in range(len(table.header))]
    lines = [[_plain(name) for name in table.header], rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>|&~$])", r"\\\1", " ".join(text.split()))


def _means_csv(records: Sequence[Record]) -> str:
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        groups[tuple(record[name] for name in _KEY[:-1])].append(record)
    sets = about_sets(records)
    rows = []
    for key, runs in groups.items():
        counts = [len(runs), sum(run["outcome"] == "done" for run in runs), sum(bool(run["imputed"]) for run in runs)]
        scores = [fmean(score(run, metric) for run in runs) for metric in METRICS]
        measured = [[run[name] for run in runs if run[name] is not None] for name in _MEASURED]
        means = [fmean(values) if values else None for values in measured]
        rows.append([*key, *sets[key[0]].values(), *counts, *scores, *means])
    about = next(iter(sets.values()))
    return _csv([*_KEY[:-1], *about, "seeds", "done", "imputed", *METRICS, *_MEASURED], rows)


def _records_csv(records: Sequence[Record]) -> str:
    names = list(dict.fromkeys(name for record in records for name in record))
    names.sort(key=lambda name: (_KEY.index(name) if name in _KEY else len(_KEY), name))
    return _csv(names, [[record.get(name, "") for name in names] for record in records])


def _csv(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows)
    return stream.getvalue()
