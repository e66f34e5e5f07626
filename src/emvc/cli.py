"""Command line: parse, call, print."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from emvc._version import __version__

app = typer.Typer(
    name="emvc",
    help="Error-robust multi-view clustering.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out = Console()
err = Console(stderr=True)

_INTERRUPTED = 130  # what shells report for Ctrl-C


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors of the user into one line and exit code 1, and Ctrl-C into a message and exit code 130."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt as interrupt:
            err.print(f"Interrupted. {interrupt}".strip(), soft_wrap=True)
            raise typer.Exit(_INTERRUPTED) from None
        except (OSError, ValueError, TypeError, MemoryError) as error:
            err.print("[red]error:[/red]", Text(str(error)), soft_wrap=True)
            raise typer.Exit(1) from None

    return run


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
@_guarded
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
    columns = ("accuracy", "nmi", "ari", "f_score", "entropy", "seconds")
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
    page = report.render(
        report.describe(model),
        images,
        title="emvc demo: digits in three views",
        introduction=introduction,
        records=result.records,
    )
    files = {f"{name}.png": image for name, image in images.items()} | {"report.html": page.encode()}
    report.write_files(output, files)
    out.print(Text(f"Report: {output / 'report.html'}; pictures beside it."), soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    app(args=arguments)
