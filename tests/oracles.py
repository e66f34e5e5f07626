"""Slow references: a general convex solver and literal loops."""

import functools
import math
import warnings

import cvxpy as cp
import numpy as np

from emvc.prox import ColumnGroups, NuclearNorm, RowGroups, Simplex


def cvxpy_norm(name, y):
    return {
        "nuclear": lambda: cp.normNuc(y),
        "rows": lambda: cp.sum(cp.norm(y, 2, axis=1)),
        "columns": lambda: cp.sum(cp.norm(y, 2, axis=0)),
        "entries": lambda: cp.sum(cp.abs(y)),
    }[name]()


def prox(name, x, step):
    """Proximal point by a general convex solver."""
    y = cp.Variable(x.shape)
    if name == "simplex":
        problem = cp.Problem(cp.Minimize(cp.sum_squares(y - x)), [y >= 0, cp.sum(y, axis=1) == 1])
    else:
        problem = cp.Problem(cp.Minimize(step * cvxpy_norm(name, y) + 0.5 * cp.sum_squares(y - x)))
    _solve(problem, 1e-11)
    return y.value


def _solve(program, tol):
    with warnings.catch_warnings():
        # Said when the last digit asked for was not reached; the tests allow for more than that.
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)


@functools.cache
def _emvc_program(n_views, n_samples, n_states):
    consensus = cp.Variable((n_samples, n_states), nonneg=True)
    transitions, masks = ([cp.Parameter((n_samples, n_states)) for _ in range(n_views)] for _ in range(2))
    betas, lams = (cp.Parameter(n_views, nonneg=True) for _ in range(2))
    errors = [cp.Variable((n_samples, n_states)) for _ in range(n_views)]
    objective = cp.normNuc(consensus)
    for k, error in enumerate(errors):
        objective += betas[k] * cvxpy_norm("rows", error) + lams[k] * cvxpy_norm("columns", error)
    constraints = [
        error == view - cp.multiply(mask, consensus)
        for view, mask, error in zip(transitions, masks, errors, strict=True)
    ]
    program = cp.Problem(cp.Minimize(objective), [cp.sum(consensus, axis=1) == 1, *constraints])
    return program, consensus, transitions, masks, betas, lams


def solve(problem):
    """Optimal value and consensus of the EMVC problem by a general convex solver."""
    program, consensus, transitions, masks, betas, lams = _emvc_program(*problem.transitions.shape)
    rows, columns = problem.masks
    for k in range(problem.n_views):
        masks[k].value = np.outer(rows[k], columns[k])
        transitions[k].value = masks[k].value * problem.transitions[k]
    betas.value, lams.value = problem.beta * problem.weights, problem.lam * problem.weights
    _solve(program, 1e-9)
    return program.value, consensus.value


def solve_entrywise(problem):
    """Optimal value of the RMSC problem by a general convex solver."""
    consensus = cp.Variable(problem.shape, nonneg=True)
    errors = sum(cp.sum(cp.abs(view - consensus)) for view in problem.transitions)
    program = cp.Problem(cp.Minimize(cp.normNuc(consensus) + problem.lam * errors), [cp.sum(consensus, axis=1) == 1])
    _solve(program, 1e-9)
    return program.value


def objective(consensus, transitions, beta, lam):
    """The objective, term by term in literal loops."""
    n_samples, n_states = consensus.shape
    total = sum(math.sqrt(max(w, 0.0)) for w in np.linalg.eigvalsh(consensus.T @ consensus))
    for view in transitions:
        for i in range(n_samples):
            total += beta * math.sqrt(sum((view[i, j] - consensus[i, j]) ** 2 for j in range(n_states)))
        for j in range(n_states):
            total += lam * math.sqrt(sum((view[i, j] - consensus[i, j]) ** 2 for i in range(n_samples)))
    return total


def alm_step(transitions, state, beta, lam, mu):
    """One iteration of the published algorithm with literal loops over entries; returns the new state."""
    p, q, z, errors, y = state
    n_views, n, m = transitions.shape
    c = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            total = q[i, j] - z[i, j] / mu
            for k in range(n_views):
                total += transitions[k, i, j] - errors[k, i, j] - y[k, i, j] / mu
            c[i, j] = total / (n_views + 1)
    p = np.zeros((n, m))
    for i in range(n):
        u = sorted(c[i], reverse=True)
        best = max(j for j in range(1, m + 1) if 1 - sum(u[r] - u[j - 1] for r in range(j)) > 0)
        sigma = (sum(u[:best]) - 1) / best
        for j in range(m):
            p[i, j] = max(c[i, j] - sigma, 0.0)
    new = np.zeros_like(errors)
    for k in range(n_views):
        for i in range(n):
            r = math.sqrt(sum(errors[k, i, j] ** 2 for j in range(m)))
            for j in range(m):
                col = math.sqrt(sum(errors[k, t, j] ** 2 for t in range(n)))
                b = transitions[k, i, j] - p[i, j] - y[k, i, j] / mu
                new[k, i, j] = b / (1 + beta / (2 * mu * r) + lam / (2 * mu * col))
    u, s, vt = np.linalg.svd(p + z / mu)
    q = (u * np.maximum(s - 1 / mu, 0)) @ vt
    return p, q, z + mu * (p - q), new, y + mu * (p[None] + new - transitions)


def admm_start(problem, mean):
    """The first state of `admm_step`: consensus, Q, point V, and copies and points of the rows and columns."""
    errors = problem.transitions - mean
    copies = [errors.copy() for weight in (problem.beta, problem.lam) if weight]
    return mean.copy(), mean.copy(), mean.copy(), copies, [copy.copy() for copy in copies]


def admm_step(problem, state, penalty, relaxation):
    """One iteration of ADMM with whole matrices and the operators of `emvc.prox`; returns the new state."""
    _, q, v, copies, points = state
    groups = [(w, norm) for w, norm in ((problem.beta, RowGroups()), (problem.lam, ColumnGroups())) if w]
    weight = max(1, problem.n_views * len(groups))
    target = weight * (2 * q - v)
    for copy, point in zip(copies, points, strict=True):
        target = target + (problem.transitions - (2 * copy - point)).sum(axis=0)
    p = Simplex().prox(target / (weight + problem.n_views * len(groups)))
    v = v + relaxation * (p - q)
    q = NuclearNorm().prox(v, 1 / (weight * penalty))
    points = [point + relaxation * (problem.transitions - p - copy) for copy, point in zip(copies, points, strict=True)]
    seen, copies = np.broadcast_to(problem.observed_part(np.ones(problem.transitions.shape)), points[0].shape), []
    for (size, norm), point in zip(groups, points, strict=True):
        steps = size * problem.weights / penalty
        shrunk = [norm.prox(mask * x, step) for mask, x, step in zip(seen, point, steps, strict=True)]
        copies.append(np.where(seen > 0, np.stack(shrunk), point))
    return p, q, v, copies, points


def local_graph(squares, n_neighbors):
    """Graph of `emvc.graphs.local_affinity` by whole matrices."""
    distances = squares.copy()
    np.fill_diagonal(distances, np.inf)
    last = np.sort(distances, axis=1)[:, n_neighbors - 1 : n_neighbors]
    nearer = distances < last * (1 - 1e-9)
    tied = ~nearer & (distances <= last * (1 + 1e-9))
    places = n_neighbors - nearer.sum(axis=1, keepdims=True)
    shares = nearer + tied * (places / tied.sum(axis=1, keepdims=True))
    scale = (shares * np.sqrt(squares)).sum(axis=1) / n_neighbors
    floor = 1e-3 * np.median(scale) or 1e-6 * scale.max() or 1.0
    width = np.maximum((np.sqrt(squares) + scale[:, None] + scale) * 0.35 / 3.0, floor)
    weights = shares * np.exp(-squares / (2.0 * width**2))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights + weights.T
