"""One more batch for a fitted model: rows that its own preparation, classes and step rule learn, in their order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import JSON, Fit, Size, Task
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.labels import UNKNOWN, Class, codes_of
from app.ml.contract.stage_clock import timed
from app.ml.evaluation.validation import Validation
from app.ml.models.conformal import UNCALIBRATED
from app.ml.models.header import Header
from app.ml.models.model import Model
from app.ml.preparation.arrow_columns import pointer
from app.ml.preparation.target import Target
from app.ml.tables.casting import kinds_wanted, recast_columns, training_of
from app.ml.training.planning.cost import cost_of, encoded_widths, memory_faults
from app.ml.training.planning.feature_choice import chosen_features
from app.ml.training.planning.plan import Plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.planning.value_faults import row_faults
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.versions.table_evaluation import column_faults

AT = "/dataset"
NAMED = 10
"""Rows or classes named in one refusal."""


class FedBatch(NamedTuple):
    """A model after one more batch."""

    model: Model
    fit: Fit[Any]
    rows: TrainingSet
    """Those that were learned."""


def spec_of(receipt: Mapping[str, JSON]) -> TrainSpec | None:
    """The request of the training, without its splits and names of rows; None where this release cannot read it."""
    spec = _requested(receipt)
    return spec and spec.model_copy(update={"validation": Validation(test_fraction=0.0), "item": None})


def _requested(receipt: Mapping[str, JSON]) -> TrainSpec | None:
    """The whole request of the training, as `spec_of`."""
    try:
        return TrainSpec.model_validate(training_of(receipt)["spec"])
    except (ValidationError, KeyError):
        return None


def learners() -> list[str]:
    """Names of the algorithms that learn one more batch."""
    return [name for name, entry in catalogue().items() if entry.algorithm.update is not None]


def model_faults(header: Header) -> Iterator[Fault]:
    """Reasons why a model cannot learn one more batch."""
    if header.algorithm not in learners():
        yield Fault(
            "/model",
            f"{header.algorithm} cannot learn one more batch. Algorithms that can: {', '.join(learners())}.",
            "not_offered",
        )
        return
    spec = spec_of(header.receipt)
    if text := next((column.name for column in header.inputs if column.kind == ColumnKind.TEXT), None):
        detail = f"It learns from the text {text!r}, whose terms a batch cannot add to: train it anew on all rows."
        yield Fault("/model", detail, "not_offered")
    elif spec is None:
        yield Fault("/model", "The algorithm or parameters of its training no longer exist.")
    elif spec.class_weight == "balanced":
        yield Fault(
            "/model",
            "Its training balanced the classes of all rows, which a batch does not know: train it with a weight for "
            "each class.",
            "not_offered",
        )


def batch_faults(
    header: Header, columns: Sequence[TableColumn], rows: int, ignored: Sequence[str], memory_bytes: float
) -> Iterator[Fault]:
    """Faults of a dataset of so many rows as the next batch of a model without `model_faults`."""
    spec = spec_of(header.receipt)
    if spec is None:
        return
    faults = [*column_faults(header, header.target, columns, rows)]
    yield from (fault._replace(pointer=AT) for fault in faults)
    columns_by_name = {column.name: column for column in recast_columns(columns, kinds_wanted(header, columns))}
    for role, name in (("weights", spec.weights), ("errors of rows", spec.sigma)):
        if name is not None and name not in columns_by_name:
            yield Fault(AT, f"It lacks the column {name!r} of the {role}.", "missing_column")
    yield from (fault._replace(pointer=AT) for fault in row_faults(spec, columns_by_name))
    yield from _unknown_columns(header, spec, list(columns_by_name.values()), rows, ignored)
    if not faults:
        yield from _memory_faults(header, spec, columns_by_name, rows, memory_bytes)


def _unknown_columns(
    header: Header, spec: TrainSpec, columns: Sequence[TableColumn], rows: int, ignored: Sequence[str]
) -> Iterator[Fault]:
    """Columns that a training by the same request would learn from, and the model does not have."""
    names = {column.name for column in columns}
    for place, name in enumerate(ignored):
        if name not in names:
            yield Fault(f"/ignored_columns/{place}", "The dataset has no such column.", "unknown_column")
    if spec.features is not None or spec.preprocessing.projection is not None:
        return
    inputs = {column.name for column in header.inputs}
    for name in chosen_features(_requested(header.receipt) or spec, columns, rows, Task(header.task))[0]:
        if name not in inputs and name not in ignored:
            detail = f"The model does not know its column {name!r}: name it in ignored_columns to leave it out."
            yield Fault(AT, detail, "unknown_column")


def _memory_faults(
    header: Header, spec: TrainSpec, columns_by_name: Mapping[str, TableColumn], rows: int, memory_bytes: float
) -> Iterator[Fault]:
    plan = _plan(header, spec, list(columns_by_name.values()), rows)
    chosen = [columns_by_name[name] for name in plan.features]
    width = sum(encoded_widths(spec, plan.task, chosen))
    size = Size(rows, width, len(header.classes or ()), width)
    estimate = partial(cost_of, spec, plan.task, chosen, units=rows, memory_bytes=memory_bytes, whole=True)
    faults = memory_faults(estimate(size), size, memory_bytes, lambda count: estimate(size._replace(rows=count)))
    yield from (fault._replace(pointer=AT) for fault in faults)


def _plan(header: Header, spec: TrainSpec, columns: Sequence[TableColumn], rows: int) -> Plan:
    """To read a batch as the training read its table."""
    return Plan(
        spec=spec.model_copy(update={"difficulty": None}),
        columns=tuple(columns),
        task=Task(header.task),
        features=tuple(column.name for column in header.inputs),
        rows=rows,
        memory_bytes=0,
        seconds=0.0,
        warnings=(),
        batch_rows=None,
        units=rows,
    )


def read_batch(header: Header, columns: Sequence[TableColumn], table: pa.Table) -> TrainingSet:
    """The rows with a target, in the classes of the model. Raises InvalidData for rows that it cannot learn."""
    spec = spec_of(header.receipt)
    assert spec is not None  # noqa: S101 - the request was checked
    batch = TrainingSet.read(_plan(header, spec, columns, table.num_rows), table)
    if batch.target.classes is not None and header.classes is not None:
        _check_classes(batch.target, batch.target.classes, header)
    return batch.coded_as(header.classes)


def _check_classes(target: Target, classes: tuple[Class, ...], header: Header) -> None:
    """Raises InvalidData for classes that the model does not know."""
    new = codes_of(classes, header.classes or ()) == UNKNOWN
    if not new.any():
        return
    rows = target.rows[new[target.y.astype(np.intp)]]
    named = ", ".join(repr(classes[code]) for code in np.flatnonzero(new)[:NAMED])
    raise InvalidData(
        f"The model does not know classes of {rows.size} rows: {named}. Leave these rows out, or train a model of all "
        "classes.",
        faults=[
            Fault(pointer(row, str(header.target)), "The model does not know this class.", "unknown_class")
            for row in rows[:NAMED].tolist()
        ],
    )


def feed(model: Model, batch: TrainingSet, seed: int, receipt: Mapping[str, JSON]) -> FedBatch:
    """All rows of the batch, once and in their order. Intervals and calibrators by rows before hold no longer."""
    data = batch.data(model.preparation, np.arange(batch.rows))
    with timed("fitting"):
        fit = batch.update(model.state, data, seed)
    least, greatest = model.limits
    if model.task.of_numbers:
        least = least if batch.target.y.min() >= least else -np.inf
        greatest = greatest if batch.target.y.max() <= greatest else np.inf
    after = replace(
        model, state=fit.state, receipt=receipt, calibration=UNCALIBRATED, limits=(least, greatest), calibrators=()
    )
    return FedBatch(after, fit, batch)
