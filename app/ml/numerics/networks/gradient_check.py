"""Check of back-propagation: its gradient against central differences of the loss.

Reference: Battiti & Brunato, The LION Way, section 9.2.
"""

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.numerics.optimise.newton import Function

STEP = float(np.finfo(float).eps) ** (1 / 3)
"""Step, in units of a number or of 1, where rounding and curvature spoil a difference least."""


def gradient_error(function: Function, point: Vector) -> float:
    """Largest difference between the gradient at a point and central differences, as a share of the largest slope.

    Two losses for each number: for small networks. A unit of relu whose sum is nearly 0 has no slope to compare with.
    """
    gradient = function(point)[1]
    differences = np.empty(point.size)
    for place in range(point.size):
        step = STEP * max(1.0, abs(float(point[place])))
        above, below = point.copy(), point.copy()
        above[place] += step
        below[place] -= step
        differences[place] = (function(above)[0] - function(below)[0]) / (above[place] - below[place])
    return float(np.abs(differences - gradient).max() / max(np.abs(gradient).max(), np.finfo(float).tiny))
