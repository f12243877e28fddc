"""JSON schemas in the form that generators of typed clients (Go, Java, TypeScript) turn into code that compiles."""

from collections.abc import Iterator
from typing import Any

WIDTHS = {"integer": "int64", "number": "double"}
"""Without a format, generated clients use 32 bits, which neither sizes nor seeds nor metrics fit in."""
Schema = dict[str, Any]


def make_portable(schema: Schema) -> None:
    """State the width of each number, include the bounds of integers, and leave out what generators stumble over."""
    for inner in subschemas(schema):
        make_portable(inner)
    kind = schema.get("type")
    if kind in WIDTHS:
        schema["format"] = WIDTHS[kind]
    if kind == "integer":
        _include_bounds(schema)
    members = schema.get("anyOf", ())
    if len(members) > 1 and all("$ref" in member for member in members):
        schema["oneOf"] = schema.pop("anyOf")  # TypeScript's clients merge the members of anyOf into one interface
    if {"array"} < _types(schema) or {"object", "string"} <= _types(schema):
        del schema["anyOf"]  # Java's clients have no type for one of two such types; the description names both
        schema.pop("default", None)
    if _holds_objects(schema.get("default")):
        del schema["default"]  # generators copy it into the code as text; the description states it


def subschemas(schema: Schema) -> Iterator[Schema]:
    """The schemas directly within a schema."""
    for key in ("properties", "$defs"):
        yield from schema.get(key, {}).values()
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield schema[key]
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        yield from schema.get(key, ())


def _types(schema: Schema) -> set[str]:
    """The types of a union that is not merely a value or null."""
    return {member.get("type", "object") for member in schema.get("anyOf", ())} - {"null"}


def _holds_objects(default: object) -> bool:
    return isinstance(default, dict) or (isinstance(default, list) and any(map(_holds_objects, default)))


def _include_bounds(schema: Schema) -> None:
    """FastAPI writes bounds as floats, and an exclusive bound of 2^63 overflows the type that it bounds."""
    for bound, step in (("Minimum", 1), ("Maximum", -1)):
        if f"exclusive{bound}" in schema:
            schema[bound.lower()] = int(schema.pop(f"exclusive{bound}")) + step
        elif bound.lower() in schema:
            schema[bound.lower()] = int(schema[bound.lower()])
