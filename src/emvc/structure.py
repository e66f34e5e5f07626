r"""Are there clusters at all? A test against data without any, made from the views themselves.

**Data without clusters.** Every column of a view is drawn from the unimodal distribution closest to its own
(`emvc.kernels.unimodal`). Normal scores with the correlations of those of the view say which sample gets which value (a
Gaussian copula), and rows are scaled so that their lengths are those of the view: variances, tails, correlations and
outlying samples stay; gaps, and what the views have in common, go. In a view of mostly zeros the cells of every column
are permuted.

**Statistic.** The eigenvalues :math:`\lambda_1 \ge \lambda_2 \ge \ldots` of the consensus are compared with those for
such data: the largest gap :math:`\lambda_c - \lambda_{c+1}` over all c, and :math:`\lambda_2`, each in deviations of
what it is over observed and made-up data, are added. Observed and made-up data are treated alike, so that the share of
made-up data with a statistic at least as large, the observed ones counted among them, is a p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from emvc import cells, graphs
from emvc._array import ROUNDING, FloatArray
from emvc._threads import matmul
from emvc._validation import View, Views, to_dense
from emvc.kernels.unimodal import unimodal_columns
from emvc.method.isolation import LEAST_SAMPLES
from emvc.method.reference import Rows
from emvc.spectral import leading_eigenvalues

LEVEL = 1 / 60
"""Views have clusters if the p-value is at most this."""

DRAWS = 59
"""Data sets without clusters; with so many, none of them may come up to the views."""

_MOST_SAMPLES = 500  # of more samples, so many evenly spread ones are tested
_MOST_CLUSTERS = 60
_MOST_COLUMNS = 1000  # of more, so many evenly spread ones are tested


@dataclass(frozen=True, eq=False)
class StructureTest:
    """Outcome of the test.

    Attributes
    ----------
    p_value : float
        Share of data without clusters that look at least as clustered; NaN with fewer than 20 samples.
    statistic : float
        That of the views.
    null : ndarray
        Those of data without clusters.
    """

    p_value: float
    statistic: float
    null: FloatArray

    @property
    def found(self) -> bool:
        """Whether there are clusters, or nobody can tell."""
        return not self.p_value > LEVEL


def look_for_structure(
    views: Views,
    describe: Callable[[Views], Rows],
    *,
    scale: str | None = "auto",
    draws: int = DRAWS,
    verbose: int = 0,
) -> StructureTest:
    """Test whether views have clusters beyond chance.

    Parameters
    ----------
    views : Views
        Checked views of features.
    describe : callable
        Returns rows of views whose features are scaled already.
    scale : str or None
        How features are scaled.
    draws : int
        Number of data sets without clusters.
    verbose : int
        Whether to show how many of them are done, on standard error.
    """
    if views.n_samples > _MOST_SAMPLES:
        views = views.take(np.linspace(0, views.n_samples - 1, _MOST_SAMPLES).astype(np.intp))
    if views.n_samples < LEAST_SAMPLES:
        return StructureTest(np.nan, np.nan, np.empty(0))
    models = [
        _WithoutClusters.fit(array[np.flatnonzero(~absent)], scale)
        for array, absent in zip(views.arrays, views.missing.T, strict=True)
    ]
    rng = np.random.default_rng(0)
    spectra = [_spectrum(views, [model.observed for model in models], describe)]
    spectra += [_spectrum(views, [model.draw(rng) for model in models], describe) for _ in _counted(draws, verbose)]
    statistics = compare_spectra(np.array(spectra))
    null = statistics[1:]
    return StructureTest(float(np.mean(statistics >= statistics[0] - ROUNDING)), float(statistics[0]), null)


def _counted(number: int, verbose: int) -> Iterable[int]:
    """Count, and show it on request."""
    if not verbose:
        return range(number)
    from rich.console import Console
    from rich.progress import track

    return track(range(number), "choosing the number of clusters", console=Console(stderr=True), transient=True)


def compare_spectra(spectra: FloatArray) -> FloatArray:
    """Return the statistic of each row of eigenvalues, the first one of which is trivial."""
    gaps = _standard(spectra[:, 1:-1] - spectra[:, 2:])
    return np.asarray(gaps.max(axis=1) + _standard(spectra[:, 1:2])[:, 0])


def _standard(values: FloatArray) -> FloatArray:
    """Return standard scores of columns; variances are shrunk half way towards their mean."""
    variance = values.var(axis=0)
    spread = np.sqrt(variance + variance.mean())
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _spectrum(views: Views, arrays: list[FloatArray], describe: Callable[[Views], Rows]) -> FloatArray:
    full = []
    for array, absent in zip(arrays, views.missing.T, strict=True):
        whole = np.zeros((views.n_samples, array.shape[1]))
        whole[~absent] = array
        full.append(whole)
    rows = describe(replace(views, arrays=tuple(full)))
    number = min(_MOST_CLUSTERS, len(rows.shown) // 5)
    values = leading_eigenvalues(rows.problem.solve().consensus, max(number, 2) + 1)
    return np.asarray(np.clip(values, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class _WithoutClusters:
    """How data without clusters are made from one view.

    Attributes
    ----------
    observed : ndarray
        What the test sees of the view itself; missing cells stay missing, here and in what is drawn.
    columns : ndarray
        Cells to permute: those of the view, or sorted ones without gaps.
    scores : ndarray or None
        Normal scores of the view; None where columns are permuted independently.
    scale : str or None
        How permuted cells are scaled.
    """

    observed: FloatArray
    columns: FloatArray
    scores: FloatArray | None
    scale: str | None

    @classmethod
    def fit(cls, view: View, scale: str | None) -> _WithoutClusters:
        if view.shape[1] > _MOST_COLUMNS:
            view = view[:, np.linspace(0, view.shape[1] - 1, _MOST_COLUMNS).astype(np.intp)]
        if graphs.is_mostly_zero(view):
            columns = to_dense(view)
            return cls(np.asarray(graphs.scale_view(columns, scale)), columns, None, scale)
        observed = to_dense(graphs.scale_view(view, scale))
        observed = observed - graphs.column_means(observed)
        columns = unimodal_columns(cells.stretched(observed))
        wide, narrow = np.sqrt(graphs.column_variances(observed)), columns.std(axis=0)
        columns = (columns - columns.mean(axis=0)) * np.divide(wide, narrow, out=np.zeros_like(wide), where=narrow > 0)
        shares = (rankdata(observed, axis=0, nan_policy="omit") - 0.5) / np.maximum(cells.count_present(observed), 1)
        return cls(observed, columns, np.nan_to_num(ndtri(shares)), None)

    def draw(self, rng: np.random.Generator) -> FloatArray:
        if self.scores is None:
            return np.asarray(graphs.scale_view(rng.permuted(self.columns, axis=0), self.scale))
        mixed = matmul(rng.standard_normal((len(self.scores), len(self.scores))), self.scores)
        drawn = np.take_along_axis(self.columns, np.argsort(np.argsort(mixed, axis=0), axis=0), axis=0)
        drawn[np.isnan(self.observed)] = np.nan
        lengths, wanted = (np.sqrt(np.nansum(part**2, axis=1)) for part in (drawn, self.observed))
        wanted = np.sort(wanted)[np.argsort(np.argsort(lengths, kind="stable"), kind="stable")]
        factors = np.divide(wanted, lengths, out=np.zeros_like(wanted), where=lengths > 0)
        return np.asarray(drawn * factors[:, None])
