"""What all plots share: colours that colour-blind readers can tell apart, axes, and what is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = (
    "#332288", "#88CCEE", "#CC6677", "#117733", "#DDCC77", "#AA4499", "#44AA99", "#882255", "#999933", "#661100",
)  # fmt: skip
"""Ten colours of Paul Tol's muted scheme."""

GREY = "#888888"
GRID = "#DDDDDD"


def axes_or_new(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(4.5, 4.0), layout="constrained")[1]


def color(index: int) -> str:
    return GREY if index < 0 else PALETTE[index % len(PALETTE)]


def get(model: Any, *names: str) -> Any:
    """Return the first of the attributes that the model has."""
    for name in names:
        value = getattr(model, name, None)
        if value is not None:
            return value
    raise ValueError(f"This {type(model).__name__} has no {' or '.join(names)} to draw.")


def tidy(ax: Axes, *, grid: str | None = None) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color=GRID, lw=0.6)  # type: ignore[arg-type]
        ax.set_axisbelow(True)
