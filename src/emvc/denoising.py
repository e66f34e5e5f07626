r"""White noise in a view: how much of it there is, and what stands out of it.

A matrix of independent entries of variance :math:`\sigma^2` has singular values that fill an interval: with n the
longer side and :math:`\beta` the shorter one over the longer one, their squares over :math:`n\sigma^2` follow the law
of Marchenko and Pastur on :math:`[(1-\sqrt\beta)^2, (1+\sqrt\beta)^2]`. A few directions of signal do not move the
median, so the median of the squares over that of the law is an estimate of :math:`n\sigma^2` (Gavish, Donoho, 2014).

A singular value y, in units of :math:`\sqrt n\sigma`, belongs to signal if it is above :math:`1+\sqrt\beta` by more
than the largest one of noise would be by chance; noise has made it longer, and
:math:`\sqrt{(y^2-\beta-1)^2-4\beta}/y` is the best guess at what it was (Gavish, Donoho, 2017).

Views with independent noise share the positions of the samples along the signal. Put side by side in units of their
noise, they are one longer matrix, out of whose noise more of the signal stands than out of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import scipy.linalg
from sklearn.utils.extmath import randomized_svd

from emvc._array import FloatArray
from emvc._threads import gram, threads_for_blas

_SAMPLED_ROWS, _SAMPLED_COLUMNS = 800, 300  # enough to see how much white noise there is
_LARGE = 1000  # shorter sides above this are not decomposed in full
_MOST_DIRECTIONS = 100  # that are looked for then
_SEVERAL_THREADS = 500  # shorter sides from this on are decomposed by several threads
_MOST_UNEVEN = 1.4  # white noise has .8 to 1.1, noise in texts of various lengths 1.4
_GRID = 4096
_ONE_IN_TWENTY, _HARDLY_EVER = 0.98, 4.0  # quantiles of Tracy and Widom for real matrices

LEAST_SIDE = 32
"""Fewest rows and columns for statements about noise; with fewer columns it hides no neighbours anyway."""


def white_noise_share(view: FloatArray) -> float:
    """Return the share of the variance of a view that is white noise, from some of its rows and columns.

    Zero if there are fewer than `LEAST_SIDE` rows or columns, where the law does not hold, or if there is more noise in
    some samples than in others, which makes it no white noise but samples with errors.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.standard_normal((300, 40))
    >>> signal = np.outer(np.repeat([-1.0, 1.0], 150), np.ones(40))
    >>> round(white_noise_share(noise), 1), round(white_noise_share(noise + signal), 1)
    (1.0, 0.5)
    """
    if min(view.shape) < LEAST_SIDE:
        return 0.0
    part = _sample(view)
    squares = _spectrum(part)
    total = float(squares.sum())
    share = _noise_square(squares, part.shape) * min(part.shape) / total if total > 0 else 0.0
    return 0.0 if share > 0 and _unevenness(part) > _MOST_UNEVEN else share


def signal_components(view: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return the mean of a view and the directions that stand out of white noise, or None if none does.

    Directions come as columns whose lengths take back what noise has added: ``(view - mean) @ directions`` has the
    distances of the signal.
    """
    mean = view.mean(axis=0)
    centred = view - mean
    longer, shorter = max(view.shape), min(view.shape)
    if shorter > _LARGE:
        unit = longer * noise_variance(view)
        _, values, rows = randomized_svd(centred, _MOST_DIRECTIONS, random_state=0)
        squares, directions = values**2, rows.T
    else:
        with threads_for_blas(shorter, least=_SEVERAL_THREADS):
            squares, directions = scipy.linalg.eigh(_small_gram(centred), check_finite=False, driver="evd")
        unit = _noise_square(squares, view.shape)
        squares, directions = squares[::-1], directions[:, ::-1]
        if view.shape[0] < view.shape[1]:  # these are left vectors
            directions = (centred.T @ directions) / np.sqrt(np.maximum(squares, _least(squares)))
    ratio = shorter / longer
    found = squares > unit * _edge(longer, shorter, _ONE_IN_TWENTY)
    if unit <= 0 or squares[0] <= unit * _edge(longer, shorter, _HARDLY_EVER):
        return None  # a chance direction alone would look like a clean view
    relative = squares[found] / unit
    lengths = np.sqrt(np.maximum((relative - ratio - 1.0) ** 2 - 4.0 * ratio, 0.0)) / relative
    return mean, directions[:, found] * lengths


def pooled_signal(views: Sequence[FloatArray]) -> FloatArray | None:
    """Return coordinates of the samples along the signal that several noisy views share, or None if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sides = np.repeat([-1.0, 1.0], 150)
    >>> views = [np.outer(sides, np.full(100, 0.065)) + rng.standard_normal((300, 100)) for _ in range(5)]
    >>> signal_components(views[0]) is None, pooled_signal(views).shape
    (True, (300, 1))
    """
    joined = np.hstack([view / math.sqrt(noise_variance(view)) for view in views])
    found = signal_components(joined)
    return None if found is None else (joined - found[0]) @ found[1]


def noise_variance(view: FloatArray) -> float:
    """Return the variance of the white noise in the entries of a view, from some of its rows and columns."""
    part = _sample(view)
    return float(_noise_square(_spectrum(part), part.shape) / max(part.shape))


def _unevenness(view: FloatArray) -> float:
    """Return the noise in the half of the samples with the longest rows over that in the others, one for white noise.

    The squared length of a row of p entries of noise deviates by the share sqrt(2 / p), and the halves of a normal
    distribution have means 0.8 deviations off.
    """
    halves = np.array_split(np.argsort(np.sum(view * view, axis=1), kind="stable"), 2)
    short, long = (noise_variance(view[np.sort(half)]) for half in halves)
    usual = 0.8 * math.sqrt(2.0 / view.shape[1])
    return long / short * (1.0 - usual) / (1.0 + usual) if short > 0 else math.inf


def _sample(view: FloatArray) -> FloatArray:
    """Return evenly spread rows and columns, centred."""
    rows, columns = (
        np.linspace(0, size - 1, min(size, most)).astype(np.intp)
        for size, most in zip(view.shape, (_SAMPLED_ROWS, _SAMPLED_COLUMNS), strict=True)
    )
    part = view if view.shape == (len(rows), len(columns)) else view[np.ix_(rows, columns)]
    return np.asarray(part - part.mean(axis=0))


def _spectrum(centred: FloatArray) -> FloatArray:
    """Return the squared singular values, in ascending order."""
    return np.asarray(scipy.linalg.eigvalsh(_small_gram(centred), check_finite=False))


def _small_gram(centred: FloatArray) -> FloatArray:
    """Return the Gram matrix of rows or of columns, whichever are fewer."""
    return gram(centred if centred.shape[0] >= centred.shape[1] else centred.T)


def _noise_square(squares: FloatArray, shape: tuple[int, ...]) -> float:
    """Return the squared length that white noise alone would have in a typical direction."""
    return float(np.median(np.maximum(squares, 0.0))) / _median_of_noise(min(shape) / max(shape))


def _edge(longer: int, shorter: int, quantile: float) -> float:
    """Return what the largest square of noise alone exceeds as rarely as the quantile of Tracy and Widom says."""
    roots = math.sqrt(longer), math.sqrt(shorter)
    spread = sum(roots) * (1.0 / roots[0] + 1.0 / roots[1]) ** (1 / 3)
    return float((sum(roots) ** 2 + quantile * spread) / longer)


def _least(squares: FloatArray) -> float:
    return float(np.finfo(np.float64).eps * squares[0]) or 1.0


@cache
def _median_of_noise(ratio: float) -> float:
    """Return the median of the law of Marchenko and Pastur with variance one."""
    angles = (np.arange(_GRID) + 0.5) * (math.pi / _GRID)
    values = 1.0 + ratio - 2.0 * math.sqrt(ratio) * np.cos(angles)  # increasing, from edge to edge
    shares = np.cumsum(np.sin(angles) ** 2 / np.maximum(values, 1e-12))
    return float(values[np.searchsorted(shares, 0.5 * shares[-1])])
