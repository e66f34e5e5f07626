"""The command `emvc check`: what is in files, and the command that clusters them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from emvc._output import write_file
from emvc._terminal import Console
from emvc.cli.options import ConfigFile, Debug, Files, Header, IdColumn, MatchIds, Transpose, guarded, reading

out = Console()


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(check)


def check(
    views: Files,
    config: ConfigFile = None,
    id_column: IdColumn = None,
    header: Header = None,
    transpose: Transpose = None,
    match_ids: MatchIds = "exact",
    write: Annotated[
        Path | None, typer.Option("--write-config", help="Write what was found as a file for 'emvc cluster --config'.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Look at files without clustering them: what is in them, which samples they share, and the command to use.

    Nothing is computed or changed. The exit code is 1 if the files cannot be clustered as they are.
    """
    with guarded(debug=debug):
        from emvc import files

        how = reading(config, views, id_column=id_column, header=header, transpose=transpose, match_ids=match_ids)
        found = files.check(views, config=str(config) if config is not None else None, **how)
        if write is not None:
            if write.exists():
                raise FileExistsError(f"{write} exists; choose another name for the config.")
            text = files.as_config(found, views, write.parent)
            write_file(write, text.encode())
        if as_json:
            typer.echo(json.dumps(found.as_dict()))
        else:
            _print(found, write)
        if found.problems:
            raise typer.Exit(1)


def _print(found: Any, write: Path | None) -> None:
    out.print(_profiles(found.views)) if found.views else None
    if len(found.views) > 1 and found.presence:
        out.print(_presence(found))
    for view in found.views:
        for text in view.columns:
            _say("note", text)
    for text in found.notes:
        _say("note", text)
    for text in found.warnings:
        _say("warning", text, style="bold yellow")
    for text in found.problems:
        _say("error", text, style="bold red")
    if write is not None:
        out.print(Text(f"Written: {write}. Use: emvc cluster --config {write} -k auto -o result"), soft_wrap=True)
    elif found.command:
        out.print(Text(f"Use: {found.command}"), soft_wrap=True)


def _say(what: str, text: str, *, style: str = "") -> None:
    out.print(Text(f"{what}: ", style=style).append(text, style="not bold"), soft_wrap=True)


def _profiles(views: Any) -> Table:
    table = Table()
    for column in ("view", "samples", "columns", "types", "features", "missing", "first id"):
        table.add_column(column, justify="right" if column in {"samples", "columns", "features", "missing"} else "left")
    for view in views:
        table.add_row(
            escape(view.name),
            str(view.n_samples),
            str(view.n_columns),
            ", ".join(f"{kind} {count}" for kind, count in view.types.items()),
            str(view.n_features),
            f"{view.missing:.1%}",
            escape(view.ids[0]) if view.ids else "none",
        )
    return table


def _presence(found: Any) -> Table:
    """Return a table of which views have how many samples in common."""
    names = [view.name for view in found.views]
    table = Table(title=f"{found.n_samples} samples: in which views", title_justify="left")
    for name in names:
        table.add_column(escape(name), justify="center")
    table.add_column("samples", justify="right")
    table.add_column("")
    for combination in found.presence:
        record: Mapping[str, Any] = combination
        marks = ["●" if name in record["views"] else "·" for name in names]
        bar = "█" * max(round(20 * record["n_samples"] / max(found.n_samples, 1)), 1)
        table.add_row(*marks, str(record["n_samples"]), bar)
    return table
