"""Columns by which a calibration divides and weighs its rows: those of the training of the model."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from app.base.faults import Fault
from app.ml.contract.algorithm import JSON
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.tables.casting import training_of

KINDS = {"time": {ColumnKind.NUMERIC, ColumnKind.DATETIME}, "weights": {ColumnKind.NUMERIC}}
"""Kinds of columns that can order or weigh rows."""
WITHOUT = {
    "group": "rows of one group may fit the maps and measure them.",
    "time": "rows that measure the maps are not later than those that fitted them.",
    "weights": "every row counts the same.",
}


class Roles(NamedTuple):
    """Names of columns; None where there is none."""

    group: str | None = None
    """Rows of one group stay together."""
    time: str | None = None
    """Rows that fit the maps come before those that measure them."""
    weights: str | None = None

    @classmethod
    def of(cls, receipt: Mapping[str, JSON]) -> "Roles":
        """Roles of the training of a model."""
        spec = training_of(receipt).get("spec") or {}
        validation = spec.get("validation") or {}
        return cls(validation.get("group"), validation.get("time"), spec.get("weights"))

    @property
    def named(self) -> dict[str, str]:
        """Column by role, of the roles that there are."""
        return {role: name for role, name in self._asdict().items() if name is not None}

    def within(self, names: Collection[str]) -> "Roles":
        """Roles of the columns that a dataset has."""
        return Roles(**{role: name for role, name in self.named.items() if name in names})

    def faults(self, columns_by_name: Mapping[str, TableColumn]) -> Iterator[Fault]:
        """Columns of the dataset that cannot have their role. columns_by_name: of it."""
        for role, kinds in KINDS.items():
            column = columns_by_name.get(self.named.get(role, ""))
            if column is not None and column.kind not in kinds:
                detail = f"Its column {column.name!r}, the {role} of the training, is {column.kind}."
                yield Fault("/dataset", detail, "wrong_kind")

    def warnings(self, names: Collection[str]) -> Iterator[str]:
        """Roles of the training whose column the dataset lacks."""
        for role, name in self.named.items():
            if name not in names:
                yield f"The dataset lacks the column {name!r}, the {role} of the training: {WITHOUT[role]}"
