"""Feed-forward network: layers of units, each unit a function of a weighted sum of the layer before.

Layer l maps rows a (n, p) to f(a W + b), W (p, q) and b (q,); the outputs are sums, without a function. Inputs are
standardised by a shift and a scale that belong to the network, and cut off far from all training rows.

Reference: Battiti & Brunato, The LION Way, section 9.1.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.networks.compiled.one_row import KINDS, standard_inputs, unit_values
from app.ml.numerics.row_blocks import blocks

FARTHEST_INPUT = 1e6
"""Standardised inputs beyond which a value counts as no farther: sums of their products stay finite in 32 bits."""


Activation: TypeAlias = Literal["tanh", "logistic", "relu", "identity"]


class Network(NamedTuple):
    shift: Vector
    """(d,) subtracted from inputs."""
    scale: Vector
    """(d,) by which they are divided then; infinite for a column that is constant."""
    weights: tuple[Matrix, ...]
    """(p, q) of each layer, of p inputs and q units."""
    biases: tuple[Vector, ...]
    """(q,) of each layer."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Inputs, units of each hidden layer, outputs."""
        return (len(self.weights[0]), *(bias.size for bias in self.biases))

    @property
    def flat(self) -> Vector:
        """All weights and biases, layer by layer."""
        pairs = zip(self.weights, self.biases, strict=True)
        return np.concatenate([part.ravel() for pair in pairs for part in pair])

    def at(self, flat: NDArray[Any]) -> Self:
        """The same network with these weights and biases."""
        layers = [*parts(flat.astype(float), self.sizes)]
        return self._replace(weights=tuple(w.copy() for w, _ in layers), biases=tuple(b.copy() for _, b in layers))

    def inputs(self, x: Matrix) -> Matrix:
        """Standardised rows (n, d)."""
        with np.errstate(over="ignore"):
            u = x - self.shift
            u /= self.scale
        np.maximum(u, -FARTHEST_INPUT, out=u)
        return np.minimum(u, FARTHEST_INPUT, out=u)


def parts(flat: NDArray[Any], sizes: Sequence[int]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Views of the weights (p, q) and biases (q,) of each layer in a flat array of them all."""
    position = 0
    for p, q in itertools.pairwise(sizes):
        weights, position = flat[position : position + p * q].reshape(p, q), position + p * q
        yield weights, flat[position : position + q]
        position += q


def length(sizes: Sequence[int]) -> int:
    """Number of weights and biases."""
    return sum((p + 1) * q for p, q in itertools.pairwise(sizes))


def started(
    sizes: Sequence[int],
    activation: Activation,
    columns: tuple[Vector, Vector],
    rng: np.random.Generator,
    reach: float | None = None,
) -> Network:
    """Weights drawn uniformly between ±reach, and biases of 0.

    columns: shift and scale. reach: None means √(6/(p + q)) of p inputs and q units, for relu in hidden layers √(6/p),
    so that signals keep their size through the layers (Glorot & Bengio 2010; He et al. 2015).
    """
    weights = []
    for place, (p, q) in enumerate(itertools.pairwise(sizes)):
        rectified = activation == "relu" and place < len(sizes) - 2
        bound = math.sqrt(6 / max(1, p if rectified else p + q)) if reach is None else reach
        weights.append(rng.uniform(-bound, bound, (p, q)))
    return Network(*columns, tuple(weights), tuple(np.zeros(q) for q in sizes[1:]))


def activate(sums: NDArray[Any], activation: Activation) -> NDArray[Any]:
    """Values of units, in place of their sums. A logistic unit of any sum is finite."""
    match activation:
        case "tanh":
            np.tanh(sums, out=sums)
        case "logistic":  # (1 + tanh ½a)/2 never overflows
            sums *= 0.5
            np.tanh(sums, out=sums)
            sums += 1.0
            sums *= 0.5
        case "relu":
            np.maximum(sums, 0.0, out=sums)
    return sums


def slopes(values: NDArray[Any], activation: Activation) -> NDArray[Any]:
    """f′ from the values f of units."""
    match activation:
        case "tanh":
            return np.asarray(1.0 - values * values)
        case "logistic":
            return np.asarray(values * (1.0 - values))
        case "relu":
            return (values > 0).astype(values.dtype)
    return np.ones_like(values)


def layer_values(network: Network, activation: Activation, x: Matrix, layers: int) -> Matrix:
    """Values (n, q) of the units of hidden layer `layers`, counted from 1."""
    return _passed(network, activation, network.inputs(x), range(layers), last=False)


def outputs(network: Network, activation: Activation, x: Matrix) -> Matrix:
    """Outputs (n, s) of rows (n, d)."""
    if len(x) == 1:
        return _of_one(network, activation, np.ascontiguousarray(x[0]))[None]
    outputs_ = np.empty((len(x), network.sizes[-1]))
    for rows in blocks(len(x), max(network.sizes)):
        outputs_[rows] = _passed(network, activation, network.inputs(x[rows]), range(len(network.weights)))
    return outputs_


def _of_one(network: Network, activation: Activation, row: Vector) -> Vector:
    """Outputs (s,) of a row (d,)."""
    values, last = np.empty(row.size), len(network.weights) - 1
    standard_inputs.lean(row, network.shift, network.scale, FARTHEST_INPUT, values)
    for place, (weights, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        before, values = values, np.empty(bias.size)
        unit_values.lean(before, weights, bias, KINDS["identity" if place == last else activation], values)
    return values


def outputs_from(network: Network, activation: Activation, values: Matrix, layer: int) -> Matrix:
    """Outputs (n, s) from values (n, q) of the units of hidden layer `layer`, counted from 1."""
    return _passed(network, activation, values, range(layer, len(network.weights)))


def _passed(network: Network, activation: Activation, values: Matrix, layers: range, *, last: bool = True) -> Matrix:
    """last: the last of these layers is that of the outputs."""
    with np.errstate(under="ignore"):
        for place in layers:
            sums = values @ network.weights[place]
            sums += network.biases[place]
            values = sums if last and place == layers[-1] else activate(sums, activation)
    return values
