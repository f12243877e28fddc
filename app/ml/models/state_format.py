"""A state as JSON and arrays: the fields of its NamedTuple are the storage format.

array                 {"array": "state.tree.left"}, the array itself beside
NamedTuple            {"fields": {…}}; a field with a default may be missing: it is younger than the bytes
tuple or list         [ … ]
text, whole number, truth, None, finite number: themselves; nan and the infinities: {"float": "nan"}
array of texts        {"texts": [ … ]}, one dimension
learner               {"learner": {"name": "ridge", …}, "state": {…}}, and its "view" if it was there before
"""

import math
from dataclasses import replace
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from app.base.errors import AlgorithmNotFound
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import JSON, FittedLearner
from app.ml.models.calibrators import calibrated
from app.ml.models.member_view import View, described, inputs_of, restored
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.projected import Projected
from app.ml.preparation.state import PreparationState
from app.ml.preparation.target_transform import turned_back

S = TypeVar("S")
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def pack(value: Any, path: str, arrays: dict[str, NDArray[Any]]) -> JSON:
    """`value` as JSON; every array goes into `arrays` under its path. Raises TypeError for what is not stored."""
    if isinstance(value, np.ndarray):
        return _packed_array(value, path, arrays)
    if isinstance(value, FittedLearner):
        result = {"learner": value.params.model_dump(mode="json"), "state": pack(value.state, path, arrays)}
        return result if value.view is None else result | {"view": _packed_view(value.view, f"{path}.view", arrays)}
    if hasattr(value, "_fields"):
        parts = zip(value._fields, value, strict=True)
        return {"fields": {name: pack(part, f"{path}.{name}", arrays) for name, part in parts}}
    if isinstance(value, tuple | list):
        return [pack(part, f"{path}.{place}", arrays) for place, part in enumerate(value)]
    return _packed_scalar(value.item() if isinstance(value, np.generic) else value, path)


def packed_projection(preparation: Preparation, path: str, arrays: dict[str, NDArray[Any]]) -> dict[str, JSON]:
    """The projection in front of a preparation, and what is behind it; empty where there is none.

    Its arrays go into `arrays` under names that begin with this path.
    """
    if not isinstance(preparation, Projected):
        return {}
    behind = described(preparation.behind, f"{path}behind", arrays)
    behind["preparation"] = pack(preparation.behind.learned, f"{path}behind", arrays)
    return {"projection": {"fitted": pack(preparation.projection, f"{path}projection", arrays), "behind": behind}}


def unpacked_projection(front: Preparation, document: JSON, arrays: dict[str, NDArray[Any]]) -> Preparation:
    """The preparation, whose part in front is this one. Raises as `unpack`."""
    if "projection" not in document:
        return front
    behind = document["projection"]["behind"]
    learned = unpack(PreparationState, behind["preparation"], arrays)
    projection = unpack(FittedLearner, document["projection"]["fitted"], arrays)
    return Projected.chained(front, projection, restored(behind, inputs_of(behind), learned, arrays))


def beside(value: Any) -> int:
    """Bytes that parts of a state may keep beside their arrays, as far as `beside` declares them."""
    if isinstance(value, FittedLearner):
        return beside(value.state)
    if not isinstance(value, tuple | list):
        return 0
    return int(getattr(value, "beside", 0)) + sum(map(beside, value))


def _packed_view(view: Any, path: str, arrays: dict[str, NDArray[Any]]) -> JSON:
    return view.packed(path, arrays) | packed_projection(view.preparation, f"{path}.", arrays)


def _packed_array(array: NDArray[Any], path: str, arrays: dict[str, NDArray[Any]]) -> JSON:
    if array.dtype.kind in "UO":
        return {"texts": [_text(item) for item in array.tolist()]}
    arrays[path] = array
    return {"array": path}


def _packed_scalar(value: Any, path: str) -> JSON:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{path} is a {type(value).__name__}, which models do not store.")


def unpack(kind: type[S], packed: JSON, arrays: dict[str, NDArray[Any]]) -> S:
    """The NamedTuple `kind` that was packed. Raises TypeError, KeyError or ValueError if it is not one.

    A part with a method `demand_sound` is looked at: compiled code that follows its indices does not look.
    """
    state = unpack_unchecked(kind, packed, arrays)
    _demand_sound(state)
    return state


def unpack_unchecked(kind: type[S], packed: JSON, arrays: dict[str, NDArray[Any]]) -> S:
    """The NamedTuple `kind` that a process of this service has just packed; no part is looked at.

    A part of a fit may be without what it shares with others, such as the votes of trees.
    """
    state: S = _unpack(kind, packed, arrays)
    return state


def _demand_sound(value: Any) -> None:
    if isinstance(value, FittedLearner):
        _demand_sound(value.state)
    elif hasattr(value, "demand_sound"):
        value.demand_sound()
    elif isinstance(value, tuple | list):
        for part in value:
            _demand_sound(part)


def _unpack(hint: Any, packed: JSON, arrays: dict[str, NDArray[Any]]) -> Any:
    kind = _chosen(hint, packed)
    if packed is None:
        if kind not in (None, type(None), Any):
            raise TypeError("a value is missing")
        return None
    if kind is FittedLearner:
        return _learned(packed, arrays)
    if isinstance(kind, type) and hasattr(kind, "_fields"):
        fields, hints = packed["fields"], get_type_hints(kind)
        if set(fields) | set(getattr(kind, "_field_defaults", ())) != set(kind._fields):
            raise KeyError(kind.__name__)
        return kind(**{name: _unpack(hints[name], part, arrays) for name, part in fields.items()})
    if isinstance(packed, list):
        return _sequence(kind, packed, arrays)
    if isinstance(packed, dict):
        return _wrapped(kind, packed, arrays)
    return _scalar(kind, packed)


def _learned(packed: JSON, arrays: dict[str, NDArray[Any]]) -> FittedLearner:
    try:
        entry = find(packed["learner"]["name"])
    except AlgorithmNotFound:
        raise ValueError("a learner of an algorithm this version does not have") from None
    params = entry.spec.model_validate(packed["learner"])
    state = _unpack(entry.algorithm.state, packed["state"], arrays)
    if "view" not in packed:
        return FittedLearner(entry.algorithm, params, state)
    view = View.unpacked(packed["view"], arrays)
    view = replace(view, preparation=unpacked_projection(view.preparation, packed["view"], arrays))
    algorithm = calibrated(view.calibrators, turned_back(view.linearising, entry.algorithm))
    return FittedLearner(algorithm, params, state, view)


def _chosen(hint: Any, packed: JSON) -> Any:
    """The member of a union that is meant: with None aside there is one."""
    hint = _spelled_out(hint)
    if get_origin(hint) not in (Union, UnionType):
        return hint
    members = [member for member in get_args(hint) if member is not type(None)]
    return type(None) if packed is None else _spelled_out(members[0]) if len(members) == 1 else Any


def _spelled_out(hint: Any) -> Any:
    """Without the lazy aliases that numpy 2.5 makes of `NDArray` (PEP 695)."""
    alias, arguments = get_origin(hint) or hint, get_args(hint)
    if not hasattr(alias, "__value__"):
        return hint
    return alias.__value__[arguments] if arguments else _spelled_out(alias.__value__)


def _sequence(kind: Any, packed: list[JSON], arrays: dict[str, NDArray[Any]]) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return tuple(_unpack(Any, part, arrays) for part in packed)
    if origin is tuple and not (len(inner) == 2 and inner[1] is ...):
        return tuple(_unpack(part_kind, part, arrays) for part_kind, part in zip(inner, packed, strict=True))
    if not (isinstance(origin, type) and issubclass(tuple, origin)) and origin is not list:
        raise TypeError("a sequence was not expected")
    parts = [_unpack(inner[0], part, arrays) for part in packed]
    return parts if origin is list else tuple(parts)


def _wrapped(kind: Any, packed: dict[str, JSON], arrays: dict[str, NDArray[Any]]) -> Any:
    ((tag, content),) = packed.items()
    if tag == "float" and kind in (float, Any):
        return _NONFINITE[content]
    if (get_origin(kind) or kind) not in (np.ndarray, Any):
        raise TypeError("an array was not expected")
    if tag == "texts":
        return np.array([_text(item) for item in content], dtype=np.str_)
    if tag != "array":
        raise KeyError(tag)
    array = arrays[content]
    wanted = _dtype(kind)
    if wanted is not None and array.dtype != wanted:
        raise TypeError("an array has another type")
    return array


def _dtype(kind: Any) -> Any:
    """The dtype that `NDArray[…]` names, if it names one."""
    named = [get_args(argument) for argument in get_args(kind) if get_origin(argument) is np.dtype]
    scalar = named[0][0] if named and named[0] else None
    return np.dtype(scalar) if isinstance(scalar, type) and not _abstract(scalar) else None


def _abstract(scalar: type) -> bool:
    return scalar in {np.generic, np.number, np.integer, np.floating, np.signedinteger, np.unsignedinteger}


def _scalar(kind: Any, value: JSON) -> Any:
    if kind is float and type(value) in (int, float):
        return float(value)
    if kind is Any or (isinstance(kind, type) and type(value) is kind):
        return value
    if isinstance(kind, type) and issubclass(kind, str) and isinstance(value, str):
        return kind(value)  # a StrEnum
    if get_origin(kind) is not None and value in get_args(kind):
        return value  # a Literal
    raise TypeError("a value has another type")


def _text(item: Any) -> str:
    if not isinstance(item, str):
        raise TypeError("only texts are stored in an array of objects")
    return item
