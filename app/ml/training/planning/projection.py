"""A training behind a projection that was fitted before: its coordinates are the columns to learn from."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from app.base.faults import Fault
from app.base.suggestions import no_such
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import JSON, FittedLearner, Task
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.task import PredictionKind
from app.ml.models.header import Header
from app.ml.models.model import Model
from app.ml.preparation.arrow_columns import Raw, RawColumn
from app.ml.preparation.projected import Projected
from app.ml.training.planning.train_spec import TrainSpec

AT = "/preprocessing/projection"
OF_COORDINATES = next(task for task in Task if task.record.prediction is PredictionKind.COORDINATES)
BLOCK = 1 << 16
"""Rows projected at a time."""


class Projection(NamedTuple):
    """The version that `preprocessing.projection` names."""

    model: str
    version: int
    digest: str
    header: Header
    fitted: Model | None = None
    """Only where rows are read."""

    @property
    def receipt(self) -> dict[str, JSON]:
        """Its part of the receipt of a training."""
        return {
            "model": self.model,
            "version": self.version,
            "digest": self.digest,
            "data_digest": self.header.receipt.get("data_digest"),
        }

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.header.inputs)

    def warnings(self, data_digest: str) -> Iterator[str]:
        """data_digest: of the dataset that is learned from."""
        if self.header.receipt.get("data_digest") != data_digest:
            return
        lead = f"The projection {self.model}/{self.version} was fitted on this dataset, rows held out now among them"
        fixed = "It stays the same in every fit, so metrics and errors are of the learner behind it alone"
        if self.header.target is not None:
            yield (
                f"{lead}, with their {self.header.target!r}. {fixed}: metrics are better than they will be on new rows."
            )
        else:
            yield f"{lead}. {fixed}: metrics can be better than they will be on new rows."

    @classmethod
    def within(cls, header: Header, model: Model | None = None) -> "Projection | None":
        """The one that a stored model stands behind; None: it stands behind none. model: only where rows are read."""
        receipt_of_projection = header.receipt.get("projection")
        if receipt_of_projection is None:
            return None
        receipt = {"data_digest": receipt_of_projection["data_digest"]}
        header_of_projection = header._replace(task=OF_COORDINATES.value, target=None, classes=None, receipt=receipt)
        fitted = None if model is None else _front(model, receipt)
        return cls(
            receipt_of_projection["model"],
            receipt_of_projection["version"],
            receipt_of_projection["digest"],
            header_of_projection,
            fitted,
        )

    def table(self, table: pa.Table) -> pa.Table:
        """The coordinates of every row, as columns."""
        raw = self.raw(table)
        return pa.table({column.name: raw.values[:, j] for j, column in enumerate(raw.columns)})

    def raw(self, table: pa.Table) -> Raw:
        """The coordinates of every row."""
        model = self._model
        parts = [model.predict(table.slice(start, BLOCK)).values for start in range(0, max(table.num_rows, 1), BLOCK)]
        values = np.asfortranarray(np.concatenate(parts), np.float64)
        columns = tuple(RawColumn(coordinate(j), ColumnKind.NUMERIC) for j in range(values.shape[1]))
        return Raw(columns, values, (None,) * len(columns))

    def before(self, model: Model) -> Model:
        """The model of the coordinates as one of the table."""
        front = self._model
        projection = FittedLearner(front.algorithm, find(front.name).learner(front.params), front.state)
        return replace(model, preparation=Projected.chained(front.preparation, projection, model.preparation))

    @property
    def _model(self) -> Model:
        if self.fitted is None:
            raise ValueError("only a plan with the fitted projection reads rows")
        return self.fitted


def _front(model: Model, receipt: Mapping[str, JSON]) -> Model | None:
    """The projection of a model, as a model of its own."""
    chain = model.preparation
    if not isinstance(chain, Projected):
        return None
    fitted = chain.projection
    return Model(
        name=fitted.name,
        task=OF_COORDINATES,
        params=fitted.params,
        state=fitted.state,
        preparation=chain.front,
        target=None,
        classes=None,
        receipt=receipt,
    )


def coordinate(j: int) -> str:
    """Name of the column of the j-th coordinate."""
    return f"coordinate {j + 1}"


def coordinates(width: int) -> list[TableColumn]:
    """The data sheet of so many."""
    return [TableColumn(coordinate(j), ColumnKind.NUMERIC, 0, None) for j in range(width)]


def projection_faults(
    spec: TrainSpec, projection: Projection | None, columns_by_name: Mapping[str, TableColumn]
) -> Iterator[Fault]:
    """columns_by_name: the columns of the dataset by name."""
    wanted = spec.preprocessing.projection
    if wanted is None:
        return
    yield from wanted.choice_faults(AT)
    yield from _replaced_faults(spec)
    if projection is None:
        yield Fault(AT, "No projection that was fitted before can stand here: leave it out.")
        return
    yield from _version_faults(projection.header, projection.model)
    for column in projection.header.inputs:
        table_column = columns_by_name.get(column.name)
        if table_column is None:
            detail = no_such(
                "The projection reads a column that the dataset does not have", column.name, columns_by_name
            )
            yield Fault(AT, detail, "missing_column")
        elif table_column.kind != column.kind:
            detail = f"The column {column.name!r} is {table_column.kind}; the projection reads it as {column.kind}."
            yield Fault(AT, detail, "wrong_kind")
        elif column.name in {spec.target, spec.weights, spec.sigma}:
            yield Fault(AT, f"The projection reads the column {column.name!r}, which is no input of this training.")


def _replaced_faults(spec: TrainSpec) -> Iterator[Fault]:
    """Faults of a request that names columns of the dataset, which the projection replaces."""
    if spec.features is not None:
        yield Fault("/features", "The projection has its own inputs: leave features out.")
    if spec.preprocessing.basis:
        yield Fault("/preprocessing/basis", "Functions read columns of the dataset, which the projection replaces.")
    if spec.preprocessing.dates:
        yield Fault("/preprocessing/dates", "Dates are columns of the dataset, which the projection replaces.")
    if not isinstance(spec.preprocessing.imputation, str):
        detail = "Columns of the dataset are imputed as the projection does: leave imputation by column out."
        yield Fault("/preprocessing/imputation", detail)


def _version_faults(header: Header, model: str) -> Iterator[Fault]:
    if Task(header.task).record.prediction is not PredictionKind.COORDINATES:
        yield Fault(AT, f"The model {model!r} is no projection: its task is {header.task}.")
    elif "projection" in header.receipt:
        yield Fault(AT, "This projection stands behind another one: name a projection of columns of the dataset.")
