"""Response surfaces: predictions of a model over a grid of two or three inputs, and along its tangent at a point.

Both work for any model, since they only call it. The outputs of a model are the numbers it predicts: the prediction
of a regression or density, the probabilities of a classification, the coordinates of a projection.

References: Battiti & Brunato, The LION Way, sections 4.5 (equation 4.4) and 9.1.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.models.model import Model

PROBES = 101
"""Points across an input's training range at which the tangent is compared with the model."""


class Tangent(NamedTuple):
    """The linear approximation f(x) ≈ f(c) + slopes · (x - c), for q outputs and m inputs."""

    value: Vector
    """(q,) the outputs at the point."""
    slopes: Matrix
    """(m, q) central differences, per unit of the input."""
    steps: Vector
    """(m,) half the distance between the two points of each difference."""
    trusted: Matrix
    """(m, 2) from where to where, along one input with the others held, the tangent is close enough."""
    varies: Matrix
    """(m, q) the difference between the outputs' largest and smallest values across the training range."""


def grid(base: Matrix, axes: Sequence[tuple[int, Vector]]) -> Matrix:
    """The raw matrix of every combination, the last axis changing fastest.

    base: (1, p), the raw row that gives the other inputs. axes: places of inputs, each with its raw values.
    """
    combined = np.meshgrid(*(values for _, values in axes), indexing="ij")
    raw = np.repeat(base, combined[0].size, axis=0)
    for (place, _), values in zip(axes, combined, strict=True):
        raw[:, place] = values.ravel()
    return raw


def outputs(model: Model, raw: Matrix) -> Matrix:
    """(n, q) the model's predictions, as numbers. Of a clustering there are none: its labels have no order."""
    predicted = model.predict_raw(raw)
    values = predicted.values if predicted.probabilities is None else predicted.probabilities
    if model.task.labels:
        return np.zeros((len(raw), 0))
    return np.asarray(values, np.float64).reshape(len(raw), -1)


def tangent(model: Model, base: Matrix, places: Labels, *, relative_step: float, tolerance: float) -> Tangent:
    """The model's prediction as one input moves, and how far that can be relied on.

    base: (1, p), the raw row. places: (m,) of measured inputs that the row has.
    relative_step: of the larger of the input's size and its training range.
    tolerance: of an output's variation across that range, by which the tangent may miss it.
    """
    at = base[0, places]
    low, high = _ranges(model, places, at)
    scale = np.maximum(np.abs(at), high - low)
    step = relative_step * np.where(scale > 0, scale, 1.0)
    ends = outputs(model, np.vstack([_moved(base, places, at + step), _moved(base, places, at - step)]))
    above, below = np.split(ends, 2)
    apart = (at + step) - (at - step)  # as floats have it
    slopes = (above - below) / apart[:, None]
    value = outputs(model, base)[0]
    trusted, varies = np.empty((places.size, 2)), np.empty(slopes.shape)
    for i, place in enumerate(places.tolist()):
        points = np.unique(np.append(np.linspace(low[i], high[i], PROBES), at[i]))
        predictions = outputs(model, grid(base, [(place, points)]))
        varies[i] = np.ptp(predictions, axis=0)
        # Beside the tolerance: even a line misses itself by rounding.
        allowed = tolerance * varies[i] + 1e-9 * (np.abs(value) + varies[i])
        miss = np.abs(predictions - value - (points - at[i])[:, None] * slopes[i])
        trusted[i] = points[_around((miss <= allowed).all(axis=1), int(np.searchsorted(points, at[i])))]
    return Tangent(value, slopes, step, trusted, varies)


def _ranges(model: Model, places: Labels, at: Vector) -> tuple[Vector, Vector]:
    """Range of each input in training, widened to hold the point."""
    columns = [model.inputs[place] for place in places]
    low = [c.minimum if c.minimum is not None else x for c, x in zip(columns, at, strict=True)]
    high = [c.maximum if c.maximum is not None else x for c, x in zip(columns, at, strict=True)]
    return np.minimum(low, at), np.maximum(high, at)


def _moved(base: Matrix, places: Labels, to: Vector) -> Matrix:
    """A row for each place: the base with this one input moved."""
    raw = np.repeat(base, places.size, axis=0)
    raw[np.arange(places.size), places] = to
    return raw


def _around(holds: NDArray[np.bool_], centre: int) -> list[int]:
    """The first and the last place of the run of truths around the centre, which counts as one."""
    broken = np.flatnonzero(~holds)
    before, after = broken[broken < centre], broken[broken > centre]
    return [int(before.max(initial=-1)) + 1, int(after.min(initial=holds.size)) - 1]
