"""A self-contained HTML page about a fitted model: model -> plain data -> template -> text.

The page needs no network and no library; it holds its data as quantised arrays, so that it stays small enough to be
sent by mail.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from emvc import plot
from emvc._output import write_file
from emvc.report._compare import render_comparison
from emvc.report._content import describe
from emvc.report._page import render_page

__all__ = ["describe", "draw_figures", "render_comparison", "render_report", "write_files", "write_report"]

FIGURES = {
    "embedding": plot.embedding,
    "consensus": plot.consensus,
    "errors": plot.errors,
    "convergence": plot.convergence,
}


def render_report(
    model: Any,
    *,
    sample_ids: Sequence[Any] | None = None,
    title: str | None = None,
    join_notes: str | Sequence[str] | None = None,
    selection: Any = None,
    assessment: Any = None,
    explanation: Any = None,
    name_clusters: bool = False,
    introduction: str = "",
    records: Sequence[Mapping[str, Any]] = (),
    code: str | None = None,
) -> str:
    """Return an HTML page about a fitted model.

    Parameters
    ----------
    model : estimator
        A fitted `emvc.EMVC` or any other fitted estimator of this package; panels that it has nothing for are left out.
    sample_ids : sequence, optional
        Names of the samples; their positions if not given.
    title : str, optional
        Heading of the page.
    join_notes : str or sequence of str, optional
        What happened when the views were joined, one sentence each.
    selection : Selection, optional
        From `emvc.select`: adds the evidence for the weights and for the number of clusters.
    assessment : Assessment, optional
        From `emvc.assess`: adds what the clusters are worth.
    explanation : Explanation, optional
        From `emvc.explain`: adds a card for each cluster, markers and annotations.
    name_clusters : bool
        Whether clusters are named after their strongest annotation; in the page they can be renamed.
    introduction : str
        A paragraph before the summary.
    records : sequence of dict
        Rows of an optional table of methods: the key ``method`` and numbers.
    code : str, optional
        The code or command that repeats the run; written from the settings of the model if not given.

    Raises
    ------
    TypeError
        If the model is not fitted.
    ValueError
        If there is not one name per sample.

    Examples
    --------
    >>> from emvc import KernelAddition
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=20, random_state=0)
    >>> page = render_report(KernelAddition(2, random_state=0).fit(data.views), title="Two clusters")
    >>> page.startswith("<!doctype html>"), "Two clusters" in page
    (True, True)
    """
    content = describe(
        model,
        sample_ids=sample_ids,
        selection=selection,
        assessment=assessment,
        explanation=explanation,
        name_clusters=name_clusters,
    )
    notes = [join_notes] if isinstance(join_notes, str) else list(join_notes or ())
    if getattr(model, "intake_", None):
        from emvc.files import column_notes  # which brings pandas

        notes += [note for note in column_notes(model.intake_) if note not in notes]
    return render_page(
        content,
        title=title or f"{content['method']} report: {content['n_samples']:,} samples",
        introduction=introduction,
        notes=notes,
        records=records,
        code=code,
    )


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    sample_ids: Sequence[Any] | None = None,
    title: str | None = None,
    join_notes: str | Sequence[str] | None = None,
    **options: Any,
) -> None:
    """Write the page of `render_report` to a file, which appears whole or not at all.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    path : path-like
        The HTML file; its folder is created if there is none.
    sample_ids, title, join_notes, **options
        As for `render_report`.

    Raises
    ------
    IsADirectoryError
        If ``path`` is a folder.
    TypeError, ValueError
        As for `render_report`.

    Examples
    --------
    >>> import tempfile
    >>> from emvc import EMVC
    >>> from emvc.datasets import make_paper_synthetic
    >>> model = EMVC(2, random_state=0).fit(make_paper_synthetic(n_per_cluster=20, random_state=0).views)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, f"{folder}/report.html")
    ...     Path(f"{folder}/report.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of an HTML file.")
    page = render_report(model, sample_ids=sample_ids, title=title, join_notes=join_notes, **options)
    write_files(target.parent, {target.name: page.encode()})


def draw_figures(model: Any) -> dict[str, bytes]:
    """Return the four standard figures of a fitted `emvc.EMVC` as PNG images.

    Examples
    --------
    >>> from emvc import EMVC
    >>> from emvc.datasets import make_paper_synthetic
    >>> model = EMVC(2, random_state=0).fit(make_paper_synthetic(n_per_cluster=20, random_state=0).views)
    >>> sorted(draw_figures(model))
    ['consensus', 'convergence', 'embedding', 'errors']
    """
    from matplotlib.figure import Figure

    images = {}
    for name, draw in FIGURES.items():
        figure = Figure(figsize=(5.2, 4.2), layout="constrained")
        draw(model, figure.subplots())
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130)
        images[name] = buffer.getvalue()
    return images


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files so that each appears whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_files(Path(folder), {"a.txt": b"whole"})
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_file(folder / name, content)
