r"""Samples about which a view contradicts the others: mismatched rows, told by ranks.

**Evidence.** View k places sample i at :math:`F_k(i)`, without what it says of i itself (`emvc.method.places`). Of two
views k and l one asks: among all samples j, how many have an :math:`F_l(j)` closer to :math:`F_k(i)` than sample i
itself? The share p of these is uniform between 0 and 1 if the rows of i in the two views do not belong together,
whatever the views are, and concentrates near 0 if they do. That is an exact null, without a constant.

**Two groups.** The density f of p falls, so its best estimate is the slope of the least concave majorant of the
distribution function (Grenander); the share of pairs that do not belong together is :math:`\pi_{kl} = 2\,\#\{p > ½\}/N`
(Storey). Then :math:`(f(p) - \pi_{kl}) / (1 - \pi_{kl})` is the likelihood ratio of belonging together.

**Who is wrong.** A pair belongs together if both of its rows are right. A view is wrong about a share
:math:`\omega_k` of its samples, with :math:`(1-\omega_k)(1-\omega_l) = 1 - \pi_{kl}` (least squares), and the
probability that view k is wrong about sample i sums over all ways in which views can be right or wrong about it. R
right views make R (R - 1) / 2 pairs, but the rows of R - 1 views can be compared with that of the first: ratios of
pairs are raised to the power 2 / R, which is what they count for if they all say the same. With two views nothing tells
which one is wrong: both get the same probability.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from sklearn.isotonic import isotonic_regression

from emvc._array import ROUNDING, BoolArray, FloatArray, IntArray
from emvc._threads import by_rows
from emvc.method.isolation import LEAST_SAMPLES
from emvc.spectral import scale_rows

_MOST_ENUMERATED = 10  # views of which all ways to be right or wrong are summed over
_LEAST_RATIO = 1e-3
_ROUNDS = 20  # of the approximation for more views
_RIDGE = 1e-3  # divides what only sums tell evenly, so that the order of the views does not

Ranks = dict[tuple[int, int], FloatArray]
"""Ranks of the rows that both views of a pair show."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """How the places that one view leads to are compared with those of another.

    Attributes
    ----------
    members : ndarray of int
        Samples of the reference that both views show.
    others : ndarray of shape (n_members, n_components)
        Places of these samples by the other view, of length one.
    popularity : ndarray of shape (n_components,)
        Mean place of the members by the first view: similarity to it is what a popular place has with everybody.
    ends, slopes : ndarray
        The falling density of p, constant between the ends.
    share : float
        Share of samples that do not belong together.
    """

    members: IntArray
    others: FloatArray
    popularity: FloatArray
    ends: FloatArray
    slopes: FloatArray
    share: float

    @classmethod
    def fit(cls, own: FloatArray, others: FloatArray, members: IntArray) -> tuple[Comparison, FloatArray]:
        """Compare the places, of length one, of the members by two views; return their ranks as well."""
        own, others = own[members], others[members]
        bare = cls(members, others, own.mean(axis=0), np.ones(1), np.ones(1), 0.0)
        p = bare.ranks(own, others, np.arange(len(members)))
        ends, slopes = falling_density(p)
        least = 1.0 / len(p)
        share = float(np.clip(2.0 * np.mean(p > 0.5), least, 1.0 - least))
        return cls(members, others, bare.popularity, ends, slopes, share), p

    def ranks(self, own: FloatArray, others: FloatArray, position: IntArray) -> FloatArray:
        """Return the share of members that are closer to each of some samples than the sample itself.

        Parameters
        ----------
        own, others : ndarray of shape (n_rows, n_components)
            Places of the samples by the two views, of length one.
        position : ndarray of int of shape (n_rows,)
            Which member a sample is, -1 if none.
        """
        itself = np.einsum("ij,ij->i", own, others) - others @ self.popularity
        least, popular = itself - ROUNDING, self.others @ self.popularity
        lead, closer = np.ascontiguousarray(self.others.T), np.empty(len(own))

        def count(part: slice) -> None:
            similar = own[part] @ lead
            similar -= popular
            closer[part] = np.count_nonzero(similar >= least[part, None], axis=1)

        by_rows(count, len(own))
        inside = position >= 0
        return np.asarray((closer - inside + 0.5) / (len(self.members) + ~inside))

    def ratio(self, p: FloatArray) -> FloatArray:
        """Return the likelihood ratio of belonging together."""
        density = self.slopes[np.minimum(np.searchsorted(self.ends, p), len(self.slopes) - 1)]
        return np.maximum((density - self.share) / (1.0 - self.share), _LEAST_RATIO)


def falling_density(p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the Grenander estimate of a falling density on [0, 1]: right ends of intervals, and its values there.

    Examples
    --------
    >>> import numpy as np
    >>> ends, slopes = falling_density(np.array([0.1, 0.2, 0.3, 0.9]))
    >>> ends.round(1), slopes.round(2)
    (array([0.3, 0.9, 1. ]), array([2.5 , 0.42, 0.  ]))
    """
    ends, counts = np.unique(np.append(p, 1.0), return_counts=True)
    counts = counts.astype(np.float64)
    counts[-1] -= 1.0
    widths = np.diff(ends, prepend=0.0)
    fitted = isotonic_regression(counts / len(p) / widths, sample_weight=widths, increasing=False)
    last = np.append(np.flatnonzero(np.diff(fitted) < 0), len(fitted) - 1)
    return ends[last], np.asarray(fitted[last])


@dataclass(frozen=True, eq=False)
class Agreement:
    """What tells, for any sample, in which views its row is wrong.

    Attributes
    ----------
    comparisons : dict
        By pairs of views, in both directions.
    shares : ndarray of shape (n_views,)
        Share of its samples that each view is wrong about.
    """

    comparisons: dict[tuple[int, int], Comparison]
    shares: FloatArray

    @classmethod
    def fit(cls, places: Sequence[FloatArray], shown: BoolArray) -> tuple[Agreement, Ranks]:
        """Compare all pairs of views on the samples of the reference; return their ranks as well.

        Parameters
        ----------
        places : sequence of ndarray of shape (n_samples, n_components)
            Where the views lead.
        shown : ndarray of bool of shape (n_samples, n_views)
            What the views show.
        """
        n_views = shown.shape[1]
        units = [scale_rows(part) for part in places]
        comparisons, ranks = {}, {}
        for k, other in itertools.permutations(range(n_views), 2):
            members = np.flatnonzero(shown[:, k] & shown[:, other])
            if len(members) >= LEAST_SAMPLES:
                comparisons[k, other], ranks[k, other] = Comparison.fit(units[k], units[other], members)
        return cls(comparisons, _wrong_shares(comparisons, n_views, len(shown))), ranks

    def ranks(self, places: Sequence[FloatArray], shown: BoolArray, own: IntArray) -> Ranks:
        """Return the ranks of any rows; ``own`` tells which sample of the reference a row is itself, -1 if none."""
        ranks: Ranks = {}
        units = [scale_rows(part) for part in places]
        for (k, other), comparison in self.comparisons.items():
            both = np.flatnonzero(shown[:, k] & shown[:, other])
            position = np.where(own[both] >= 0, np.searchsorted(comparison.members, own[both]), -1)
            ranks[k, other] = comparison.ranks(units[k][both], units[other][both], position)
        return ranks

    def wrong(self, ranks: Ranks, shown: BoolArray, suspicion: FloatArray) -> FloatArray:
        """Return the probability that a view is wrong about a sample, 0 where it does not show it.

        Parameters
        ----------
        ranks : dict
            By pairs of views, of the rows that both show.
        shown : ndarray of bool of shape (n_rows, n_views)
            What the views show.
        suspicion : ndarray of shape (n_rows, n_views)
            Probability that a row is wrong for other reasons, before the views are compared.
        """
        ratios: dict[tuple[int, int], FloatArray] = {}
        for (k, other), comparison in self.comparisons.items():
            logarithm = ratios.setdefault((min(k, other), max(k, other)), np.zeros(len(shown)))
            both = shown[:, k] & shown[:, other]
            logarithm[both] += 0.5 * np.log(comparison.ratio(ranks[k, other]))  # the mean of both directions
        prior = 1.0 - (1.0 - self.shares) * (1.0 - suspicion)
        return np.where(shown, _probabilities(ratios, prior) if ratios else suspicion, 0.0)


def _wrong_shares(comparisons: dict[tuple[int, int], Comparison], n_views: int, n_samples: int) -> FloatArray:
    """Return the share of samples that each view is wrong about, from those of the pairs."""
    if not comparisons:
        return np.zeros(n_views)
    rows = np.zeros((len(comparisons), n_views))
    for row, pair in zip(rows, comparisons, strict=True):
        row[list(pair)] = 1.0
    pairs = np.array([comparison.share for comparison in comparisons.values()])
    losses, weights = -np.log(1.0 - pairs), np.sqrt((1.0 - pairs) / pairs)  # of which the error is the inverse
    if n_views == 2:  # of which only the sum is known
        found = np.full(2, 0.5 * losses.mean())
    else:
        system = np.vstack([rows * weights[:, None], _RIDGE * np.eye(n_views)])
        found = nnls(system, np.append(losses * weights, np.zeros(n_views)))[0]
    return np.asarray(np.clip(1.0 - np.exp(-found), 1.0 / n_samples, 1.0 - 1.0 / n_samples))


def _probabilities(ratios: dict[tuple[int, int], FloatArray], prior: FloatArray) -> FloatArray:
    """Return the probabilities of being wrong, from those before and the ratios of pairs."""
    n_samples, n_views = prior.shape
    odds = np.log1p(-prior) - np.log(prior)
    if n_views > _MOST_ENUMERATED:
        return _approximate(ratios, odds)
    wrong, total = np.zeros((n_samples, n_views)), np.zeros(n_samples)
    for right in itertools.product((False, True), repeat=n_views):
        weight = odds @ np.array(right, dtype=np.float64)
        for (k, other), logarithm in ratios.items():
            if right[k] and right[other]:
                weight += 2.0 / sum(right) * logarithm
        weight = np.exp(np.minimum(weight, 600.0))
        total += weight
        wrong[:, ~np.array(right)] += weight[:, None]
    return np.asarray(wrong / total[:, None])


def _approximate(ratios: dict[tuple[int, int], FloatArray], prior: FloatArray) -> FloatArray:
    """Return the probabilities if every view is judged by the mean opinion on the others."""
    right = 1.0 / (1.0 + np.exp(-prior))
    for _ in range(_ROUNDS):
        odds = prior.copy()
        share = 2.0 / np.maximum(right.sum(axis=1), 2.0)
        for (k, other), logarithm in ratios.items():
            odds[:, k] += share * right[:, other] * logarithm
            odds[:, other] += share * right[:, k] * logarithm
        right = 0.5 * (right + 1.0 / (1.0 + np.exp(-np.clip(odds, -700.0, 700.0))))
    return np.asarray(1.0 - right)
