r"""The graph and spectral ends of the method with landmarks: chains from N samples to m of them.

Everything here treats a row by itself, with numbers that `emvc.pilot` has taken from a sample, so no result depends on
how the rows are cut into blocks.

**Graph.** Every row leads to its nearest landmarks with the weights of `emvc.graphs.local_graph`; neighbours are
counted among landmarks, a quarter of a cluster as there. The joint view averages distances as in `emvc.fusion`.

**Screening.** Isolation is the distance to the 10th neighbour among some rows of the pilot. Disagreement is as in
`emvc.screening` with landmarks as the states of both steps.

**Embedding.** The left singular vectors of :math:`P D^{-1/2}`, D the column sums: the eigenvectors of the walk that
goes from a sample to a landmark and back, :math:`P D^{-1} P'`. They follow from the m x m Gram matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import scipy.sparse

from emvc import graphs
from emvc._array import BoolArray, FloatArray, IntArray
from emvc._linalg import largest_eigenpairs
from emvc._validation import View, Views
from emvc.graphs import Scaling
from emvc.screening import (
    NEIGHBOR,
    IsolationScale,
    clip_scores,
    condemn_companions,
    contrast_of,
    find_mismatches,
    isolated_everywhere,
    mean_isolation,
    row_stochastic,
)

_LEAST_NEIGHBORS = 5
_CHUNK_BYTES = 2**24
_SHARPNESS = 10.0
_TELEPORT = 1e-3


def default_n_neighbors(n_landmarks: int, n_clusters: int) -> int:
    """Return a quarter of the average number of landmarks in a cluster, at least 5."""
    return min(max(_LEAST_NEIGHBORS, n_landmarks // (4 * n_clusters)), n_landmarks - 1)


@dataclass(frozen=True, eq=False)
class ViewPlan:
    """How rows of one view are screened and compared with the landmarks."""

    screening: Scaling
    reference: View
    reference_rows: IntArray
    isolation: IsolationScale
    condemned_from: float
    scaling: Scaling
    shift: FloatArray
    landmarks: View
    shown: IntArray
    """Positions of the landmarks that this view shows."""
    n_neighbors: int
    scale: FloatArray
    floor: float
    mean_square: float

    def isolation_of(self, array: View, rows: IntArray) -> FloatArray:
        """Return the squared distance of every row to its 10th neighbour in the reference."""
        scaled = clip_scores(self.screening.apply(array))
        kth = np.empty(len(rows))
        for part in _chunks(len(rows), self.reference.shape[0]):
            squares = graphs.squared_distances_between(scaled[part], self.reference)
            own = _positions(rows[part], self.reference_rows)
            itself = np.flatnonzero(own >= 0)
            squares[itself, own[itself]] = np.inf
            n_neighbors = min(NEIGHBOR, squares.shape[1]) - 1
            kth[part] = np.partition(squares, n_neighbors, axis=1)[:, n_neighbors]
        return kth

    def prepare(self, array: View) -> View:
        """Return rows scaled as for the graph."""
        return shifted(self.scaling.apply(array), self.shift)

    def squares(self, prepared: View, own: IntArray) -> FloatArray:
        """Return squared distances of prepared rows to the landmarks that are shown, exactly zero to themselves."""
        squares = graphs.squared_distances_between(prepared, self.landmarks)
        return _zero_own(squares, own)


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a block of rows needs to know to become chains; its size does not depend on their number."""

    views: tuple[ViewPlan, ...]
    landmark_rows: IntArray
    together: tuple[float, float]
    spared: BoolArray
    """Views in which too many samples stand alone for anybody to be condemned."""
    screening: bool
    weights: FloatArray
    """Weights of the chains, the joint one last if there is one."""
    joint: JointPlan | None
    seconds: FloatArray | None = None
    """Second steps of walks in the other views, by view; None if nothing is to be compared."""
    singles: FloatArray | None = None
    """Second steps of walks in each view; None if nobody is to be condemned for disagreement."""
    contradiction: tuple[tuple[float, float], ...] = ()
    """Centre and spread of the disagreement, by view."""
    contrast: tuple[tuple[float, float], ...] = ()
    """Centre and spread of the contrast, by view."""
    tells: BoolArray | None = None
    """Views in which samples can be condemned for disagreement; None if it cannot be told."""
    observed_states: FloatArray | None = None
    """Landmarks that each view shows and that are not condemned there, of shape (n_views, n_landmarks)."""

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks."""
        return len(self.landmark_rows)

    @property
    def n_views(self) -> int:
        """Number of views without the joint one."""
        return len(self.views)


@dataclass(frozen=True, eq=False)
class JointPlan:
    """How the distances of the views are averaged and turned into a graph."""

    n_neighbors: int
    scale: FloatArray
    floor: float
    shrinkage: FloatArray
    far: float


@dataclass(frozen=True, eq=False)
class Description:
    """Screened rows with their chains; the arrays of the report cover all rows, the chains the kept ones."""

    missing: BoolArray
    isolation: FloatArray
    together: FloatArray
    condemned: BoolArray
    kept: IntArray
    lost: IntArray
    votes: FloatArray
    """Distribution over the landmarks of each lost row."""
    transitions: FloatArray
    observed: FloatArray
    disagreement: FloatArray
    contrast: FloatArray
    """Standard scores of the contrast; NaN where it cannot be told or nobody is condemned for it."""
    mismatched: BoolArray


def _chunks(n_rows: int, n_columns: int) -> list[slice]:
    size = max(64, _CHUNK_BYTES // (8 * max(n_columns, 1)))
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


def _positions(rows: IntArray, members: IntArray) -> IntArray:
    """Return where each row is in the sorted ``members``, -1 where it is not."""
    if not len(members):
        return np.full(len(rows), -1)
    place = np.minimum(np.searchsorted(members, rows), len(members) - 1)
    return np.where(members[place] == rows, place, -1)


def _zero_own(squares: FloatArray, own: IntArray) -> FloatArray:
    itself = np.flatnonzero(own >= 0)
    squares[itself, own[itself]] = 0.0
    return squares


def shifted(view: View, shift: FloatArray) -> View:
    """Return a dense view minus a constant row, which distances do not see but their rounding does."""
    return view if scipy.sparse.issparse(view) else view - shift


def present(views: Views) -> list[tuple[View, IntArray]]:
    """Return every view with the rows that it has."""
    return [(array, np.flatnonzero(~absent)) for array, absent in zip(views.arrays, views.missing.T, strict=True)]


def neighbor_scale(squares: FloatArray, own: IntArray, n_neighbors: int) -> FloatArray:
    """Return the mean distance of every row to its nearest states besides itself."""
    shares = graphs.neighbor_shares(squares, own, n_neighbors)
    return np.asarray(np.einsum("ij,ij->i", shares, np.sqrt(squares)) / n_neighbors)


def take(views: Views, rows: IntArray) -> Views:
    """Return some rows of checked views."""
    return replace(views, arrays=tuple(array[rows] for array in views.arrays), missing=views.missing[rows])


@dataclass(frozen=True, eq=False)
class ViewChains:
    """Chains of single views, with distances to landmarks, before anything is fused."""

    squares: FloatArray
    chains: FloatArray
    observed: BoolArray
    disagreement: FloatArray
    contrast: FloatArray
    """See `emvc.screening.contrast`."""


def view_chains(plan: Plan, views: Views, rows: IntArray, observed: BoolArray) -> ViewChains:
    """Return distances and chains of rows to the landmarks, view by view, zero where they are not observed."""
    n_rows, n_views = observed.shape
    squares = np.zeros((n_views, n_rows, plan.n_landmarks))
    chains = np.zeros((n_views, n_rows, plan.n_landmarks))
    own = _positions(rows, plan.landmark_rows)
    for k, (view, array) in enumerate(zip(plan.views, views.arrays, strict=True)):
        seen = np.flatnonzero(observed[:, k])
        if not len(seen):
            continue
        own_shown = _positions(own[seen], view.shown)
        part = view.squares(view.prepare(array[seen]), own_shown)
        row_scale = neighbor_scale(part, own_shown, view.n_neighbors)
        weights = graphs.local_rows(part, own_shown, view.n_neighbors, row_scale, view.scale, view.floor)
        places = np.ix_(seen, view.shown)
        squares[k][places], chains[k][places] = part, weights
    scores = disagreement(chains, observed, own, plan.seconds), contrast(chains, observed, own, plan.singles)
    return ViewChains(squares, chains, observed, *scores)


def disagreement(chains: FloatArray, observed: BoolArray, own: IntArray, seconds: FloatArray | None) -> FloatArray:
    """Return the share of two-step transitions that the other views do not confirm (see `emvc.screening`)."""
    scores = np.zeros(observed.shape)
    if seconds is None:
        return scores
    total = chains.sum(axis=0)
    count = observed.sum(axis=1)
    for k, chain in enumerate(chains):
        here, there = (_away(first, own) @ seconds[k] for first in (chain, total - chain))
        confirmed = np.minimum(here, there).sum(axis=1)
        scores[:, k] = np.where(observed[:, k] & (count - observed[:, k] > 0), 1.0 - confirmed, 0.0)
    return np.asarray(np.clip(scores, 0.0, 1.0))


def contrast(chains: FloatArray, observed: BoolArray, own: IntArray, singles: FloatArray | None) -> FloatArray:
    """Return by how much the other views agree more with each other than with this one (see `emvc.screening`)."""
    if singles is None:
        return np.full(observed.shape, np.nan)
    firsts = [_away(chain, own) for chain in chains]
    with_others = np.zeros(observed.shape)
    for j, second in enumerate(singles):
        there = firsts[j] @ second
        for k in range(len(chains)):
            if k != j:
                both = observed[:, k] & observed[:, j]
                overlap = np.minimum(firsts[k] @ second, there).sum(axis=1)
                with_others[:, (k, j)] += np.where(both, 0.5 * overlap, 0.0)[:, None]
    return contrast_of(with_others, observed)


def _away(chain: FloatArray, own: IntArray) -> FloatArray:
    """Return first steps that leave the sample, where it is a landmark itself."""
    first = chain.copy()
    itself = np.flatnonzero(own >= 0)
    first[itself, own[itself]] = 0.0
    return row_stochastic(first)


def screen_rows(plan: Plan, views: Views, rows: IntArray) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Return isolation, standardised mean isolation, condemned and observed samples."""
    missing = views.missing
    isolation, condemned = np.zeros(missing.shape), np.zeros(missing.shape, dtype=bool)
    together = np.zeros(len(rows))
    if plan.screening:
        for k, (view, (array, here)) in enumerate(zip(plan.views, present(views), strict=True)):
            isolation[here, k] = view.isolation.scores(view.isolation_of(array[here], rows[here]))
            condemned[here, k] = isolation[here, k] >= view.condemned_from
        together = (mean_isolation(isolation, missing) - plan.together[0]) / plan.together[1]
        condemned |= isolated_everywhere(isolation, together, missing)[:, None]
        condemned = condemn_companions(condemned & ~plan.spared & ~missing, isolation, missing) & ~plan.spared
    return isolation, together, condemned, ~(missing | condemned)


def joint_squares(plan: Plan, squares: FloatArray, observed: BoolArray, own: IntArray) -> FloatArray:
    """Return the mean over the views of squared distances in units of their mean, where a view shows both ends."""
    joint, states = plan.joint, plan.observed_states
    assert joint is not None
    assert states is not None
    n_rows, n_views = observed.shape
    total, count = np.zeros((n_rows, plan.n_landmarks)), np.zeros((n_rows, plan.n_landmarks))
    shared = observed.astype(np.float64) @ states
    for k, view in enumerate(plan.views):
        if view.mean_square <= 0:
            continue
        weight = plan.weights[k]
        both = observed[:, k, None] * states[k]
        total += weight / view.mean_square * squares[k] * both
        count += weight * both
    alone = count <= 0
    total /= np.where(alone, 1.0, count)
    if n_views > 1 and shared.min() < n_views:
        total = np.maximum(1.0 + (total - 1.0) * joint.shrinkage[shared.astype(np.intp)], 0.0)
    total[alone] = joint.far
    return _zero_own(total, own)


def describe(plan: Plan, views: Views, rows: IntArray, dtype: type[np.floating]) -> Description:
    """Screen rows and return their chains, in pieces of bounded memory."""
    isolation, together, condemned, observed = screen_rows(plan, views, rows)
    kept = np.flatnonzero(observed.any(axis=1))
    lost = np.flatnonzero(~observed.any(axis=1))
    n_chains = plan.n_views + (plan.joint is not None)
    transitions = np.empty((n_chains, len(kept), plan.n_landmarks), dtype=dtype)
    masks = np.ones((n_chains, len(kept)))
    scores, contrasts = np.zeros(observed.shape), np.full(observed.shape, np.nan)
    mismatched = np.zeros_like(observed)
    for part in _chunks(len(kept), 4 * (plan.n_views + 1) * plan.n_landmarks):
        members = kept[part]
        found = view_chains(plan, take(views, members), rows[members], observed[members])
        scores[members] = found.disagreement
        if plan.tells is not None:
            contrasts[members] = standard_scores(plan.contrast, found.contrast)
            mismatched[members] = find_mismatches(contrasts[members]) & plan.tells
        seen = found.observed & ~mismatched[members]
        masks[: plan.n_views, part] = seen.T
        transitions[:, part] = _fuse(plan, found, seen, _positions(rows[members], plan.landmark_rows))
    return Description(
        missing=views.missing,
        isolation=isolation,
        together=together,
        condemned=condemned,
        kept=kept,
        lost=lost,
        votes=votes(plan, take(views, lost)),
        transitions=transitions,
        observed=masks,
        disagreement=scores,
        contrast=contrasts,
        mismatched=mismatched,
    )


def standard_scores(scales: tuple[tuple[float, float], ...], scores: FloatArray) -> FloatArray:
    """Return scores in units of the usual spread of each view, zero if it is not known what is usual."""
    if not scales:
        return np.zeros_like(scores)
    middle, spread = (np.array(values) for values in zip(*scales, strict=True))
    return np.asarray((scores - middle) / spread)


def _fuse(plan: Plan, found: ViewChains, observed: BoolArray, own: IntArray) -> FloatArray:
    """Return the chains of all views and the joint one, completed where they are not observed."""
    states = plan.observed_states
    assert states is not None
    chains = found.chains * observed.T[:, :, None] * states[:, None, :]
    chains = np.stack([graphs.transition_matrix(chain) for chain in chains])
    if plan.joint is not None:
        joint = plan.joint
        squares = joint_squares(plan, found.squares, observed, own)
        row_scale = neighbor_scale(squares, own, joint.n_neighbors)
        guess = graphs.local_rows(squares, own, joint.n_neighbors, row_scale, joint.scale, joint.floor)
    else:
        weights = plan.weights[:, None, None] * observed.T[:, :, None] * states[:, None, :]
        count = weights.sum(axis=0)
        guess = graphs.transition_matrix((chains * weights).sum(axis=0) / np.where(count > 0, count, 1.0))
    for chain, seen, shown in zip(chains, observed.T, states > 0, strict=True):
        if not (seen.all() and shown.all()):
            chain[...] = chain * (guess @ shown)[:, None]
            chain[~seen] = guess[~seen]
            chain[:, ~shown] = guess[:, ~shown]
    return np.concatenate([chains, guess[None]]) if plan.joint is not None else chains


def votes(plan: Plan, views: Views) -> FloatArray:
    """Return a distribution over the landmarks for rows that no view can be believed about, by relative distances."""
    n_rows = len(views.missing)
    total, count = np.zeros((n_rows, plan.n_landmarks)), np.zeros((n_rows, 1))
    if not n_rows:
        return total
    for view, (array, here) in zip(plan.views, present(views), strict=True):
        if not len(here):
            continue
        squares = view.squares(view.prepare(array[here]), np.full(len(here), -1))
        mean = squares.mean(axis=1, keepdims=True)
        part = np.ones((len(here), plan.n_landmarks))
        part[:, view.shown] = squares / np.where(mean > 0, mean, 1.0)
        total[here] += part
        count[here] += 1.0
    relative = total / np.maximum(count, 1.0)
    weights = np.exp(-_SHARPNESS * (relative - relative.min(axis=1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def embedding_map(gram: FloatArray, mass: FloatArray, n_components: int) -> tuple[FloatArray, FloatArray]:
    r"""Return B such that ``P @ B`` are the leading left singular vectors of :math:`P D^{-1/2}`, and squared values.

    Parameters
    ----------
    gram : ndarray of shape (n_landmarks, n_landmarks)
        P'P.
    mass : ndarray of shape (n_landmarks,)
        Column sums of P. Columns with next to no mass are damped, or single samples would own an eigenvector.
    n_components : int
        Number of vectors.
    """
    root = 1.0 / np.sqrt(mass + _TELEPORT * mass.mean())
    n = len(gram)
    n_components = min(n_components, n)
    values, vectors = largest_eigenpairs(root[:, None] * gram * root, number=n_components)
    values, vectors = values[::-1], vectors[:, ::-1]
    image = root[:, None] * vectors / np.sqrt(np.maximum(values, 1e-12 * values[0]))
    # Signs are arbitrary: make the heaviest landmark entries positive, which does not depend on the blocks.
    largest = np.argmax(np.abs(image) * np.sqrt(mass)[:, None], axis=0)
    signs = np.sign(image[largest, np.arange(n_components)])
    return image * np.where(signs == 0, 1.0, signs), values
