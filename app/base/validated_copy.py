"""Copies of pydantic models with changed fields, validated: pydantic's own `model_copy` takes any value."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel


class ValidatedCopy:
    """First base of every pydantic model of the project, before `BaseModel`."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values of some fields, validated as the constructor of the model does.

        Raises ValidationError for a value that the model does not accept, TypeError for a name it does not have.
        """
        assert isinstance(self, BaseModel)  # noqa: S101  the other base of each
        copy = BaseModel.model_copy(self, deep=deep)
        if not update:
            return copy
        if unknown := update.keys() - type(self).model_fields.keys():
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}.")
        changed = type(self).model_validate({**dict(copy), **update}, by_name=True, by_alias=False)
        # Some are read by whether a caller has set them.
        changed.__pydantic_fields_set__.intersection_update(self.model_fields_set | update.keys())
        return changed
