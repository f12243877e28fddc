"""Preferences: a person compares two candidates at a time, and the weights of goals are learned."""

from collections.abc import Mapping, Sequence
from typing import Any

from .operation import M, operation
from .record import Record
from .steps import Steps


class Preference(Record[M]):
    """Preferences as they were when they were read."""

    id: str
    name: str | None
    created_at: str
    updated_at: str
    revision: int
    goals: list[str]
    candidates: int
    comparisons: int
    l2: float | None
    given: list[dict[str, Any]] | None
    learned: dict[str, Any] | None

    def __repr__(self) -> str:
        return f"<Preference {self.name or self.id}: {', '.join(self.goals)}, revision {self.revision}>"

    @operation
    def compare(self, first: int, second: int, preferred: str) -> Steps["Preference[M]"]:
        """Compare two candidates: `first`, `second` or `equal` is better. Taken once; weights are in `learned`."""
        comparison = {"first": first, "second": second, "preferred": preferred}
        return (yield from self._append({"comparisons": [comparison]}))

    @operation
    def add_candidates(self, candidates: Sequence[Mapping[str, Any]], /) -> Steps["Preference[M]"]:
        """Further candidates, numbered on from those before."""
        return (yield from self._append({"candidates": [*candidates]}))

    @operation
    def refresh(self) -> Steps["Preference[M]"]:
        """Read the preferences again, into this object."""
        self.fields = yield from self._json("GET", "preferences", self.id)
        return self

    @operation
    def delete(self) -> Steps[None]:
        """Delete the preferences, with their comparisons."""
        yield from self._send("DELETE", "preferences", self.id)

    def _append(self, body: Mapping[str, Any]) -> Steps["Preference[M]"]:
        yield from self._json("POST", "preferences", self.id, "answers", body=body)
        yield from Preference.refresh.steps(self)
        return self
