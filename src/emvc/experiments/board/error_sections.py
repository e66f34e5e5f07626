"""The sections about errors and about the stages: ladder, conditions and share of the oracle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emvc.experiments.board import figures
from emvc.experiments.board.collection import HALVES
from emvc.experiments.board.content import Board, Part, Picture, Section, Table, compared, grid, number
from emvc.experiments.board.statistics import ALL_ERRORS, Interval, Rung, condition_means, robustness
from emvc.experiments.runner import Record

_SHOWN = 6  # methods in the picture of the conditions


def ladder_section(board: Board) -> Section | None:
    """Return what each stage adds to the one before."""
    rungs = board.rungs
    if not rungs:
        return None
    text = (
        "What each stage adds to the one before, in NMI. In all error conditions together, wins and losses count pairs "
        "of a data set and a condition; interval and p are over data sets, so that none counts many times."
    )
    main = [rung for rung in rungs if rung.error in (board.base, ALL_ERRORS)]
    parts: list[Part] = [text, _ladder_picture(main or rungs)]
    parts += [_ladder_table([r for r in main if r.half == half], f"Half to {half}") for half in HALVES]
    if len(main) < len(rungs):
        for half in HALVES:
            part = [rung for rung in rungs if rung.half == half]
            parts.append(_ladder_table(part, f"Half to {half}, each condition", folded=True))
    return Section("ladder", "Ladder of stages", parts)


def _ladder_picture(rungs: Sequence[Rung]) -> Picture:
    said = [
        f"{pair.method} against {pair.reference}, {half}, {error}: {pair.difference.mean:+.3f}"
        for half, error, pair in ((rung.half, rung.error, rung.comparison) for rung in rungs)
    ]
    return Picture("ladder", figures.ladder(rungs), f"Difference in mean NMI of each stage. {'; '.join(said)}.")


def _ladder_table(rungs: Sequence[Rung], heading: str, *, folded: bool = False) -> str | Table:
    if not rungs:
        return f"{heading}: no data sets."
    header = ["stage", "condition", "sets", "NMI", "before", "difference", "wins / losses / ties", "p"]
    rows = []
    for rung in rungs:
        pair = rung.comparison
        means = [str(pair.n_datasets), number(pair.mean), number(pair.mean_reference)]
        rows.append([f"{pair.method} against {pair.reference}", rung.error, *means, *compared(pair)])
    return Table(header, rows, heading, words=(1,), folded=folded)


def conditions_section(board: Board) -> Section | None:
    """Return the means in each condition, unless there is but one."""
    records = _run_under_errors(board)
    if not records:
        return None
    means = condition_means(records)
    columns = [*board.errors, *([ALL_ERRORS] if any(error == ALL_ERRORS for _, error in means) else [])]
    n_datasets = len({record["dataset"] for record in records})
    text = (
        f"Mean NMI over the data sets that were run under errors ({n_datasets}); a number in parentheses is that of "
        "the data sets, where a method has fewer than others. The picture has the reference and the methods that do "
        "best under errors, with 95 % intervals."
    )
    parts: list[Part] = [text, _conditions_picture(board, means, columns)]
    for half, heading in ((None, "All data sets"), *((half, f"Half to {half}") for half in HALVES)):
        found = means if half is None else condition_means(records, half=half)
        cells = {key: (interval.mean, interval.n_datasets) for key, interval in found.items()}
        parts.append(grid(board.methods, columns, cells, heading, folded=half is not None))
    return Section("conditions", "Quality under errors", parts)


def _run_under_errors(board: Board) -> list[Record]:
    """Return the records of the methods and data sets that have some under errors, so that columns are alike."""
    plain = [record for record in board.records if not record["oracle"]]
    errors = [record for record in plain if record["error"] != board.base]
    methods, sets = ({record[name] for record in errors} for name in ("method", "dataset"))
    return [record for record in plain if record["method"] in methods and record["dataset"] in sets]


def _conditions_picture(board: Board, means: dict[tuple[str, str], Interval], columns: Sequence[str]) -> Picture:
    shown = _most_robust(means, board)
    last = columns[-1]
    said = "; ".join(f"{method} {means[method, last].mean:.3f}" for method in shown if (method, last) in means)
    figure = figures.conditions(means, methods=shown, errors=columns, reference=board.reference)
    return Picture("conditions", figure, f"Mean NMI by condition. Under “{last}”: {said}.")


def _most_robust(means: dict[tuple[str, str], Interval], board: Board) -> list[str]:
    """Return the reference and the methods with the largest mean over the error conditions."""
    errors = [error for error in board.errors if error != board.base]
    values = {m: [means[m, e].mean for e in errors if (m, e) in means] for m in board.methods}
    known = [m for m in board.methods if values[m]]
    best = sorted(known, key=lambda m: (m != board.reference, -float(np.mean(values[m]))))
    return best[:_SHOWN]


def robustness_section(board: Board) -> Section | None:
    """Return the shares of the oracle, where there are oracles."""
    found = {half: robustness(board.records, half=half) for half in (None, *HALVES)}
    if not found[None]:
        return None
    text = (
        "An oracle is the same method with the wrong entries handed over as missing. The share is the mean NMI divided "
        "by that of the oracle, over the data sets that have both: at 1, nothing is lost to not knowing the errors. A "
        "weak oracle makes a large share easy: read it beside the table above."
    )
    present = {row.error for row in found[None]}
    columns = [error for error in (*board.errors, ALL_ERRORS) if error in present]
    parts: list[Part] = [text]
    for half, rows in found.items():
        cells = {(row.method, row.error): (row.share, row.n_datasets) for row in rows}
        heading = "All data sets" if half is None else f"Half to {half}"
        parts.append(grid(board.methods, columns, cells, heading, folded=half is not None))
    return Section("robustness", "Share of the oracle", parts)
