r"""What a fit with landmarks learns from a sample of rows, the pilot, before it looks at all of them.

The pilot stands for all samples in everything that needs an overview: how to scale the features, what is usual in a
view, which samples become landmarks, how often views contradict each other. It is drawn by row number alone, so neither
it nor anything that follows from it depends on how the rows are stored.

**Landmarks.** The same m samples in every view: those nearest to the centres of k-means on the joined features, without
those that screening condemns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from emvc import graphs
from emvc._array import BoolArray, FloatArray, IntArray
from emvc._validation import View, Views, to_dense
from emvc.fusion import LEAST_SPREAD, correlation_shrinkage
from emvc.graphs import Scaling
from emvc.landmarks import (
    JointPlan,
    Plan,
    ViewPlan,
    joint_squares,
    neighbor_scale,
    present,
    shifted,
    standard_scores,
    take,
    view_chains,
)
from emvc.screening import (
    CONTRAST_SPREAD,
    TOGETHER_SPREAD,
    IsolationScale,
    clip_scores,
    condemn_companions,
    condemned_from,
    find_mismatches,
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
_JOINED_FEATURES = 50  # k-means that chooses landmarks sees at most this many principal components
_CORRELATION_SAMPLES = 400


def pilot_rows(n_samples: int, n_landmarks: int) -> IntArray:
    """Return the sorted row numbers of the pilot; they depend on the two numbers alone."""
    size = min(n_samples, max(PILOT, _PILOT_PER_LANDMARK * n_landmarks))
    if size == n_samples:
        return np.arange(n_samples)
    return np.sort(np.random.default_rng(0).choice(n_samples, size, replace=False, shuffle=False))


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
    sketches = [_screen_view(array[here], rows[here]) for array, here in present(pilot)]
    middle, spared, condemned = _screen_pilot(pilot, sketches, enabled=screening)
    observed = ~(pilot.missing | condemned)
    scalings = []
    for array, seen in zip(pilot.arrays, observed.T, strict=True):
        part = array[np.flatnonzero(seen)]
        scaling = graphs.fit_scaling(part, scale, denoise=True)
        scaled = scaling.apply(part)
        shift = np.zeros(array.shape[1]) if scipy.sparse.issparse(scaled) else scaled.mean(axis=0)
        scalings.append((scaling, shift, _mean_square(shifted(scaled, shift))))
    own_weights = weights[: len(scalings)]
    chosen = choose_landmarks(pilot, observed, scalings, own_weights, n_landmarks)
    views = tuple(
        _plan_view(
            array, sketch, scaling, chosen[observed[chosen, k]], np.flatnonzero(observed[chosen, k]), n_neighbors
        )
        for k, (array, sketch, scaling) in enumerate(zip(pilot.arrays, sketches, scalings, strict=True))
    )
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
    plan = _plan_disagreement(plan, pilot, rows, chosen, observed)
    return _plan_joint(plan, take(pilot, chosen), observed[chosen], n_neighbors) if joint else plan


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
    pilot: Views, sketches: Sequence[_Sketch], *, enabled: bool
) -> tuple[tuple[float, float], BoolArray, BoolArray]:
    """Return centre and spread of the mean isolation, views in which nobody is condemned, and who is in the others."""
    isolation, condemned = np.zeros(pilot.missing.shape), np.zeros(pilot.missing.shape, dtype=bool)
    if not enabled:
        return (0.0, np.inf), np.zeros(len(sketches), dtype=bool), condemned
    for k, (sketch, (_, here)) in enumerate(zip(sketches, present(pilot), strict=True)):
        isolation[here, k] = sketch.isolation.scores(sketch.kth)
        condemned[here, k] = isolation[here, k] >= sketch.condemned_from
    mean = mean_isolation(isolation, pilot.missing)
    middle, spread = robust_scale(mean, least_spread=TOGETHER_SPREAD)
    condemned |= isolated_everywhere(isolation, (mean - middle) / spread, pilot.missing)[:, None]
    condemned &= ~pilot.missing
    spared = np.asarray(condemned.any(axis=0) & ~spare_the_many(condemned).any(axis=0))
    return (middle, spread), spared, condemn_companions(condemned & ~spared, isolation, pilot.missing) & ~spared


def _mean_square(scaled: View) -> float:
    """Return the mean squared distance between two rows."""
    n_rows = scaled.shape[0]
    if scipy.sparse.issparse(scaled):
        total = float(scaled.multiply(scaled).sum() - np.sum(np.asarray(scaled.mean(axis=0)) ** 2) * n_rows)
    else:
        total = float(np.sum((scaled - scaled.mean(axis=0)) ** 2))
    return 2.0 * total / max(int(n_rows) - 1, 1)


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
        scaled = shifted(scaling.apply(array[candidates]), shift)
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
        return to_dense(scaled)
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
    landmarks = shifted(scaler.apply(array[members]), shift)
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


def _states(views: Sequence[ViewPlan], n_landmarks: int) -> FloatArray:
    states = np.zeros((len(views), n_landmarks))
    for k, view in enumerate(views):
        states[k, view.shown] = 1.0
    return states


def _plan_disagreement(plan: Plan, pilot: Views, rows: IntArray, chosen: IntArray, observed: BoolArray) -> Plan:
    """Add what disagreement is compared with: second steps from the landmarks, and what is usual in the pilot."""
    n_views, n_landmarks = plan.n_views, plan.n_landmarks
    if n_views < 2:
        return plan
    landmarks = view_chains(plan, take(pilot, chosen), rows[chosen], observed[chosen])
    total = landmarks.chains.sum(axis=0)
    seconds = np.stack([row_stochastic(total - chain) for chain in landmarks.chains])
    condemns = plan.screening and n_views >= 3
    singles = np.stack([row_stochastic(chain) for chain in landmarks.chains]) if condemns else None
    plan = replace(plan, seconds=seconds, singles=singles)
    found = view_chains(plan, pilot, rows, observed)
    plan = replace(plan, contradiction=_usual(np.where(found.observed, found.disagreement, np.nan), LEAST_SPREAD))
    if not condemns:
        return plan
    plan = replace(plan, contrast=_usual(found.contrast, CONTRAST_SPREAD))
    mismatched = find_mismatches(standard_scores(plan.contrast, found.contrast))
    tells = np.asarray(spare_the_many(mismatched).any(axis=0) | ~mismatched.any(axis=0))
    states = plan.observed_states
    assert states is not None
    hidden = mismatched[chosen] & tells
    return replace(plan, tells=tells, observed_states=states * ~hidden.T.reshape(n_views, n_landmarks))


def _usual(scores: FloatArray, least_spread: float) -> tuple[tuple[float, float], ...]:
    """Return the centre and the spread of each view, without entries that are NaN."""
    return tuple(robust_scale(column[~np.isnan(column)], least_spread=least_spread) for column in scores.T)


def _plan_joint(plan: Plan, members: Views, observed: BoolArray, n_neighbors: int) -> Plan:
    """Add the joint view, whose landmarks have scales of their own."""
    n_landmarks = plan.n_landmarks
    found = view_chains(plan, members, plan.landmark_rows, observed)
    everywhere = np.flatnonzero(found.observed.all(axis=1))[:_CORRELATION_SAMPLES]
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
