r"""Where views lead: the place of a sample as one view tells it, without what it says of the sample itself.

X places the samples by the leading eigenvectors of the mean chain: it says what the views have in common. Every view
predicts X(i) from all samples but i, in two ways. Its *chain* averages over neighbours, which tells clusters apart. A
*ridge regression* on the leading principal components Z of its features tells samples of one cluster apart as well:

.. math:: F_k(i) = \sum_{j \ne i} P_k(i, j) \, b_{jk} X(j) , \qquad
          F_k(i) = \frac{(H_k X)(i) - h_i X(i)}{1 - h_i} , \quad
          H_k = Z_k (Z_k^\top B_k Z_k + \lambda I)^{-1} Z_k^\top B_k , \quad h = \operatorname{diag} H_k ,

where b are beliefs in samples and B is the diagonal matrix of those of view k; :math:`\lambda` has the least error of
such predictions. The two places of a sample are scaled to length one and put side by side, so that the similarity of
places is the sum of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from emvc import cells, graphs
from emvc._array import ROUNDING, BoolArray, FloatArray, IntArray
from emvc._threads import by_rows, gram
from emvc._validation import View
from emvc.spectral import scale_rows

PENALTIES = np.geomspace(1e-4, 2.0, 12)
"""Ridge penalties that are tried, as shares of the largest variance."""

_SEARCH_STEPS = 6  # for the leading components
_SPARE = 10  # more directions than are kept


@dataclass(frozen=True, eq=False)
class Components:
    """The leading principal components of a view.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        What is subtracted from the features.
    directions : ndarray of shape (n_features, n_components)
        Orthogonal.
    """

    mean: FloatArray
    directions: FloatArray

    @classmethod
    def fit(cls, view: View, number: int) -> Components:
        """Find the components of scaled features, by subspace iteration from directions that are the same for all."""
        mean = graphs.column_means(view)
        view = cells.filled(view, mean)
        width = min(number + _SPARE, len(mean))
        directions: FloatArray = np.random.default_rng(0).standard_normal((len(mean), width))
        for _ in range(_SEARCH_STEPS if width < len(mean) else 1):
            scores = np.linalg.qr(cls(mean, directions).scores(view))[0]
            image = np.asarray(view.T @ scores, dtype=np.float64) - np.outer(mean, scores.sum(axis=0))
            directions = np.linalg.qr(image)[0]
        values, turn = np.linalg.eigh(gram(cls(mean, directions).scores(view)))
        keep = np.argsort(-values)[:number]
        return cls(mean, directions @ turn[:, keep[values[keep] > ROUNDING * max(values.max(initial=0.0), 1e-300)]])

    def scores(self, view: View) -> FloatArray:
        """Return the components of samples, of shape (n_samples, n_components); missing cells say nothing."""
        view = cells.filled(view, self.mean)
        return np.asarray(view @ self.directions, dtype=np.float64) - self.mean @ self.directions


@dataclass(frozen=True, eq=False)
class Regression:
    """The ridge regression of one view.

    Attributes
    ----------
    center : ndarray of shape (n_components,)
        Mean of the scores.
    slopes : ndarray of shape (n_components, n_coordinates)
        Scores z predict the place (z - center) @ slopes + mean.
    mean : ndarray of shape (n_coordinates,)
        Mean of X.
    leverage : ndarray of shape (n_states,)
        h of the states, 0 where the view does not show them.
    """

    center: FloatArray
    slopes: FloatArray
    mean: FloatArray
    leverage: FloatArray

    @classmethod
    def fit(cls, scores: FloatArray, embedding: FloatArray, beliefs: FloatArray) -> Regression:
        """Regress the embedding on the scores of the states, weighed by beliefs."""
        total = max(beliefs.sum(), ROUNDING)
        center, mean = beliefs @ scores / total, beliefs @ embedding / total
        wanted = embedding - mean
        variances, turn = np.linalg.eigh(gram(np.sqrt(beliefs)[:, None] * (scores - center)))
        turned = (scores - center) @ turn
        image = turned.T @ (beliefs[:, None] * wanted)
        best, least = cls(center, np.zeros_like(image), mean, beliefs / total), np.inf
        for penalty in variances.max(initial=0.0) * PENALTIES:
            inverse = 1.0 / np.maximum(variances + penalty, ROUNDING)
            leverage = beliefs * (turned**2 @ inverse + 1.0 / total)
            residual = (wanted - turned @ (inverse[:, None] * image)) / np.maximum(1.0 - leverage, ROUNDING)[:, None]
            error = float(beliefs @ np.sum(residual**2, axis=1))
            if error < least:
                best, least = cls(center, turn @ (inverse[:, None] * image), mean, leverage), error
        return best

    def places(self, scores: FloatArray, own: IntArray, embedding: FloatArray) -> FloatArray:
        """Return the places of samples with these scores; ``own`` tells which state each is itself, -1 if none."""
        found = np.asarray((scores - self.center) @ self.slopes)
        itself = np.flatnonzero(own >= 0)
        leverage, known = self.leverage[own[itself], None], embedding[own[itself]] - self.mean
        found[itself] = (found[itself] - leverage * known) / np.maximum(1.0 - leverage, ROUNDING)
        return found + self.mean


@dataclass(frozen=True, eq=False)
class Places:
    """What is needed to place samples by every view.

    Attributes
    ----------
    embedding : ndarray of shape (n_states, n_coordinates)
        X.
    beliefs : ndarray of shape (n_states, n_views)
        How far the states are believed in each view.
    regressions : tuple of Regression
        Of the views; none if a view has no features.
    """

    embedding: FloatArray
    beliefs: FloatArray
    regressions: tuple[Regression, ...]

    @classmethod
    def fit(cls, embedding: FloatArray, scores: Sequence[FloatArray], beliefs: FloatArray) -> Places:
        """Measure the states, given their scores in every view, zero where it does not show them, if there are any."""
        parts = zip(scores, beliefs.T, strict=True) if scores else ()
        return cls(embedding, beliefs, tuple(Regression.fit(part, embedding, belief) for part, belief in parts))

    def of(self, chains: FloatArray, scores: Sequence[FloatArray], own: IntArray, shown: BoolArray) -> list[FloatArray]:
        """Return the places of rows by every view, zero where it does not show them.

        In double precision: ranks of places must not depend on how rows are cut into blocks.
        """
        found, itself = [], np.flatnonzero(own >= 0)
        for k, belief in enumerate(self.beliefs.T):
            lead = self.embedding * belief[:, None]
            place = np.empty((len(shown), lead.shape[1]))
            by_rows(partial(_step, chains[k], lead, place), len(place))
            place[itself] -= chains[k][itself, own[itself], None] * lead[own[itself]]
            parts = [scale_rows(place)]
            if self.regressions:
                parts.append(scale_rows(self.regressions[k].places(scores[k], own, self.embedding)))
            found.append(np.hstack(parts) * shown[:, k, None])
        return found


def _step(chain: FloatArray, lead: FloatArray, out: FloatArray, rows: slice) -> None:
    out[rows] = chain[rows].astype(np.float64) @ lead
