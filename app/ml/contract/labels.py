"""Class labels as JSON has them: 1 and 1.0 are the same, "1" and true are others."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import SkipValidation, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from app.ml.contract.algorithm import Labels

Class: TypeAlias = bool | int | float | str
UNKNOWN = -1
NO_LABEL = "A class is a text, a number or a boolean."


def _one_fault(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Not one for each type it is not."""
    try:
        return handler(value)
    except ValidationError:
        raise PydanticCustomError("class_label", NO_LABEL) from None


Label = TypeAliasType("Label", Annotated[Class, WrapValidator(_one_fault)])
"""A class label in a request or a response: the component `Label` of the OpenAPI document."""
Unchecked: TypeAlias = Annotated[Label, SkipValidation]
"""One of many in a request: validated by whoever reads them, at a tenth of the time."""


def unknown_labels(labels: Sequence[Any]) -> Labels:
    """The places of what is no label."""
    return np.array(
        [place for place, label in enumerate(labels) if not isinstance(label, bool | int | float | str)], np.intp
    )


def codes_of(labels: Sequence[Class], classes: Sequence[Class]) -> Labels:
    """The place of every label among the classes, `UNKNOWN` for others. Shape (n,)."""
    places = {_key(label): code for code, label in enumerate(classes)}
    return np.array([places.get(_key(label), UNKNOWN) for label in labels], np.intp)


def different(labels: Sequence[Class]) -> list[Class]:
    """Each label once: truths, then numbers, then texts, ascending in each."""
    first = {_key(label): label for label in reversed(labels)}
    return [first[key] for key in sorted(first, key=lambda key: (key[0], key[1]))]


def _key(label: Class) -> tuple[int, Class]:
    return (0 if isinstance(label, bool) else 2 if isinstance(label, str) else 1), label
