"""Preparation of a model as JSON and arrays, with all that it has learned."""

from typing import Any

from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, FittedLearner
from app.ml.models import state_format
from app.ml.models.member_view import described, inputs_of, restored
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.projected import Projected
from app.ml.preparation.state import PreparationState


def pack(preparation: Preparation, path: str, arrays: dict[str, NDArray[Any]]) -> dict[str, JSON]:
    """Its arrays go into `arrays` under this path."""
    result = described(preparation, path, arrays)
    result["preparation"] = state_format.pack(preparation.learned, path, arrays)
    if isinstance(preparation, Projected):
        fitted = state_format.pack(preparation.projection, "projection", arrays)
        result["projection"] = {"fitted": fitted, "behind": pack(preparation.behind, "behind", arrays)}
    return result


def unpack(document: JSON, arrays: dict[str, NDArray[Any]]) -> Preparation:
    """Raises KeyError, TypeError or ValueError for what was not packed so."""
    learned = state_format.unpack(PreparationState, document["preparation"], arrays)
    front = restored(document, inputs_of(document), learned, arrays)
    if "projection" not in document:
        return front
    projection = state_format.unpack(FittedLearner, document["projection"]["fitted"], arrays)
    return Projected.chained(front, projection, unpack(document["projection"]["behind"], arrays))
