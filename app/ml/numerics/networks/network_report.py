"""Facts of a network around its training: units of its columns, rows held out, slopes and saturation of its layers."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import ColumnUnits, Data, Matrix, Vector
from app.ml.numerics.networks.back_propagation import NetworkRows
from app.ml.numerics.networks.epochs import usual_batch
from app.ml.numerics.networks.network_layers import Activation, Network, activate, parts, slopes
from app.ml.numerics.networks.network_params import NetworkParams
from app.ml.numerics.networks.network_training import NetworkLoss, NetworkTask

LOOKED_AT = 1000
"""Most rows that slopes and saturation are computed from."""
SATURATED = 0.05
"""Share of the largest slope of a unit, below which it is saturated."""
STEEPEST: dict[Activation, float] = {"logistic": 0.25}
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
            steepest = STEEPEST.get(task.activation, 1.0)
            shares.append(float((slopes(values, task.activation) < SATURATED * steepest).mean()))
    return LayerReport(np.nan_to_num(norms), np.array(shares))


def standard_columns(x: Matrix, weights: Vector) -> tuple[Vector, Vector]:
    """Weighted mean (d,) and standard deviation (d,) of each column; infinite for one that is constant.

    Columns are shrunk by powers of two first, so that squares stay finite and other units give the same bits.
    """
    share = weights / weights.sum()
    first = x[0]
    rest = x - first
    size = np.ldexp(1.0, np.frexp(np.abs(rest).max(axis=0))[1])
    constant = np.abs(rest).max(axis=0) <= 8 * np.finfo(float).eps * np.abs(x).max(axis=0)
    rest /= np.where(constant, 1.0, size)
    mean = share @ rest
    deviation = np.sqrt(share @ np.square(rest - mean)) * size
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
