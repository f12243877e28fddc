"""Preparation of a model as JSON and arrays, with all that it has learned."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON
from app.ml.contract.columns import ColumnKind
from app.ml.models import state_format
from app.ml.models.member_view import described, inputs_of, is_, restored
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.state import PreparationState
from app.ml.preparation.text_columns import WithTexts
from app.ml.preparation.text_request import TextColumn
from app.ml.preparation.vocabulary import Vocabulary


def pack(preparation: Preparation, path: str, arrays: dict[str, NDArray[Any]]) -> dict[str, JSON]:
    """Its arrays go into `arrays` under this path."""
    result = described(preparation, path, arrays)
    result["preparation"] = state_format.pack(preparation.learned, path, arrays)
    if isinstance(preparation, WithTexts):
        result["texts"] = [_packed(text, f"{path}.texts.{n}", arrays) for n, text in enumerate(preparation.texts)]
    return result | state_format.packed_projection(preparation, "", arrays)


def unpack(document: JSON, arrays: dict[str, NDArray[Any]]) -> Preparation:
    """Raises KeyError, TypeError or ValueError for what was not packed so."""
    learned = state_format.unpack(PreparationState, document["preparation"], arrays)
    texts, inputs = tuple(_texts(document, arrays)), inputs_of(document)
    if texts:
        others = tuple(column for column in inputs if column.kind != ColumnKind.TEXT)
        alone = not others and not any(part.size for part in learned)
        front = Preparation((), learned) if alone else restored(document, others, learned, arrays)
        joined = WithTexts.joined(front, texts)
        if joined.inputs != inputs:
            raise ValueError("the texts are not the inputs")
        return joined
    front = restored(document, inputs, learned, arrays)
    return state_format.unpacked_projection(front, document, arrays)


def _packed(vocabulary: Vocabulary, path: str, arrays: dict[str, NDArray[Any]]) -> JSON:
    arrays |= {
        f"{path}.terms": np.frombuffer(vocabulary.encoded, np.uint8),
        f"{path}.ends": vocabulary.ends,
        f"{path}.idf": vocabulary.idf,
    }
    return {"column": vocabulary.column, "how": vocabulary.how.model_dump(mode="json"), "path": path}


def _texts(document: JSON, arrays: Mapping[str, NDArray[Any]]) -> Iterator[Vocabulary]:
    for packed in is_(document.get("texts", []), list):
        terms, ends, idf = (arrays[f"{packed['path']}.{name}"] for name in ("terms", "ends", "idf"))
        if terms.dtype != np.uint8:
            raise TypeError("terms are no bytes")
        how = TextColumn.model_validate(packed["how"])
        vocabulary = Vocabulary(is_(packed["column"], str), how, terms.tobytes(), ends, idf)
        if not vocabulary.is_sound():
            raise ValueError("the parts of a vocabulary do not fit together")
        yield vocabulary
