"""Facts of a network around its training: units of its columns, rows held out, slopes and saturation of its layers."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import ColumnUnits, Data, Matrix, Vector
from app.ml.numerics.networks.back_propagation import NetworkRows
from app.ml.numerics.networks.epochs import TrainedNetwork, most_rows, usual_batch
from app.ml.numerics.networks.network_layers import Activation, Network, activate, parts, slopes
from app.ml.numerics.networks.network_params import NetworkParams
from app.ml.numerics.networks.network_training import NetworkLoss, NetworkTask

COPIES = {"adam": 100.0, "sgd": 70.0, "lbfgs": 520.0, "conjugate_gradient": 145.0, "one_step_secant": 145.0}
"""Bytes that a training holds for each weight at its peak, where they are not 90."""
VANISHED = 1e-3
"""Slope of the first layer, as a share of that of the last, below which a start is reported."""
VANISHING = (
    "The slopes of the first layer are {:.0e} of those of the last one at the start: gradients vanish through these "
    "layers. Fewer layers, relu or tanh units, or a start from an autoencoder help."
)
DIVERGED = "The error grew without bound: learning_rate {:.3g} is too large. This is the best point on the way."
LOOKED_AT = 1000
"""Most rows that slopes and saturation are computed from."""
SATURATED = 0.05
"""Share of the largest slope of a unit, below which it is saturated."""
MAX_SLOPES: dict[Activation, float] = {"logistic": 0.25}
"""Largest slope of a unit, where it is not 1."""


class LayerReport(NamedTuple):
    slopes: Vector
    """(L,) length of the gradient of the mean loss by the weights of each layer."""
    saturation: Vector
    """(L − 1,) share of the values of each hidden layer that are saturated."""


def layer_report(task: NetworkTask, rows: NetworkRows, network: Network, l2: float) -> LayerReport:
    """From rows evenly spread over these."""
    some = rows.take(np.unique(np.linspace(0, len(rows.x) - 1, LOOKED_AT).astype(np.intp)))
    with np.errstate(all="ignore"):
        gradient = NetworkLoss(task, some, l2)(network.flat)[1]
        norms = np.array([float(np.linalg.norm(weights)) for weights, _ in parts(gradient, task.sizes)])
        values, shares = some.x, []
        for weights, bias in [*zip(network.weights, network.biases, strict=True)][:-1]:
            values = activate(values @ weights + bias, task.activation)
            steepest = MAX_SLOPES.get(task.activation, 1.0)
            shares.append(float((slopes(values, task.activation) < SATURATED * steepest).mean()))
    return LayerReport(np.nan_to_num(norms), np.array(shares))


def standard_columns(x: Matrix, weights: Vector) -> tuple[Vector, Vector]:
    """Weighted mean (d,) and standard deviation (d,) of each column; infinite for one that is constant.

    Columns are shrunk by powers of two first, so that squares stay finite and other units give the same bits.
    """
    share = weights / weights.sum()
    first = x[0]
    shifted = x - first
    size = np.ldexp(1.0, np.frexp(np.abs(shifted).max(axis=0))[1])
    constant = np.abs(shifted).max(axis=0) <= 8 * np.finfo(float).eps * np.abs(x).max(axis=0)
    shifted /= np.where(constant, 1.0, size)
    mean = share @ shifted
    deviation = np.sqrt(share @ np.square(shifted - mean)) * size
    flat = constant | (deviation == 0)
    return first + np.where(constant, 0.0, mean * size), np.where(flat, np.inf, deviation)


def in_other_units(network: Network, units: ColumnUnits) -> Network:
    """The same network of columns whose numbers are `units.values` of its own."""
    return network._replace(shift=units.values(network.shift), scale=units.widths(network.scale))


def held_out(params: NetworkParams, data: Data, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(n,): rows set aside for an early stop, of classes the same share of each and never all of one."""
    aside = np.zeros(len(data.x), bool)
    if params.early_stopping:
        order = rng.permutation(len(data.x))
        groups = data.codes[order] if data.task.of_classes else np.zeros(len(order), np.intp)
        for code in np.unique(groups):
            members = order[groups == code]
            aside[members[: int(params.validation_fraction * len(members))]] = True
    return aside


def seconds(params: NetworkParams, sizes: Sequence[float], rows: float) -> float:
    """About how long a training takes, most of it products of matrices."""
    weights = sum(p * q for p, q in itertools.pairwise(sizes))
    if not params.stochastic:
        return params.max_iter * (1e-4 + rows * weights * 3e-10)
    steps = max(1.0, rows / (params.batch_size or usual_batch(int(rows))))
    return params.epochs * (steps * (5e-5 + 2e-9 * weights) + rows * weights * 1.5e-10)


def memory(params: NetworkParams, sizes: Sequence[float], rows: float) -> float:
    """Bytes of the copies of all weights that a training holds, and of the values of some rows with their errors."""
    weights = sum((p + 1) * q for p, q in itertools.pairwise(sizes))
    batch = params.batch_size or usual_batch(int(rows)) if params.stochastic else most_rows([int(q) for q in sizes])
    return COPIES.get(params.optimizer, 90.0) * weights + 16 * min(rows, max(batch, LOOKED_AT)) * sum(sizes)


def endings(params: NetworkParams, end: TrainedNetwork, start_slopes: Vector, *, early: bool) -> Iterator[str]:
    """Warnings about a training. start_slopes: of each layer at its start. early: rows were held out."""
    if len(start_slopes) > 2 and 0 < start_slopes[0] < VANISHED * start_slopes[-1]:
        yield VANISHING.format(start_slopes[0] / start_slopes[-1])
    if end.diverged:
        yield DIVERGED.format(params.rate)
    elif end.best is not None:
        yield f"Stopped early, as requested: the weights are those of iteration {end.best}."
    if params.early_stopping and not early:
        yield "There are too few rows to set some aside: not stopped early."
