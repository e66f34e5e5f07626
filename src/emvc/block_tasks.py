"""Tasks on blocks of rows before and after the solve: from rows to chains, from the consensus to labels and errors.

Each task takes a block and a message and returns the block and a result (see `emvc.rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from emvc import landmarks
from emvc._array import BoolArray, FloatArray, IntArray
from emvc._validation import Views
from emvc.landmarks import Plan
from emvc.screening import contradiction, rate_errors
from emvc.solvers.blocks import Block, gram_of, pack
from emvc.spectral import scale_rows


@dataclass
class Report:
    """What is known about the rows of a block besides their chains; arrays cover all rows of the block."""

    first: int
    kept: IntArray
    lost: IntArray
    votes: FloatArray
    missing: BoolArray
    isolation: FloatArray
    together: FloatArray
    condemned: BoolArray
    disagreement: FloatArray
    contradiction: FloatArray
    mismatched: BoolArray
    labels: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    embedding: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    sample_errors: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def outliers(self) -> BoolArray:
        """Who was condemned, for whichever reason."""
        return self.condemned | self.mismatched


def make_block(views: Views, first: int, plan: Plan, dtype: Any) -> Block:
    """Return the block of consecutive rows that starts with row number ``first``."""
    found = landmarks.describe(plan, views, np.arange(first, first + views.n_samples), dtype)
    seen = ~(found.missing | found.condemned)
    doubts = np.where(seen, landmarks.standard_scores(plan.contradiction, found.disagreement), 0.0)
    report = Report(
        first=first,
        kept=found.kept,
        lost=found.lost,
        votes=found.votes,
        missing=found.missing,
        isolation=found.isolation,
        together=found.together,
        condemned=found.condemned,
        disagreement=found.disagreement,
        contradiction=contradiction(doubts, found.contrast, found.mismatched),
        mismatched=found.mismatched,
    )
    return Block(transitions=pack(found.transitions), observed=found.observed, extra=report)


def nearest(points: FloatArray, centers: FloatArray) -> IntArray:
    """Return the nearest centre of every point."""
    return np.asarray(np.argmax(points @ centers.T - 0.5 * np.sum(centers**2, axis=1), axis=1))


def count_block(block: Block, message: None) -> tuple[Block, dict[str, Any]]:
    """Count samples and sum up the errors of the views."""
    del message
    report: Report = block.extra
    errors = np.maximum(report.condemned, report.disagreement)
    counts = {"n_kept": len(report.kept), "errors": errors.sum(axis=0), "n_present": (~report.missing).sum(axis=0)}
    return block, counts


def length_block(block: Block, message: None) -> tuple[Block, int]:
    """Count the rows."""
    del message
    return block, len(block.extra.missing)


def moments_block(block: Block, message: None) -> tuple[Block, tuple[FloatArray, FloatArray]]:
    """Return the Gram matrix and the column sums of the consensus."""
    del message
    return block, (gram_of(block.consensus), block.consensus.sum(axis=0, dtype=np.float64))


def embed_block(block: Block, message: tuple[FloatArray, bool, IntArray]) -> tuple[Block, tuple[IntArray, FloatArray]]:
    """Embed the kept rows and return the coordinates of those that are wanted."""
    image, unit_rows, wanted = message
    report: Report = block.extra
    coordinates = block.consensus @ image
    if unit_rows:
        coordinates = scale_rows(coordinates)
    report.embedding = np.zeros((len(report.missing), image.shape[1]))
    report.embedding[report.kept] = coordinates
    rows = report.first + report.kept
    asked = np.flatnonzero(np.isin(rows, wanted))
    return block, (rows[asked], coordinates[asked])


def label_block(block: Block, message: tuple[FloatArray, FloatArray, FloatArray, bool]) -> tuple[Block, IntArray]:
    """Label all rows, the lost ones by votes; return the first row of every cluster."""
    centers, of_landmarks, members, label_outliers = message
    report: Report = block.extra
    labels = nearest(report.embedding, centers)
    if len(report.lost):
        report.embedding[report.lost] = report.votes @ of_landmarks
        labels[report.lost] = -1 if label_outliers else np.argmax(report.votes @ members, axis=1)
    report.labels = labels
    first = np.full(len(centers), np.iinfo(np.int64).max)
    found, where = np.unique(labels, return_index=True)
    first[found[found >= 0]] = report.first + where[found >= 0]
    return block, first


def renumber_block(block: Block, message: IntArray) -> tuple[Block, None]:
    """Give the clusters new numbers."""
    labels = block.extra.labels
    block.extra.labels = np.where(labels >= 0, message[labels], -1)
    return block, None


def rate_block(block: Block, message: FloatArray) -> tuple[Block, None]:
    """Rate the errors of the samples by the scores and the weights of the views."""
    report: Report = block.extra
    report.sample_errors = rate_errors(report.isolation, report.together, report.contradiction, message, report.missing)
    return block, None


def consensus_of(block: Block, message: None) -> tuple[Block, FloatArray]:
    """Return the consensus of all rows; votes stand in for that of the lost ones."""
    del message
    report: Report = block.extra
    if not len(report.lost):
        return block, block.consensus
    full = np.empty((len(report.missing), block.consensus.shape[1]), dtype=block.consensus.dtype)
    full[report.kept], full[report.lost] = block.consensus, report.votes
    return block, full


def _read(block: Block, message: None, *, name: str) -> tuple[Block, Any]:
    """Return an entry of the report of a block."""
    del message
    return block, getattr(block.extra, name)


labels_of = partial(_read, name="labels")
embedding_of = partial(_read, name="embedding")
errors_of = partial(_read, name="sample_errors")
outliers_of = partial(_read, name="outliers")
isolation_of = partial(_read, name="isolation")
contradiction_of = partial(_read, name="contradiction")
