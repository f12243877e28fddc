"""The header of a stored model: what it is, without its arrays; and the formats that this release reads."""

from typing import Any, NamedTuple

from app.base.errors import CorruptModel, RetiredFormat
from app.ml.contract.algorithm import JSON, Task
from app.ml.contract.columns import InputColumn
from app.ml.contract.labels import Class
from app.ml.models import safetensors_format
from app.ml.models.member_view import inputs_of, is_

FORMAT = 6
"""Grows when bytes written before can no longer be read."""
ENCODED_FORMAT = 7
"""That of models with categories encoded by the target, which readers of the other would misread."""
PROJECTED_FORMAT = 8
"""That of models behind a projection, likewise."""
FILLED_FORMAT = 9
"""That of models with a value for missing ones of named columns, likewise."""
CALIBRATED_FORMAT = 10
"""That of classifiers with calibrators, likewise."""
ITEM_FORMAT = 11
"""That of models of items, whose inputs have no other levels, likewise."""
PROJECTED_MEMBER_FORMAT = 12
"""That of committees with a member behind a projection, likewise."""
TEXT_FORMAT = 13
"""That of models with columns of text, likewise."""
FORMATS = (
    FORMAT,
    ENCODED_FORMAT,
    PROJECTED_FORMAT,
    FILLED_FORMAT,
    CALIBRATED_FORMAT,
    ITEM_FORMAT,
    PROJECTED_MEMBER_FORMAT,
    TEXT_FORMAT,
)
RETIRED = 1, 2, 3, 4, 5
"""Formats of earlier releases, whose parameters or arrays have other names."""


class Header(NamedTuple):
    """The header of a blob, without its arrays."""

    algorithm: str
    task: str
    parameters: dict[str, Any]
    target: str | None
    classes: tuple[Class, ...] | None
    inputs: tuple[InputColumn, ...]
    receipt: dict[str, Any]


def read_header(blob: bytes | memoryview, whose: str = "The model") -> Header:
    """The header of the model, without touching its arrays. Raises CorruptModel and RetiredFormat."""
    return header_of(safetensors_format.read_document(blob), whose)


def header_of(document: JSON, whose: str) -> Header:
    """The header in the document of a blob. Raises CorruptModel and RetiredFormat."""
    try:
        if document["format"] in RETIRED:
            raise RetiredFormat(
                f"{whose} is stored in format {document['format']} of an earlier release, whose parameters or arrays "
                f"had other names; this release reads the formats {FORMAT} to {FORMATS[-1]}. Train the model again."
            )
        if document["format"] not in FORMATS:
            raise CorruptModel("The stored model has a format this version does not know.")
        return Header(
            algorithm=is_(document["algorithm"], str),
            task=Task(document["task"]).value,
            parameters=is_(document["parameters"], dict),
            target=is_(document["target"], str | None),
            classes=_classes(document["classes"]),
            inputs=inputs_of(document),
            receipt=is_(document["receipt"], dict),
        )
    except (KeyError, TypeError, ValueError):  # of pydantic too
        raise CorruptModel("The stored model does not fit this version's format.") from None


def _classes(labels: JSON) -> tuple[Class, ...] | None:
    if labels is None:
        return None
    return tuple(is_(label, bool | int | float | str) for label in is_(labels, list))
