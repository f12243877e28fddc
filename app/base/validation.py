"""Validation errors of pydantic as faults: our own sentence and a JSON pointer for each."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, RootModel
from pydantic_core.core_schema import ErrorType

from app.base.faults import Fault, place
from app.base.faults import steps as steps_of
from app.base.suggestions import LISTED, closest, one_of

LONGEST_POINTER = 300
OUTSIDE = ("query", "path", "header")
"""First steps of places outside the body, where every value is text."""
PYDANTICS = frozenset(get_args(ErrorType))
"""Types of errors that have a message of pydantic's; the others are defined here."""
NO_TEXT = "Does not fit the schema of this field."
TEXTS: Mapping[str, str] = {
    "missing": "Is required.",
    "none_required": "Must be null.",
    "model_type": "Must be an object{given}.",
    "model_attributes_type": "Must be an object{given}.",
    "dict_type": "Must be an object{given}.",
    "list_type": "Must be an array{given}.",
    "tuple_type": "Must be an array{given}.",
    "set_type": "Must be an array{given}.",
    "frozen_set_type": "Must be an array{given}.",
    "string_type": "Must be a string{given}.",
    "string_unicode": "Must be a string of Unicode characters.",
    "string_not_ascii": "Must hold only ASCII characters.",
    "string_too_short": "Must have at least {min_length} characters.",
    "string_too_long": "Must have at most {max_length} characters.",
    "string_pattern_mismatch": "Must match {pattern}.",
    "bytes_type": "Must be a string{given}.",
    "bool_type": "Must be true or false{given}.",
    "bool_parsing": "Must be true or false.",
    "int_type": "Must be an integer{given}.",
    "int_parsing": "Must be an integer.",
    "int_parsing_size": "Must be an integer of at most 4,300 digits.",
    "int_from_float": "Must be an integer; this number has a fractional part.",
    "float_type": "Must be a number{given}.",
    "float_parsing": "Must be a number.",
    "finite_number": "Must be a finite number.",
    "greater_than": "Must be greater than {gt}.",
    "greater_than_equal": "Must be at least {ge}.",
    "less_than": "Must be less than {lt}.",
    "less_than_equal": "Must be at most {le}.",
    "multiple_of": "Must be a multiple of {multiple_of}.",
    "too_short": "Must have {min_length} or more items.",
    "too_long": "Must have at most {max_length} items.",
    "uuid_type": "Must be a UUID as a string{given}.",
    "uuid_parsing": "Must be a UUID.",
    "uuid_version": "Must be a UUID of version {expected_version}.",
    "datetime_type": "Must be a date and time in ISO 8601{given}.",
    "datetime_parsing": "Must be a date and time in ISO 8601.",
    "datetime_from_date_parsing": "Must be a date and time in ISO 8601.",
    "datetime_object_invalid": "Must be a date and time in ISO 8601.",
    "timezone_aware": "Must have an offset from UTC.",
    "date_type": "Must be a date in ISO 8601{given}.",
    "date_parsing": "Must be a date in ISO 8601.",
    "date_from_datetime_parsing": "Must be a date in ISO 8601.",
    "date_from_datetime_inexact": "Must be a date in ISO 8601, without a time.",
    "union_tag_not_found": "Is required.",
    "invalid_key": "Must have strings as keys.",
}
"""By type of error. `enum`, `literal_error`, `union_tag_invalid` and `extra_forbidden` have sentences with names."""
PATTERNS = {
    "^[a-z0-9_-]{1,100}$": "Must be 1 to 100 characters of a-z, 0-9, _ and -.",
    r"^[\x21-\x7e]{1,255}$": "Must be 1 to 255 printable ASCII characters without spaces.",
    r"^[\x20-\x7e]{1,255}$": "Must be 1 to 255 printable ASCII characters.",
}
"""Patterns in words."""
JSON_TYPES = {
    bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array", dict: "an object",
    NoneType: "null",
}  # fmt: skip


class _Found(NamedTuple):
    steps: tuple[str | int, ...]
    """Within the body."""
    models: tuple[type[BaseModel], ...]
    """Models that the object at fault may be: their fields have names."""
    alternative: bool
    """True if the error is that of one member of a union."""


def validation_faults(errors: Sequence[Mapping[str, Any]], kind: Any = None) -> list[Fault]:
    """All of them, each place once, without the values. kind: the type of the body."""
    faults: dict[str, list[Fault]] = {}
    others: set[str] = set()
    for error in errors:
        where, *steps = error["loc"]
        if where in OUTSIDE:
            name = str(steps[0]).title() if where == "header" else steps[0]
            location = _Found((where, name, *steps[1:]), (), alternative=False)
        else:
            location = _locate(kind, steps, error["type"])
        fault = Fault(_cut(place(*location.steps)), sentence(error, location.models), error["type"])
        before = faults.setdefault(fault.pointer, [])
        if not before or location.alternative:
            before.append(fault)
        if location.alternative:
            others.add(fault.pointer)
    return [
        _joined(several)
        for pointer, several in faults.items()
        if pointer not in others or not _fits_one(pointer, faults)
    ]


def _fits_one(pointer: str, faults: Iterable[str]) -> bool:
    """True if the value has the type of a member of the union: then the fault lies within it."""
    return any(other.startswith(f"{pointer}/") for other in faults)


def in_document_order(faults: Iterable[Fault], body: object) -> list[Fault]:
    """Each fault once: those outside the body first, then in the order in which a reader of the body meets them."""
    places: dict[int, dict[str, int]] = {}

    def position(fault: Fault) -> list[int]:
        here, positions = body, list[int]()
        for step in steps_of(fault.pointer):
            if isinstance(here, dict):
                if id(here) not in places:
                    places[id(here)] = {key: place for place, key in enumerate(here)}
                outside = not positions and step in OUTSIDE
                positions.append(places[id(here)].get(step, -1 if outside else len(here)))
                here = here.get(step)
            elif isinstance(here, list) and step.isdecimal():
                positions.append(int(step))
                here = here[int(step)] if int(step) < len(here) else None
            else:
                break
        return positions

    return sorted(dict.fromkeys(faults), key=position)


def sentence(error: Mapping[str, Any], models: Sequence[type[BaseModel]] = ()) -> str:
    """The fault and its remedy, without the value. models: what the object at fault may be."""
    kind, context = error["type"], error.get("ctx") or {}
    if kind in {"value_error", "assertion_error"}:
        return str(context["error"])
    if kind in {"enum", "literal_error", "union_tag_invalid"}:
        expected = re.findall(r"'([^']*)'|(?:^|, | or )([^', ]+)", context.get("expected") or context["expected_tags"])
        value = context.get("tag", error.get("input"))
        return _choice(value, [text or bare for text, bare in expected])
    if kind == "extra_forbidden":
        names = dict.fromkeys(name for model in models for name in model.model_fields)
        return f"Is no known field{one_of(error['loc'][-1], names)}"
    if kind == "string_pattern_mismatch" and context["pattern"] in PATTERNS:
        return PATTERNS[context["pattern"]]
    if kind in TEXTS:
        return TEXTS[kind].format_map(_written(context) | {"given": _given(error)})
    return NO_TEXT if kind in PYDANTICS else str(error["msg"])


def _choice(value: object, names: Sequence[str]) -> str:
    near = closest(value, names) if len(names) > 1 else None
    if near is not None and len(names) > LISTED:
        return f"Is none of the {len(names)} names that are known here; did you mean '{near}'?"
    text = f"Must be one of {', '.join(names)}" if len(names) > 1 else f"Must be {names[0]}"
    return f"{text}." if near is None else f"{text}; did you mean '{near}'?"


def _given(error: Mapping[str, Any]) -> str:
    """`, not a string`, of a value that is not text in an address."""
    if "input" not in error or (error["loc"] or ("",))[0] in OUTSIDE or type(error["input"]) not in JSON_TYPES:
        return ""
    return f", not {JSON_TYPES[type(error['input'])]}"


def _written(context: Mapping[str, Any]) -> dict[str, Any]:
    return {name: f"{value:g}" if isinstance(value, float) else value for name, value in context.items()}


def _joined(faults: Sequence[Fault]) -> Fault:
    """One fault of a value that fits no member of a union."""
    texts = list(dict.fromkeys(fault.detail for fault in faults))
    if len(texts) == 1:
        return faults[0]
    first, *others = (text.removesuffix(".") for text in texts)
    alternatives = [f"or {text[:1].lower()}{text[1:]}" for text in others]
    return Fault(faults[0].pointer, f"{'; '.join([first, *alternatives])}.", "no_alternative_fits")


def _cut(pointer: str) -> str:
    return pointer if len(pointer) <= LONGEST_POINTER else f"{pointer[:LONGEST_POINTER]}…"


def _locate(kind: Any, loc: Sequence[str | int], error: str) -> _Found:
    """Pydantic names the member of a union within the place, the body has no such step: the types distinguish them."""
    steps: list[str | int] = []
    here, parents, alternative = [kind], [kind], False
    for step in loc:
        here, alternative_before, alternative = list(_members(here)), alternative, False
        if isinstance(step, str) and len(here) > 1 and not alternative_before:
            here, alternative = [kind_ for kind_ in here if step in _labels(kind_)] or here, True
            continue
        if step != "[key]":
            steps.append(step)
        parents, here = here, [inner for kind_ in here for inner in _inner(kind_, step)]
    if error.startswith("union_tag"):
        steps.append(next((_tag(member) for member in _members(here) if _tag(member)), "name"))
    return _Found(tuple(steps), tuple(kind_ for kind_ in parents if _is_model(kind_)), alternative)


def _members(kinds: Sequence[Any]) -> Iterator[Any]:
    """The types that these may be, but for null."""
    for kind in kinds:
        if hasattr(kind, "__value__"):  # of a `type` statement
            yield from _members([kind.__value__])
        elif get_origin(kind) is Annotated:
            yield from _members([get_args(kind)[0]])
        elif get_origin(kind) in {Union, UnionType}:
            yield from _members([member for member in get_args(kind) if member is not NoneType])
        elif _is_model(kind) and issubclass(kind, RootModel):
            yield from _members([kind.model_fields["root"].annotation])
        else:
            yield kind


def _inner(kind: Any, step: str | int) -> Iterator[Any]:
    """The type of what is at this step."""
    if _is_model(kind):
        field = kind.model_fields.get(str(step))
        if field is not None:
            yield field.annotation
    else:
        yield from get_args(kind)[-1:] if get_origin(kind) is dict else get_args(kind)[:1]


def _labels(kind: Any) -> set[str]:
    """Names that pydantic may give a member of a union: by its tag, else its name."""
    return {getattr(kind, "__name__", ""), *_tags(kind)}


def _tags(kind: Any) -> Iterator[str]:
    if _is_model(kind) and (tag := _tag(kind)):
        yield from get_args(kind.model_fields[tag].annotation)


def _tag(kind: Any) -> str:
    """The field that distinguishes a member of a union from the others: a required literal."""
    fields = kind.model_fields.items() if _is_model(kind) else ()
    return next((name for name, field in fields if field.is_required() and get_origin(field.annotation) is Literal), "")


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
