"""Training of a network from a start, by any optimizer: rows in, the trained network and its curves out."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike, NDArray

from app.ml.contract.algorithm import Progress, Vector
from app.ml.numerics.networks.back_propagation import BackPropagation, NetworkRows, OutputLoss
from app.ml.numerics.networks.epochs import (
    EpochPlan,
    Stepper,
    TrainedNetwork,
    Watched,
    in_32_bits,
    mean_loss,
    most_rows,
    penalties,
    train_by_epochs,
    usual_batch,
)
from app.ml.numerics.networks.network_layers import Activation, Network, length
from app.ml.numerics.networks.network_params import RATES, NetworkParams
from app.ml.numerics.networks.vector_minimisers import (
    BoldPace,
    Descent,
    Limits,
    along_lines,
    bold_driver,
    conjugate,
    gradient_descent,
    one_step_secant,
    steepest,
)
from app.ml.numerics.optimise.newton import Watch, lbfgs

LINES = {
    "steepest_descent": (steepest, 1e-3),
    "conjugate_gradient": (conjugate, 0.1),
    "one_step_secant": (one_step_secant, 0.1),
}
"""Directions of each optimizer that minimises along lines, and how precisely it does."""


@dataclass(frozen=True, kw_only=True)
class NetworkTask:
    """The loss that a network is trained for."""

    sizes: tuple[int, ...]
    activation: Activation
    loss: OutputLoss
    absent: NDArray[np.bool_] | None = None
    """(s,) outputs of classes without rows."""
    frozen: int = 0
    """Layers, from the first on, that stay."""
    dropout: float = 0.0

    def propagation(self, rows: int, dtype: DTypeLike) -> BackPropagation:
        """For batches of at most so many rows."""
        return BackPropagation(
            self.sizes, self.activation, self.loss, rows=rows, dtype=dtype, absent=self.absent, frozen=self.frozen
        )


class NetworkLoss:
    """Mean loss of rows and the penalty at a flat point, with the gradient."""

    def __init__(self, task: NetworkTask, rows: NetworkRows, l2: float) -> None:
        self._step = min(len(rows.x), most_rows(task.sizes))
        self._propagation = task.propagation(self._step, np.float64)
        self._rows, self._penalties = rows, penalties(task.sizes, 1.0) * np.float64(l2)
        self._first = length(task.sizes[: task.frozen + 1])

    def __call__(self, point: Vector) -> tuple[float, Vector]:
        total, gradient = 0.0, self._penalties * point
        weight = float(self._rows.weights.sum())
        for start in range(0, len(self._rows.x), self._step):
            total += self._propagation(point, self._rows.take(slice(start, start + self._step)), weight)
            gradient += self._propagation.gradient
        gradient[: self._first] = 0.0
        return total / weight + 0.5 * float(self._penalties @ (point * point)), gradient


def trained(
    params: NetworkParams, task: NetworkTask, network: Network, rows: NetworkRows, watched: Watched
) -> tuple[Network, TrainedNetwork]:
    """rows: of standardised inputs."""
    method = _by_epochs if params.stochastic else _at_once
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):  # what overflows is found out
        trained_network = method(params, task, network.flat, rows, watched)
    return network.at(trained_network.point), trained_network


def stepper(params: NetworkParams, task: NetworkTask) -> Stepper:
    """Steps of these parameters, from their beginning; those of `adam` for an optimizer of all rows at once."""
    rate = params.rate if params.stochastic else RATES["adam"]
    first = length(task.sizes[: task.frozen + 1])
    return Stepper(params.optimizer != "sgd", rate, params.momentum, penalties(task.sizes, params.l2), first)


def _by_epochs(
    params: NetworkParams, task: NetworkTask, start: Vector, rows: NetworkRows, watched: Watched
) -> TrainedNetwork:
    size = min(params.batch_size or usual_batch(len(rows.x)), len(rows.x))
    return train_by_epochs(
        stepper(params, task),
        task.propagation(size, np.float32),
        start,
        in_32_bits(rows),
        plan=EpochPlan(
            batch_size=size,
            epochs=params.epochs,
            shuffle=params.shuffle,
            dropout=task.dropout,
            tol=params.tol,
            patience=params.n_iter_no_change,
        ),
        watched=watched,
    )


def _at_once(
    params: NetworkParams, task: NetworkTask, start: Vector, rows: NetworkRows, watched: Watched
) -> TrainedNetwork:
    watch = _Watch(params, task, watched.held, watched.progress)
    descent = _descent(params, NetworkLoss(task, rows, params.l2), start, watch)
    point = descent.point if watch.best is None else watch.point
    converged = descent.converged and watch.best is None
    return TrainedNetwork(point, converged, descent.iterations, watch.curves, descent.diverged, watch.best)


def _descent(params: NetworkParams, function: NetworkLoss, start: Vector, watch: Watch) -> Descent:
    tol, max_iter = params.tol, params.max_iter
    if params.optimizer == "lbfgs":
        return Descent(*lbfgs(function, start, tol=tol, max_iter=max_iter, watch=watch))
    if params.optimizer in LINES:
        direction, precision = LINES[params.optimizer]
        limits = Limits(tol, max_iter, watch)
        return along_lines(function, start, direction, precision, limits)
    if params.optimizer == "bold_driver":
        pace = BoldPace(params.rate, params.growth, params.reduction)
        return bold_driver(function, start, pace, Limits(tol, max_iter, watch))
    return gradient_descent(function, start, params.rate, Limits(tol, max_iter, watch))


@dataclass
class _Watch:
    """Records the losses, reports the progress, and stops when held-out rows are no longer predicted better."""

    params: NetworkParams
    task: NetworkTask
    held: NetworkRows | None
    progress: Progress
    best: int | None = None
    point: Vector = field(default_factory=lambda: np.zeros(0))
    curves: dict[str, list[float]] = field(default_factory=lambda: {"loss": []})

    def __post_init__(self) -> None:
        if self.held is not None:
            self.curves["validation_loss"] = []
            self._most = min(len(self.held.x), most_rows(self.task.sizes))
            self._propagation = self.task.propagation(self._most, np.float64)

    def __call__(self, point: Vector, value: float) -> bool:
        measures = dict(self._measures(point, value))
        for name, measure in measures.items():
            self.curves[name].append(measure)
        done = len(self.curves["loss"])
        self.progress(min(done / self.params.max_iter, 1.0), **measures)
        if self.held is None:
            return False
        history = self.curves["validation_loss"]
        if self.best is None or history[-1] < history[self.best - 1]:
            self.best, self.point = done, point.copy()
        return done - self.best >= self.params.n_iter_no_change

    def _measures(self, point: Vector, value: float) -> Iterator[tuple[str, float]]:
        yield "loss", value
        if self.held is not None:
            yield "validation_loss", mean_loss(self._propagation, point, self.held, self._most)
