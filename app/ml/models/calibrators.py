"""Calibrators of a stored classifier: they follow its own probabilities, one after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeAlias

from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, Algorithm, Matrix
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.class_probabilities.calibrator import Calibrator
from app.ml.numerics.class_probabilities.calibrator import calibrated as mapped
from app.ml.numerics.tensor_graphs.class_tensors import calibrator_tensor

Calibrators: TypeAlias = tuple[Calibrator, ...]
CALIBRATED = "calibrators."
"""In the names of their arrays: models with any have a format of their own."""


def calibrated(calibrators: Calibrators, algorithm: Algorithm[Any, Any]) -> Algorithm[Any, Any]:
    """The algorithm whose probabilities are calibrated; its explanations and outputs are as before."""
    if not calibrators:
        return algorithm
    fitted = algorithm.predict

    def predict(params: Any, state: Any, x: Matrix) -> Matrix:
        probabilities = fitted(params, state, x)
        for calibrator in calibrators:
            probabilities = mapped(calibrator, probabilities)
        return probabilities

    graph = algorithm.graph

    def to_tensor(params: Any, state: Any, x: Tensor) -> Tensor:
        shares = graph(params, state, x)  # type: ignore[misc]  # called only if there
        return reduce(
            lambda probabilities, calibrator: calibrator_tensor(calibrator, probabilities), calibrators, shares
        )

    return replace(algorithm, predict=predict, graph=graph and to_tensor, degrees=lambda _: False)


def packed(calibrators: Calibrators, path: str, arrays: dict[str, NDArray[Any]]) -> dict[str, JSON]:
    """Fields of a document, none without calibrators; arrays go into `arrays` under this path."""
    if not calibrators:
        return {}
    for number, calibrator in enumerate(calibrators):
        arrays |= {f"{path}{CALIBRATED}{number}.{name}": array for name, array in calibrator._asdict().items()}
    return {"calibrators": len(calibrators)}


def unpacked(document: JSON, path: str, arrays: Mapping[str, NDArray[Any]], classes: int) -> Calibrators:
    """Raises KeyError, TypeError or ValueError for what was not packed so. classes: of the model."""
    loaded = tuple(
        Calibrator(*(arrays[f"{path}{CALIBRATED}{number}.{name}"] for name in Calibrator._fields))
        for number in range(document.get("calibrators", 0))
    )
    if not _are_sound(loaded, classes):
        raise ValueError("calibrators")
    return loaded


def _are_sound(calibrators: Sequence[Calibrator], classes: int) -> bool:
    return all(classes > 1 and calibrator.is_sound(classes) for calibrator in calibrators)
