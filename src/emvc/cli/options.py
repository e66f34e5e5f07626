"""What several commands share: which files to read and how, and what errors look like."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from emvc._terminal import Console

err = Console(stderr=True)

_INTERRUPTED = 130  # what shells report for Ctrl-C
_ERRORS = (OSError, ValueError, TypeError, MemoryError, ImportError)
_READING = "Reading files"  # a part of the help


@contextmanager
def guarded(*, debug: bool | None) -> Iterator[None]:
    """Turn errors of the user into one line and exit code 1, and Ctrl-C into a message and exit code 130.

    Errors of the package are one line as well, if the command has an option that shows more: else ``debug`` is None.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        err.print(Text(f"Interrupted. {interrupt}".strip()), soft_wrap=True)
        raise typer.Exit(_INTERRUPTED) from None
    except typer.Exit:
        raise
    except Exception as error:
        expected = isinstance(error, _ERRORS)
        if debug or (debug is None and not expected):
            raise
        message = " ".join((str(error) or type(error).__name__).split())
        if not expected:
            message = f"{type(error).__name__}: {message} (this is not your fault; --debug shows where it comes from)"
        err.print("[red]error:[/red]", Text(message), soft_wrap=True)
        raise typer.Exit(1) from None


def model_file(path: Path) -> Path:
    """Return the file of a model that is given as such, or as the folder of a result."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if not path.is_dir():
        return path
    if not (path / "model.emvc").exists():
        raise FileNotFoundError(f"{path} is a folder without a model.emvc: it is no result of 'emvc cluster'.")
    return path / "model.emvc"


def _check_match(value: str) -> str:
    if value not in ("exact", "loose"):
        raise typer.BadParameter(f"{value!r} is neither 'exact' nor 'loose'.")
    return value


def use_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take the options of a command from a file in TOML, where the command line does not give them."""
    if path is None or context.resilient_parsing:
        return path
    from emvc.files import read_config

    with guarded(debug=False):
        config = read_config(path)
        known = {parameter.name for parameter in context.command.params} - {"config", "views"}
        unknown = sorted(set(config.options) - {str(name) for name in known})
        if unknown:
            raise ValueError(f"{path.name}: 'emvc {context.info_name}' has no option {unknown[0].replace('_', '-')!r}.")
        output = config.options.get("output")
        if isinstance(output, str):
            config.options["output"] = str(path.parent / output)
    context.default_map = {**config.options, **({"views": config.paths} if config.paths else {})}
    return path


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="VIEW...",
        help="Files with one view each: tables (.csv, .tsv, .txt, also .gz; .xlsx, .parquet) or arrays (.npy, .npz, "
        ".mat, .h5ad, .h5mu, .h5, .hdf5, .zarr). FILE::NAME is one sheet or array of a file, NAME=FILE names the view.",
        show_default=False,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        help="Column of the sample ids, which say which rows of different files are the same; found out by default.",
        rich_help_panel=_READING,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether text files start with the names of columns; found out by default.",
        rich_help_panel=_READING,
    ),
]
Transpose = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VIEW",
        help="A view with features in rows and samples in columns; repeatable.",
        rich_help_panel=_READING,
    ),
]
MatchIds = Annotated[
    str,
    typer.Option(
        metavar="exact|loose",
        callback=_check_match,
        help="loose: ids may differ in case, '.', '-', '_', blanks and leading zeros.",
        rich_help_panel=_READING,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        callback=use_config,
        is_eager=True,
        help="Files, how to read each, and options of this command, in TOML; 'emvc check --write-config' writes one.",
        rich_help_panel=_READING,
    ),
]
SafeCsv = Annotated[
    bool,
    typer.Option("--safe-csv", help="Put an apostrophe before names that a spreadsheet would take for formulas."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]


def reading(config: Path | None, files: Sequence[str], **options: Any) -> dict[str, Any]:
    """Return options for `emvc.files.read_views`, with what a config says about the files."""
    from emvc.files import read_config

    each = read_config(config).each if config is not None else {}
    given = {one.rpartition("=")[2] for one in files} | set(files)
    options["transpose"] = options.get("transpose") or ()
    return {**options, "options": {path: how for path, how in each.items() if path in given}}


def command_line(context: typer.Context) -> str | None:
    """Return the command that is running as it was typed, None if it was not typed."""
    words = context.find_root().obj
    return shlex.join(["emvc", *words]) if words else None
