"""Running the board: methods, data sets, conditions and seeds, one record each.

The rows of a data set are shuffled with the seed before anything else happens; labels are used to score and for nothing
else. What a method cannot take is prepared for it, and the record says so (``imputed``): missing entries are filled
with the mean of their column for methods that take none. A sample that is missing everywhere is left to no method; it
is given to the largest cluster, which is what guessing does.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from emvc import _version
from emvc._array import BoolArray
from emvc._output import locked
from emvc.experiments.board.collection import HALVES, BoardSet, find_sets
from emvc.experiments.board.conditions import CONDITIONS, has_missing, impute, impute_cells, missing_entries
from emvc.experiments.board.methods import METHODS, UNDER_ERRORS, choose_methods, make_method
from emvc.experiments.runner import Record, Report, forget, key_of, read_records, run_cells, timed_fit
from emvc.experiments.supervision import Limits, forget_peak, peak_memory
from emvc.metrics import clustering_scores

QUICK_SAMPLES = 700
"""Most samples of a data set in a quick run."""

ERROR_SAMPLES = 1100
"""Most samples of a data set that the whole board puts under errors."""

SEEDS = 3
RECORDS = "records.sqlite"
TIME_LIMIT = 300.0
MEMORY_LIMIT = 12_000.0
_NOT_CORE = (
    *("experiments", "report", "files", "datasets", "explanation", "plot", "cli", "demo.py", "layout.py"),
    *("persistence.py", "_model_fields.py", "results.py", "findings.py", "assessment.py", "_version.py"),
    *("_output.py", "_terminal.py", "_parent.py", "_html.py"),
)
"""Parts of the package that have no influence on clusters."""


@dataclass(frozen=True)
class BoardCell:
    """One run of the board.

    Attributes
    ----------
    data : BoardSet
        The data set.
    method, condition : str
        Names.
    oracle : bool
        Whether the damaged entries are handed over as missing.
    seed : int
        Seed of the order of the rows, of the damage and of the method.
    """

    data: BoardSet
    method: str
    condition: str = "clean"
    oracle: bool = False
    seed: int = 0

    @property
    def key(self) -> str:
        """Name of the run; where the file is does not matter, what it holds does."""
        identity = [self.data.name, self.data.digest, self.method, self.condition, self.oracle, self.seed]
        return key_of(json.dumps(identity))

    @property
    def group(self) -> str:
        """Equal for runs that differ in the seed alone."""
        return replace(self, seed=0).key

    def describe(self) -> Record:
        """Return what is known before the run."""
        data = {name: getattr(self.data, name) for name in ("kind", "family", "half", "n_samples")}
        return data | {
            "dataset": self.data.name,
            "error": self.condition,
            "level": CONDITIONS[self.condition].level,
            "oracle": int(self.oracle),
            "method": self.method,
            "seed": self.seed,
            "revision": revision(self.method),
        }

    def run(self, memory: Any = None) -> Record:
        """Read the data, damage them, fit and score."""
        del memory  # rows are shuffled with the seed: nothing is in common
        data = self.data.read()
        order = np.random.default_rng(self.seed).permutation(len(data.labels))
        damaged = CONDITIONS[self.condition].apply([view[order] for view in data.views], self.seed)
        views = damaged.oracle if self.oracle else damaged.views
        if views is None:
            raise ValueError(f"Condition {self.condition!r} has no oracle.")
        model = make_method(self.method)(data.n_clusters, random_state=self.seed)
        record: Record = {"n_views": len(views), "n_clusters": data.n_clusters, "parameters": _parameters(model)}
        labels, fitted = _fit(model, views)
        record |= fitted | clustering_scores(data.labels[order], labels)
        return record | _findings(model, views, None if self.oracle else damaged.truth)


def _fit(model: Any, views: list[Any]) -> tuple[Any, Record]:
    """Fit a method to what it can take; return labels of all samples and what there is to record."""
    absent = missing_entries(views)
    somewhere = ~absent.all(axis=1)
    used = [view[somewhere] for view, lost in zip(views, absent.T, strict=True) if not lost.all()]
    rows, cells = has_missing(used)
    if rows and not getattr(model, "_allow_missing", False):
        used, filled = impute(used), True
    elif cells and not model.__sklearn_tags__().input_tags.allow_nan:
        used, filled = impute_cells(used), True
    else:
        filled = False
    forget_peak()
    record = timed_fit(model, used) | {"imputed": int(filled), "peak_memory": peak_memory()}
    found = np.asarray(model.labels_)
    labels = np.full(len(absent), np.argmax(np.bincount(found[found >= 0])))
    labels[somewhere] = found
    return labels, record


def _findings(model: Any, views: list[Any], truth: BoolArray | None) -> Record:
    """Return the share of entries that a method left out, and how well its errors tell the rows that are wrong."""
    from sklearn.metrics import roc_auc_score

    present = ~missing_entries(views)
    outliers = getattr(model, "outliers_", None)
    if outliers is None or outliers.shape != present.shape:
        return {}
    record: Record = {"flagged": float(outliers[present].mean())}
    if truth is not None and 0 < truth[present].sum() < present.sum():
        record["detection"] = float(roc_auc_score(truth[present], model.sample_errors_[present]))
    return record


def _parameters(model: Any) -> str:
    return json.dumps(model.get_params(deep=False), sort_keys=True, default=str)


@lru_cache(maxsize=64)
def revision(method: str) -> str:
    """Return a checksum of the code of a method: records of other code are of another method."""
    root = Path(_version.__file__).parent
    shared = [path for path in sorted(root.rglob("*.py")) if _is_shared(path.relative_to(root))]
    make = make_method(method)
    made: Any = getattr(make, "func", make)
    bases = inspect.getmro(made)
    own = sorted({Path(inspect.getfile(base)) for base in bases if base.__module__.startswith("emvc.")} - set(shared))
    return key_of("".join(path.read_text(encoding="utf-8") for path in [*shared, *own]))[:8]


def _is_shared(path: Path) -> bool:
    """Return whether a file of the package may change the clusters of every method."""
    if path.parts[0] in _NOT_CORE or path.name == "__init__.py":
        return False
    return path.parts[0] != "estimators" or path.name.startswith("_")


def plan_board(
    sets: Sequence[BoardSet],
    *,
    methods: Iterable[str] | None = None,
    conditions: Iterable[str] | None = None,
    seeds: int | None = None,
) -> list[BoardCell]:
    """Return the runs of a board.

    Without methods and conditions it is the whole board: all methods on the data as they are with three seeds, and
    the ladder, NEMO and SNF under all errors with one, on data sets of at most 1100 samples.

    Parameters
    ----------
    sets : sequence of BoardSet
        See `emvc.experiments.board.collection.find_sets`.
    methods : iterable of str, optional
        Names, or ``"all"``, ``"ladder"``, ``"peers"``.
    conditions : iterable of str, optional
        Names, or ``"all"``; conditions with an oracle are run with it as well.
    seeds : int, optional
        Number of seeds.
    """
    if conditions is None and methods is None:
        small = [entry for entry in sets if entry.n_samples <= ERROR_SAMPLES]
        errors = [name for name in CONDITIONS if name != "clean"]
        plain = plan_board(sets, methods=["all"], conditions=["clean"], seeds=seeds)
        return plain + plan_board(small, methods=UNDER_ERRORS, conditions=errors, seeds=1)
    chosen = choose_methods(methods if methods is not None else ["all"])
    names = _choose_conditions(conditions if conditions is not None else ["clean"])
    return [
        BoardCell(entry, method, name, oracle, seed)
        for entry in sets
        for name in names
        for oracle in ((False, True) if CONDITIONS[name].has_oracle else (False,))
        for method in chosen
        for seed in range(SEEDS if seeds is None else seeds)
    ]


def _choose_conditions(names: Iterable[str]) -> list[str]:
    chosen = [member for name in names for member in (CONDITIONS if name == "all" else (name,))]
    for name in chosen:
        if name not in CONDITIONS:
            raise ValueError(f"Unknown condition {name!r}; choose from all, {', '.join(CONDITIONS)}.")
    return list(dict.fromkeys(chosen))


def board(
    folders: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    methods: Iterable[str] | None = None,
    conditions: Iterable[str] | None = None,
    seeds: int | None = None,
    half: str | None = None,
    most_samples: int | None = None,
    quick: bool = False,
    rerun: Iterable[str] = (),
    time_limit: float = TIME_LIMIT,
    memory_limit: float = MEMORY_LIMIT,
    n_jobs: int | None = None,
    report: Report | None = None,
) -> list[Record]:
    """Run the board and return its records, those of earlier runs into the same folder included.

    Parameters
    ----------
    folders : path or iterable of paths
        Where the data sets are (`emvc.experiments.board.collection`).
    output : path
        Folder of the records, created if absent. What is recorded there is not run again.
    methods, conditions, seeds
        See `plan_board`.
    half : {"choose", "confirm"}, optional
        Run the data sets of one half only.
    most_samples : int, optional
        Leave out larger data sets.
    quick : bool
        Small data sets as they are, with one seed.
    rerun : iterable of str
        Methods whose records are forgotten first, because they were changed.
    time_limit, memory_limit : float
        Seconds and megabytes of one run.
    n_jobs : int or None
        Runs at a time.
    report : callable, optional
        Told about every new record.

    Returns
    -------
    list of dict
        All records of the folder, oldest first.

    Raises
    ------
    FileNotFoundError
        If there is no data set.
    ValueError
        If a method, a condition or a half is not known, or nothing is left to run.

    Examples
    --------
    ``records = emvc.board("data", "result", methods=["EMVC", "NEMO"])`` is, without the page,
    ``emvc board data -o result --methods EMVC,NEMO``.
    """
    if half not in (None, *HALVES):
        raise ValueError(f"half must be choose or confirm, got {half!r}.")
    sets = find_sets([folders] if isinstance(folders, str | os.PathLike) else list(folders), most_samples=most_samples)
    if half is not None:
        sets = [entry for entry in sets if entry.half == half]
    if quick:
        sets = [entry for entry in sets if entry.n_samples <= QUICK_SAMPLES]
        methods, seeds = methods or ["all"], seeds or 1
    cells = plan_board(sets, methods=methods, conditions=conditions, seeds=seeds)
    if not cells:
        raise ValueError("There is nothing to run: no data set is left.")
    path = Path(output) / RECORDS
    with locked(path.parent):
        forget(path, choose_methods(rerun))
        run_cells(cells, path, n_jobs=n_jobs, report=report, limits=Limits(time_limit, memory_limit))
        return read_records(path)


def changed_since(records: Iterable[Record]) -> dict[str, int]:
    """Return how many records of each method were made by other code than this."""
    counts: dict[str, int] = {}
    for record in records:
        if record["method"] in METHODS and record["revision"] not in (None, revision(record["method"])):
            counts[record["method"]] = counts.get(record["method"], 0) + 1
    return counts
