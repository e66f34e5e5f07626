"""Command line: parse, call, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from emvc._output import locked
from emvc._terminal import Console
from emvc._version import __version__
from emvc.cli import board, check, cluster, predict
from emvc.cli.options import guarded

app = typer.Typer(
    name="emvc",
    help="Cluster samples that are described by several views, and see which samples and views are wrong.",
    epilog="Start with 'emvc check FILES...', which changes nothing; 'emvc demo' shows what comes out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # which joins the lines of a paragraph
)
out = Console()
err = Console(stderr=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"emvc {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Error-robust multi-view clustering."""


@app.command()
@guarded(debug=None)
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the report and the pictures.")] = Path(
        "emvc-demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the damage and of the methods.")] = 0,
    samples: Annotated[int | None, typer.Option(min=50, help="Use only the first samples of the 1797.")] = None,
) -> None:
    """Cluster handwritten digits in three views, one of which is damaged, and write a report."""
    from emvc import report
    from emvc.demo import FRACTION, run_demo

    introduction = (
        f"Handwritten digits in three views: pixels, Fourier magnitudes and gradient histograms. {FRACTION:.0%} of the "
        "samples were replaced by random values in the Fourier view. No method knows which, nor the true digits."
    )
    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"{output} exists and is not a folder.")
    out.print(introduction)
    result = run_demo(
        random_state=seed,
        n_samples=samples,
        verbose=1,
        announce=lambda name: err.print(f"[dim]running {name} ...[/dim]"),
    )
    columns = ("accuracy", "nmi", "ari", "entropy", "seconds")
    table = Table(title="Clustering of the damaged digits (entropy: less is better)")
    table.add_column("method", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    for record in result.records:
        table.add_row(record["method"], *(f"{record[name]:.3f}" for name in columns))
    out.print(table)
    model, total = result.model, int(result.damaged.sum())
    out.print(
        f"EMVC is certified: no solution can lower its objective by more than {model.duality_gap_:.2%} "
        f"({model.n_iter_} iterations). "
        f"Of the {total} samples with the largest errors in the damaged view, {result.found} are the destroyed ones "
        f"(AUC {result.detection_auc:.3f})."
    )
    images = report.draw_figures(model)
    found = (
        f"Found: of the {result.damaged.sum():,} samples that were destroyed in the Fourier view, {result.found:,} are "
        "among as many with the largest errors there."
    )
    page = report.render_report(
        model,
        title="emvc demo: digits in three views",
        introduction=f"{found} {introduction}",
        records=result.records,
    )
    files = {f"{name}.png": image for name, image in images.items()} | {"report.html": page.encode()}
    report.write_files(output, files)
    out.print(Text(f"Report: {output / 'report.html'}; pictures beside it."), soft_wrap=True)


@app.command()
@guarded(debug=None)
def reproduce(
    targets: Annotated[
        list[str] | None, typer.Argument(help="synthetic, real, noise, samples, sensitivity; all by default.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for tables, figures and records.")] = Path(
        "emvc-reproduction"
    ),
    dataset: Annotated[list[str] | None, typer.Option(help="Data sets instead of the usual ones; repeatable.")] = None,
    protocol: Annotated[
        list[str] | None, typer.Option(help="paper or honest; by default both for tables, honest for figures.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version of everything, in minutes.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes; joblib's default if not given.")] = None,
) -> None:
    """Re-run the experiments of the paper; finished ones are kept and not repeated."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from emvc import report
    from emvc._validation import check_choice
    from emvc.experiments.paper import PROTOCOLS
    from emvc.experiments.study import FULL, QUICK, TARGETS, Study
    from emvc.experiments.study import reproduce as reproduce_target

    for name in targets or []:
        check_choice(name, "target", TARGETS)
    protocols = [check_choice(name, "protocol", PROTOCOLS) for name in protocol or []]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with locked(output), Progress(*columns, console=err) as progress:
        task = progress.add_task("", total=None)

        def show(done: int, total: int, record: Any) -> None:
            what = f"{record['dataset']}, {record['method']}"
            progress.update(task, completed=done, total=total, description=what)

        study = Study(output / "records.sqlite", QUICK if quick else FULL, jobs, show)
        for target in targets or TARGETS:
            files = reproduce_target(target, study, dataset or [], protocols)
            report.write_files(output, files)
            for name in sorted(files):
                if name.endswith(".md"):
                    out.print(Text(files[name].decode()), soft_wrap=True)
    out.print(Text(f"Tables, figures and records are in {output}."), soft_wrap=True)


for command in (check, cluster, predict, board):
    command.register(app)


datasets_app = typer.Typer(help="List and fetch the real data sets.", invoke_without_command=True)
app.add_typer(datasets_app, name="datasets")


@datasets_app.callback()
@guarded(debug=None)
def list_datasets(context: typer.Context) -> None:
    """List the real data sets and whether they are on this machine."""
    if context.invoked_subcommand is not None:
        return
    from emvc.datasets import DatasetNotFoundError, available, fetch, load
    from emvc.datasets._registry import REGISTRY, SUPPLIED

    table = Table()
    for column in ("name", "samples", "views", "classes", "on disk"):
        table.add_column(column, justify="right" if column in {"samples", "classes"} else "left")
    for name in available():
        if name in SUPPLIED:
            n_samples, n_features, n_clusters = SUPPLIED[name]
            views = f"{len(n_features)}, file to be supplied"
        else:
            entry = REGISTRY[name]
            n_samples, n_clusters, views = entry.n_samples, entry.n_clusters, ", ".join(entry.view_names)
        try:
            (load if name in SUPPLIED else fetch)(name, download=False)
            found = "yes"
        except DatasetNotFoundError:
            found = "no"
        except ValueError:
            found = "damaged"
        table.add_row(name, str(n_samples), views, str(n_clusters), found)
    out.print(table)


@datasets_app.command("fetch")
@guarded(debug=None)
def fetch_datasets(
    names: Annotated[list[str], typer.Argument(help="Names of data sets, or 'all'.")],
    data_home: Annotated[Path | None, typer.Option(help="Folder to download into.")] = None,
) -> None:
    """Download data sets into the cache folder and verify them."""
    from emvc.datasets import load
    from emvc.datasets._registry import REGISTRY

    for name in REGISTRY if names == ["all"] else names:
        out.print(Text(repr(load(name, data_home, progress=True))), soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    words = [str(word) for word in (sys.argv[1:] if arguments is None else arguments)]
    app(args=words, obj=words)
