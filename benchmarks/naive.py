"""The certified solver written plainly in NumPy: the same iterates, nothing shared or fused.

Every copy and every multiplier is stored, thresholding takes a full SVD and the projection onto the simplex a sort.
The gap that ends a run is that of the iterate and its multipliers, or the one of emvc: at the low-rank copy projected
onto the simplex, with row multipliers that fit the others.
"""

from __future__ import annotations

import numpy as np

CHECK_EVERY = 5
STEPS, MOMENTUM = 9, 0.7


def project_simplex(x):
    """Project rows onto the simplex by sorting."""
    ordered = -np.sort(-x, axis=1)
    sums = np.cumsum(ordered, axis=1) - 1.0
    count = np.sum(ordered - sums / np.arange(1, x.shape[1] + 1) > 0, axis=1)
    theta = sums[np.arange(len(x)), count - 1] / count
    return np.maximum(x - theta[:, None], 0.0)


def solve(transitions, beta, lam, weights, *, fitted, tol=1e-3, relaxation=1.6, max_iter=500):
    """Return the consensus, the relative gap and the number of iterations; ``fitted`` for the gap of emvc."""
    n_views = len(transitions)
    factors = weights[:, None, None]
    penalty, low = 1.4 * max(beta, lam) ** 0.5, 2.0 * n_views
    consensus = np.average(transitions, axis=0, weights=weights)
    copy, rows, columns = consensus.copy(), transitions - consensus, transitions - consensus
    z, a, b = np.zeros_like(copy), np.zeros_like(rows), np.zeros_like(columns)
    best = -np.inf
    for iteration in range(1, max_iter + 1):
        target = low * (copy - z / (low * penalty))
        for k in range(n_views):
            target = target + transitions[k] - rows[k] + a[k] / penalty
            target = target + transitions[k] - columns[k] + b[k] / penalty
        consensus = project_simplex(target / (low + 2 * n_views))

        point = relaxation * consensus + (1 - relaxation) * copy + z / (low * penalty)
        u, s, vt = np.linalg.svd(point, full_matrices=False)
        copy = (u * np.maximum(s - 1.0 / (low * penalty), 0.0)) @ vt
        z = low * penalty * (point - copy)

        errors = transitions - consensus
        point = relaxation * errors + (1 - relaxation) * rows + a / penalty
        norms = np.linalg.norm(point, axis=2, keepdims=True)
        rows = np.maximum(0.0, 1.0 - beta * factors / penalty / np.maximum(norms, 1e-300)) * point
        a = penalty * (point - rows)

        point = relaxation * errors + (1 - relaxation) * columns + b / penalty
        norms = np.linalg.norm(point, axis=1, keepdims=True)
        columns = np.maximum(0.0, 1.0 - lam * factors / penalty / np.maximum(norms, 1e-300)) * point
        b = penalty * (point - columns)

        if iteration % CHECK_EVERY == 0:
            candidate = project_simplex(copy) if fitted else consensus
            errors = transitions - candidate
            objective = np.linalg.svd(candidate, compute_uv=False).sum()
            objective += beta * np.sum(weights * np.linalg.norm(errors, axis=2).sum(axis=1))
            objective += lam * np.sum(weights * np.linalg.norm(errors, axis=1).sum(axis=1))
            norm = max(1.0, np.linalg.norm(z, 2))
            if fitted:
                bound = dual_bound(transitions, beta * factors, z / norm, b, candidate)
            else:
                bound = np.sum((a + b) * transitions) + np.sum(np.min(z - np.sum(a + b, axis=0), axis=1))
                bound /= norm
            best = max(best, bound)
            if objective - best <= tol * objective:
                break
    return candidate, (objective - best) / objective, iteration


def dual_bound(transitions, weights, z, b, point):
    """Return the dual bound with row multipliers that fit the others, by gradient steps with momentum."""
    cost = z - np.sum(b, axis=0)
    fixed = np.sum(b * transitions, axis=(0, 2))
    best, last = np.full(len(z), -np.inf), point
    for _ in range(STEPS + 1):
        toward = transitions - point
        pull = weights / np.maximum(np.linalg.norm(toward, axis=2, keepdims=True), 1e-12)
        slope = cost - np.sum(pull * toward, axis=0)
        best = np.maximum(best, fixed + np.sum(pull * toward * transitions, axis=(0, 2)) + np.min(slope, axis=1))
        moved = project_simplex(point - slope / np.sum(pull, axis=0))
        point, last = np.maximum(moved + MOMENTUM * (moved - last), 0.0), moved
    return np.sum(best)


def published(transitions, beta, lam, *, tol=1e-8, mu=1e-6, growth=1.9):
    """The published algorithm, line by line; returns the consensus and the number of iterations."""
    n_views, n, _ = transitions.shape
    errors = np.random.default_rng(0).random(transitions.shape)
    copy, z, y = np.zeros((n, n)), np.zeros((n, n)), np.zeros_like(transitions)
    for iteration in range(1, 501):  # noqa: B007
        total = copy - z / mu
        for k in range(n_views):
            total = total + transitions[k] - errors[k] - y[k] / mu
        consensus = project_simplex(total / (1 + n_views))
        for k in range(n_views):
            row = beta / np.maximum(np.linalg.norm(errors[k], axis=1), 1e-16)
            column = lam / np.maximum(np.linalg.norm(errors[k], axis=0), 1e-16)
            target = transitions[k] - consensus - y[k] / mu
            errors[k] = target / (1.0 + (row[:, None] + column[None, :]) / (2.0 * mu))
        u, s, vt = np.linalg.svd(consensus + z / mu, full_matrices=False)
        copy = (u * np.maximum(s - 1.0 / mu, 0.0)) @ vt
        z = z + mu * (consensus - copy)
        residual = np.abs(consensus - copy).max()
        for k in range(n_views):
            difference = consensus + errors[k] - transitions[k]
            y[k] = y[k] + mu * difference
            residual = max(residual, np.abs(difference).max())
        if residual <= tol:
            break
        mu = min(mu * growth, 1e10)
    return consensus, iteration
