"""Fitting a function of the target instead of the target (LION 5.1): y = exp(−cx) is a straight line as log y = −cx.

Predictions are turned back by the inverse function, and so are the ends of intervals. The mean of a function is not the
function of the mean: what was fitted as a mean of log y comes back as a median of y, if errors are symmetric.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import Algorithm, Data, Fit, Labels, Matrix, Vector
from app.ml.numerics.scaling import MAX_MULTIPLIABLE
from app.ml.numerics.tensor_graphs.turned_tensors import turned_tensor
from app.ml.preparation.arrow_columns import pointer
from app.ml.preparation.request import Linearising

MAX_NAMED_ROWS = 10
"""Faulty rows named in one refusal."""


class Transform(NamedTuple):
    forward: Callable[[Vector], Vector]
    back: Callable[[Vector], Vector]
    slope: Callable[[Vector], Vector]
    """Derivative of `forward`: an error σ of y is one of |slope|·σ of its function."""
    defined: Callable[[Vector], NDArray[np.bool_]]
    domain: str


_TRANSFORMS: dict[Linearising, Transform] = {
    "log": Transform(np.log, np.exp, lambda y: 1 / y, lambda y: y > 0, "above 0"),
    "log1p": Transform(np.log1p, np.expm1, lambda y: 1 / (1 + y), lambda y: y > -1, "above -1"),
    "sqrt": Transform(
        np.sqrt, lambda z: np.maximum(z, 0) ** 2, lambda y: 0.5 / np.sqrt(y), lambda y: y >= 0, "0 or above"
    ),
    "square": Transform(
        np.square, lambda z: np.sqrt(np.maximum(z, 0)), lambda y: 2 * y, lambda y: y >= 0, "0 or above"
    ),
    "reciprocal": Transform(
        np.reciprocal, lambda z: 1 / z, lambda y: -1 / y**2, lambda y: np.abs(y) > 1e-300, "other than 0"
    ),
}


def check_domain(how: Linearising, y: Vector, rows: Labels, name: str) -> None:
    """Raises InvalidData where the target has no such function, or is out of all proportion. rows: of the table, for
    each y.
    """
    result = {"numbers": y}
    if how != "none":
        _check_defined(how, y, rows, name)
        result[f"{how} of the numbers"] = carried(how, y)
    for what, numbers in result.items():
        size = float(np.abs(numbers).max())
        if size > MAX_MULTIPLIABLE or 0 < size < 1 / MAX_MULTIPLIABLE:
            advice = "large to be squared: divide" if size > 1 else "small to be squared: multiply"
            raise InvalidData(f"The {what} of the target {name!r} are too {advice} them by a power of ten.")


def _check_defined(how: Linearising, y: Vector, rows: Labels, name: str) -> None:
    wrong = rows[~defined(how, y)]
    if wrong.size:
        raise InvalidData(
            f"{domain(how, name)} {wrong.size} rows have others.",
            faults=[
                Fault(pointer(row, name), "The function has no value here.", "undefined")
                for row in wrong[:MAX_NAMED_ROWS]
            ],
        )


def defined(how: Linearising, y: Vector) -> NDArray[np.bool_]:
    """(n,) which targets have such a function."""
    if how == "none":
        return np.ones(y.shape, np.bool_)
    transform = _TRANSFORMS[how]
    inside = transform.defined(y)
    with np.errstate(over="ignore"):
        is_defined: NDArray[np.bool_] = inside & np.isfinite(transform.forward(np.where(inside, y, 1.0)))
    return is_defined


def domain(how: Linearising, name: str) -> str:
    """One sentence: for which targets it is defined."""
    return f"The {how} of the target {name!r} exists for numbers {_TRANSFORMS[how].domain}."


def transformed(how: Linearising, data: Data, *, errors_known: bool) -> Data:
    """The same rows with the function as the target. Where weights are 1/σ², they follow it: σ becomes |slope|·σ."""
    if how == "none":
        return data
    transform = _TRANSFORMS[how]
    y, weights = transform.forward(data.y), data.weights
    if errors_known:
        with np.errstate(all="ignore"):
            weights = weights / transform.slope(data.y) ** 2
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise InvalidData(f"Errors of targets at 0 have no counterpart for their {how}.")
    weights.setflags(write=False)
    return replace(data.with_target(data.task, y), weights=weights, curriculum=data.curriculum)


def carried(how: Linearising, y: Vector) -> Vector:
    """The function of these targets."""
    return y if how == "none" else _TRANSFORMS[how].forward(y)


def in_units(how: Linearising, z: Vector) -> Vector:
    """The target of which this is the function; not finite beyond float64, and reported as unknown."""
    if how == "none":
        return z
    with np.errstate(all="ignore"):
        return _TRANSFORMS[how].back(z)


def turned_back(how: Linearising, algorithm: Algorithm[Any, Any]) -> Algorithm[Any, Any]:
    """The algorithm that predicts in the target's own units."""
    if how == "none":
        return algorithm
    transform, fitted = _TRANSFORMS[how], algorithm.predict

    def predict(params: Any, state: Any, x: Matrix) -> Vector:
        return in_units(how, fitted(params, state, x))

    def interval(params: Any, state: Any, x: Matrix, confidence: float) -> Matrix:
        ends: Matrix = algorithm.interval(params, state, x, confidence)  # type: ignore[misc]  # called only if there
        with np.errstate(all="ignore"):
            bounds = np.sort(transform.back(ends), axis=1)
        if how == "reciprocal":
            bounds[(ends[:, 0] <= 0) & (ends[:, 1] >= 0)] = -np.inf, np.inf
        return bounds

    graph = None if algorithm.graph is None else turned_tensor(how, algorithm.graph)
    return replace(algorithm, predict=predict, graph=graph, interval=algorithm.interval and interval)


def with_bias(how: Linearising, fit: Fit[Any], data: Data, predicted: Vector) -> Fit[Any]:
    """The fit, with a word on what turning back does. data, predicted: in the target's own units."""
    with np.errstate(all="ignore"):
        share = float(np.average(predicted, weights=data.weights) / np.average(data.y, weights=data.weights))
    messages = (
        f"The fit is of the target's {how}; predictions are turned back without a correction, medians rather than "
        f"means. On the training rows their mean is {share:.4g} of the target's."
    )
    return replace(fit, warnings=(*fit.warnings, messages))
