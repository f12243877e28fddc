"""Rows that a classifier rejected, and the labels that a person gives them."""

from typing import Any

from .operation import M, operation
from .record import Record
from .steps import Steps


class Review(Record[M]):
    """A row that waits for a label, or has one."""

    id: str
    model: str
    version: int
    state: str
    created_at: str
    row: dict[str, Any]
    target: str
    classes: list[Any]
    probabilities: list[float]
    dataset: str | None
    label: Any
    labelled_at: str | None

    def __repr__(self) -> str:
        return f"<Review of {self.model} {self.version}: {self.state}>"

    @operation
    def give(self, label: Any) -> Steps["Review[M]"]:
        """Give the row its class, or None: it waits again."""
        self.fields = yield from self._json("POST", "reviews", self.id, "label", body={"label": label})
        return self

    @operation
    def delete(self) -> Steps[None]:
        """Remove the row from the queue."""
        yield from self._send("DELETE", "reviews", self.id)
