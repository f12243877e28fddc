"""References to stored versions of models, as requests give them."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from pydantic import Field, StringConstraints

from app.base.faults import Fault
from app.base.wire import Body

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,100}$")]
"""Name of a model or an alias."""


class VersionRef(NamedTuple):
    """A reference to a version: its number, else an alias, else `champion` if it is set, else the newest."""

    model: str
    version: int | None = None
    alias: str | None = None


class ModelRef(Body):
    """A version, as a request names it."""

    model: Name = Field(description="Name of the model.")
    version: int | None = Field(None, ge=1, lt=2**31, description="This version.")
    alias: Name | None = Field(
        None, description="The version it points at now. Absent, as is `version`: `champion`, else the newest."
    )

    @property
    def wanted(self) -> VersionRef:
        return VersionRef(self.model, self.version, self.alias)

    def choice_faults(self, pointer: str = "") -> Iterator[Fault]:
        """at: where in the request it stands."""
        if self.version is not None and self.alias is not None:
            yield Fault(f"{pointer}/alias", "Give a version or an alias, not both.")
