"""Class labels as JSON has them: 1 and 1.0 are the same, "1" and true are others."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from app.ml.contract import Labels

Class: TypeAlias = bool | int | float | str
UNKNOWN = -1


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
