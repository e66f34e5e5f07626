"""The command `emvc predict`: clusters of new samples by a saved model."""

from __future__ import annotations

import csv
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from emvc.cli_cluster import ConfigFile, Debug, Files, Header, IdColumn, MatchIds, Transpose, guarded, reading

out = Console()


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(predict)


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that 'emvc cluster' has written.")],
    views: Files,
    output: Annotated[Path, typer.Option("--output", "-o", help="The table to write.")] = Path("labels.csv"),
    config: ConfigFile = None,
    id_column: IdColumn = None,
    header: Header = None,
    transpose: Transpose = None,
    match_ids: MatchIds = "exact",
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    debug: Debug = False,
) -> None:
    """Give new samples the clusters of a model, and say how sure it is of each.

    Views are matched by their names, columns by theirs: call the files as those of the fit (gene.csv), or say
    gene=new.csv. A view may be absent if others are there.
    """
    with guarded(debug=debug):
        from emvc.files import read_views
        from emvc.persistence import load

        if output.exists() and not force:
            raise FileExistsError(f"{output} exists; choose another name, or --force to replace it.")
        fitted = load(model)
        if not hasattr(fitted, "predict"):
            raise ValueError(f"{model} is a {type(fitted).__name__}, which cannot place new samples.")
        how = reading(config, views, id_column=id_column, header=header, transpose=transpose, match_ids=match_ids)
        joined = read_views(views, **how)
        arranged = arrange(joined.views, fitted.view_names_, len(joined.sample_ids), widths(fitted))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            labels = fitted.predict(arranged)
            confidence = fitted.predict_proba(arranged).max(axis=1) if hasattr(fitted, "predict_proba") else None
        write_table(output, joined.sample_ids, labels, confidence)
        if quiet:
            return
        out.print(Text(f"{len(labels)} samples: labels are in {output}."), soft_wrap=True)
        for note in dict.fromkeys([*joined.notes, *(str(warning.message) for warning in caught)]):
            out.print(Text(f"note: {note}"), soft_wrap=True)


def widths(model: Any) -> dict[str, Any]:
    """Return the names of the columns of each view of a model, where it knows them."""
    return {name: list(columns) for name, columns in getattr(model, "feature_names_in_", {}).items()}


def arrange(
    views: Mapping[str, Any], wanted: Sequence[str], n_samples: int, columns: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return views in the order of the fit, without values where one is absent.

    Raises
    ------
    ValueError
        If a view is unknown, or one is absent whose columns nobody knows.
    """
    import numpy as np
    import pandas as pd

    unknown = [name for name in views if name not in wanted]
    absent = [name for name in wanted if name not in views]
    if unknown:
        raise ValueError(
            f"The model has no view {unknown[0]!r}; it has {', '.join(map(repr, wanted))}. Name the files so, or say "
            f"{(absent or list(wanted))[0]}=FILE."
        )
    index = next((view.index for view in views.values() if hasattr(view, "index")), None)
    arranged = dict(views)
    for name in absent:
        if name not in columns:
            raise ValueError(f"There is no file for view {name!r}, and the model does not know its columns.")
        empty = np.full((n_samples, len(columns[name])), np.nan)
        arranged[name] = pd.DataFrame(empty, columns=list(columns[name]), index=index)
    return {name: arranged[name] for name in wanted}


def write_table(path: Path, names: Sequence[str], labels: Any, confidence: Any) -> None:
    """Write sample, label and confidence; the file appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, hidden = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(["sample", "label", *([] if confidence is None else ["confidence"])])
            for i, (name, label) in enumerate(zip(names, labels, strict=True)):
                writer.writerow([name, int(label), *([] if confidence is None else [f"{confidence[i]:.4f}"])])
        Path(hidden).chmod(0o644)
        os.replace(hidden, path)
    except BaseException:
        Path(hidden).unlink(missing_ok=True)
        raise
