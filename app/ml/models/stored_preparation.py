"""Preparation of a model as JSON and arrays, with all that it has learned."""

from typing import Any

from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON
from app.ml.models import state_format
from app.ml.models.member_view import described, inputs_of, restored
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.state import PreparationState


def pack(preparation: Preparation, path: str, arrays: dict[str, NDArray[Any]]) -> dict[str, JSON]:
    """Its arrays go into `arrays` under this path."""
    result = described(preparation, path, arrays)
    result["preparation"] = state_format.pack(preparation.learned, path, arrays)
    return result | state_format.packed_projection(preparation, "", arrays)


def unpack(document: JSON, arrays: dict[str, NDArray[Any]]) -> Preparation:
    """Raises KeyError, TypeError or ValueError for what was not packed so."""
    learned = state_format.unpack(PreparationState, document["preparation"], arrays)
    front = restored(document, inputs_of(document), learned, arrays)
    return state_format.unpacked_projection(front, document, arrays)
