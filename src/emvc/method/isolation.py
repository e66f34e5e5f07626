r"""Samples that stand alone in a view: two groups of scores, usual and wrong.

A score s is the logarithm of how far the `NEIGHBOR`-th neighbour of a sample is, in clipped z-scores. Usual scores are
normal with unknown centre and spread; the share of wrong rows is unknown as well. All are fitted by EM, and every
sample gets the probability of being wrong

.. math:: \frac{\pi f_w(s)}{\pi f_w(s) + (1-\pi) f_u(s)} ,

where neither density falls towards the side that it explains better: closer than usual is usual, farther than a wrong
row is wrong. What a wrong row looks like is *made*, so that a row in the tail of the usual ones, but not where wrong
rows lie, is left in peace:

* *ruined* rows have cells drawn uniformly from the range of their column. Such rows may lie close to each other, since
  their cells are cut off at the same bounds; but made-up rows are as close. So with d the distance to the neighbour and
  D the median distance to made-up rows, s is the logarithm of d / (d + D), which rises with the ratio of the densities
  of made-up rows and of samples. A sample that is probably ruined is left out of the view.
* Other damage lies closer. With the logarithm of d alone, a second group of wrong rows may lie anywhere beyond rows of
  *independent* cells, each drawn from its column. It is believed in if it is clearly apart from the usual ones (`APART`
  deviations) and smaller. This is a suspicion, which the other views confirm or clear (`emvc.method.agreement`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from emvc import cells, graphs
from emvc._array import FloatArray
from emvc._validation import View, to_dense
from emvc.graphs import Scaling

NEIGHBOR = 3
"""The neighbour whose distance is the score."""

APART = 3.0
"""Deviations between two groups of scores that are two."""

LEAST_APART = 1.5
"""Deviations up to which nothing tells ruined rows from others, as in views whose columns are uniform themselves."""

LEAST_SAMPLES = 20
"""Fewer samples than these tell nothing, in one view or shared by two."""

_MADE_UP = 50  # rows that are made of each kind
_STEPS = 100  # of EM
_SETTLED = 1e-3  # relative change that ends it, and least spread of log distances
_FIRST_SHARE = 0.05


@dataclass(frozen=True)
class Groups:
    """Usual and wrong scores: centres, spreads and the share of the wrong ones."""

    usual: tuple[float, float]
    wrong: tuple[float, float]
    share: float

    def probability(self, scores: FloatArray) -> FloatArray:
        """Return the probability of being wrong."""
        (center, spread), (far, width) = self.usual, self.wrong
        odds = np.log(self.share / (1.0 - self.share)) + np.log(spread / width)
        odds = odds - 0.5 * (np.minimum(scores - far, 0.0) / width) ** 2
        odds = odds + 0.5 * (np.maximum(scores - center, 0.0) / spread) ** 2
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(odds, -700.0, 700.0))))

    @property
    def distance(self) -> float:
        """Deviations between the groups: root 2 times the difference over the root of the sum of both variances."""
        (center, spread), (far, width) = self.usual, self.wrong
        return float(np.sqrt(2.0) * (far - center) / np.hypot(spread, width))

    @property
    def are_two(self) -> bool:
        """Whether the two groups are clearly apart, the wrong one the smaller."""
        return self.share < 0.5 and self.distance >= APART


@dataclass(frozen=True, eq=False)
class Isolation:
    """How isolation is told in one view.

    Attributes
    ----------
    scaling : Scaling
        Clipped z-scores of the view.
    reference : ndarray or CSR matrix
        The scaled samples among which neighbours are sought.
    neighbor : int
        Which neighbour counts.
    standards : ndarray or CSR matrix
        Scaled made-up rows that distances are compared with.
    ruined, suspicious : Groups or None
        The two models; None where there is nothing to tell.
    """

    scaling: Scaling
    reference: View
    neighbor: int
    standards: View
    ruined: Groups | None = None
    suspicious: Groups | None = None

    @classmethod
    def fit(cls, view: View) -> tuple[Isolation, FloatArray]:
        """Measure a view; return the model and the `probabilities` of its samples."""
        n_samples = view.shape[0]
        if n_samples < LEAST_SAMPLES:
            return cls(Scaling(None), view, NEIGHBOR, view), np.zeros((2, n_samples))
        scaling = graphs.clipped_scores(view)
        reference = scaling.apply(view)
        standards, ruined, independent = (scaling.apply(part) for part in _made_up(view))
        bare = cls(scaling, reference, min(NEIGHBOR, n_samples - 1), standards)
        nearest = _nearest(reference, bare.neighbor)
        known = [bare._compare(nearest, reference), bare._scores(ruined), bare._scores(independent)]
        if not all(np.isfinite(part).any() for part in known):
            return bare, np.zeros((2, n_samples))  # the samples, or all features, are equal
        floor = np.min([part.min(axis=1, initial=0.0, where=np.isfinite(part)) for part in known], axis=0)
        own, ruined, independent = (np.maximum(part, floor[:, None]) for part in known)
        found = replace(
            bare,
            ruined=_ruined_group(own[0], ruined[0]),
            suspicious=_second_group(own[1], ruined[1], independent[1]),
        )
        return found, found._judge(own)

    def probabilities(self, view: View) -> FloatArray:
        """Return the probabilities that new samples are ruined, and that they are suspicious."""
        if self.ruined is None and self.suspicious is None:
            return np.zeros((2, view.shape[0]))
        return self._judge(self._scores(self.scaling.apply(view)))

    def _judge(self, scores: FloatArray) -> FloatArray:
        models = (self.ruined, self.suspicious)
        parts = zip(models, scores, strict=True)
        return np.stack([np.zeros(len(score)) if m is None else m.probability(score) for m, score in parts])

    def _scores(self, rows: View) -> FloatArray:
        """Return the two scores of scaled rows."""
        squares = _squares(rows, self.reference)
        return self._compare(np.partition(squares, self.neighbor - 1, axis=1)[:, self.neighbor - 1], rows)

    def _compare(self, nearest: FloatArray, rows: View) -> FloatArray:
        """Return the scores of rows with these squared distances to a neighbour: beside made-up rows, and alone."""
        made_up = np.median(_squares(rows, self.standards), axis=1)
        near, far = np.sqrt(nearest), np.sqrt(made_up)
        with np.errstate(divide="ignore"):
            return np.log([np.divide(near, near + far, out=np.zeros_like(near), where=near > 0), near])


def _squares(rows: View, reference: View) -> FloatArray:
    """Return squared distances that rows with missing cells share with rows that have all of them."""
    if cells.has_gaps(rows) or cells.has_gaps(reference):
        return cells.squares_over_own(to_dense(rows), to_dense(reference))
    return graphs.squared_distances_between(rows, reference)


def _nearest(view: View, neighbor: int) -> FloatArray:
    """Return the squared distance of each sample to a neighbour."""
    if not cells.has_gaps(view):
        return graphs.kth_squared_distance(view, neighbor)
    squares = cells.squares_over_own(view, view)
    np.fill_diagonal(squares, np.inf)
    return np.asarray(np.partition(squares, neighbor - 1, axis=1)[:, neighbor - 1])


def _ruined_group(scores: FloatArray, ruined: FloatArray) -> Groups | None:
    """Return the group of ruined rows, whose scores are known, if these can be told from the usual ones."""
    found = _fit(scores, _moments(ruined))
    return found if found is not None and found.distance >= LEAST_APART else None


def _second_group(scores: FloatArray, ruined: FloatArray, independent: FloatArray) -> Groups | None:
    """Return a group that is apart from the usual scores and beyond those of rows of independent cells."""
    center, width = _moments(independent)
    found = _fit(scores, (center, max(width, _moments(ruined)[1])), free=True)
    return found if found is not None and found.are_two and found.wrong[0] >= center else None


def _fit(scores: FloatArray, wrong: tuple[float, float], *, free: bool = False) -> Groups | None:
    """Fit usual scores and the share of wrong ones, and with ``free`` where these are; None if they are not farther."""
    center = float(np.median(scores))
    spread = max(1.4826 * float(np.median(np.abs(scores - center))), _SETTLED)
    groups = Groups((center, spread), wrong, _FIRST_SHARE)
    for _ in range(_STEPS):
        if groups.wrong[0] <= groups.usual[0]:
            return None
        weight = groups.probability(scores)
        share = float(np.clip(weight.mean(), 1e-4, 0.6))
        moved = groups.wrong if not free or weight.sum() < 3.0 else _moments(scores, weight)
        before, groups = groups, Groups(_moments(scores, 1.0 - weight), moved, share)
        moves = zip([*before.usual, *before.wrong], [*groups.usual, *groups.wrong], strict=True)
        if all(abs(new - old) <= _SETTLED * abs(new) for old, new in moves):
            break
    return groups


def _moments(scores: FloatArray, weights: FloatArray | None = None) -> tuple[float, float]:
    weights = np.ones(len(scores)) if weights is None else weights
    total = weights.sum() or 1.0
    center = float(weights @ scores / total)
    spread = float(np.sqrt(weights @ (scores - center) ** 2 / total))
    return center, max(spread, _SETTLED)


def _made_up(view: View) -> tuple[View, View, View]:
    """Return twice rows of cells drawn uniformly from the ranges of the columns, and rows of cells of other samples."""
    rng = np.random.default_rng(0)
    n_samples, n_features = view.shape
    shape = (min(_MADE_UP, n_samples), n_features)
    low, high = graphs.column_ranges(view)
    ruined, standards = rng.uniform(low, high, shape), rng.uniform(low, high, shape)
    if not cells.has_gaps(view):
        others = graphs.take_cells(view, graphs.settled_order(view)[rng.integers(0, n_samples, shape)])
        return graphs.like(standards, view), graphs.like(ruined, view), graphs.like(others, view)
    # Rows with the same cells as samples: the fewer there are, the less is known of a distance.
    others = cells.draw(view, rng.random(shape))
    alike = np.isnan(view[graphs.settled_order(view)[rng.integers(0, n_samples, shape[0])]])
    return standards, np.where(alike, np.nan, ruined), np.where(alike, np.nan, others)
