"""The declarative side: which data, errors, methods, parameters and seeds are to be combined."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from emvc.experiments.methods import ERRORS, METHODS, NEEDS_LABELS, dataset_names, get_dataset, is_drawn
from emvc.experiments.runner import Record, key_of, timed_fit
from emvc.metrics import clustering_scores

Parameters = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Cell:
    """One experiment: a data set with an error, clustered by a method with a seed.

    Attributes
    ----------
    dataset, error, method : str
        Names from `emvc.experiments.methods`.
    level : float
        Strength of the error, such as a fraction or a signal-to-noise ratio.
    seed : int
        Seed of the data (where they are drawn), of the error and of the method.
    parameters : dict
        Options of the method, plain values only.
    """

    dataset: str
    method: str
    seed: int = 0
    error: str = "none"
    level: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, name, known in (
            ("data set", self.dataset, dataset_names()),
            ("method", self.method, METHODS),
            ("error", self.error, ERRORS),
        ):
            if name not in known:
                raise ValueError(f"Unknown {kind} {name!r}; choose from {', '.join(sorted(known))}.")

    @property
    def identity(self) -> str:
        """The cell as canonical JSON: equal cells have equal identities."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def key(self) -> str:
        """A short name of the identity."""
        return key_of(self.identity)

    @property
    def group(self) -> str:
        """Equal for cells with the same data and parameters, which can share a decomposition."""
        same_data = self.error == "none" and not is_drawn(self.dataset)
        return replace(self, seed=0).key if same_data else self.key

    def describe(self) -> Record:
        """Return what is known before the run."""
        known = {name: getattr(self, name) for name in ("dataset", "error", "level", "method", "seed")}
        return known | {"parameters": json.dumps(dict(self.parameters), sort_keys=True)}

    def run(self, memory: Any = None) -> Record:
        """Run the experiment and return its scores."""
        data = get_dataset(self.dataset, self.seed)
        views = ERRORS[self.error](data.views, self.level, self.seed)
        model = METHODS[self.method](data.n_clusters, random_state=self.seed, **self.parameters)
        if memory is not None and "memory" in model.get_params():
            model.set_params(memory=memory)
        record = timed_fit(model, views, data.labels if self.method in NEEDS_LABELS else None)
        return record | clustering_scores(data.labels, model.labels_)


def make_grid(
    datasets: Iterable[str],
    methods: Mapping[str, Parameters],
    *,
    errors: Iterable[tuple[str, float]] = (("none", 0.0),),
    seeds: Iterable[int] = range(5),
) -> list[Cell]:
    """Return all combinations as cells.

    Parameters
    ----------
    datasets : iterable of str
        Names of data sets.
    methods : dict
        For each method the values to try of each of its options, combined with each other.
    errors : iterable of (str, float)
        Errors and their levels.
    seeds : iterable of int
        Seeds.

    Examples
    --------
    >>> cells = make_grid(["synthetic"], {"EMVC": {"beta": [0.1, 1.0], "lam": [0.1]}, "AMGL": {}}, seeds=[0, 1])
    >>> len(cells)
    6
    """
    seeds, errors = list(seeds), list(errors)
    return [
        Cell(dataset, method, seed, error, level, dict(zip(options, values, strict=True)))
        for dataset, (error, level), (method, options) in itertools.product(datasets, errors, methods.items())
        for values in itertools.product(*options.values())
        for seed in seeds
    ]
