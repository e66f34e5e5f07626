r"""The graph and spectral ends of the method with landmarks: chains from N samples to m of them.

**Pilot.** A sample of some thousand rows, drawn by row number, stands for all in everything that needs an overview: how
to scale the features, what is usual in a view, which samples become landmarks, how much a view counts. What follows
treats every row by itself, so no result depends on how the rows are cut into blocks.

**Landmarks.** The same m samples in every view: the members of the pilot nearest to the centres of k-means on the
joined features, without those that screening condemns.

**Graph.** Every row leads to its nearest landmarks with the weights of `emvc.graphs.local_graph`; neighbours are counted
among landmarks, a quarter of a cluster as there. The joint view averages distances as in `emvc.fusion`.

**Screening.** Isolation is the distance to the 10th neighbour among some rows of the pilot. Disagreement is as in
`emvc.screening` with landmarks as the states of both steps.

**Embedding.** The left singular vectors of :math:`P D^{-1/2}`, D the column sums: the eigenvectors of the walk that
goes from a sample to a landmark and back, :math:`P D^{-1} P'`. They follow from the m x m Gram matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import scipy.sparse

from emvc import graphs
from emvc._array import BoolArray, FloatArray, IntArray
from emvc._validation import View, Views
from emvc.fusion import correlation_shrinkage
from emvc.graphs import Scaling
from emvc.screening import (
    MISMATCHED,
    NEIGHBOR,
    TOGETHER_SPREAD,
    IsolationScale,
    clip_scores,
    condemned_from,
    isolated_everywhere,
    mean_isolation,
    robust_scale,
    row_stochastic,
    spare_the_many,
)

PILOT = 4000
"""Least size of the pilot, of as many samples as there are."""

_PILOT_PER_LANDMARK = 5
_REFERENCE = 2000  # rows of the pilot among which neighbours for the isolation are sought
_LEAST_NEIGHBORS = 5
_DISAGREEMENT_SPREAD = 0.05
_JOINED_FEATURES = 50  # k-means that chooses landmarks sees at most this many principal components
_CHUNK_BYTES = 2**24
_SHARPNESS = 10.0
_TELEPORT = 1e-3


def pilot_rows(n_samples: int, n_landmarks: int) -> IntArray:
    """Return the sorted row numbers of the pilot; they depend on the two numbers alone."""
    size = min(n_samples, max(PILOT, _PILOT_PER_LANDMARK * n_landmarks))
    if size == n_samples:
        return np.arange(n_samples)
    return np.sort(np.random.default_rng(0).choice(n_samples, size, replace=False, shuffle=False))


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
        return _shifted(self.scaling.apply(array), self.shift)

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
    contradiction: tuple[tuple[float, float], ...] = ()
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


def _shifted(view: View, shift: FloatArray) -> View:
    return view if scipy.sparse.issparse(view) else view - shift


def _dense(view: View) -> FloatArray:
    return np.asarray(view.toarray() if scipy.sparse.issparse(view) else view)


def make_plan(
    pilot: Views,
    rows: IntArray,
    n_landmarks: int,
    *,
    weights: FloatArray,
    n_neighbors: int,
    scale: str | None,
    screening: bool,
    joint: bool,
) -> Plan:
    """Choose landmarks and measure on the pilot what all rows are compared with.

    Parameters
    ----------
    pilot : Views
        The rows of the pilot.
    rows : ndarray of int
        Their row numbers, sorted.
    n_landmarks : int
        Number of landmarks, smaller than the pilot.
    weights : ndarray of shape (n_views,) or (n_views + 1,)
        Weights of the chains, the joint one last.
    n_neighbors : int
        Landmarks that a row leads to.
    scale : str or None
        See `emvc.graphs.scale_view`.
    screening, joint : bool
        Whether to look for errors, and to add the joint view.
    """
    sketches = [_screen_view(array[here], rows[here]) for array, here in _present(pilot)]
    isolation, together, middle, condemned = _screen_pilot(pilot, rows, sketches, enabled=screening)
    spared = ~spare_the_many(condemned).any(axis=0) & condemned.any(axis=0)
    observed = ~(pilot.missing | (condemned & ~spared))
    scalings = []
    for array, seen in zip(pilot.arrays, observed.T, strict=True):
        part = array[np.flatnonzero(seen)]
        scaling = graphs.fit_scaling(part, scale)
        scaled = scaling.apply(part)
        shift = np.zeros(array.shape[1]) if scipy.sparse.issparse(scaled) else scaled.mean(axis=0)
        scalings.append((scaling, shift, _mean_square(_shifted(scaled, shift))))
    own_weights = weights[: len(scalings)]
    chosen = choose_landmarks(pilot, observed, scalings, own_weights, n_landmarks)
    views = tuple(
        _plan_view(
            array, sketch, scaling, chosen[observed[chosen, k]], np.flatnonzero(observed[chosen, k]), n_neighbors
        )
        for k, (array, sketch, scaling) in enumerate(zip(pilot.arrays, sketches, scalings, strict=True))
    )
    del isolation, together
    plan = Plan(
        views=views,
        landmark_rows=rows[chosen],
        together=middle,
        spared=spared,
        screening=screening,
        weights=weights,
        joint=None,
        observed_states=_states(views, n_landmarks),
    )
    plan = _plan_disagreement(plan, pilot, rows, chosen)
    return _plan_joint(plan, pilot, rows, chosen, n_neighbors) if joint else plan


def _present(views: Views) -> list[tuple[View, IntArray]]:
    return [(array, np.flatnonzero(~absent)) for array, absent in zip(views.arrays, views.missing.T, strict=True)]


@dataclass(frozen=True, eq=False)
class _Sketch:
    screening: Scaling
    reference: View
    reference_rows: IntArray
    kth: FloatArray
    isolation: IsolationScale
    condemned_from: float


def _screen_view(array: View, rows: IntArray) -> _Sketch:
    """Measure what is usual in a view on the rows of the pilot that it has."""
    scaling = graphs.fit_scaling(array, "zscore")
    # Every n-th of them: rows are often sorted by something.
    picked = np.unique(np.linspace(0, len(rows) - 1, min(_REFERENCE, len(rows))).astype(np.intp))
    reference = clip_scores(scaling.apply(array[picked]))
    nothing = np.empty(0)
    bare = ViewPlan(
        scaling, reference, rows[picked], IsolationScale(1.0, 0.0, np.inf), np.inf, scaling, nothing, reference,
        np.empty(0, dtype=np.intp), 1, nothing, 1.0, 1.0,
    )  # fmt: skip
    kth = bare.isolation_of(array, rows)
    isolation = IsolationScale.fit(kth)
    return _Sketch(scaling, reference, rows[picked], kth, isolation, condemned_from(isolation.scores(kth)))


def _screen_pilot(
    pilot: Views, rows: IntArray, sketches: Sequence[_Sketch], *, enabled: bool
) -> tuple[FloatArray, FloatArray, tuple[float, float], BoolArray]:
    """Return isolation, mean isolation with its centre and spread, and who would be condemned."""
    del rows
    isolation, condemned = np.zeros(pilot.missing.shape), np.zeros(pilot.missing.shape, dtype=bool)
    if not enabled:
        return isolation, np.zeros(len(isolation)), (0.0, np.inf), condemned
    for k, (sketch, (_, here)) in enumerate(zip(sketches, _present(pilot), strict=True)):
        isolation[here, k] = sketch.isolation.scores(sketch.kth)
        condemned[here, k] = isolation[here, k] >= sketch.condemned_from
    mean = mean_isolation(isolation, pilot.missing)
    middle, spread = robust_scale(mean, least_spread=TOGETHER_SPREAD)
    together = (mean - middle) / spread
    condemned |= isolated_everywhere(isolation, together, pilot.missing)[:, None]
    return isolation, together, (middle, spread), condemned & ~pilot.missing


def _mean_square(scaled: View) -> float:
    """Return the mean squared distance between two rows."""
    n_rows = scaled.shape[0]
    if scipy.sparse.issparse(scaled):
        total = scaled.multiply(scaled).sum() - np.sum(np.asarray(scaled.mean(axis=0)) ** 2) * n_rows
    else:
        total = np.sum((scaled - scaled.mean(axis=0)) ** 2)
    return 2.0 * float(total) / max(n_rows - 1, 1)


def choose_landmarks(
    pilot: Views,
    observed: BoolArray,
    scalings: Sequence[tuple[Scaling, FloatArray, float]],
    weights: FloatArray,
    n_landmarks: int,
) -> IntArray:
    """Return positions in the pilot of the landmarks, sorted: samples near the centres of k-means on joined features.

    Samples that all views show come first; those that some view does not show are taken only if there are too few.
    """
    from sklearn.cluster import KMeans

    n_shown = observed.sum(axis=1)
    candidates = np.flatnonzero(n_shown == observed.shape[1])
    if len(candidates) < n_landmarks:
        order = np.argsort(-n_shown, kind="stable")
        return np.sort(order[:n_landmarks])
    parts = []
    for array, (scaling, shift, mean_square), weight in zip(pilot.arrays, scalings, weights, strict=True):
        scaled = _shifted(scaling.apply(array[candidates]), shift)
        factor = np.sqrt(weight / mean_square) if mean_square > 0 else 0.0
        parts.append(_few_features(scaled) * factor)
    joined = np.hstack(parts)
    if len(candidates) == n_landmarks:
        return candidates
    model = KMeans(n_landmarks, n_init=1, max_iter=10, random_state=0).fit(joined)
    squares = graphs.squared_distances_between(model.cluster_centers_, joined)
    chosen = np.zeros(len(candidates), dtype=bool)
    for row in np.argsort(squares.min(axis=1), kind="stable"):  # every centre takes the nearest sample still free
        order = np.argsort(squares[row], kind="stable")
        chosen[order[~chosen[order]][0]] = True
    return candidates[chosen]


def _few_features(scaled: View) -> FloatArray:
    """Return a view with at most `_JOINED_FEATURES` columns: the principal components if there are more."""
    if scaled.shape[1] <= _JOINED_FEATURES or scaled.shape[0] <= _JOINED_FEATURES:
        return _dense(scaled)
    from sklearn.decomposition import TruncatedSVD

    return np.asarray(TruncatedSVD(_JOINED_FEATURES, random_state=0).fit_transform(scaled))


def _plan_view(
    array: View,
    sketch: _Sketch,
    scaling: tuple[Scaling, FloatArray, float],
    members: IntArray,
    shown: IntArray,
    n_neighbors: int,
) -> ViewPlan:
    scaler, shift, mean_square = scaling
    landmarks = _shifted(scaler.apply(array[members]), shift)
    k_neighbors = max(1, min(n_neighbors, len(members) - 1))
    squares = graphs.squared_distances(landmarks)
    scale = neighbor_scale(squares, np.arange(len(members)), k_neighbors)
    return ViewPlan(
        screening=sketch.screening,
        reference=sketch.reference,
        reference_rows=sketch.reference_rows,
        isolation=sketch.isolation,
        condemned_from=sketch.condemned_from,
        scaling=scaler,
        shift=shift,
        landmarks=landmarks,
        shown=shown,
        n_neighbors=k_neighbors,
        scale=scale,
        floor=graphs.least_width(scale),
        mean_square=mean_square,
    )


def neighbor_scale(squares: FloatArray, own: IntArray, n_neighbors: int) -> FloatArray:
    """Return the mean distance of every row to its nearest states besides itself."""
    shares = graphs.neighbor_shares(squares, own, n_neighbors)
    return np.asarray(np.einsum("ij,ij->i", shares, np.sqrt(squares)) / n_neighbors)


def _states(views: Sequence[ViewPlan], n_landmarks: int) -> FloatArray:
    states = np.zeros((len(views), n_landmarks))
    for k, view in enumerate(views):
        states[k, view.shown] = 1.0
    return states


def _plan_disagreement(plan: Plan, pilot: Views, rows: IntArray, chosen: IntArray) -> Plan:
    """Add what disagreement is compared with: second steps from the landmarks, and what is usual in the pilot."""
    n_views, n_landmarks = plan.n_views, plan.n_landmarks
    if n_views < 2:
        return plan
    landmarks = _view_chains(plan, _take(pilot, chosen), rows[chosen])
    total = landmarks.chains.sum(axis=0)
    seconds = np.stack([row_stochastic(total - chain) for chain in landmarks.chains])
    plan = replace(plan, seconds=seconds)
    found = _view_chains(plan, pilot, rows)
    scales = []
    standard = np.zeros((len(rows), n_views))
    for k in range(n_views):
        seen = found.observed[:, k]
        scales.append(robust_scale(found.disagreement[seen, k], least_spread=_DISAGREEMENT_SPREAD))
        standard[seen, k] = (found.disagreement[seen, k] - scales[-1][0]) / scales[-1][1]
    plan = replace(plan, contradiction=tuple(scales))
    if not plan.screening or n_views < 3:
        return plan
    mismatched = find_mismatches(standard, found.observed)
    tells = spare_the_many(mismatched).any(axis=0) | ~mismatched.any(axis=0)
    states = plan.observed_states
    assert states is not None
    hidden = mismatched[chosen] & tells
    return replace(plan, tells=tells, observed_states=states * ~hidden.T.reshape(n_views, n_landmarks))


def find_mismatches(standard: FloatArray, observed: BoolArray) -> BoolArray:
    """Return samples in the view that stands out by disagreement, if two other views can tell."""
    worst = np.argmax(standard, axis=1)
    mismatched = np.zeros_like(observed)
    mismatched[np.arange(len(standard)), worst] = standard.max(axis=1) > MISMATCHED
    return np.asarray(mismatched & (observed.sum(axis=1) >= 3)[:, None])


def _take(views: Views, rows: IntArray) -> Views:
    return replace(views, arrays=tuple(array[rows] for array in views.arrays), missing=views.missing[rows])


@dataclass(frozen=True, eq=False)
class _ViewChains:
    """Chains of single views, with distances to landmarks, before anything is fused."""

    squares: FloatArray
    chains: FloatArray
    observed: BoolArray
    disagreement: FloatArray


def _view_chains(plan: Plan, views: Views, rows: IntArray, observed: BoolArray | None = None) -> _ViewChains:
    """Return distances and chains of rows to the landmarks, view by view, zero where they are not observed."""
    if observed is None:
        observed = screen_rows(plan, views, rows)[3]
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
        weights = graphs.local_weights(part, own_shown, view.n_neighbors, row_scale, view.scale, view.floor)
        squares[np.ix_([k], seen, view.shown)] = part
        chains[np.ix_([k], seen, view.shown)] = weights
    return _ViewChains(squares, chains, observed, disagreement(chains, observed, own, plan.seconds))


def disagreement(chains: FloatArray, observed: BoolArray, own: IntArray, seconds: FloatArray | None) -> FloatArray:
    """Return the share of two-step transitions that the other views do not confirm (see `emvc.screening`)."""
    scores = np.zeros(observed.shape)
    if seconds is None:
        return scores
    total = chains.sum(axis=0)
    count = observed.sum(axis=1)
    itself = np.flatnonzero(own >= 0)
    for k, chain in enumerate(chains):
        first, others = chain.copy(), total - chain
        first[itself, own[itself]] = 0.0
        others[itself, own[itself]] = 0.0
        here, there = row_stochastic(first) @ seconds[k], row_stochastic(others) @ seconds[k]
        confirmed = np.minimum(here, there).sum(axis=1)
        scores[:, k] = np.where(observed[:, k] & (count - observed[:, k] > 0), 1.0 - confirmed, 0.0)
    return np.asarray(np.clip(scores, 0.0, 1.0))


def screen_rows(plan: Plan, views: Views, rows: IntArray) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Return isolation, standardised mean isolation, condemned and observed samples."""
    missing = views.missing
    isolation, condemned = np.zeros(missing.shape), np.zeros(missing.shape, dtype=bool)
    together = np.zeros(len(rows))
    if plan.screening:
        for k, (view, (array, here)) in enumerate(zip(plan.views, _present(views), strict=True)):
            isolation[here, k] = view.isolation.scores(view.isolation_of(array[here], rows[here]))
            condemned[here, k] = isolation[here, k] >= view.condemned_from
        together = (mean_isolation(isolation, missing) - plan.together[0]) / plan.together[1]
        condemned |= isolated_everywhere(isolation, together, missing)[:, None]
        condemned &= ~missing & ~plan.spared
    return isolation, together, condemned, ~(missing | condemned)


def _plan_joint(plan: Plan, pilot: Views, rows: IntArray, chosen: IntArray, n_neighbors: int) -> Plan:
    """Add the joint view, whose landmarks have scales of their own."""
    n_landmarks = plan.n_landmarks
    found = _view_chains(plan, _take(pilot, chosen), rows[chosen])
    everywhere = np.flatnonzero(found.observed.all(axis=1))[:400]
    parts = [
        found.squares[k][np.ix_(everywhere, everywhere)] / max(v.mean_square, 1e-300) for k, v in enumerate(plan.views)
    ]
    shrinkage = correlation_shrinkage(parts)
    joint = JointPlan(min(n_neighbors, n_landmarks - 1), np.ones(n_landmarks), 1.0, shrinkage, 1.0)
    plan = replace(plan, joint=joint)
    assert plan.observed_states is not None
    observed = found.observed & (plan.observed_states > 0).T
    squares = joint_squares(plan, found.squares, observed, np.arange(n_landmarks))
    far = 2.0 * float(squares.max()) or 1.0
    squares = joint_squares(
        replace(plan, joint=replace(joint, far=far)), found.squares, observed, np.arange(n_landmarks)
    )
    scale = neighbor_scale(squares, np.arange(n_landmarks), joint.n_neighbors)
    return replace(plan, joint=replace(joint, scale=scale, floor=graphs.least_width(scale), far=far))


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
    scores, mismatched = np.zeros(observed.shape), np.zeros_like(observed)
    for part in _chunks(len(kept), 4 * (plan.n_views + 1) * plan.n_landmarks):
        members = kept[part]
        found = _view_chains(plan, _take(views, members), rows[members], observed[members])
        scores[members] = found.disagreement
        if plan.tells is not None:
            standard = contradiction(plan, found.disagreement, found.observed)
            mismatched[members] = find_mismatches(standard, found.observed) & plan.tells
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
        votes=votes(plan, _take(views, lost)),
        transitions=transitions,
        observed=masks,
        disagreement=scores,
        mismatched=mismatched,
    )


def contradiction(plan: Plan, scores: FloatArray, observed: BoolArray) -> FloatArray:
    """Return disagreement in robust standard scores, zero where a view does not show a sample."""
    if not plan.contradiction:
        return np.zeros_like(scores)
    middle, spread = (np.array(values) for values in zip(*plan.contradiction, strict=True))
    return np.where(observed, (scores - middle) / spread, 0.0)


def _fuse(plan: Plan, found: _ViewChains, observed: BoolArray, own: IntArray) -> FloatArray:
    """Return the chains of all views and the joint one, completed where they are not observed."""
    states = plan.observed_states
    assert states is not None
    chains = found.chains * observed.T[:, :, None] * states[:, None, :]
    chains = np.stack([graphs.transition_matrix(chain) for chain in chains])
    if plan.joint is not None:
        joint = plan.joint
        squares = joint_squares(plan, found.squares, observed, own)
        row_scale = neighbor_scale(squares, own, joint.n_neighbors)
        guess = graphs.local_weights(squares, own, joint.n_neighbors, row_scale, joint.scale, joint.floor)
    else:
        weights = plan.weights[:, None, None] * observed.T[:, :, None] * states[:, None, :]
        count = weights.sum(axis=0)
        guess = graphs.transition_matrix((chains * weights).sum(axis=0) / np.where(count > 0, count, 1.0))
    for chain, seen, shown in zip(chains, observed.T, states > 0, strict=True):
        if not (seen.all() and shown.all()):
            chain *= (guess @ shown)[:, None]
            chain[~seen] = guess[~seen]
            chain[:, ~shown] = guess[:, ~shown]
    return np.concatenate([chains, guess[None]]) if plan.joint is not None else chains


def votes(plan: Plan, views: Views) -> FloatArray:
    """Return a distribution over the landmarks for rows that no view can be believed about, by relative distances."""
    n_rows = len(views.missing)
    total, count = np.zeros((n_rows, plan.n_landmarks)), np.zeros((n_rows, 1))
    if not n_rows:
        return total
    for view, (array, here) in zip(plan.views, _present(views), strict=True):
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
    r"""Return B such that ``P @ B`` are the leading left singular vectors of :math:`P D^{-1/2}`, and their squared values.

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
    values, vectors = scipy.linalg.eigh(
        root[:, None] * gram * root, check_finite=False, subset_by_index=(n - n_components, n - 1)
    )
    values, vectors = values[::-1], vectors[:, ::-1]
    image = root[:, None] * vectors / np.sqrt(np.maximum(values, 1e-12 * values[0]))
    # Signs are arbitrary: make the heaviest landmark entries positive, which does not depend on the blocks.
    largest = np.argmax(np.abs(image) * np.sqrt(mass)[:, None], axis=0)
    signs = np.sign(image[largest, np.arange(n_components)])
    return image * np.where(signs == 0, 1.0, signs), values
