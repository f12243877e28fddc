"""The two roots of everything that travels on the wire. Imports nothing of ours."""

from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class Wire(BaseModel):
    """An answer. An optional field that is unknown is absent, not null."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    @model_serializer(mode="wrap")
    def _omit_unknown(self, handler: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]  # noqa: ANN202
        # Without a return annotation pydantic keeps the fields' own schema.
        written: dict[str, Any] = handler(self)
        fields = type(self).model_fields
        return {k: v for k, v in written.items() if v is not None or k not in fields or fields[k].is_required()}


class Body(BaseModel):
    """A request. A field nobody knows is a mistake worth telling."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
