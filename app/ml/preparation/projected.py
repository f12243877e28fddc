"""Preparation behind a projection that was fitted before: table → its matrix → coordinates → matrix."""

from dataclasses import dataclass, fields
from functools import cached_property

from app.ml.contract.algorithm import FittedLearner, Labels, Matrix
from app.ml.preparation.arrow_columns import Raw
from app.ml.preparation.flags import Flagged
from app.ml.preparation.layout import Layout
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.scaling import Scaling


@dataclass(frozen=True, kw_only=True)
class Projected(Preparation):
    """The inputs and the raw matrix are those of the projection; the matrix is made of its coordinates."""

    front: Preparation
    """The one that the projection was fitted behind."""
    projection: FittedLearner
    behind: Preparation
    """That of the coordinates: their scaling, as the algorithm wants it."""
    restorable = False

    @classmethod
    def chained(cls, front: Preparation, projection: FittedLearner, behind: Preparation) -> "Projected":
        front_fields = {field.name: getattr(front, field.name) for field in fields(Preparation)}
        return cls(**front_fields, front=front, projection=projection, behind=behind)

    @cached_property
    def layout(self) -> Layout:
        return self.behind.layout

    @cached_property
    def scaling(self) -> Scaling:
        return self.behind.scaling

    def prepared(self, raw: Matrix) -> tuple[tuple[Flagged, ...], Matrix]:
        flags, x = self.front.prepared(raw)
        return flags, self.behind.matrix(self.projection.predict(x))

    def matrix(self, raw: Matrix) -> Matrix:
        return self.behind.matrix(self.last_raw(raw))

    def last_raw(self, raw: Matrix) -> Matrix:
        return self.projection.predict(self.front.matrix(raw))

    def of(self, raw: Raw, rows: Labels) -> Matrix:
        return self.behind.matrix(self.projection.predict(self.front.of(raw, rows)))
