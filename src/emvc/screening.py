r"""Finding errors before the solve: samples that stand alone in a view, and samples on which views disagree.

**Isolation.** The logarithm of the distance to the 10th neighbour in z-scored features, centred by its median over the
samples of the view and divided by a robust spread of its upper half. Logarithms make it a ratio, so dense features,
text, counts and binary data share one scale. Destroyed samples stand alone; a sample that belongs to another row does
not.

**Disagreement.** Where a walk of two steps leads when the first step is taken in view k and the second in the other
views, against both steps in the other views: one minus the overlap of the two distributions. A mismatched sample looks
normal inside its view, but its neighbours there are not its neighbours elsewhere.

**Contrast.** With three views or more: by how much the other views agree more with each other than with view k. A
sample that is hard to place disagrees in every view, but has no contrast.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from emvc import kernels
from emvc._array import BoolArray, FloatArray
from emvc._threads import matmul
from emvc._validation import View
from emvc.graphs import Scaling, fit_scaling, kth_squared_distance, squared_distances_between

ISOLATED = 6.0
"""Isolation in one view above which a sample is condemned there."""

ISOLATED_EVERYWHERE = 5.0
"""Mean isolation over the views, standardised again, above which a sample is condemned in all of them."""

MISMATCHED = 5.0
"""Standardised `contrast` above which a sample is condemned in a view, if at least three views can tell which."""

CONTRAST_SPREAD = 0.18
"""Least spread of the contrast: a condemned sample has four tenths of the usual agreement at most."""

NEIGHBOR = 10
"""Isolation is the distance to this neighbour."""

TOGETHER_SPREAD = 0.5
"""Least spread of the mean isolation over the views."""

_MOST_DEVIANT = 5.0
_LEAST_SAMPLES = 30  # with fewer no spread can be told from an outlier
_LEAST_SPREAD = 0.05  # five per cent of a distance are never an outlier
_MOST_CONDEMNED = 0.4  # more than this share are not exceptions but a part of the data
_STANDS_OUT = 3.0
_USUAL = 1.5  # a gap between usual scores means nothing
_GAP = 1.0
_ONE_GROUP = 2.65  # deviations between the halves of a normal distribution
_SAMPLING = 4.5  # times 1 / sqrt(n): what chance adds to that
_SUSPICIOUS = 1.5
_UNUSUAL = 1.0
_MOST_VIEWS = 0.75
_LEAST_AGREEMENT = 1e-3
_CONTRAST_SHARE = 0.5  # of the contrast in what a view is said to contradict the others
_SPARSE = 0.2  # share of entries that are not zero up to which adding single ones beats a matrix product
_USUAL_ISOLATION = 1.75
_SHARPNESS = 2.5  # of the transition from usual to unusual
_HALF = 3.0  # the sum of standard scores at which an error is a half
_CLIP = (-3.0, 8.0)  # one view shall not decide the mean over the views


@dataclass(frozen=True)
class Screening:
    """What was found in each view before the solve.

    Attributes
    ----------
    isolation : ndarray of shape (n_samples, n_views)
        Robust scores, about standard normal for clean samples; zero for missing ones.
    together : ndarray of shape (n_samples,)
        The same of the mean isolation over the views: errors that are small in each view but there in all.
    condemned : ndarray of bool, same shape
        Samples that are not to be believed in a view.
    missing : ndarray of bool, same shape
        Samples that a view does not have.
    """

    isolation: FloatArray
    together: FloatArray
    condemned: BoolArray
    missing: BoolArray

    @property
    def observed(self) -> BoolArray:
        """Samples that are neither missing nor condemned, by view."""
        return ~(self.missing | self.condemned)


def screen(views: Sequence[View], missing: BoolArray, *, enabled: bool = True) -> Screening:
    """Score the isolation of every sample in every view and condemn the worst.

    Parameters
    ----------
    views : sequence of arrays or CSR matrices
        The views; rows of missing samples are ignored.
    missing : ndarray of bool of shape (n_samples, n_views)
        Which samples a view does not have.
    enabled : bool
        Whether to score and condemn at all.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> view = rng.standard_normal((100, 5))
    >>> view[7] = 40.0
    >>> found = screen([view], np.zeros((100, 1), dtype=bool))
    >>> np.flatnonzero(found.condemned[:, 0])
    array([7])
    """
    isolation = np.zeros(missing.shape)
    condemned = np.zeros(missing.shape, dtype=bool)
    if not enabled:
        return Screening(isolation, np.zeros(len(missing)), condemned, missing)
    for k, view in enumerate(views):
        present = np.flatnonzero(~missing[:, k])
        scores = isolation_scores(view[present])
        isolation[present, k], condemned[present, k] = scores, scores >= condemned_from(scores)
    together = standardize(mean_isolation(isolation, missing), least_spread=TOGETHER_SPREAD)
    condemned |= isolated_everywhere(isolation, together, missing)[:, None]
    return Screening(isolation, together, spare_the_many(condemned & ~missing), missing)


def mean_isolation(isolation: FloatArray, missing: BoolArray) -> FloatArray:
    """Return the mean isolation over the views that have a sample, times the root of their number."""
    clipped = np.where(missing, 0.0, np.clip(isolation, *_CLIP))
    return np.asarray(clipped.sum(axis=1) / np.sqrt(np.maximum((~missing).sum(axis=1), 1)))


def isolated_everywhere(isolation: FloatArray, together: FloatArray, missing: BoolArray) -> BoolArray:
    """Return which samples are suspicious in most of at least two views and stand alone on average."""
    count = (~missing).sum(axis=1)
    suspicious = np.sum((isolation > _SUSPICIOUS) & ~missing, axis=1) >= _MOST_VIEWS * count
    return np.asarray((count > 1) & (together > ISOLATED_EVERYWHERE) & suspicious)


def condemn_companions(condemned: BoolArray, isolation: FloatArray, missing: BoolArray) -> BoolArray:
    """Condemn samples that most of the other views condemn also where they are merely less usual than most.

    What destroys a sample in one view has often destroyed it in the others, and values that fill the range of a feature
    stand out less the more features there are.
    """
    others = (~missing).sum(axis=1, keepdims=True) - 1
    convicted = condemned.sum(axis=1, keepdims=True) > 0.5 * np.maximum(others, 1)
    return np.asarray((condemned | (convicted & (isolation > _UNUSUAL))) & ~missing)


def condemned_from(scores: FloatArray) -> float:
    """Return the score from which on samples are condemned: `ISOLATED`, or less where a group stands clearly apart."""
    ordered = np.sort(scores)
    gaps = np.flatnonzero((np.diff(ordered) >= _GAP) & (ordered[1:] >= _STANDS_OUT) & (ordered[:-1] >= _USUAL))
    bar = min(ISOLATED, float(ordered[gaps[0] + 1])) if len(gaps) else ISOLATED
    size = _upper_group(ordered)
    return min(bar, float(ordered[-size])) if size else bar


def _upper_group(ordered: FloatArray) -> int:
    """Return the size of the upper of two groups of sorted values, or 0 if they are one.

    The cut is where the variance between the two sides is largest (Otsu). Their means are then two to three deviations
    apart for one group of any usual shape, and more for two.
    """
    n = len(ordered)
    if n < _LEAST_SAMPLES:
        return 0
    sums, sizes = np.cumsum(ordered)[:-1], np.arange(1, n)
    between = sizes * (n - sizes) * (sums / sizes - (ordered.sum() - sums) / (n - sizes)) ** 2
    cut = int(np.argmax(between)) + 1
    low, high = ordered[:cut], ordered[cut:]
    apart = float(high.mean() - low.mean()) / max(float(low.std()), float(high.std()), 1e-12)
    two = apart >= _ONE_GROUP + _SAMPLING / np.sqrt(n)
    return len(high) if two and len(high) <= _MOST_CONDEMNED * n else 0


def spare_the_many(condemned: BoolArray) -> BoolArray:
    """Condemn nobody in a view where too many would be."""
    return np.asarray(condemned & (condemned.mean(axis=0) <= _MOST_CONDEMNED))


@dataclass(frozen=True)
class IsolationScale:
    """How squared neighbour distances become isolation scores: logarithm, centre and spread."""

    least: float
    middle: float
    spread: float

    @classmethod
    def fit(cls, squares: FloatArray) -> IsolationScale:
        """Take the scale from squared distances to the 10th neighbour."""
        positive = squares[squares > 0]
        if not positive.size:
            return cls(1.0, 0.0, np.inf)
        least = float(positive.min())
        values = 0.5 * np.log(np.maximum(squares, least))
        middle, spread = robust_scale(values, least_spread=_LEAST_SPREAD)
        scores = (values - middle) / spread
        size = _upper_group(np.sort(scores))
        if size:  # so many that they have inflated the spread: take it from the others
            lower = np.argsort(scores, kind="stable")[:-size]
            middle, spread = _middle_and_spread(values[lower], _LEAST_SPREAD)
        return cls(least, middle, spread)

    def scores(self, squares: FloatArray) -> FloatArray:
        """Return robust standard scores."""
        return np.asarray((0.5 * np.log(np.maximum(squares, self.least)) - self.middle) / self.spread)


@dataclass(frozen=True)
class Isolation:
    """How isolation is measured in one view, for its own samples and for further ones.

    Attributes
    ----------
    scores : ndarray of shape (n_samples,)
        Robust standard scores of the samples of the view.
    scaling : Scaling
        Z-scores of the view.
    measure : IsolationScale or None
        How neighbour distances became scores; None for too few samples.
    """

    scores: FloatArray
    scaling: Scaling
    measure: IsolationScale | None = None

    @property
    def bar(self) -> float:
        """The score from which on a sample is condemned; infinite where so many are that nobody is."""
        bar = condemned_from(self.scores)
        return bar if float(np.mean(self.scores >= bar)) <= _MOST_CONDEMNED else float("inf")

    def score(self, view: View, samples: View, n_neighbors: int = NEIGHBOR) -> FloatArray:
        """Return the scores of new ``samples`` among those of the ``view`` that was measured."""
        if self.measure is None:
            return np.zeros(samples.shape[0])
        view, samples = (clip_scores(self.scaling.apply(part)) for part in (view, samples))
        squares = squared_distances_between(samples, view)
        kth = np.partition(squares, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
        return self.measure.scores(kth)


def isolation_scores(view: View, n_neighbors: int = NEIGHBOR) -> FloatArray:
    """Return how isolated each sample is, as robust standard scores of the logarithm of a neighbour distance."""
    return measure_isolation(view, n_neighbors).scores


def measure_isolation(view: View, n_neighbors: int = NEIGHBOR) -> Isolation:
    """Return the `isolation_scores` of a view together with what they were computed by."""
    n_samples, scaling = view.shape[0], fit_scaling(view, "zscore")
    nothing = Isolation(np.zeros(n_samples), scaling)
    if n_samples < _LEAST_SAMPLES:
        return nothing
    kth = kth_squared_distance(clip_scores(scaling.apply(view)), n_neighbors)
    measure = IsolationScale.fit(kth)
    return Isolation(measure.scores(kth), scaling, measure)


def clip_scores(view: View) -> View:
    """Bound standard scores, so that one rare feature alone does not make a sample stand out."""
    if scipy.sparse.issparse(view):
        view = view.copy()
        np.clip(view.data, -_MOST_DEVIANT, _MOST_DEVIANT, out=view.data)
        return view
    return np.clip(view, -_MOST_DEVIANT, _MOST_DEVIANT)


def standardize(values: FloatArray, *, least_spread: float) -> FloatArray:
    """Return robust standard scores: centred by the median, divided by the spread of the upper half or of all.

    In a second pass both are taken without the samples that stood out in the first, which many errors would inflate.
    """
    values = np.asarray(values, dtype=np.float64)
    middle, spread = robust_scale(values, least_spread=least_spread)
    return np.asarray((values - middle) / spread)


def robust_scale(values: FloatArray, *, least_spread: float) -> tuple[float, float]:
    """Return the centre and the spread of `standardize`; the spread is infinite for too few values."""
    middle, spread = 0.0, np.inf
    for _ in range(2):
        usual = values[(values - middle) / spread <= _STANDS_OUT]
        if len(usual) < _LEAST_SAMPLES:
            break
        middle, spread = _middle_and_spread(usual, least_spread)
    return middle, spread


def _middle_and_spread(values: FloatArray, least_spread: float) -> tuple[float, float]:
    """Return the median and the larger of two spreads, of the upper half and of all."""
    middle, upper = (float(q) for q in np.quantile(values, (0.5, 0.75)))
    everyone = 1.4826 * float(np.median(np.abs(values - middle)))
    return middle, max((upper - middle) / 0.6745, everyone, least_spread)


def disagreement(transitions: FloatArray, observed: BoolArray) -> FloatArray:
    """Return the share of two-step transitions that the other views do not confirm, by sample and view.

    Parameters
    ----------
    transitions : ndarray of shape (n_views, n_samples, n_samples)
        Row-stochastic matrices; rows and columns of samples that are not observed are ignored.
    observed : ndarray of bool of shape (n_samples, n_views)
        Which samples a view shows.

    Returns
    -------
    scores : ndarray of shape (n_samples, n_views)
        Between 0 and 1; 0 where a sample is not observed, or in no other view.
    """
    n_views, n_samples, _ = transitions.shape
    scores = np.zeros((n_samples, n_views))
    if n_views < 2:
        return scores
    count = observed.sum(axis=1)
    seen = [between_observed(transitions[k], observed[:, k]) for k in range(n_views)]
    total = sum(seen[1:], seen[0]) if n_views > 2 else None
    for k, own in enumerate(seen):
        others = row_stochastic(total - own if total is not None else seen[1 - k])
        comparable = observed[:, k] & (count - observed[:, k] > 0)
        scores[:, k] = np.where(comparable, 1.0 - _two_step_overlap(_Steps(own), _Steps(others)), 0.0)
    return np.asarray(np.clip(scores, 0.0, 1.0))


def contrast(transitions: FloatArray, observed: BoolArray) -> FloatArray:
    """Return by how much the other views agree more with each other than with this one, by sample and view.

    The logarithm of the ratio of two means of the overlap of two-step transitions: of pairs of other views, and of the
    pairs with this view. A sample that is hard to place in every view has little overlap in both. NaN where the view or
    two others do not show the sample. Parameters are those of `disagreement`.
    """
    n_views = len(transitions)
    seen = [_Steps(row_stochastic(between_observed(transitions[k], observed[:, k]))) for k in range(n_views)]
    with_others = np.zeros(observed.shape)
    for k, j in itertools.permutations(range(n_views), 2):
        both = observed[:, k] & observed[:, j]
        with_others[:, (k, j)] += np.where(both, 0.5 * _two_step_overlap(seen[k], seen[j]), 0.0)[:, None]
    return contrast_of(with_others, observed)


def contrast_of(with_others: FloatArray, observed: BoolArray) -> FloatArray:
    """Return the contrast of samples whose overlaps with the other views, for each view, add up to these sums."""
    n_others = observed.sum(axis=1, keepdims=True) - 1
    own = with_others / np.maximum(n_others, 1)
    among = (0.5 * with_others.sum(axis=1, keepdims=True) - with_others) / np.maximum(n_others * (n_others - 1) / 2, 1)
    scores = np.log((np.maximum(among, 0.0) + _LEAST_AGREEMENT) / (own + _LEAST_AGREEMENT))
    return np.where(observed & (n_others >= 2), scores, np.nan)


def find_mismatches(contrasts: FloatArray) -> BoolArray:
    """Condemn samples in the view that stands out by standardised contrast with the others."""
    known = np.nan_to_num(contrasts, nan=-np.inf)
    worst = np.argmax(known, axis=1)
    mismatched = np.zeros(contrasts.shape, dtype=bool)
    mismatched[np.arange(len(contrasts)), worst] = known.max(axis=1) > MISMATCHED
    return mismatched


def contradiction(doubts: FloatArray, contrasts: FloatArray, mismatched: BoolArray) -> FloatArray:
    """Return how much a view contradicts the others about a sample, from the standard scores of both measures.

    Contrast is the sharper one where it speaks; a contrast of zero or less says nothing. Where it has condemned a
    sample, it counts alone if it is larger. Where it is NaN, disagreement is all there is.
    """
    both = (doubts + _CONTRAST_SHARE * np.maximum(contrasts, 0.0)) / (1.0 + 0.5 * _CONTRAST_SHARE)
    both = np.where(mismatched, np.maximum(both, contrasts), both)
    return np.where(np.isnan(contrasts), doubts, both)


class _Steps:
    """A chain to be walked along, sparse or not."""

    def __init__(self, chain: FloatArray) -> None:
        self.chain = chain
        self.share = np.count_nonzero(chain) / chain.size
        """Share of entries that are not zero."""

    @cached_property
    def compressed(self) -> kernels.neighbors.Compressed:
        """The chain without its zeros."""
        return kernels.neighbors.compress(self.chain)

    @cached_property
    def first(self) -> Any:
        """First steps, which leave the sample; shares of probabilities need no more digits than single precision."""
        chain = self.chain.copy()
        np.fill_diagonal(chain, 0.0)
        return row_stochastic(chain).astype(np.float32)

    @cached_property
    def twice(self) -> Any:
        """Two steps along the chain."""
        return self.after(self)

    def after(self, other: _Steps) -> Any:
        """Return the first step along another chain and the second along this one."""
        return matmul(other.first, self.chain.astype(np.float32))


def _two_step_overlap(own: _Steps, others: _Steps) -> FloatArray:
    """Return the overlap of two ways to take two steps, by matrix products unless the graphs are sparse."""
    if own.share * others.share <= _SPARSE**2:
        return kernels.neighbors.two_step_overlap(own.compressed, others.compressed)
    here = others.after(own)
    return np.asarray(np.minimum(here, others.twice, out=here).sum(axis=1, dtype=np.float64))


def rate_errors(
    isolation: FloatArray, together: FloatArray, contradictions: FloatArray, own_weights: FloatArray, missing: BoolArray
) -> FloatArray:
    """Return one error between 0 and 1 per sample and view, NaN where a sample is missing.

    The sum of two robust standard scores, disagreement and twice the isolation beyond what is usual (smoothly: a little
    less counts a little), on a logistic scale: a half is reached three deviations off. In a view without the common
    structure every sample is at least as wrong as the view has lost weight.
    """
    unusual = np.maximum(isolation, together[:, None]) - _USUAL_ISOLATION
    alone = np.logaddexp(0.0, _SHARPNESS * unusual) / _SHARPNESS
    score = contradictions + 2.0 * alone
    errors = 1.0 - own_weights / own_weights.max() / (1.0 + np.exp(np.minimum(score - _HALF, 700.0)))
    return np.where(missing, np.nan, errors)


def between_observed(matrix: FloatArray, observed: BoolArray) -> FloatArray:
    """Return a matrix with zeros in the rows and columns of samples that are not observed."""
    if observed.all():
        return matrix
    part = matrix.copy()
    part[~observed] = 0.0
    part[:, ~observed] = 0.0
    return part


def row_stochastic(matrix: FloatArray) -> FloatArray:
    """Return a matrix with rows divided by their sums; rows of zeros stay zero."""
    sums = matrix.sum(axis=1, keepdims=True)
    if np.all(np.abs(sums - 1.0) <= 1e-12):
        return matrix
    return np.asarray(matrix / np.where(sums > 0, sums, 1.0))
