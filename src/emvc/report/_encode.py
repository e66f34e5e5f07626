"""Names and numbers in the form in which a page holds them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from emvc._array import FloatArray

MISSING = 255
LONGEST_NAME = 80


def clean(text: Any, longest: int = LONGEST_NAME) -> str:
    """Return a name as text that can be encoded, cut to a reasonable length."""
    name = str(text).encode("utf-8", "replace").decode("utf-8")
    return name if len(name) <= longest else name[: longest - 1] + "…"


def encode(values: Any, dtype: str) -> str:
    """Return an array as base64 text."""
    return base64.b64encode(np.ascontiguousarray(values).astype(dtype).tobytes()).decode("ascii")


def quantised(values: FloatArray) -> FloatArray:
    """Return numbers between 0 and 1 as whole numbers up to 250, and 255 where there is none."""
    return np.where(np.isnan(values), MISSING, np.rint(250.0 * np.clip(np.nan_to_num(values), 0.0, 1.0)))
