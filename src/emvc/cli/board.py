"""The command ``emvc board``: run, show how far it is, write the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from emvc._terminal import Console
from emvc.cli.options import guarded

out = Console()
err = Console(stderr=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("board")(run_board)


def run_board(
    folders: Annotated[list[Path], typer.Argument(help="Folders with data sets (.npz, .mat), or single files.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for records, page and tables.")] = Path(
        "emvc-board"
    ),
    methods: Annotated[
        list[str] | None,
        typer.Option(help="Methods, separated by commas: names, all, ladder, peers, or your own package.module:Class."),
    ] = None,
    conditions: Annotated[
        list[str] | None, typer.Option(help="Conditions, separated by commas: names or all; with their oracles.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of seeds; 3 by default.")] = None,
    half: Annotated[str | None, typer.Option(help="Run one half only: choose or confirm.")] = None,
    most_samples: Annotated[int | None, typer.Option(min=2, help="Leave out larger data sets.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Clean data, at most 700 samples, one seed.")] = False,
    rerun: Annotated[
        list[str] | None, typer.Option(help="Methods that were changed: forget their records and run them again.")
    ] = None,
    earlier: Annotated[
        Path | None, typer.Option(help="Records of an earlier version (records.sqlite), to be compared with.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Method that the others are compared with; NEMO if it is there.")
    ] = None,
    time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds for one run.")] = 300.0,
    memory_limit: Annotated[float, typer.Option(min=100.0, help="Megabytes for one run.")] = 12_000.0,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time; all cores if not given.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Compare methods on many data sets, clean and with errors; finished runs are kept and not repeated.

    Without methods and conditions it is the whole board: all methods on clean data with three seeds, and the stages of
    EMVC, NEMO and SNF under every error and its oracle with one.
    """
    with guarded(debug=debug):
        from emvc.experiments.board.run import board, changed_since
        from emvc.experiments.runner import read_records

        old = read_records(earlier) if earlier is not None else []
        with _progress() as show:
            records = board(
                folders,
                output,
                methods=_names(methods),
                conditions=_names(conditions),
                seeds=seeds,
                half=half,
                most_samples=most_samples,
                quick=quick,
                rerun=_names(rerun) or (),
                time_limit=time_limit,
                memory_limit=memory_limit,
                n_jobs=jobs if jobs is not None else -1,
                report=show,
            )
        _write(output, records, old, reference)
        for method, number in changed_since(records).items():
            err.print(
                f"[yellow]{number} records of {method} were made by other code than this; "
                f"--rerun {method!r} makes them again.[/yellow]"
            )


def _names(options: Sequence[str] | None) -> list[str] | None:
    """Return names given one by one or separated by commas."""
    if options is None:
        return None
    return [name.strip() for option in options for name in option.split(",") if name.strip()]


@contextmanager
def _progress() -> Iterator[Any]:
    """Yield a callback that shows what was finished and how long the rest will take.

    Runs are counted by the square of the number of samples, because the last data sets are the large ones.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(*columns, console=err, speed_estimate_period=600.0) as progress:
        task = progress.add_task("starting", total=None)

        def show(done: int, total: int, record: Any) -> None:
            end = "" if record["outcome"] == "done" else f" ({record['outcome']})"
            what = f"{record['dataset']}, {record['error']}, {record['method']}{end}"
            progress.update(task, completed=done, total=total, description=what)

        yield show


def _write(output: Path, records: Sequence[Any], earlier: Sequence[Any], reference: str | None) -> None:
    from emvc.experiments.board.ladder import STAGES
    from emvc.experiments.board.page import board_files
    from emvc.report import write_files

    if reference is None:
        present = [record["method"] for record in records]
        reference = "NEMO" if "NEMO" in present else present[0]
    files = board_files(records, reference=reference, stages=STAGES, earlier=earlier)
    write_files(output, files)
    out.print(Text(files["board.md"].decode()), soft_wrap=True)
    out.print(Text(f"Page, tables and records are in {output}."), soft_wrap=True)
