"""The command `emvc predict`: clusters of new samples by a saved model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from emvc._output import write_file
from emvc._terminal import Console, csv_bytes
from emvc.cli.options import (
    ConfigFile,
    Debug,
    Files,
    Header,
    IdColumn,
    MatchIds,
    SafeCsv,
    Transpose,
    guarded,
    model_file,
    reading,
)

out = Console()


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(predict)


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model of 'emvc cluster', or its folder.")],
    views: Files,
    output: Annotated[Path, typer.Option("--output", "-o", help="The table to write.")] = Path("labels.csv"),
    config: ConfigFile = None,
    id_column: IdColumn = None,
    header: Header = None,
    transpose: Transpose = None,
    match_ids: MatchIds = "exact",
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier table.")] = False,
    safe_csv: SafeCsv = False,
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
        fitted = load(model_file(model))
        if not hasattr(fitted, "predict"):
            raise ValueError(f"{model} is a {type(fitted).__name__}, which cannot place new samples.")
        how = reading(config, views, id_column=id_column, header=header, transpose=transpose, match_ids=match_ids)
        joined = read_views(views, **how)
        arranged = arrange(joined.views, fitted, len(joined.sample_ids))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            labels = fitted.predict(arranged)
            confidence = fitted.predict_proba(arranged).max(axis=1) if hasattr(fitted, "predict_proba") else None
        write_table(output, joined.sample_ids, labels, confidence, safe=safe_csv)
        if quiet:
            return
        out.print(Text(f"{len(labels)} samples: labels are in {output}."), soft_wrap=True)
        for note in dict.fromkeys([*joined.notes, *(str(warning.message) for warning in caught)]):
            out.print(Text(f"note: {note}"), soft_wrap=True)


def arrange(views: Mapping[str, Any], model: Any, n_samples: int) -> dict[str, Any]:
    """Return views in the order of the fit, without values where one is absent.

    Raises
    ------
    ValueError
        If the model does not know a view.
    """
    known = list(model.view_names_)
    unknown = [name for name in views if name not in known]
    absent = [name for name in known if name not in views]
    if unknown:
        raise ValueError(
            f"The model has no view {unknown[0]!r}; it has {', '.join(map(repr, known))}. Name the files so, or say "
            f"{(absent or known)[0]}=FILE."
        )
    index = next((view.index for view in views.values() if hasattr(view, "iloc")), None)
    return {name: views[name] if name in views else _nothing(model, name, n_samples, index) for name in known}


def _nothing(model: Any, name: str, n_samples: int, index: Any) -> Any:
    """Return a view without any value."""
    import numpy as np
    import pandas as pd

    columns = model.feature_names_in_.get(name)
    if columns is not None:
        return pd.DataFrame(np.full((n_samples, len(columns)), np.nan), columns=list(columns), index=index)
    width = model._training.views[model.view_names_.index(name)].shape[1]
    return np.full((n_samples, width), np.nan)


def write_table(path: Path, names: Sequence[str], labels: Any, confidence: Any, *, safe: bool = False) -> None:
    """Write sample, label and confidence; the file appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = ["sample", "label", *([] if confidence is None else ["confidence"])]
    rows = (
        [name, int(label), *([] if confidence is None else [f"{confidence[i]:.4f}"])]
        for i, (name, label) in enumerate(zip(names, labels, strict=True))
    )
    write_file(path, csv_bytes([header, *rows], safe=safe))
