"""The two roots of everything that travels on the wire. Nothing here knows what travels."""

from functools import cache
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from app.base.validated_copy import ValidatedCopy


class Wire(ValidatedCopy, BaseModel):
    """A response. An optional field that is unknown is absent, not null; every other field is always there."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False, json_schema_serialization_defaults_required=True)

    @model_serializer(mode="wrap")
    def _omit_unknown(self, handler: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]  # noqa: ANN202
        # Without a return annotation pydantic keeps the fields' own schema.
        written: dict[str, Any] = handler(self)
        optional = _optional_fields(type(self))
        return {k: v for k, v in written.items() if v is not None or k not in optional}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema of what `_omit_unknown` writes."""
        schema = handler(core)
        schema_ = handler.resolve_ref_schema(schema)
        for name, field in cls.model_fields.items():
            if field.default is None and name in schema_.get("properties", {}):
                schema_["properties"][name] = without_null(schema_["properties"][name])
                schema_["required"] = [other for other in schema_.get("required", []) if other != name]
        return schema


@cache
def _optional_fields(kind: type[BaseModel]) -> frozenset[str]:
    return frozenset(name for name, field in kind.model_fields.items() if not field.is_required())


def without_null(schema: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of a value that is there, from that of a value or null."""
    others = {key: value for key, value in schema.items() if key != "anyOf" and (key, value) != ("default", None)}
    members: list[JsonSchemaValue] = [member for member in schema.get("anyOf", []) if member != {"type": "null"}]
    if len(members) == 1:
        return members[0] | others
    return others | {"anyOf": members} if members else others


WRITTEN = frozenset({"uuid", "datetime", "date", "time", "timedelta", "enum", "tuple"})
"""Types that JSON writes as a string or an array, and that strict validation would refuse so."""


def _read_from_json(schema: Any) -> None:
    if isinstance(schema, dict):
        if schema.get("type") in WRITTEN:
            schema["strict"] = False
        for inner in schema.values():
            _read_from_json(inner)
    elif isinstance(schema, list):
        for inner in schema:
            _read_from_json(inner)


class Body(ValidatedCopy, BaseModel):
    """A request. An unknown field is a fault; strings and booleans are no numbers, and numbers are neither."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _read_from_json(schema)
        return schema
