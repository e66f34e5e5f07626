"""The commands for a user's own files: `emvc cluster` and `emvc report`; see also check and predict."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from emvc._output import new_results
from emvc._terminal import Console, csv_bytes
from emvc.cli import explain
from emvc.cli.options import (
    ConfigFile,
    Debug,
    Files,
    Header,
    IdColumn,
    MatchIds,
    SafeCsv,
    Transpose,
    command_line,
    guarded,
    model_file,
    reading,
)

out = Console()
err = Console(stderr=True)

FILES = ("labels.csv", "report.html", "model.emvc", *explain.FILES)
"""What `emvc cluster` writes."""

_LATER = ("model.html", "comparison.html")  # what `emvc report` adds unless told another place

_MOST_ASSESSED = 3000  # samples; more are assessed if asked for
_ONE_HOT = "--one-hot has no effect any more: columns of text are recognised and encoded by themselves."


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(cluster)
    app.command("report")(write_report)


def _number_or_auto(kind: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    def parse(value: str) -> Any:
        if value == "auto":
            return value
        try:
            return kind(value)
        except ValueError:
            raise typer.BadParameter(f"{value!r} is neither {what} nor 'auto'.") from None

    return parse


def _check_outliers(value: str) -> str:
    if value not in ("assign", "label"):
        raise typer.BadParameter(f"{value!r} is neither 'assign' nor 'label'.")
    return value


def _check_device(value: str) -> str:
    if value != "cpu":
        raise typer.BadParameter(f"{value!r} is not available; only 'cpu' is.")
    return value


_count = _number_or_auto(int, "an integer")
_weight = _number_or_auto(float, "a number")


def cluster(
    context: typer.Context,
    views: Files,
    clusters: Annotated[
        Any,
        typer.Option(
            "--clusters", "-k", parser=_count, metavar="K|auto", help="How many clusters; auto chooses, and may say 1."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path("emvc-result"),
    config: ConfigFile = None,
    id_column: IdColumn = None,
    header: Header = None,
    transpose: Transpose = None,
    match_ids: MatchIds = "exact",
    one_hot: Annotated[bool, typer.Option("--one-hot", hidden=True, help="Without effect.")] = False,
    beta: Annotated[
        Any,
        typer.Option(
            parser=_weight,
            metavar="NUMBER|auto",
            help="Weight of errors of whole samples in the model of the paper.",
            rich_help_panel="Method",
        ),
    ] = "auto",
    lam: Annotated[
        Any,
        typer.Option(
            parser=_weight,
            metavar="NUMBER|auto",
            help="Weight of its errors of single states.",
            rich_help_panel="Method",
        ),
    ] = "auto",
    tol: Annotated[
        float, typer.Option(min=1e-12, help="Relative duality gap at which the solver stops.", rich_help_panel="Method")
    ] = 1e-3,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of all that is random: same seed, same labels.", rich_help_panel="Method")
    ] = 0,
    outliers: Annotated[
        str,
        typer.Option(
            callback=_check_outliers,
            help="What samples get whose views are all wrong: 'assign' a cluster or 'label' -1.",
            rich_help_panel="Method",
        ),
    ] = "assign",
    landmarks: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Number of landmarks for many samples. Data in .npy, .parquet, .h5, .hdf5 or .zarr then stay on disk "
            "(needs the extra 'dask').",
            rich_help_panel="Method",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Dask scheduler to compute on, with --landmarks.", rich_help_panel="Method"
        ),
    ] = None,
    assess: Annotated[
        bool | None,
        typer.Option(
            "--assess/--no-assess",
            help="Test for structure and stability by repeated fits; by default for up to 3,000 samples in memory.",
        ),
    ] = None,
    annotate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Table about the samples, not used for clustering: compared with the clusters."
        ),
    ] = None,
    split: Annotated[
        bool,
        typer.Option("--split", help="Valid p-values of markers: each view is tested against the others' clusters."),
    ] = False,
    name_clusters: Annotated[
        bool, typer.Option("--name-clusters", help="Name clusters after their strongest annotation.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Threads; as many as the libraries like by default.", rich_help_panel="Method")
    ] = None,
    device: Annotated[
        str, typer.Option(callback=_check_device, help="Where to compute.", rich_help_panel="Method")
    ] = "cpu",
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier result.")] = False,
    safe_csv: SafeCsv = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Cluster samples from files, and write labels, a report and the model.

    A view is one table about the samples: genes in one file, proteins in another, images in a third. Samples are rows,
    matched by their ids; a sample may be missing in some views. Files are read as they are: what was guessed is said,
    and 'emvc check VIEW...' says it before anything is computed. New samples get clusters by 'emvc predict'.
    """
    del device
    options = {"beta": beta, "lam": lam, "tol": tol, "random_state": seed, "outliers": outliers, "n_jobs": jobs}
    if landmarks is not None:
        options["n_landmarks"] = landmarks
    started = time.perf_counter()
    with guarded(debug=debug), new_results(output, (*FILES, *_LATER), force=force) as folder:
        from emvc.estimators._base import limit_threads
        from emvc.files import column_notes, read_views
        from emvc.method.landmarks import rows_per_block

        silent = quiet or as_json
        chunks = None if landmarks is None else rows_per_block(landmarks)
        if scheduler is not None and landmarks is None:
            raise ValueError("--scheduler needs --landmarks: only these are distributed.")
        how = reading(config, views, id_column=id_column, header=header, transpose=transpose, match_ids=match_ids)
        with _status("reading", silent=silent):
            joined = read_views(views, chunks=chunks, **how)
        announce_compilation(silent=silent)
        with _connected(scheduler, joined):
            model, notes = _fit(joined, clusters, options, verbose=0 if silent or not err.is_terminal else 1)
        notes = [*joined.notes, *column_notes(getattr(model, "intake_", [])), *([_ONE_HOT] if one_hot else []), *notes]
        assessment = _assess(joined, model, assess, verbose=0 if silent or not err.is_terminal else 1)
        with _status("writing", silent=silent), limit_threads(jobs):
            explained = explain.explain_clusters(joined, model, annotate, split=split, assessment=assessment)
            findings = _write_results(
                folder,
                model,
                joined,
                notes,
                assessment,
                explained,
                name_clusters=name_clusters,
                safe=safe_csv,
                command=command_line(context),
            )
    summary = _summarize(model, output, notes, findings, time.perf_counter() - started)
    summary["explanation"] = explain.explanation_lines(explained)
    if as_json:
        typer.echo(json.dumps(summary))
    elif not quiet:
        _print_summary(summary)


def announce_compilation(*, silent: bool) -> None:
    """Say on a terminal that the first use takes longer, if nothing was compiled before."""
    if silent or not err.is_terminal:
        return
    from emvc.kernels import rows

    dispatcher = next(value for value in vars(rows).values() if hasattr(value, "stats"))
    cached = Path(dispatcher.stats.cache_path or "nowhere").glob("rows.*.nbi")
    newest = max((path.stat().st_mtime for path in cached), default=0.0)
    if newest < Path(rows.__file__).stat().st_mtime:
        err.print(Text("compiling, once, about 20 s ...", style="dim"))


@contextmanager
def _status(what: str, *, silent: bool) -> Iterator[None]:
    """Show a spinner on terminals."""
    if silent or not err.is_terminal:
        yield
        return
    with err.status(f"{what} ..."):
        yield


@contextmanager
def _connected(scheduler: str | None, joined: Any) -> Iterator[None]:
    """Connect to a Dask cluster, if one is named."""
    if scheduler is None:
        yield
        return
    from emvc._validation import has_dask
    from emvc.distributed import connect

    if not has_dask(joined.views):
        raise ValueError(f"--scheduler needs data that stay on disk. {joined.notes[0]}")
    with connect(scheduler):
        yield


def _fit(joined: Any, clusters: int | str, options: dict[str, Any], *, verbose: int) -> tuple[Any, list[str]]:
    """Return the fitted model, and warnings as notes."""
    import numpy as np

    from emvc._validation import has_dask
    from emvc.distributed import gather
    from emvc.estimators import EMVC

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = EMVC(clusters, verbose=verbose, **options).fit(joined.views)
        if has_dask(joined.views):
            gather(model)
    if joined.has_ids:
        model.sample_names_ = np.array(joined.sample_ids)
    return model, list(dict.fromkeys(str(warning.message) for warning in caught))


def _assess(joined: Any, model: Any, wanted: bool | None, *, verbose: int) -> Any:
    """Return the assessment of the clusters, None if it is not wanted or would take long."""
    from emvc._validation import has_dask

    possible = not has_dask(joined.views) and not hasattr(model, "landmarks_")
    if wanted and not possible:
        raise ValueError("--assess needs data in memory and no landmarks.")
    if not (possible and len(model.labels_) <= _MOST_ASSESSED if wanted is None else wanted):
        return None
    from emvc.assessment import assess

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said once, by the fit
        return assess(joined.views, model, verbose=verbose)


def _write_results(
    folder: Path,
    model: Any,
    joined: Any,
    notes: Sequence[str],
    assessment: Any,
    explained: Any,
    *,
    name_clusters: bool,
    safe: bool,
    command: str | None,
) -> list[dict[str, Any]]:
    """Write all files; return what was found."""
    from emvc import report
    from emvc.findings import find

    findings, sample_ids = find(model, assessment), joined.sample_ids
    names = explained.names() if name_clusters and explained is not None else ()
    write_labels(folder / "labels.csv", model, sample_ids, assessment, findings, names=names, safe=safe)
    model.save(folder / "model.emvc")
    title = f"Clusters of {len(sample_ids)} samples in {', '.join(model.view_names_)}"
    report.write_report(
        model,
        folder / "report.html",
        sample_ids=sample_ids,
        title=title,
        join_notes=notes,
        assessment=assessment,
        explanation=explained,
        name_clusters=name_clusters,
        code=command,
    )
    report.write_files(folder, explain.explanation_files(model, explained, assessment, safe=safe))
    return [finding.as_dict() for finding in findings]


def write_labels(
    path: Path,
    model: Any,
    sample_ids: Sequence[str],
    assessment: Any = None,
    findings: Sequence[Any] = (),
    *,
    names: Sequence[str] = (),
    safe: bool = False,
) -> None:
    """Write id, label, errors, flags, stability and findings of each sample; flags are 0 or 1, the missing is empty.

    The last column is the name of the cluster, if clusters have names.
    """
    from emvc.results import result_columns

    columns = result_columns(model)
    if assessment is not None:
        columns["stability"] = assessment.sample_stability
    told: list[list[str]] = [[] for _ in sample_ids]
    for finding in findings:
        for sample in finding.samples:
            told[sample].append(finding.text)
    rows = zip(sample_ids, told, *columns.values(), strict=True)
    cells = ([name, *map(_cell, values), " ".join(texts)] for name, texts, *values in rows)
    table = [["sample", *columns, "findings"], *cells]
    if names:
        called = ["name", *(names[label] if label >= 0 else "" for label in model.labels_)]
        table = [[*row, name] for row, name in zip(table, called, strict=True)]
    path.write_bytes(csv_bytes(table, safe=safe))


def _cell(value: Any) -> Any:
    if value.dtype.kind == "f":
        return "" if math.isnan(value) else f"{value:.4f}"
    return int(value)


def _summarize(
    model: Any, output: Path, notes: list[str], findings: list[dict[str, Any]], seconds: float
) -> dict[str, Any]:
    return {
        "output": str(output),
        "files": {name: str(output / name) for name in FILES if (output / name).exists()},
        "n_samples": len(model.labels_),
        "n_clusters": int(model.n_clusters_),
        "cluster_sizes": [int((model.labels_ == c).sum()) for c in range(model.n_clusters_)],
        "n_outliers": int((model.labels_ < 0).sum()),
        "views": [
            {"name": name, "reliability": 1 - float(error), "weight": float(weight), "left_out": int(left_out)}
            for name, error, weight, left_out in model.error_report(0).views
        ],
        "status": model.status_,
        "duality_gap": float(model.duality_gap_),
        "findings": findings,
        "notes": notes,
        "seconds": round(seconds, 3),
    }


def _print_summary(summary: dict[str, Any]) -> None:
    sizes = ", ".join(map(str, summary["cluster_sizes"]))
    many = "1 cluster" if summary["n_clusters"] == 1 else f"{summary['n_clusters']} clusters of {sizes}"
    out.print(f"{summary['n_samples']} samples in {many}.", soft_wrap=True)
    for finding in summary["findings"]:
        style = "bold yellow" if finding["severity"] == "warning" else ""
        told = Text(f"{finding['severity']}: {finding['text']}", style=style)
        out.print(told.append(f" {finding['advice']}", style="not bold"), soft_wrap=True)
    table = Table()
    for column in ("view", "reliability", "weight", "left out"):
        table.add_column(column, justify="left" if column == "view" else "right")
    for view in summary["views"]:
        numbers = (f"{view['reliability']:.2f}", f"{view['weight']:.2f}", str(view["left_out"]))
        table.add_row(escape(view["name"]), *numbers)
    out.print(table)
    for line in summary["explanation"]:
        out.print(Text(line), soft_wrap=True)
    for note in summary["notes"]:
        out.print(Text(f"note: {note}"), soft_wrap=True)
    out.print(Text(f"Labels, report and model are in {summary['output']}."), soft_wrap=True)


def write_report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model of 'emvc cluster', or its folder.")],
    other: Annotated[
        Path | None, typer.Argument(metavar="[OTHER]", help="Another model: compare the two, see who moved.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; beside the model by default.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    """Write the report of a saved model, or a comparison of two."""
    with guarded(debug=debug):
        from emvc import report
        from emvc.persistence import load

        if other is not None:
            path = explain.write_comparison(model, other, output)
            out.print(Text(f"Comparison: {path}"), soft_wrap=True)
            return
        model = model_file(model)
        fitted = load(model)
        if not hasattr(fitted, "sample_errors_"):
            raise ValueError(f"{model} is a {type(fitted).__name__}; there are reports about EMVC only.")
        path = output or model.with_suffix(".html")
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder, not a file.")
        names = getattr(fitted, "sample_names_", range(len(fitted.labels_)))
        title = f"Clusters of {len(fitted.labels_)} samples in {', '.join(fitted.view_names_)}"
        explained = explain.explain_saved(fitted)
        report.write_report(fitted, path, sample_ids=[str(name) for name in names], title=title, explanation=explained)
        out.print(Text(f"Report: {path}"), soft_wrap=True)
