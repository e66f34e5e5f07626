"""Blocks of rows: data that is cut along the samples, and tasks that run on every piece.

A task is a function of a block and a message that returns the block, usually changed in place, and a result. Messages
and results are small (nothing in them grows with the number of samples); blocks stay where they are. `LocalBlocks`
keeps them in a list, `emvc.distributed.ClusterBlocks` on the workers of a cluster: the same tasks run on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from emvc._array import BoolArray, FloatArray, IntArray
from emvc._threads import gram
from emvc._validation import Views
from emvc.cells import count_present
from emvc.method.prepare import place
from emvc.method.reference import Reference, Screening
from emvc.spectral import scale_rows

Task = Callable[[Any, Any], tuple[Any, Any]]


class Blocks(Protocol):
    """What a fit needs from data in blocks."""

    def apply(self, task: Task, message: Any) -> list[Any]:
        """Run a task on every block and return the results in the order of the blocks."""
        ...


class LocalBlocks:
    """Blocks in the memory of this process.

    Examples
    --------
    >>> blocks = LocalBlocks([[1, 2], [3]])
    >>> blocks.apply(lambda block, factor: (block, factor * sum(block)), 10)
    [30, 30]
    """

    def __init__(self, blocks: Iterable[Any]) -> None:
        self.blocks = list(blocks)

    def apply(self, task: Task, message: Any) -> list[Any]:
        """Run a task on every block and return the results in the order of the blocks."""
        results = []
        for position, block in enumerate(self.blocks):
            self.blocks[position], result = task(block, message)
            results.append(result)
        return results


@dataclass
class Block:
    """Consecutive rows, described by the landmarks.

    Attributes
    ----------
    first : int
        Number of the first row.
    consensus : ndarray of shape (n_rows, n_landmarks)
        Their consensus.
    believed : ndarray of bool of shape (n_rows,)
        Rows that some view can be believed about.
    errors : ndarray of shape (n_rows, n_views)
        Probability of being wrong, NaN where missing.
    outliers : ndarray of bool of shape (n_rows, n_views)
        Rows that are flagged.
    isolation, disagreement : ndarray of shape (n_rows, n_views)
        The two reasons.
    totals : ndarray
        Objective and bound, and the sums over the rows of the shares of the views.
    present : tuple of ndarray of int
        How many cells each column of each view has.
    shown : ndarray of int of shape (n_views,)
        How many rows each view shows.
    """

    first: int
    consensus: FloatArray
    believed: BoolArray
    errors: FloatArray
    outliers: BoolArray
    isolation: FloatArray
    disagreement: FloatArray
    totals: FloatArray
    present: tuple[IntArray, ...]
    shown: IntArray
    clusters: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    labels: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    embedding: FloatArray = field(default_factory=lambda: np.empty((0, 0)))


@dataclass(frozen=True, eq=False)
class Landmarks:
    """What is known about the landmarks: all that blocks need.

    Attributes
    ----------
    reference : Reference
        Its states are the landmarks.
    screening : Screening
        Of the landmarks.
    numbers : ndarray of int
        Their row numbers, sorted.
    """

    reference: Reference
    screening: Screening
    numbers: IntArray


def make_block(views: Views, first: int, known: Landmarks) -> Block:
    """Return the block of consecutive rows that starts with row number ``first``."""
    reference, landmarks, settings = known.reference, known.numbers, known.reference.settings
    numbers = np.arange(first, first + views.n_samples)
    found = np.minimum(np.searchsorted(landmarks, numbers), len(landmarks) - 1)
    own = np.where(landmarks[found] == numbers, found, -1)
    screening = reference.screening.look_at(views)
    believed = screening.shown(views.missing).any(axis=1)
    itself = np.flatnonzero(own >= 0)  # looked at anew, landmarks would be their own neighbours
    screening.ruined[itself] = known.screening.ruined[own[itself]]
    screening.suspicious[itself] = known.screening.suspicious[own[itself]]
    believed |= own >= 0
    inside, lost = np.flatnonzero(believed), np.flatnonzero(~believed)
    consensus: FloatArray = np.empty((views.n_samples, reference.n_states), dtype=np.float32)
    errors, isolation = np.ones(views.missing.shape), np.ones(views.missing.shape)
    disagreement = np.zeros(views.missing.shape)
    totals = np.zeros(2 + len(views.arrays))
    if len(inside):
        rows = reference.rows(views.take(inside), own[inside], screening.take(inside))
        solved = rows.problem.solve()
        consensus[inside] = solved.consensus
        errors[inside], isolation[inside], disagreement[inside] = rows.wrong, rows.isolated, rows.contradicted
        totals[:2] = solved.objective, solved.bound
        totals[2:] = solved.shares[: len(views.arrays)].sum(axis=1)
    if len(lost):
        consensus[lost] = place(reference, views.take(lost), screening.take(lost))
    return Block(
        first=first,
        consensus=consensus,
        believed=believed,
        errors=np.where(views.missing, np.nan, errors),
        outliers=flagged(errors, screening.ruined, views.missing, settings.false_alarms),
        isolation=isolation,
        disagreement=disagreement,
        totals=totals,
        present=tuple(map(count_present, views.shown_rows())),
        shown=(~views.missing).sum(axis=0),
    )


def flagged(wrong: FloatArray, ruined: FloatArray, missing: BoolArray, false_alarms: float | None) -> BoolArray:
    """Return which rows are ruined, or wrong with a probability that leaves no more doubt than this rate."""
    if false_alarms is None:
        return np.zeros(missing.shape, dtype=bool)
    return np.asarray(~missing & ((wrong > 1.0 - false_alarms) | (ruined > 0.5)))


def nearest(points: FloatArray, centers: FloatArray) -> IntArray:
    """Return the nearest centre of every point."""
    return np.asarray(np.argmax(points @ centers.T - 0.5 * np.sum(centers**2, axis=1), axis=1))


def moments_task(block: Block, message: None) -> tuple[Block, tuple[FloatArray, FloatArray, FloatArray, int, int]]:
    """Return Gram matrix and column sums of the consensus of believed rows, totals, and numbers of rows."""
    del message
    part = block.consensus[block.believed] if not block.believed.all() else block.consensus
    return block, (
        gram(part.astype(np.float64)),
        part.sum(axis=0, dtype=np.float64),
        block.totals,
        len(part),
        len(block.believed),
    )


def count_task(block: Block, message: None) -> tuple[Block, tuple[tuple[IntArray, ...], IntArray]]:
    """Return how many cells the columns have, and how many rows the views show."""
    del message
    return block, (block.present, block.shown)


def embed_task(block: Block, message: tuple[FloatArray, bool, IntArray]) -> tuple[Block, FloatArray]:
    """Embed the rows and return the coordinates of those that are wanted and believed."""
    image, unit_rows, wanted = message
    block.embedding = coordinates(block.consensus, image, unit_rows=unit_rows)
    asked = np.isin(np.arange(block.first, block.first + len(block.believed)), wanted) & block.believed
    return block, block.embedding[asked]


def coordinates(consensus: FloatArray, image: FloatArray, *, unit_rows: bool) -> FloatArray:
    """Return where rows of the consensus lie in the embedding."""
    points = np.asarray(consensus @ image, dtype=np.float64)
    return scale_rows(points) if unit_rows else points


def label_task(block: Block, message: tuple[FloatArray, bool]) -> tuple[Block, IntArray]:
    """Label all rows; return the first row of every cluster."""
    centers, label_outliers = message
    labels = nearest(block.embedding, centers)
    if label_outliers:
        labels[~block.believed] = -1
    block.clusters = labels
    first = np.full(len(centers), np.iinfo(np.int64).max)
    found, where = np.unique(labels, return_index=True)
    first[found[found >= 0]] = block.first + where[found >= 0]
    return block, first


def renumber_task(block: Block, message: IntArray) -> tuple[Block, None]:
    """Give the clusters new numbers."""
    block.labels = np.where(block.clusters >= 0, message[block.clusters], -1)
    return block, None


def _read(block: Block, message: None, *, name: str) -> tuple[Block, Any]:
    """Return a field of a block."""
    del message
    return block, getattr(block, name)


consensus_of = partial(_read, name="consensus")
labels_of = partial(_read, name="labels")
embedding_of = partial(_read, name="embedding")
errors_of = partial(_read, name="errors")
outliers_of = partial(_read, name="outliers")
isolation_of = partial(_read, name="isolation")
disagreement_of = partial(_read, name="disagreement")
