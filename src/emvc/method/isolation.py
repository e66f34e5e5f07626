r"""Samples that stand alone in a view: two groups of distances, usual and wrong.

The score s of a sample is the logarithm of the distance to its `NEIGHBOR`-th neighbour in clipped z-scores. Usual
scores are normal with unknown centre and spread; the share of wrong rows is unknown as well. All are fitted by EM, and
every sample gets the probability of being wrong

.. math:: \frac{\pi f_w(s)}{\pi f_w(s) + (1-\pi) f_u(s)} ,

where neither density falls towards the side that it explains better: closer than usual is usual, farther than a wrong
row is wrong. What a wrong row looks like is *made*, so that a row in the tail of the usual ones, but not where wrong
rows lie, is left in peace:

* *ruined* rows have cells drawn uniformly from the range of their column. A sample that is probably one of these is
  left out of the view.
* Other damage lies closer. A second group of wrong rows may lie anywhere beyond rows of *independent* cells, each drawn
  from its column. It is believed in if it is clearly apart from the usual ones (`APART` deviations) and smaller. This
  is a suspicion, which the other views confirm or clear (`emvc.method.agreement`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emvc import cells, graphs
from emvc._array import FloatArray
from emvc._validation import View
from emvc.graphs import Scaling

NEIGHBOR = 3
"""The neighbour whose distance is the score."""

APART = 3.0
"""Deviations between two groups of scores that are two: root 2 times the difference over the root of both variances."""

LEAST_SAMPLES = 20
"""Fewer samples than these tell nothing, in one view or shared by two."""

_MADE_UP = 50  # wrong rows that are made of each kind
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
    def are_two(self) -> bool:
        """Whether the two groups are clearly apart, the wrong one the smaller."""
        (center, spread), (far, width) = self.usual, self.wrong
        return self.share < 0.5 and np.sqrt(2.0) * (far - center) >= APART * np.hypot(spread, width)


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
    ruined, suspicious : Groups or None
        The two models; None where there is nothing to tell.
    """

    scaling: Scaling
    reference: View
    neighbor: int
    ruined: Groups | None = None
    suspicious: Groups | None = None

    @classmethod
    def fit(cls, view: View) -> tuple[Isolation, FloatArray]:
        """Measure a view; return the model and the `probabilities` of its samples."""
        n_samples = view.shape[0]
        if n_samples < LEAST_SAMPLES:
            return cls(Scaling(None), view, NEIGHBOR), np.zeros((2, n_samples))
        scaling = graphs.clipped_scores(view)
        reference = scaling.apply(view)
        bare = cls(scaling, reference, min(NEIGHBOR, n_samples - 1))
        scores = _log(graphs.kth_squared_distance(reference, bare.neighbor))
        made = np.split(bare._scores(_made_up(view)), 2)
        known = [part[np.isfinite(part)] for part in (scores, *made)]
        if not all(len(part) for part in known):
            return bare, np.zeros((2, n_samples))  # the samples, or all features, are equal
        floor = min(part.min() for part in known)
        scores, ruined, independent = (np.maximum(part, floor) for part in (scores, *made))
        found = cls(
            scaling,
            reference,
            bare.neighbor,
            _fit(scores, _moments(ruined)),
            _second_group(scores, ruined, independent),
        )
        return found, found._judge(scores)

    def probabilities(self, view: View) -> FloatArray:
        """Return the probabilities that new samples are ruined, and that they are suspicious."""
        if self.ruined is None and self.suspicious is None:
            return np.zeros((2, view.shape[0]))
        return self._judge(self._scores(view))

    def _judge(self, scores: FloatArray) -> FloatArray:
        models = (self.ruined, self.suspicious)
        return np.stack([np.zeros(len(scores)) if m is None else m.probability(scores) for m in models])

    def _scores(self, view: View) -> FloatArray:
        squares = graphs.squared_distances_between(self.scaling.apply(view), self.reference)
        return _log(np.partition(squares, self.neighbor - 1, axis=1)[:, self.neighbor - 1])


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


def _made_up(view: View) -> View:
    """Return rows of cells drawn uniformly from the ranges of the columns, and as many of cells of other samples."""
    rng = np.random.default_rng(0)
    n_samples, n_features = view.shape
    shape = (min(_MADE_UP, n_samples), n_features)
    low, high = graphs.column_ranges(view)
    ruined = rng.uniform(low, high, shape)
    if not cells.has_gaps(view):
        order = graphs.settled_order(view)
        others = graphs.take_cells(view, order[rng.integers(0, n_samples, shape)])
        return graphs.like(np.vstack([ruined, others]), view)
    # Rows with the same cells as samples: the fewer there are, the less is known of a distance.
    others = cells.draw(view, rng.random(shape))
    alike = np.isnan(view[graphs.settled_order(view)[rng.integers(0, n_samples, shape[0])]])
    return np.where(np.vstack([alike, alike]), np.nan, np.vstack([ruined, others]))


def _log(squares: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(0.5 * np.log(squares))
