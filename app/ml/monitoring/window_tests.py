"""Tests of a window of logged rows, and the evidence that windows accumulate until an alarm."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Matrix
from app.ml.monitoring.comparison import ASPECT, Aspect, Compared, DriftBin, compared_parts, histogram_bins
from app.ml.monitoring.reference import Reference
from app.ml.monitoring.row_counter import TableCounts
from app.ml.statistics.e_detector import accumulate, threshold
from app.ml.statistics.population_stability import compare_shares

MIN_BLOCKS = 6
"""Blocks of time from which on the dependence of rows within them is measured."""
MAX_DESIGN_EFFECT = 100.0


class StreamTest(Wire):
    """Test of one distribution in one window."""

    column: str = Field(description="Name of the column; of predictions `prediction` or `probability`.")
    aspect: Aspect = Field(description=ASPECT)
    psi: float = Field(description="Population stability index: 0 where the shares of all bins are equal.")
    p_value: float = Field(
        description="Probability of an index at least as large if the true one is at most the tolerance."
    )
    design_effect: float = Field(
        description="Factor by which the rows of five minutes are alike: the window counts as so many times fewer rows."
    )
    evidence: float = Field(
        description="Evidence of this window and those before it: an alarm is raised where it reaches the threshold."
    )
    alarm: bool = Field(description="True where this window raised an alarm; its evidence then starts again.")
    histogram: list[DriftBin] = Field(description="Shares of each bin, then and now.")


class Sensitivity(NamedTuple):
    """The shift that matters, and the rate of false alarms."""

    tolerance_psi: float
    false_alarms_per_year: float


class TestedWindow(NamedTuple):
    """All tests of a window, and the evidence after it."""

    tests: list[StreamTest]
    evidence: dict[str, float]
    """By stream; of those with an alarm it starts again."""
    threshold: float


def window_parts(reference: Reference, counts: TableCounts) -> Iterator[Compared]:
    """The distributions that a window has."""
    inputs, predictions = counts.columns[: len(reference.columns)], counts.columns[len(reference.columns) :]
    for column, current in zip(reference.columns, inputs, strict=True):
        yield from compared_parts(column, current)
    for column, current in zip(reference.predictions, predictions, strict=True):
        yield next(compared_parts(column, current, prediction=True))


def run_tests(
    reference: Reference,
    blocks: Sequence[TableCounts],
    window_seconds: float,
    *,
    evidence: Mapping[str, float],
    sensitivity: Sensitivity,
    rng: np.random.Generator,
) -> TestedWindow:
    """Test the rows of a window. blocks: its counts by five minutes; evidence: by stream, before this window."""
    by_block = [[*window_parts(reference, block)] for block in blocks]
    limit = threshold(len(by_block[0]), window_seconds, sensitivity.false_alarms_per_year)
    tests, after = [], dict[str, float]()
    for parts in zip(*by_block, strict=True):
        counts = np.stack([part.current for part in parts])
        effect, first = design_effect(counts), parts[0]
        tested = compare_shares(
            counts.sum(axis=0), first.reference, rng, tolerance=sensitivity.tolerance_psi, design_effect=effect
        )
        stream = f"{first.aspect}:{first.column}"
        sum_of_evidence = accumulate(evidence.get(stream, 1.0), tested.p)
        alarm = sum_of_evidence >= limit
        after[stream] = 1.0 if alarm else sum_of_evidence
        tests.append(
            StreamTest(
                column=first.column,
                aspect=first.aspect,
                psi=tested.psi,
                p_value=tested.p,
                design_effect=effect,
                evidence=sum_of_evidence,
                alarm=alarm,
                histogram=histogram_bins(first._replace(current=counts.sum(axis=0))),
            )
        )
    return TestedWindow(tests, after, limit)


def design_effect(counts: Matrix) -> float:
    """Variance of shares between blocks of time, counts (k, B), over that of independent rows: Pearson's χ² by its
    degrees of freedom. 1 where it is less, or where there are too few blocks.
    """
    counts = counts[counts.sum(axis=1) > 0]
    if len(counts) < MIN_BLOCKS:
        return 1.0
    total = counts.sum(axis=0)
    shares = total / total.sum()
    occupied = shares > 0
    if np.count_nonzero(occupied) < 2:
        return 1.0
    expected = counts.sum(axis=1, keepdims=True) * shares[occupied]
    statistic = ((counts[:, occupied] - expected) ** 2 / expected).sum()
    freedom = (len(counts) - 1) * (np.count_nonzero(occupied) - 1)
    return float(np.clip(statistic / freedom, 1.0, MAX_DESIGN_EFFECT))
