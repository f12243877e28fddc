"""Faults of the parts of a request that fit its schema, although other parts do not."""

import copy
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from pydantic import ValidationError

from app.base.errors import DatasetNotFound, InvalidRequest, ModelNotFound, ValiantError
from app.base.faults import Fault, steps
from app.ml.kinds.job import Request

STAND_INS = {"model": "stand-in", "algorithm": {"name": "decision_tree"}}
"""Valid values for required fields that have none."""
ANY_ALGORITHM = frozenset({"unknown_column", "duplicate", "dataset_not_found"})
"""Codes of faults that do not depend on the algorithm."""


def further_faults(
    kind: type[Request], body: object, faults: Sequence[Fault], check: Callable[[Any], object]
) -> list[Fault]:
    """The faults that `check` finds in the request once the faulty parts of its body are left out.

    found: faults of the schema. check: raises InvalidRequest with its faults, or a ValiantError.
    """
    if not isinstance(body, dict):
        return []
    body_left, replaced = _without(body, [fault.pointer for fault in faults], STAND_INS.keys() & kind.model_fields)
    try:
        check(kind.model_validate(body_left))
    except InvalidRequest as error:
        further: Sequence[Fault] = error.faults
    except (DatasetNotFound, ModelNotFound) as error:
        place = "/dataset" if isinstance(error, DatasetNotFound) else "/model"
        further = [Fault(place, error.detail, error.code)]
    except (ValidationError, ValiantError):
        return []  # too little is left to report more
    else:
        return []
    faulty_pointers = {fault.pointer for fault in faults}
    depends = "algorithm" in replaced
    return [
        fault
        for fault in further
        if not _within(fault.pointer, faulty_pointers) and (fault.code in ANY_ALGORITHM or not depends)
    ]


def _without(body: dict[str, Any], pointers: Sequence[str], required: set[str]) -> tuple[dict[str, Any], set[str]]:
    """The body without what is at the pointers, and those of the required fields that got a stand-in."""
    body_left = copy.deepcopy(body)
    for pointer in pointers:
        _remove(body_left, steps(pointer))
    algorithm = body_left.get("algorithm")
    if isinstance(algorithm, dict) and "name" not in algorithm:
        del body_left["algorithm"]
    lost = {name for name in required if name not in body_left and any(_within(p, {f"/{name}"}) for p in pointers)}
    return body_left | {name: copy.deepcopy(STAND_INS[name]) for name in lost}, lost


def _remove(holder: Any, path: Sequence[str]) -> None:
    """Delete the field at the end of the path; a list with a faulty item goes as a whole."""
    for step, after in zip_longest(path, path[1:]):
        if not isinstance(holder, dict) or step not in holder:
            return
        if after is None or not isinstance(holder[step], dict):
            del holder[step]
            return
        holder = holder[step]


def _within(pointer: str, places: set[str]) -> bool:
    return any(pointer == place or pointer.startswith(f"{place}/") for place in places)
