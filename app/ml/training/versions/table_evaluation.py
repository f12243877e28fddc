"""Evaluation of a stored model on a table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.faults import Fault
from app.ml.catalogue.nested import PLAIN, meaning
from app.ml.contract.algorithm import JSON, Data, FittedLearner, Labels, Matrix, Task, Vector
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.labels import UNKNOWN, Class, codes_of
from app.ml.contract.progress import Reporter, Stages
from app.ml.evaluation.evaluation import ClassOptions, Evaluation, evaluate, of_classes, of_numbers
from app.ml.evaluation.group_splits import read_groups
from app.ml.evaluation.metrics import Truths, log_losses
from app.ml.evaluation.predictions import predictions
from app.ml.evaluation.rejection import decided_by
from app.ml.evaluation.report import IntervalReport
from app.ml.evaluation.splits import holdout
from app.ml.evaluation.time_splits import latest, read_times
from app.ml.models.header import Header
from app.ml.models.model import Model
from app.ml.preparation.target import Target, read_target
from app.ml.statistics.intervals import CONFIDENCE, Resamples
from app.ml.statistics.resampling import Rows
from app.ml.tables.casting import TEXTS, kinds_wanted, notation_faults, recast_columns
from app.ml.training.reporting.interval_report import bounds_observations, interval_report
from app.ml.training.versions.calibration_roles import Roles

BLOCK = 1 << 16
"""Rows predicted at a time."""
FEW = 30
"""Fewer rows than this give metrics that are hardly worth their digits."""
NAMED = 10


class EvaluatedModel(NamedTuple):
    """Evaluation of a model on a table, and the rows that it is of."""

    evaluation: Evaluation
    rows: Labels
    """(n,) row numbers of the table."""
    unknown_labels: dict[str, int]
    """Rows by true class, of classes that the model does not know: mistakes, all of them."""
    predicted: NDArray[Any] = np.zeros(0)
    """(n,) of a regression or a clustering."""
    intervals: IntervalReport | None = None
    row_values: Mapping[str, Vector] = {}
    """(n,) each, by metric: the absolute errors behind `rmse`, the losses behind `log_loss`, the hits of `accuracy`."""


def column_faults(
    header: Header | Model, target: str | None, columns: Sequence[TableColumn], rows: int
) -> Iterator[Fault]:
    """Faults of a dataset of so many rows for the evaluation of a model. target: the column of the truth."""
    kinds = kinds_wanted(header, columns)
    yield from notation_faults(columns, kinds, "/dataset")
    columns_by_name = {column.name: column for column in recast_columns(columns, kinds)}
    for wanted in header.inputs:
        column = columns_by_name.get(wanted.name)
        if column is None:
            yield Fault("/dataset", f"It lacks the column {wanted.name!r}.", "missing_column")
        elif not _fits(ColumnKind(column.kind), ColumnKind(wanted.kind)):
            detail = f"Its column {wanted.name!r} is {column.kind}; the model wants a {wanted.kind} one."
            yield Fault("/dataset", detail, "wrong_kind")
    if target is None:
        return
    truth, kind = columns_by_name.get(target), _kind_of(header)
    if truth is None:
        yield Fault("/target", "The dataset lacks this column: there is no truth to compare with.", "unknown_column")
    elif not _fits(ColumnKind(truth.kind), kind):
        yield Fault("/target", f"This column is {truth.kind}; the model predicts {kind} values.", "wrong_kind")
    elif rows - truth.missing < 2:
        yield Fault("/target", "At least 2 rows with a truth are needed.")


def trainings(receipt: Mapping[str, JSON], data_digest: str) -> list[Mapping[str, JSON]]:
    """The receipts of what has learned from this dataset: the model, or its members that were there before.

    Batches that were fed to a model, and rows that fitted a calibrator, have receipts that hold none out.
    """
    further = [
        *receipt.get("batches", []),
        *(calibration["data_digest"] for calibration in receipt.get("calibrations", [])),
    ]
    fed: list[Mapping[str, JSON]] = [{"data_digest": data_digest}] if data_digest in further else []
    if "members" in receipt:
        return [
            *(training for member in receipt["members"] for training in trainings(member["receipt"], data_digest)),
            *fed,
        ]
    if "training" in receipt:
        return [*trainings(receipt["training"], data_digest), *fed]
    return [receipt] if receipt.get("data_digest") == data_digest else []


def split_columns(receipts: Sequence[Mapping[str, JSON]]) -> list[str]:
    """The columns by whose groups, or in whose order, these trainings split their table."""
    split_names = (_validation(receipt).get(role) for receipt in receipts for role in ("group", "time"))
    return [name for name in split_names if name is not None]


def groups_of_training(receipts: Sequence[Mapping[str, JSON]], table: pa.Table, rows: Labels) -> Labels | None:
    """(m,) group codes of these rows, if all these trainings kept groups together by one column that the table has."""
    named = {Roles.of(receipt).group for receipt in receipts}
    name = named.pop() if len(named) == 1 else None
    return None if name is None or name not in table.column_names else read_groups(table, name, rows)


def sealed_rows(receipts: Sequence[Mapping[str, JSON]], target: Target, table: pa.Table) -> Labels | None:
    """Places within `target.rows` that all of these trainings held out of their table; None if one does not record
    them.

    One that read its table in parts does not: what became of a row hung on its neighbours.
    """
    is_sealed = np.ones(target.rows.size, np.bool_)
    for receipt in receipts:
        how, seed = _validation(receipt), receipt.get("seed")
        fraction, group = how.get("test_fraction"), how.get("group")
        if fraction is None or seed is None or "batch_rows" in receipt:
            return None
        if (time := how.get("time")) is not None:
            times = read_times(table, time, target.rows).codes
            is_sealed[np.setdiff1d(np.arange(is_sealed.size), latest(times, fraction))] = False
            continue
        rng = np.random.Generator(np.random.PCG64(seed))
        groups = None if group is None else read_groups(table, group, target.rows)
        is_sealed[holdout(is_sealed.size, fraction, rng, target.codes, groups).train] = False
    return np.flatnonzero(is_sealed)


def _validation(receipt: Mapping[str, JSON]) -> Mapping[str, JSON]:
    return (receipt.get("spec") or {}).get("validation") or {}


def evaluate_table(
    model: Model,
    table: pa.Table,
    target: Target,
    options: ClassOptions,
    seed: int,
    *,
    progress: Reporter,
    reference: Labels | None = None,
) -> EvaluatedModel:
    """Predict the rows of the table that `target` names, and measure.

    Error bars are by the groups that the training kept together, where the table has their column.

    reference: (n,) codes of classes of all rows of the table, which clusters are compared with; -1 where there is none.

    Centres and means, where metrics need some, are those of these rows.
    """
    stages = Stages(progress)
    rng = np.random.Generator(np.random.PCG64(seed))
    groups = groups_of_training([model.receipt], table, target.rows)
    if target.rows.size < table.num_rows:
        table = table.take(pa.array(target.rows))
    if not model.task.supervised:
        stages(0.1, "predicting")
        data = Data.of(model.task, model.preparation.matrix(model.preparation.raw(table)), missing=True)
        learned = FittedLearner(model.algorithm, model.params, model.state)
        predicted = predictions(learned, data, data)
        if reference is not None:
            predicted = predicted._replace(reference=reference[target.rows])
        result = evaluate(data, predicted, (), rng, groups=groups)
        return EvaluatedModel(result, target.rows, {}, predicted.values)
    values, probabilities, accepted, ends = _predicted(model, table, stages)
    stages(0.8, "measuring")
    rows = Rows(Resamples.of(target.rows.size, rng, groups))
    means = PLAIN if model.calibrators else meaning(model.algorithm, model.params, model.task)
    if model.task.of_numbers:
        intervals = None if ends is None else interval_report(model, values, ends, target.y)
        metrics_of_numbers, errors = of_numbers(target.y, values, rows, means), np.abs(target.y - values)
        return EvaluatedModel(
            metrics_of_numbers, target.rows, {}, values, intervals, dict.fromkeys(("rmse", "mae"), errors)
        )
    truth, classes, unknown = _shared(target, model.classes or ())
    padded = np.pad(probabilities, ((0, 0), (0, len(classes) - probabilities.shape[1])))
    assigned = values.astype(np.intp) if options.threshold is None else decided_by(probabilities, options.threshold)
    options = options._replace(numbers=target.rows)
    result = of_classes(truth, assigned, padded, rows, classes=classes, options=options, accepted=accepted, means=means)
    by_row = {} if means.degrees else {"log_loss": log_losses(truth, padded)}
    by_row["accuracy"] = (assigned == truth).astype(np.float64)
    return EvaluatedModel(result, target.rows, unknown, row_values=by_row)


def warnings(evaluated: EvaluatedModel, *, seen: bool) -> Iterator[str]:
    """seen: whether the model has learned from these rows."""
    if seen:
        yield "The model was trained on these rows: the metrics do not hold for rows it has not seen."
    if evaluated.rows.size < FEW:
        yield f"Only {evaluated.rows.size} rows were evaluated: the metrics are rough."
    if evaluated.unknown_labels:
        named = ", ".join(list(evaluated.unknown_labels)[:NAMED])
        count = sum(evaluated.unknown_labels.values())
        yield f"{count} rows are of classes the model does not know, counted as mistakes: {named}."
    yield from evaluated.evaluation.doubts("rows")


def read_truth(header: Header, name: str | None, table: pa.Table) -> Target:
    """The rows with a truth; of a task without a target, all rows. Raises InvalidData."""
    kind = Task(header.task).record.target
    if name is None or kind is None:
        return Target(np.arange(table.num_rows), np.zeros(0), None)
    return read_target(table.column(name), name, kind)


def only(target: Target, places: Labels) -> Target:
    return Target(target.rows[places], target.y[places] if target.y.size else target.y, target.classes)


def _predicted(model: Model, table: pa.Table, stages: Stages) -> tuple[Vector, Matrix, Truths, Matrix | None]:
    """Values, probabilities, which rows are known, and the ends of the intervals, if there are any."""
    parts, accepted = [], np.ones(table.num_rows, np.bool_)
    confidence, ends = CONFIDENCE if bounds_observations(model) else None, []
    for start in range(0, table.num_rows, BLOCK):
        stages(0.1 + 0.7 * start / table.num_rows, "predicting")
        part = model.predict(table.slice(start, BLOCK), confidence)
        ends += [] if part.intervals is None else [part.intervals]
        if part.unknown is not None:
            accepted[start + part.unknown] = False
        parts.append((part.values, np.zeros((0, 0)) if part.probabilities is None else part.probabilities))
    values, probabilities = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(probabilities), accepted, np.concatenate(ends) if ends else None


def _shared(target: Target, classes: Sequence[Class]) -> tuple[Labels, tuple[Class, ...], dict[str, int]]:
    """Truth by code of the model's classes, with those it does not know behind them."""
    table_classes = target.classes or ()
    places = codes_of(table_classes, classes)
    new = np.flatnonzero(places == UNKNOWN)
    places[new] = len(classes) + np.arange(new.size)
    truth = places[target.y.astype(np.intp)]
    counts = np.bincount(truth, minlength=len(classes) + new.size)[len(classes) :]
    unknown = {
        str(table_classes[place]): int(count) for place, count in zip(new.tolist(), counts, strict=True) if count
    }
    return truth, (*classes, *(table_classes[place] for place in new.tolist())), unknown


def _fits(column_kind: ColumnKind, wanted: ColumnKind) -> bool:
    return column_kind is wanted or {column_kind, wanted} == TEXTS


def _kind_of(header: Header | Model) -> ColumnKind:
    """Kind of the target in training."""
    first = (header.classes or (0.0,))[0]
    if isinstance(first, bool):
        return ColumnKind.BOOLEAN
    return ColumnKind.CATEGORICAL if isinstance(first, str) else ColumnKind.NUMERIC
