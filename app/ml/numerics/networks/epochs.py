"""Stochastic training: steps by batches of rows in a new order each epoch, in 32 bits, losses summed in 64.

Dropout leaves each hidden value out with probability p and divides the others by 1 − p, so that the expected sums of
the next layer are those of the whole network, which predicts (Srivastava et al. 2014).

References: Kingma & Ba (2015), arXiv:1412.6980; Srivastava et al. (2014), J. Mach. Learn. Res. 15:1929;
Battiti & Brunato, The LION Way, sections 9.2.2 and 9.3.2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Progress, Vector
from app.ml.numerics.linear_algebra.solve import EPS
from app.ml.numerics.networks.back_propagation import BackPropagation, NetworkRows, Reals
from app.ml.numerics.networks.compiled.training_steps import adam_step, momentum_step
from app.ml.numerics.networks.corruption import Corruption
from app.ml.numerics.networks.network_layers import length, parts
from app.ml.numerics.optimise.gradient_descent import RUNAWAY
from app.ml.numerics.row_blocks import BLOCK

FIRST_KEPT, SECOND_KEPT, FLOOR = 0.9, 0.999, 1e-8
"""Constants of Adam, as published."""


@dataclass
class Stepper:
    """Steps of a point in 32 bits, those of `adam` or with momentum."""

    adam: bool
    rate: float
    momentum: float
    penalties: Reals
    """Factor of each number in its own gradient."""
    first: int = 0
    """Numbers before this one stay."""
    steps: int = 0
    _first: Reals | None = None
    _second: Reals | None = None

    def __call__(self, point: Reals, gradient: Reals) -> None:
        free = slice(self.first, None)
        if self._first is None or self._second is None:
            self._first, self._second = np.zeros_like(point[free]), np.zeros_like(point[free])
        self.steps += 1
        numbers = point[free], gradient[free], self.penalties[free]
        if not self.adam:
            momentum_step(*numbers, self._first, self.rate, self.momentum)
            return
        corrected = self.rate * math.sqrt(1 - SECOND_KEPT**self.steps) / (1 - FIRST_KEPT**self.steps)
        adam_step(*numbers, self._first, self._second, corrected, FIRST_KEPT, SECOND_KEPT, 1 - SECOND_KEPT, FLOOR)


class Watched(NamedTuple):
    """The surroundings of a training."""

    held: NetworkRows | None
    """Rows that an early stop watches; None: there is none."""
    rng: np.random.Generator
    progress: Progress
    corruption: Corruption | None = None
    """Corruption of rows in each step; None: they are learned as they are."""


def in_32_bits(rows: NetworkRows) -> NetworkRows:
    """The same rows."""
    return NetworkRows(*(np.ascontiguousarray(part, np.float32) for part in rows))


@dataclass(frozen=True, kw_only=True)
class EpochPlan:
    """Lengths of a training and of its steps, and its end."""

    batch_size: int
    epochs: int
    shuffle: bool
    dropout: float
    tol: float
    patience: int
    """Epochs without improvement before a stop."""


@dataclass
class TrainedNetwork:
    """The end of a training."""

    point: Vector
    converged: bool
    iterations: int
    curves: dict[str, list[float]]
    diverged: bool = False
    best: int | None = None
    """Iteration that held-out rows are predicted best after; None without such rows."""


def passed(
    step: Stepper,
    propagation: BackPropagation,
    point: Reals,
    rows: NetworkRows,
    *,
    batch_size: int,
    masks: Callable[[int], Sequence[Reals]] = lambda _: (),
    changed: Callable[[Reals], Reals] | None = None,
) -> float:
    """A step for each batch of rows in their order; the mean loss that they met before they were learned."""
    total = 0.0
    for start in range(0, len(rows.x), batch_size):
        batch = rows.take(slice(start, start + batch_size))
        if changed is not None:
            batch = batch._replace(x=changed(batch.x))
        total += propagation(point, batch, float(len(batch.x)), masks(len(batch.x)))
        step(point, propagation.gradient)
    return total / len(rows.x)


def mean_loss(propagation: BackPropagation, point: Reals, rows: NetworkRows, most: int) -> float:
    """Mean loss of rows, `most` at a time."""
    parts_of = range(0, len(rows.x), most)
    total = sum(propagation.loss_of(point, rows.take(slice(start, start + most))) for start in parts_of)
    return total / float(rows.weights.sum(dtype=np.float64))


def train_by_epochs(
    step: Stepper,
    propagation: BackPropagation,
    start: Vector,
    rows: NetworkRows,
    *,
    plan: EpochPlan,
    watched: Watched,
) -> TrainedNetwork:
    """rows: in 32 bits. With held-out rows the result is the point that predicts them best.

    Without them the training converges when its loss falls no longer by `tol`.
    """
    rng, held = watched.rng, watched.held and in_32_bits(watched.held)
    point = start.astype(np.float32)
    changed = None if watched.corruption is None else partial(watched.corruption.of, rng=rng)
    masks = _masks(plan.dropout, propagation.sizes, rng)
    aim = "loss" if held is None else "validation_loss"
    curves: dict[str, list[float]] = {"loss": [], aim: []}
    good, best, lowest, since = point.copy(), 0, math.inf, 0
    first = mean_loss(propagation, point, rows, plan.batch_size)
    order, moved = np.arange(len(rows.x)), NetworkRows(*(np.empty_like(part) for part in rows))
    for epoch in range(1, plan.epochs + 1):
        learned = rows
        if plan.shuffle:
            rng.shuffle(order)
            for part, buffer in zip(rows, moved, strict=True):
                np.take(part, order, axis=0, out=buffer)
            learned = moved
        value = passed(step, propagation, point, learned, batch_size=plan.batch_size, masks=masks, changed=changed)
        if not (value <= RUNAWAY * max(first, EPS) and np.isfinite(point).all()):
            return TrainedNetwork(good.astype(float), False, epoch, curves, diverged=True)
        measures = {"loss": value}
        if held is not None:
            measures[aim] = mean_loss(propagation, point, held, plan.batch_size)
        for name, measure in measures.items():
            curves[name].append(measure)
        watched.progress(epoch / plan.epochs, **measures)
        since = 0 if measures[aim] < lowest - plan.tol else since + 1
        if held is None or measures[aim] < lowest:
            good[:], best = point, epoch
        lowest = min(lowest, measures[aim])
        if since >= plan.patience:
            return TrainedNetwork(good.astype(float), held is None, epoch, curves, best=None if held is None else best)
    return TrainedNetwork(good.astype(float), False, plan.epochs, curves, best=None if held is None else best)


def penalties(sizes: Sequence[int], l2: float) -> Reals:
    """Factor of each number of a network in the gradient of the penalty ½·l2·‖weights‖²: biases have none."""
    made = np.zeros(length(sizes), np.float32)
    for weights, _ in parts(made, sizes):
        weights[...] = l2
    return made


def _masks(dropout: float, sizes: Sequence[int], rng: np.random.Generator) -> Callable[[int], Sequence[Reals]]:
    if dropout == 0.0:
        return lambda _: ()
    keep_scale = np.float32(1.0 / (1.0 - dropout))

    def drawn(n: int) -> Sequence[Reals]:
        return [(rng.random((n, q), np.float32) >= dropout) * keep_scale for q in sizes[1:-1]]

    return drawn


def usual_batch(rows: int) -> int:
    """A tenth of the rows, at least 16 and at most 200."""
    return min(rows, max(16, min(200, rows // 10)))


def most_rows(sizes: Sequence[int]) -> int:
    """Rows of one sweep over all of them, whose values stay near the processor."""
    return max(1, 8 * BLOCK // max(sizes))
