"""References to the bytes of a version, as they are read from the database, or from a folder."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self

CHAMPION = "champion"


class Pointer(NamedTuple):
    """Reference to the bytes of a model version. The bytes of a version never change; the version of an alias may."""

    model: str
    version: int
    digest: str
    size_bytes: int
    revision: int = 0
    """Moves so far of the alias that led here; 0 if none did."""
    names: Mapping[int, str] = MappingProxyType({})
    """Names that a person has given to clusters of the version, by their numbers."""
    facts: Mapping[str, Any] | None = None
    """Facts of a version in a folder: its name there, and warnings; None: it is stored in the database."""

    @classmethod
    def of(cls, row: tuple[str, int, str, int, int, dict[str, Any] | None]) -> Self:
        """The pointer of a row of `statement`."""
        model, version, digest, size_bytes, revision, names = row
        pointer = cls(model, version, digest, size_bytes, revision)
        return pointer if names is None else pointer._replace(names={int(key): name for key, name in names.items()})


class Freshness(NamedTuple):
    """Demand of a caller who knows of a change: an older pointer is read anew from the database."""

    revision: int = 0
    """Smallest revision of the alias."""
    version: int = 0
    """Smallest version where the newest predicts; an alias that leads to the version leaves it without meaning."""

    def reached(self, pointer: Pointer) -> bool:
        return pointer.revision >= self.revision and (pointer.revision > 0 or pointer.version >= self.version)


ANY = Freshness()
