"""Three real views of scikit-learn's bundled handwritten digits, which need no download."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from emvc._array import FloatArray
from emvc._validation import check_integer
from emvc.datasets._base import MultiViewDataset

_ORIENTATIONS = 8
_STEP, _WINDOW = 2, 4  # pixels


def make_digits_views(n_samples: int | None = None) -> MultiViewDataset:
    """Turn the 8 x 8 digit images into pixels, Fourier magnitudes and gradient histograms.

    Parameters
    ----------
    n_samples : int, optional
        Take only the first samples; all 1797 by default.

    Examples
    --------
    >>> make_digits_views()
    MultiViewDataset('digits': 1797 samples, 10 classes; pixels 64, fourier 40, gradients 72)
    """
    if n_samples is not None:
        check_integer(n_samples, "n_samples", least=1)
    digits = load_digits()
    images = digits.images[:n_samples] / 16.0
    views = [images.reshape(len(images), -1), _fourier_magnitudes(images), _gradient_histograms(images)]
    return MultiViewDataset(views, digits.target[:n_samples], ["pixels", "fourier", "gradients"], "digits")


def _fourier_magnitudes(images: FloatArray) -> FloatArray:
    """Return the magnitudes of the real 2-D Fourier transform: the shape, whatever its position."""
    return np.abs(np.fft.rfft2(images)).reshape(len(images), -1)


def _gradient_histograms(images: FloatArray) -> FloatArray:
    """Return histograms of gradient orientation, weighted by strength, in 3 x 3 overlapping windows."""
    vertical, horizontal = np.gradient(images, axis=(1, 2))
    strength = np.hypot(vertical, horizontal)
    angle = np.arctan2(vertical, horizontal) % (2.0 * np.pi)
    bins = np.minimum((angle / (2.0 * np.pi) * _ORIENTATIONS).astype(int), _ORIENTATIONS - 1)
    by_bin = strength[..., None] * (bins[..., None] == np.arange(_ORIENTATIONS))
    windows = [
        by_bin[:, top : top + _WINDOW, left : left + _WINDOW].sum(axis=(1, 2))
        for top in range(0, 5, _STEP)
        for left in range(0, 5, _STEP)
    ]
    return np.concatenate(windows, axis=1)
