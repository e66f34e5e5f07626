"""A self-contained HTML page about a fitted model: model -> plain dict -> template -> text."""

from __future__ import annotations

import base64
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from emvc import plot
from emvc._version import __version__

FIGURES = {
    "embedding": (plot.embedding, "Samples in the plane of the embedding, coloured by cluster."),
    "consensus": (plot.consensus, "The shared chain, samples ordered by cluster: dark blocks are clusters."),
    "errors": (plot.errors, "How suspicious each sample is, by view: 0 is usual, 1 is wrong."),
    "convergence": (plot.convergence, "Duality gap along the iterations, and the certified one at the end."),
}


def draw_figures(model: Any) -> dict[str, bytes]:
    """Return the four standard figures of a model as PNG images."""
    from matplotlib.figure import Figure

    images = {}
    for name, (draw, _) in FIGURES.items():
        figure = Figure(figsize=(5.2, 4.2), layout="constrained")
        draw(model, figure.subplots())
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130)
        images[name] = buffer.getvalue()
    return images


def describe(model: Any, *, n_worst: int = 20) -> dict[str, Any]:
    """Return what the report says about a model, as plain data."""
    sizes = np.bincount(model.labels_[model.labels_ >= 0], minlength=model.n_clusters_)
    found = model.error_report(n_worst)
    return {
        "version": __version__,
        "n_samples": len(model.labels_),
        "n_clusters": int(model.n_clusters_),
        "cluster_sizes": sizes.tolist(),
        "views": [
            {"name": name, "error": float(error)}
            for name, error in zip(model.view_names_, model.view_errors_, strict=True)
        ],
        "worst": [
            {
                "sample": entry.sample,
                "cluster": int(model.labels_[entry.sample]),
                "view": entry.view,
                "error": entry.error,
                "reason": entry.reason,
                "condemned": entry.condemned,
            }
            for entry in found.samples
        ],
        "n_condemned": int(model.outliers_.any(axis=1).sum()),
        "status": model.status_,
        "gap": float(model.duality_gap_),
        "n_iter": int(model.n_iter_),
        "rank": int(model.rank_),
        "beta": float(model.beta_),
        "lam": float(model.lam_),
        "settings": {name: repr(value) for name, value in sorted(model.get_params().items())},
    }


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def render(
    content: Mapping[str, Any],
    images: Mapping[str, bytes],
    *,
    title: str,
    introduction: str = "",
    records: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the HTML page.

    Parameters
    ----------
    content : dict
        From `describe`.
    images : dict
        From `draw_figures`.
    title, introduction : str
        Plain text.
    records : sequence of dict
        Rows of an optional table of methods: the key ``method`` and numbers.
    """
    worst_view = max(content["views"], key=lambda view: view["error"])
    summary = (
        f"{content['n_samples']} samples in {len(content['views'])} views fall into {content['n_clusters']} clusters. "
        f"{content['n_condemned']} of them were left out of a view that shows them wrongly. The other views confirm "
        f"least of the view {worst_view['name']!r}: {1 - worst_view['error']:.0%} of its transitions. The solver "
        f"{content['status']} after {content['n_iter']} iterations; no solution can lower the objective by more than "
        f"{content['gap']:.2%}."
    )
    comparison = ""
    if records:
        names = [name for name in records[0] if name != "method"]
        rows = [[record["method"], *(f"{record[name]:.3f}" for name in names)] for record in records]
        comparison = "<h2>Methods</h2>" + _table(["method", *names], rows)
    figures = "".join(
        f"<figure><img alt='{escape(caption)}' src='data:image/png;base64,{base64.b64encode(images[name]).decode()}'>"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for name, (_, caption) in FIGURES.items()
    )
    worst_rows = [
        [
            str(row["sample"]),
            str(row["cluster"]),
            row["view"],
            f"{row['error']:.3f}",
            row["reason"] + (", left out" if row["condemned"] else ""),
        ]
        for row in content["worst"]
    ]
    settings = content["settings"] | {"beta_": f"{content['beta']:.4g}", "lam_": f"{content['lam']:.4g}"}
    template = resources.files("emvc").joinpath("report_template.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=escape(title),
        introduction=f"<p>{escape(introduction)}</p>" if introduction else "",
        summary=escape(summary),
        comparison=comparison,
        figures=figures,
        clusters=_table(
            ["cluster", "samples"], [[str(k), str(size)] for k, size in enumerate(content["cluster_sizes"])]
        ),
        views=_table(["view", "mean error"], [[view["name"], f"{view['error']:.3f}"] for view in content["views"]]),
        worst=_table(["sample", "cluster", "view", "error", "why"], worst_rows),
        settings=_table(["setting", "value"], [[name, value] for name, value in settings.items()]),
        version=escape(content["version"]),
    )


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    sample_ids: Sequence[str] | None = None,
    title: str | None = None,
    join_notes: Sequence[str] | None = None,
) -> None:
    """Write the page about a fitted `emvc.EMVC` to a file."""
    content = describe(model)
    if sample_ids is not None:
        content["worst"] = [row | {"sample": sample_ids[row["sample"]]} for row in content["worst"]]
    page = render(content, draw_figures(model), title=title or "emvc report", introduction=" ".join(join_notes or ()))
    path = Path(path)
    write_files(path.parent, {path.name: page.encode()})


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files so that each appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            os.chmod(temporary, 0o644)
            os.replace(temporary, folder / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
