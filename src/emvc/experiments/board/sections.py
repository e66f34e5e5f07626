"""From records to what a board says, in the order of its page."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from emvc._array import FloatArray
from emvc.experiments.board import figures
from emvc.experiments.board.collection import HALVES, KINDS
from emvc.experiments.board.content import (
    Board,
    Part,
    Picture,
    Section,
    Table,
    about_sets,
    best_cells,
    compared,
    grid,
    how_many,
    listed,
    mean_and_interval,
    p_value,
)
from emvc.experiments.board.error_sections import conditions_section, ladder_section, robustness_section
from emvc.experiments.board.ranks import complete_block, rank_methods
from emvc.experiments.board.scores import CLEAN, METRICS, ScoreTable
from emvc.experiments.board.statistics import bootstrap, compare, outcomes
from emvc.experiments.runner import Record


def make_sections(board: Board) -> list[Section]:
    """Return the sections of a board that there are records for, in the order of the page."""
    makers: tuple[Callable[[Board], Section | None], ...] = (
        _run, _headline, _ranks, ladder_section, conditions_section, robustness_section,
        _kinds, _sets, _time, _failures, _collection,
    )  # fmt: skip
    return [section for section in (make(board) for make in makers) if section is not None] + [_protocol()]


def _run(board: Board) -> Section:
    records = board.records
    halves = {record["dataset"]: record["half"] for record in records}
    split = ", ".join(f"{sum(h == half for h in halves.values())} to {half}" for half in HALVES)
    seeds = len({record["seed"] for record in records})
    counts = outcomes(records)
    failed, late, large, imputed = (
        sum(getattr(count, name) for count in counts) for name in ("failed", "out_of_time", "out_of_memory", "imputed")
    )
    size = (
        f"{how_many(len(board.methods), 'method')} on {how_many(len(halves), 'data set')} ({split}), with "
        f"{how_many(seeds, 'seed')} and in {how_many(len(board.errors), 'condition')}"
    )
    parts = [
        f"{size}: {how_many(len(records), 'run')}.",
        f"Methods: {'; '.join(board.methods)}.",
        f"Conditions: {'; '.join(board.errors)}.",
        f"Runs that failed: {failed:,}; out of time: {late:,}; out of memory: {large:,}. They count as 0.",
        f"Runs with column means in place of missing values, for methods that cannot take these: {imputed:,}.",
        _versions_sentence(records),
        *board.notes,
    ]
    return Section("run", "What was run", [*parts, _versions_table(board)])


def _versions_sentence(records: Sequence[Record]) -> str:
    versions = sorted({str(record["version"]) for record in records})
    return f"emvc {' and '.join(versions)}, finished {_dates(records)}."


def _dates(records: Sequence[Record]) -> str:
    days = sorted({str(record["finished"])[:10] for record in records if record["finished"]}) or ["–"]
    return " to ".join(dict.fromkeys((days[0], days[-1])))


def _versions_table(board: Board) -> Table:
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in board.records:
        groups[record["method"], str(record["version"]), str(record["revision"] or "–")].append(record)
    order = {method: i for i, method in enumerate(board.methods)}
    keys = sorted(groups, key=lambda key: (order[key[0]], key))
    rows = [[*key, f"{len(groups[key]):,}", _dates(groups[key])] for key in keys]
    header = ["method", "version", "revision", "runs", "finished"]
    return Table(header, rows, "Versions of the methods", words=(1, 2), folded=True)


def _headline(board: Board) -> Section:
    where = "clean data" if board.base == CLEAN else f"the condition “{board.base}”"
    text = (
        f"Means over data sets of {where}, with 95 % bootstrap intervals. Difference, wins, losses, ties and p compare "
        f"NMI with {board.reference}, on the data sets that have both; p is from the Wilcoxon signed-rank test and is "
        "not corrected for the number of methods. Methods are ordered by the difference. A method that was not tried "
        "everywhere has a mean over fewer sets: look at its difference."
    )
    tables = [_headline_table(board, None, "All data sets")]
    tables += [_headline_table(board, half, f"Half to {half}") for half in HALVES]
    return Section("headline", "Quality", [text, *tables])


def _headline_table(board: Board, half: str | None, heading: str) -> str | Table:
    tables = {metric: table.restrict(half=half) for metric, table in board.tables.items()}
    n_datasets = len(tables["nmi"].datasets)
    if n_datasets == 0:
        return f"{heading}: no data sets."
    rows, found = [], []
    for method in board.methods:
        intervals = [bootstrap(tables[metric].column(method)) for metric in METRICS]
        if intervals[0].n_datasets:
            pair = compare(tables["nmi"], method, board.reference)
            cells = ["reference", "", ""] if method == board.reference else compared(pair)
            rows.append([method, str(intervals[0].n_datasets), *map(mean_and_interval, intervals), *cells])
            found.append([(of.mean, of.n_datasets) for of in intervals])
    header = ["method", "sets", "NMI", "ARI", "accuracy", "NMI difference", "wins / losses / ties", "p"]
    values, counts = np.moveaxis(np.array(found), 2, 0)
    return Table(header, rows, f"{heading} ({n_datasets})", best_cells(values, counts, first=2))


def _ranks(board: Board) -> Section | None:
    table = board.tables["nmi"]
    methods = complete_block(table, board.reference)
    ranks = rank_methods(table, methods)
    if len(methods) < 2 or not ranks.n_datasets:
        return None
    left_out = [name for name in board.methods if name not in methods]
    text = (
        f"Average rank of NMI on {how_many(ranks.n_datasets, 'data set')} on which all {len(methods)} methods have a "
        f"value. Two methods differ (Nemenyi, 5 %) if their ranks are at least {ranks.critical_difference:.2f} apart; "
        "a bar joins those that do not."
    )
    if not math.isnan(ranks.p):
        sign = "" if ranks.p < 0.001 else "= "
        text += f" Friedman’s test that all are alike: p {sign}{p_value(ranks.p)}."
    if left_out:
        text += f" Left out, for too few data sets: {'; '.join(left_out)}."
    pairs = list(zip(ranks.methods, ranks.ranks, strict=True))
    alt = "Average ranks, best first: " + "; ".join(f"{name} {rank:.2f}" for name, rank in pairs) + "."
    picture = Picture("critical-difference", figures.critical_difference(ranks, reference=board.reference), alt)
    return Section("ranks", "Average ranks", [text, picture])


def _kinds(board: Board) -> Section | None:
    table = board.tables["nmi"]
    kinds = [kind for kind in (*KINDS, *sorted(set(table.kinds) - set(KINDS))) if kind in table.kinds]
    parts = {f"{kind} ({table.kinds.count(kind)})": table.restrict(kind=kind) for kind in kinds}
    cells: dict[tuple[str, str], tuple[float, int]] = {}
    for name, part in parts.items():
        means = {method: bootstrap(part.column(method)) for method in board.methods}
        cells |= {(method, name): (of.mean, of.n_datasets) for method, of in means.items() if of.n_datasets}
    text = (
        "Mean NMI by kind of data, with the number of data sets; a number in parentheses behind a mean says that a "
        "method has fewer."
    )
    return Section("kinds", "By kind of data", [text, grid(board.methods, list(parts), cells, "")])


def _sets(board: Board) -> Section:
    table = board.tables["nmi"]
    failed = _failed_shares(board.plain, table)
    methods = [method for method in board.methods if method in table.methods]
    text = (
        "NMI, mean over the seeds. An empty cell: not tried. A hatched cell with a dash: every run failed, which "
        "counts as 0. An asterisk: some runs did."
    )
    figure = figures.heat_map(table, failed, methods=methods, reference=board.reference)
    size = f"{how_many(len(methods), 'method')} on {how_many(len(table.datasets), 'data set')}"
    alt = f"NMI of {size}; board.csv has the numbers."
    return Section("sets", "Every data set", [text, Picture("heat-map", figure, alt)])


def _failed_shares(records: Sequence[Record], table: ScoreTable) -> FloatArray:
    bad, runs = np.zeros((2, len(table.datasets), len(table.methods)))
    for record in records:
        cell = table.datasets.index(record["dataset"]), table.methods.index(record["method"])
        bad[cell] += record["outcome"] != "done"
        runs[cell] += 1
    return bad / np.maximum(runs, 1)


def _time(board: Board) -> Section | None:
    rows, points = [], []
    for method in board.methods:
        done = [r for r in board.plain if r["method"] == method and r["outcome"] == "done" and r["seconds"] is not None]
        late = sum(r["method"] == method and r["outcome"] == "out of time" for r in board.plain)
        if done:
            seconds = [float(record["seconds"]) for record in done]
            memory = [float(record["peak_memory"]) for record in done if record["peak_memory"] is not None]
            mean = bootstrap(board.tables["nmi"].column(method))
            rows.append(
                [method, str(mean.n_datasets), str(len(done)), str(late), *_spread(seconds, 2), *_spread(memory, 0)]
            )
            points.append(figures.Pace(method, max(float(np.median(seconds)), 1e-3), mean.mean, late > 0))
    if not rows:
        return None
    text = (
        "Runs of the tables of quality that were done; those that ran out of time are not in the medians. A triangle "
        "marks a method that has such runs: it is slower than it looks. So is one that was tried on small data alone."
    )
    header = ["method", "sets", "done", "out of time", "median seconds", "longest", "median MB", "most MB"]
    said = "; ".join(f"{point.method} {point.seconds:.2g} s and {point.quality:.3f}" for point in points)
    figure = figures.time_quality(points, reference=board.reference)
    picture = Picture("time-quality", figure, f"Median seconds and mean NMI: {said}.")
    return Section("time", "Time and memory", [text, picture, Table(header, rows)])


def _spread(values: Sequence[float], digits: int) -> list[str]:
    return [f"{of(values):,.{digits}f}" if values else "–" for of in (np.median, max)]


def _failures(board: Board) -> Section:
    counts = {count.method: count for count in outcomes(board.records)}
    names = ("done", "failed", "out_of_time", "out_of_memory", "imputed")
    rows = [[method, *(f"{getattr(counts[method], name):,}" for name in names)] for method in board.methods]
    parts: list[Part] = [
        "How the runs of all conditions ended, and in how many missing values were filled in with column means.",
        Table(["method", *(name.replace("_", " ") for name in names[:-1]), "filled in"], rows),
    ]
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for record in board.records:
        if record["outcome"] != "done":
            groups[record["method"], record["outcome"], _last_line(record["failure"])].append(record["dataset"])
    lines = [[*key, str(len(sets)), listed(sorted(set(sets)))] for key, sets in sorted(groups.items())]
    if lines:
        header = ["method", "outcome", "message", "runs", "data sets"]
        parts.append(Table(header, lines, "Runs that did not end well", words=(1, 2, 4)))
    return Section("failures", "Failures", parts)


def _last_line(failure: str | None) -> str:
    lines = (failure or "").strip().splitlines() or [""]
    return lines[-1] if len(lines[-1]) <= 160 else lines[-1][:159] + "…"


def _collection(board: Board) -> Section:
    sets = about_sets(board.records)
    rows = [[name, *("–" if value is None else str(value) for value in known.values())] for name, known in sets.items()]
    header = ["data set", "kind", "half", "samples", "views", "clusters"]
    table = Table(header, rows, how_many(len(rows), "data set"), words=(1, 2), folded=True)
    return Section("collection", "Data sets", [table])


def _protocol() -> Section:
    text = (
        "The rows of every data set are shuffled by the seed, and labels are used for nothing but scoring. Everything "
        "about the method is chosen on one half of the data sets and confirmed on the other, so that only the second "
        "half tells what to expect on new data. A run that fails or runs out of time or memory counts as 0 and is "
        "never dropped."
    )
    return Section("protocol", "Protocol", [text])
