r"""Rows against reference states: from views to the problem that is solved.

The states are samples: all of them in the exact method, landmarks, or the training set for new samples. `Reference.fit`
measures everything on the states; `Reference.rows` describes any samples by it, the states themselves among them:

1. samples that stand alone in a view are left out of it (`emvc.method.isolation`);
2. the local graph of every view leads from a sample to the states (`emvc.method.local`); what a view does not show is
   filled with what the other views say;
3. from the places that the chains of the views lead to it is told in which views a sample is wrong
   (`emvc.method.agreement`);
4. links to samples that are probably wrong in a view are replaced by what all views say, and the joint view
   (`emvc.method.joint`), one more chain, is made again with these beliefs;
5. chains, weights of the views and limits of the errors make a problem (`emvc.problem.RowProblem`), where the limit of
   an error is the usual length of errors in its view times the odds that the row is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from emvc import graphs, kernels
from emvc._array import BoolArray, FloatArray, IntArray
from emvc._threads import by_rows
from emvc._validation import View, Views, to_dense
from emvc.extension import Kernel, fit_kernel, prepare_view
from emvc.graphs import Scaling
from emvc.method.agreement import Agreement
from emvc.method.isolation import Isolation
from emvc.method.joint import JointView
from emvc.method.local import LocalGraph
from emvc.method.places import Components, Places
from emvc.method.reliability import Alone, keep_alone
from emvc.problem import RowProblem
from emvc.spectral import COMPONENTS, leading_eigenvectors, thin_out

EVEN = 0.5
"""Probability that a row of an isolated group is wrong, as long as no other view was asked: the group may be damage, or
a sparse cluster."""

_LEAST_BELIEF = 1e-3
_MOST_ODDS = 1e6

Affinity = Callable[[View, str, int], FloatArray]


@dataclass(frozen=True)
class Settings:
    """Options of the method, validated.

    Attributes
    ----------
    n_clusters, n_neighbors : int
        Number of clusters, and of neighbours in a graph of all states.
    affinity : str or callable
        Name of the graph, or a function of a scaled view, its name and a number of neighbours.
    scale : str or None
        See `emvc.graphs.scale_view`.
    joint : bool
        Whether there is a joint view.
    false_alarms : float or None
        Rows that are wrong with a larger probability than one minus this are flagged; None to look for no errors.
    limited : bool
        Whether errors have limits, beyond which they are errors. Without, the consensus is the mean of the chains.
    """

    n_clusters: int
    n_neighbors: int
    affinity: str | Affinity = "local"
    scale: str | None = "auto"
    joint: bool = True
    false_alarms: float | None = 0.05
    limited: bool = True

    def without_limits(self) -> Settings:
        """Return the same for the plain mean of the chains."""
        return replace(self, limited=False)

    def beliefs(self, shown: BoolArray, wrong: FloatArray) -> FloatArray:
        """Return how far samples are believed in each view, given the probabilities that they are wrong."""
        return believed(shown, wrong) if self.limited else shown.astype(np.float64)

    @property
    def has_features(self) -> bool:
        """Whether the views are features, not affinities."""
        return self.affinity != "precomputed"


@dataclass(frozen=True, eq=False)
class Screening:
    """Isolation in all views, and what it says about some samples.

    Attributes
    ----------
    models : tuple of Isolation or None
        One per view.
    ruined, suspicious : ndarray of shape (n_samples, n_views)
        Probabilities, see `emvc.method.isolation`.
    """

    models: tuple[Isolation | None, ...]
    ruined: FloatArray
    suspicious: FloatArray

    @classmethod
    def fit(cls, views: Views, settings: Settings) -> Screening:
        """Measure the views."""
        probabilities = np.zeros((2, *views.missing.shape))
        models: list[Isolation | None] = []
        for k, (array, absent) in enumerate(zip(views.arrays, views.missing.T, strict=True)):
            if settings.false_alarms is None or not settings.has_features:
                models.append(None)
                continue
            here = np.flatnonzero(~absent)
            model, probabilities[:, here, k] = Isolation.fit(array if len(here) == len(absent) else array[here])
            models.append(model)
        return cls(tuple(models), *probabilities)

    def look_at(self, views: Views) -> Screening:
        """Return what is said about new samples."""
        probabilities = np.zeros((2, *views.missing.shape))
        for k, (model, array) in enumerate(zip(self.models, views.arrays, strict=True)):
            here = np.flatnonzero(~views.missing[:, k])
            if model is not None and len(here):
                probabilities[:, here, k] = model.probabilities(graphs.like(array[here], model.reference))
        return Screening(self.models, *probabilities)

    def take(self, rows: IntArray) -> Screening:
        """Return what is said about some of the samples."""
        return Screening(self.models, self.ruined[rows], self.suspicious[rows])

    def shown(self, missing: BoolArray) -> BoolArray:
        """Return in which views samples are, and are not probably ruined."""
        return np.asarray(~missing & (self.ruined <= 0.5))

    def forgiving(self) -> Screening:
        """Return the same with nothing to say: for samples that would otherwise be in no view."""
        return Screening(self.models, np.zeros_like(self.ruined), np.zeros_like(self.suspicious))


@dataclass(frozen=True, eq=False)
class ViewStates:
    """One view of the states.

    Attributes
    ----------
    members : ndarray of int
        States that the view shows.
    scaling : Scaling or None
        How its features are scaled; None for given affinities.
    scaled : ndarray or CSR matrix, or None
        The members.
    graph : LocalGraph, Kernel or None
        The graph of the members; None for one that cannot be extended.
    components : Components or None
        Principal components of the members; None for given affinities.
    """

    members: IntArray
    scaling: Scaling | None = None
    scaled: View | None = None
    graph: LocalGraph | Kernel | None = None
    components: Components | None = None

    def squares(self, rows: View, affinity: str) -> FloatArray:
        """Return the squared distances of rows to the members."""
        assert self.scaling is not None
        assert self.scaled is not None
        return graphs.squared_distances_between(prepare_view(self.scaling.apply(rows), affinity), self.scaled)

    def scores(self, rows: View) -> FloatArray:
        """Return the principal components of rows."""
        assert self.scaling is not None
        assert self.components is not None
        return self.components.scores(self.scaling.apply(graphs.like(rows, self.scaled)))


@dataclass(frozen=True, eq=False)
class Rows:
    """Samples, described by the states.

    Attributes
    ----------
    problem : RowProblem
        Chains of the views, and the joint one, with weights and limits.
    shown : ndarray of bool of shape (n_rows, n_views)
        Views that take part.
    wrong, isolated, contradicted : ndarray of shape (n_rows, n_views)
        Probability that a row is wrong; that it stands alone, or is one of a group that does; that it is wrong as far
        as the views can tell by comparison.
    usual : ndarray of shape (n_views,)
        Usual length of the errors of each view.
    """

    problem: RowProblem
    shown: BoolArray
    wrong: FloatArray
    isolated: FloatArray
    contradicted: FloatArray
    usual: FloatArray


@dataclass(frozen=True, eq=False)
class Reference:
    """The states, measured.

    Attributes
    ----------
    settings : Settings
        The options.
    screening : Screening
        Isolation in the views.
    views : tuple of ViewStates
        The states in each view.
    n_states : int
        Number of states.
    places : Places or None
        Where views lead; None for one view or if errors are not looked for.
    agreement : Agreement or None
        How places are compared; None likewise.
    beliefs : ndarray of shape (n_states, n_views)
        How far the states are believed in each view.
    joint : JointView or None
        The joint view.
    usual : ndarray of shape (n_views,)
        Usual length of the errors of each view.
    alone : tuple
        Chains of the views over a few of the states, see `emvc.method.reliability`.
    """

    settings: Settings
    screening: Screening
    views: tuple[ViewStates, ...]
    n_states: int
    places: Places | None
    agreement: Agreement | None
    beliefs: FloatArray
    joint: JointView | None
    usual: FloatArray
    alone: tuple[Alone, ...]

    @classmethod
    def fit(
        cls, views: Views, screening: Screening, settings: Settings, dtype: type = np.float32
    ) -> tuple[Reference, Rows]:
        """Measure the states; return the reference and the states as rows of their own.

        Every sample must be shown by a view.
        """
        shown, own = screening.shown(views.missing), np.arange(views.n_samples)
        n_samples, n_views = shown.shape
        has_joint = settings.joint and settings.affinity == "local" and n_views > 1
        chains = np.empty((n_views + has_joint, n_samples, n_samples), dtype=dtype)
        states, squares = [], []
        for k, name in enumerate(views.names):
            found, distances = _fit_view(views, k, name, shown[:, k], settings, chains[k])
            states.append(found)
            if has_joint:
                assert distances is not None
                squares.append(scatter(distances, found.members, found.members, shown.shape[0]))
        suspicion = EVEN * screening.suspicious * shown
        beliefs, joint = settings.beliefs(shown, suspicion), None
        if has_joint:
            joint = _fit_joint(squares, beliefs, settings, chains[-1])
        compared, agreement, contradicted = None, None, suspicion
        if settings.false_alarms is not None and n_views > 1:
            number = min(max(settings.n_clusters, COMPONENTS), max(n_samples // 3, 2))
            states, scores = _find_components(states, n_samples, number)
            compared = Places.fit(_embed(chains, beliefs, number), scores, beliefs)
            agreement, ranks = Agreement.fit(compared.of(chains, scores, own, shown), shown)
            contradicted = agreement.wrong(ranks, shown, suspicion)
            before, beliefs = beliefs, settings.beliefs(shown, contradicted)
            if has_joint and (before != beliefs).any():
                joint = _fit_joint(squares, beliefs, settings, chains[-1])
        alone = keep_alone(chains[:n_views], shown)
        weights = _complete(chains, shown, beliefs, beliefs, has_joint)
        inner = kernels.rows.inner_products(chains[:n_views], weights[:n_views])
        usual = _usual_lengths(inner, weights[:n_views])
        parts = (tuple(states), n_samples, compared, agreement, beliefs, joint, usual, alone)
        reference = cls(settings, screening, *parts)
        return reference, reference._describe(chains, weights, shown, screening, contradicted)

    def rows(self, views: Views, own: IntArray, screening: Screening) -> Rows:
        """Describe samples by the states; ``own`` tells which state a sample is itself, -1 if none."""
        settings, shown = self.settings, screening.shown(views.missing)
        if callable(settings.affinity) or not settings.has_features:
            raise ValueError("A graph that was given as affinities or by a function cannot be extended to new samples.")
        n_rows, n_views = shown.shape
        chains = np.zeros((n_views + (self.joint is not None), n_rows, self.n_states), dtype=np.float32)
        squares, scores = [], []
        for k, (view, array) in enumerate(zip(self.views, views.arrays, strict=True)):
            here = np.flatnonzero(shown[:, k])
            distances = np.zeros((n_rows, self.n_states))
            if len(here) and len(view.members):
                assert isinstance(settings.affinity, str)
                found = view.squares(graphs.like(array[here], view.scaled), settings.affinity)
                itself = _positions(view.members, own[here])
                part: FloatArray = np.empty(found.shape, dtype=np.float32)
                if self.joint is not None:
                    distances[np.ix_(here, view.members)] = found
                _write_rows(view.graph, found, itself, part)
                chains[k][np.ix_(here, view.members)] = part
            squares.append(distances)
            if view.components is not None:
                scores.append(_scattered(view.scores(array[here]), here, n_rows))
        suspicion = EVEN * screening.suspicious * shown
        contradicted = suspicion
        if self.agreement is not None and self.places is not None:
            ranks = self.agreement.ranks(self.places.of(chains, scores, own, shown), shown, own)
            contradicted = self.agreement.wrong(ranks, shown, suspicion)
        beliefs = settings.beliefs(shown, contradicted)
        weights = _complete(chains, shown, beliefs, self.beliefs, self.joint is not None)
        if self.joint is not None:
            self.joint.rows(squares, beliefs, self.beliefs, own, chains[-1])
        return self._describe(chains, weights, shown, screening, contradicted)

    def _limits(self, shown: BoolArray, contradicted: FloatArray) -> FloatArray:
        """Return the limits of the errors, of shape (n_views, n_rows)."""
        if self.agreement is None or not self.settings.limited:
            return np.full(contradicted.T.shape, np.inf)
        right = np.where(shown, 1.0 - contradicted, 0.0)
        largest = right.max(axis=1, keepdims=True)  # a sample must be somewhere
        doubt = 1.0 - np.divide(right, largest, out=np.zeros_like(right), where=largest > 0)
        doubt = np.clip(doubt, 1.0 / _MOST_ODDS, 1.0 - 1.0 / _MOST_ODDS)
        return np.asarray((self.usual * (1.0 - doubt) / doubt).T)

    def _describe(
        self, chains: FloatArray, weights: FloatArray, shown: BoolArray, screening: Screening, contradicted: FloatArray
    ) -> Rows:
        """Return the rows with their limits."""
        limits = np.full(weights.shape, np.inf)
        limits[: shown.shape[1]] = self._limits(shown, contradicted)
        wrong = np.where(shown, contradicted, np.maximum(screening.ruined, contradicted))
        isolated = np.maximum(screening.ruined, screening.suspicious)
        return Rows(RowProblem(chains, limits, weights), shown, wrong, isolated, contradicted, self.usual)


def _fit_view(
    views: Views, k: int, name: str, shown: BoolArray, settings: Settings, out: FloatArray
) -> tuple[ViewStates, FloatArray | None]:
    """Write the chain of a view to ``out``; return the view and, for the local graph, the distances of its members."""
    members, array = np.flatnonzero(shown), views.arrays[k]
    n_samples = len(shown)
    n_neighbors = max(min(settings.n_neighbors, 10), round(settings.n_neighbors * len(members) / n_samples))
    if not len(members):
        out[...] = 0.0
        return ViewStates(members), np.zeros((0, 0))
    if settings.affinity == "precomputed":
        _write_affinity(to_dense(array[members][:, members]), members, out)
        return ViewStates(members), None
    part = array if len(members) == n_samples else array[members]
    scaling = graphs.fit_scaling(part, settings.scale)
    scaled = scaling.apply(part)
    if settings.affinity == "local":
        squares = graphs.squared_distances(scaled)
        graph = LocalGraph.fit(squares, n_neighbors)
        whole = len(members) == n_samples
        chain = out if whole else np.empty(squares.shape, dtype=out.dtype)
        graph.rows(squares, np.arange(len(members)), chain)
        if not whole:
            out[...] = scatter(chain, members, members, n_samples)
        return ViewStates(members, scaling, scaled, graph), squares
    if callable(settings.affinity):
        _write_affinity(settings.affinity(scaled, name, n_neighbors), members, out)
        return ViewStates(members), None
    _write_affinity(graphs.compute_affinity(scaled, settings.affinity), members, out)
    prepared = prepare_view(scaled, settings.affinity)
    kernel = fit_kernel(graphs.squared_distances(prepared), settings.affinity)
    return ViewStates(members, scaling, prepared, kernel), None


def _write_affinity(affinity: FloatArray, members: IntArray, out: FloatArray) -> None:
    chain = graphs.transition_matrix(affinity)
    out[...] = chain if len(members) == len(out) else scatter(chain, members, members, len(out))


def _write_rows(graph: LocalGraph | Kernel | None, squares: FloatArray, own: IntArray, out: FloatArray) -> None:
    if isinstance(graph, LocalGraph):
        graph.rows(squares, own, out)
    elif graph is not None:
        out[...] = graphs.transition_matrix(graph.rows(squares))


def scatter(matrix: FloatArray, rows: IntArray, columns: IntArray, n_samples: int) -> FloatArray:
    """Return a square matrix that is zero but for some rows and columns; the matrix itself if these are all."""
    if matrix.shape == (n_samples, n_samples):
        return matrix
    full = np.zeros((n_samples, n_samples), dtype=matrix.dtype)
    full[np.ix_(rows, columns)] = matrix
    return full


def _positions(members: IntArray, own: IntArray) -> IntArray:
    """Return the positions of states among the members, -1 for those that are not among them."""
    if not len(members):
        return np.full(len(own), -1)
    place = np.minimum(np.searchsorted(members, own), len(members) - 1)
    return np.where(members[place] == own, place, -1)


def believed(shown: BoolArray, wrong: FloatArray) -> FloatArray:
    """Return how far samples are believed in each view, zero where not shown.

    The odds of being right, at most one, relative to those of the view that is believed most: a sample must be
    somewhere, and if its views contradict each other and nothing tells which is wrong, none is doubted.
    """
    odds = np.where(shown, np.clip((1.0 - wrong) / np.maximum(wrong, _LEAST_BELIEF), _LEAST_BELIEF, 1.0), 0.0)
    largest = odds.max(axis=1, keepdims=True)
    return np.asarray(np.divide(odds, largest, out=np.zeros_like(odds), where=largest > 0))


def _fit_joint(squares: Sequence[FloatArray], beliefs: FloatArray, settings: Settings, out: FloatArray) -> JointView:
    joint, distances = JointView.fit(squares, beliefs, settings.n_neighbors)
    joint.graph.rows(distances, np.arange(len(distances)), out)
    return joint


def _find_components(
    states: list[ViewStates], n_samples: int, number: int
) -> tuple[list[ViewStates], list[FloatArray]]:
    """Return the views with their principal components, and the scores of all samples, if all views have features."""
    if any(view.scaled is None for view in states):
        return states, []
    found, scores = [], []
    for view in states:
        components = Components.fit(view.scaled, min(number, max(len(view.members) // 3, 1)))
        found.append(replace(view, components=components))
        scores.append(_scattered(components.scores(view.scaled), view.members, n_samples))
    return found, scores


def _scattered(values: FloatArray, rows: IntArray, n_rows: int) -> FloatArray:
    """Return an array that is zero but for some rows."""
    full = np.zeros((n_rows, *values.shape[1:]))
    full[rows] = values
    return full


def _embed(chains: FloatArray, beliefs: FloatArray, number: int) -> FloatArray:
    """Return the leading eigenvectors of the mean of all chains, scaled by their eigenvalues."""
    n_views = beliefs.shape[1]
    mean = mean_chain(chains[:n_views], beliefs, beliefs)
    for joint in chains[n_views:]:
        mean *= n_views
        mean += joint
        mean /= n_views + 1
    mean += mean.T.copy()
    degree = mean.sum(axis=1, dtype=np.float64)
    root = 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0))
    mean *= root[:, None].astype(mean.dtype)
    mean *= root.astype(mean.dtype)
    vectors, values = leading_eigenvectors(thin_out(mean), number)
    return np.asarray(root[:, None] * vectors * np.clip(values, 0.0, 1.0))


def mean_chain(chains: FloatArray, rows: Any, states: Any) -> FloatArray:
    """Return the mean of chains over the views that show row and state, weighed by beliefs in both.

    Rows add up to one, or to zero where no view says anything.
    """
    mean = np.empty(chains.shape[1:], dtype=chains.dtype)
    rows, states = rows.astype(chains.dtype), states.astype(chains.dtype)

    def average(part: slice) -> None:
        total = np.zeros_like(mean[part])
        count = np.zeros_like(total)
        for k, chain in enumerate(chains):
            weight = rows[part, k, None] * states[:, k]
            count += weight
            weight *= chain[part]
            total += weight
        np.divide(total, count, out=total, where=count > 0)
        sums = total.sum(axis=1, keepdims=True)
        np.divide(total, sums, out=mean[part], where=sums > 0)
        mean[part][sums[:, 0] <= 0] = 0.0

    by_rows(average, len(mean))
    return mean


def _complete(
    chains: FloatArray, shown: BoolArray, rows: FloatArray, states: FloatArray, has_joint: bool
) -> FloatArray:
    """Fill what views do not show, or are not believed in, with what all say, in place; return weights by view and row.

    The row of a view is cut down by the beliefs in its states, scaled to the mass that all together put on what is
    believed, and filled up by theirs on the rest. Doubts about the row itself are left to the problem.
    """
    n_rows, n_views = shown.shape
    number = shown.sum(axis=1)
    weights = np.zeros((len(chains), n_rows))
    weights[:n_views] = (shown / np.maximum(number + has_joint, 1)[:, None]).T
    if has_joint:
        weights[-1] = 1.0 / (number + 1)
    if (rows == 1.0).all() and (states == 1.0).all():
        return weights
    guess = mean_chain(chains[:n_views], rows, states)
    guess[guess.sum(axis=1) <= 0] = 1.0 / guess.shape[1]
    for k, chain in enumerate(chains[:n_views]):
        by_rows(partial(_fill, chain, guess, states[:, k].astype(chain.dtype)), n_rows)
        chain[~shown[:, k]] = guess[~shown[:, k]]
    return weights


def _fill(chain: FloatArray, guess: FloatArray, states: FloatArray, part: slice) -> None:
    """Fill rows of a chain by a guess where its states are not believed in."""
    rows, other = chain[part] * states, guess[part]
    said, wanted = rows.sum(axis=1), other @ states
    rows *= np.divide(wanted, said, out=np.zeros_like(said), where=said > 0)[:, None]
    rows += other * (1.0 - states)
    rows[said <= 0] = other[said <= 0]
    chain[part] = rows


def _usual_lengths(inner: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the median length of the errors of each view, as differences from the weighted mean of all."""
    shares = (weights / weights.sum(axis=0)).T
    image = np.einsum("ikl,il->ik", inner, shares)
    squares = np.einsum("ikk->ik", inner) - 2.0 * image + np.einsum("ik,ik->i", shares, image)[:, None]
    lengths = np.sqrt(np.maximum(squares, 0.0)).T
    shown = [of[weight > 0] for of, weight in zip(lengths, weights, strict=True)]
    return np.array([np.median(of) if len(of) else 0.0 for of in shown])
