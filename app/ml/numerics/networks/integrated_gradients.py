"""Integrated gradients: what each input of a network adds to an output, from the means of the training rows on.

Along the straight line from the means to the row the slope of the output by an input, times the way of that input, adds
up to its part; the parts of all inputs add up to the change of the output, but for the rounding of the sum over points
of the line. A unit that is no smooth function of its sum, such as `relu`, costs most of it.

Reference: Sundararajan, Taly & Yan (2017), Axiomatic attribution for deep networks, ICML: 3319.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, Matrix, Vector
from app.ml.numerics.networks.network_layers import Activation, Network, activate, outputs, slopes

SMOOTH_POINTS, POINTS = 64, 1024
"""Points of the line where units are smooth (Gauss), and where they have kinks (equally far apart)."""


def integrated_gradients(network: Network, activation: Activation, row: Vector, output: int) -> Vector:
    """(d,) part of each input in the change of one output, from the means of the training rows to the row (d,)."""
    way = network.inputs(row[None])[0]
    places, shares = _line(activation)
    return np.asarray(way * (shares @ _slopes(network, activation, np.outer(places, way), output)))


def explained_outputs(
    network: Network, activation: Activation, x: Matrix, scale: tuple[float, float], seen: NDArray[np.bool_]
) -> Iterator[tuple[int, dict[str, JSON]]]:
    """For each row (n, d) the class of its largest output, or 1 where there is one output, and what adds up to that.

    scale: a score is the first plus the second times an output. seen: (k,) classes that had rows.
    """
    centre, unit = scale
    scores = outputs(network, activation, np.vstack([network.shift, x])) * unit + centre
    possible = scores if scores.shape[1] == 1 else np.where(seen, scores, -np.inf)
    for row, row_scores, best in zip(x, scores[1:], possible[1:].argmax(axis=1).tolist(), strict=True):
        parts = unit * integrated_gradients(network, activation, row, best)
        yield (
            best if len(row_scores) > 1 else 1,
            {
                "base": float(scores[0, best]),
                "score": float(row_scores[best]),
                "contributions": [{"column": j, "contribution": part} for j, part in enumerate(parts.tolist())],
                "remainder": float(row_scores[best] - scores[0, best] - parts.sum()),
            },
        )


def _line(activation: Activation) -> tuple[Vector, Vector]:
    """Points between 0 and 1, and their weights, which add up to 1."""
    if activation == "relu":
        return (np.arange(POINTS) + 0.5) / POINTS, np.full(POINTS, 1 / POINTS)
    points, weights = np.polynomial.legendre.leggauss(SMOOTH_POINTS)
    return (points + 1) / 2, weights / 2


def _slopes(network: Network, activation: Activation, values: Matrix, output: int) -> Matrix:
    """(n, d) slopes of one output by the standardised inputs (n, d)."""
    steep = []
    with np.errstate(under="ignore"):
        for weights, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
            values = activate(values @ weights + bias, activation)
            steep.append(slopes(values, activation))
        back = np.broadcast_to(network.weights[-1][:, output], (len(values), len(network.weights[-1])))
        for weights, slope in zip(reversed(network.weights[:-1]), reversed(steep), strict=True):
            back = (back * slope) @ weights.T
    return np.asarray(back)
