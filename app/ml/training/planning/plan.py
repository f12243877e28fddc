"""Deciding, before any row is read, what a training request means: its task, its columns, its cost.

Every fault is found at once, each with its JSON pointer into the request.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.contract.algorithm import Accepts, Form, Inputs, Learner, Size, Task
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.preparation.arrow_columns import RawColumn
from app.ml.preparation.function_checks import function_faults, functions, named_kinds
from app.ml.tables.casting import kind_faults, kind_warnings, recast_columns
from app.ml.training.planning.class_weights import class_weight_faults
from app.ml.training.planning.column_faults import column_faults, transform_faults
from app.ml.training.planning.cost import cost_of, encoded_widths, halving_seconds, memory_faults
from app.ml.training.planning.counts import count_faults, unscaled
from app.ml.training.planning.difficulty import difficulty_faults, difficulty_streaming_fault
from app.ml.training.planning.feature_choice import chosen_features, no_feature_fault
from app.ml.training.planning.groups import group_faults, group_warnings, streaming_fault, units_of
from app.ml.training.planning.item_rows import by_item
from app.ml.training.planning.items import item_faults
from app.ml.training.planning.offset_faults import direction_faults, offset_faults
from app.ml.training.planning.plan_warnings import batch_warnings, plan_warnings
from app.ml.training.planning.projection import Projection, coordinates, projection_faults
from app.ml.training.planning.reference_classes import reference_column, reference_faults, reference_warnings
from app.ml.training.planning.related_table import RelatedTable
from app.ml.training.planning.relation_faults import relation_faults
from app.ml.training.planning.square_table import unprepared
from app.ml.training.planning.start import Start
from app.ml.training.planning.task_choice import chosen_task, classes_of, task_warnings
from app.ml.training.planning.text_faults import kinds_with_texts, text_faults
from app.ml.training.planning.time_order import time_faults, time_streaming_fault
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.planning.value_faults import fitted_ends, value_faults


class Plan(NamedTuple):
    """A request without faults, resolved for one table. It is made once and handed on."""

    spec: TrainSpec
    """The request, with what follows from the task."""
    columns: tuple[TableColumn, ...]
    """The data sheet of the columns as they are used."""
    task: Task
    features: tuple[str, ...]
    rows: int
    """Rows that have a target."""
    memory_bytes: int
    """Rough peak of the training process."""
    seconds: float
    """Rough time of the fits, from start to end, without that of `halvings`."""
    warnings: tuple[str, ...]
    batch_rows: int | None
    """Rows learned at a time, where memory does not hold all: see `app.ml.training.fitting.out_of_core`."""
    units: int
    """Number of units that splits divide: rows, or groups of them."""
    memory_limit: float = math.inf
    """Bytes that the training process may take."""
    projection: Projection | None = None
    """Between the table and the columns to learn from."""
    related: RelatedTable | None = None
    """The dataset that the relations name."""
    start: Start | None = None
    """The version that fits start from."""
    halvings: float = 0.0
    """Rough seconds of the fits that measure the stability of clusters, for the report."""
    selected: str | None = None
    """Sentence on a choice that the training rows have made before this training; None: there was none."""
    reference: str | None = None
    """Column of classes that the clusters are compared with, which no fit sees."""

    @property
    def target(self) -> str | None:
        """Column that is learned from."""
        return self.spec.target if self.reference is None else None

    @property
    def inputs(self) -> list[RawColumn]:
        """Columns of the table that are learned from, as they are read."""
        roles = {self.spec.offset_column: self.spec.offset_role}
        columns_by_name = {
            c.name: RawColumn(c.name, ColumnKind(c.kind), c.notation, c.source_kind, roles.get(c.name))
            for c in self.columns
        }
        return [columns_by_name[name] for name in self.features]


def plan(
    spec: TrainSpec,
    columns: Sequence[TableColumn],
    rows: int,
    memory_bytes: float = math.inf,
    *,
    projection: Projection | None = None,
    related: RelatedTable | None = None,
    alternatives: Sequence[Learner] = (),
    in_doubt: Task | None = None,
    whole: bool = False,
) -> Plan:
    """Decide what to do for a table of `rows` rows with these columns, within so much memory.

    projection: the version that the preprocessing names. related: the dataset that the relations name. alternatives,
    in_doubt: as of `chosen_task`. whole: the job holds all rows. Raises InvalidRequest with every fault of the
    request.
    """
    spec, columns, related, mixed = by_item(spec, columns, rows, related)
    unread, warned = [*mixed, *kind_faults(spec.kinds, columns)], [*kind_warnings(spec.kinds, columns)]
    columns = recast_columns(columns, kinds_with_texts(spec, columns))
    columns_by_name = {column.name: column for column in columns}
    task, faults = chosen_task(spec, columns_by_name, alternatives=alternatives, in_doubt=in_doubt)
    if task is not None:
        spec = _for_task(spec, task)
    reference = reference_column(spec, task)
    learned = spec if reference is None else spec.model_copy(update={"target": None})
    faults += [
        *unread,
        *column_faults(spec, columns_by_name, task, rows, target=learned.target),
        *value_faults(learned, columns_by_name),
    ]
    if task is not None:
        faults += reference_faults(reference, task, columns_by_name)
    faults += [
        part for check in (group_faults, time_faults) for part in check(spec.validation, columns_by_name, spec.target)
    ]
    faults += [*text_faults(spec, columns_by_name), *item_faults(spec.item, columns_by_name, spec.target, rows)]
    faults += difficulty_faults(spec, columns_by_name)
    faults += [
        *class_weight_faults(spec.class_weight, task),
        *offset_faults(spec, columns_by_name, task),
        *direction_faults(spec),
    ]
    if spec.validation.method == "loo" and (spec.target is None if task is None else not task.supervised):
        faults.append(Fault("/validation/method", "Leave-one-out compares predictions with a target: take kfold."))
    faults += projection_faults(spec, projection, columns_by_name)
    faults += relation_faults(spec, columns_by_name, rows, related)
    if spec.relations is not None and spec.relations.form == "square":
        spec = unprepared(spec)
    features, warnings = (projection.features, []) if projection else chosen_features(spec, columns, rows, task)
    chosen = [columns_by_name[name] for name in features if name in columns_by_name]
    faults += count_faults(spec, chosen)
    spec = unscaled(spec)
    if projection is not None:
        chosen = coordinates(sum(encoded_widths(spec, None, chosen)))  # as many as there can be
    elif related is not None and related.alone:
        chosen = coordinates(1)  # the places of items
    size, size_faults = _size(spec, task, chosen, columns_by_name, rows)
    faults += [*size_faults, *transform_faults(learned, task)]
    if not features and not faults:
        faults.append(no_feature_fault(spec, columns, rows))
    if faults or task is None:
        raise InvalidRequest(faults=faults)
    usable = rows - (columns_by_name[learned.target].missing if learned.target is not None else 0)
    units = units_of(spec.validation, columns_by_name, usable)
    estimate = partial(cost_of, spec, task, chosen, units=units, memory_bytes=memory_bytes, whole=whole)
    cost = estimate(size)
    faults = [*memory_faults(cost, size, memory_bytes, lambda count: estimate(size._replace(rows=count)))]
    if faults := [*faults, *_streaming_faults(spec, task, cost.batch_rows)]:
        raise InvalidRequest(faults=faults)
    unlabelled = Accepts.UNLABELLED in nested.accepts(nested.entry_of(spec.algorithm).algorithm, spec.algorithm, task)
    warnings += [*warned, *task_warnings(learned, columns_by_name, task)]
    warnings += plan_warnings(learned, chosen, columns_by_name, usable, unlabelled=unlabelled)
    warnings += [*reference_warnings(reference, columns_by_name), *batch_warnings(cost.batch_rows)]
    warnings += group_warnings(spec.validation, columns_by_name, features)
    return Plan(
        spec=spec,
        columns=tuple(columns),
        task=task,
        features=(*features, *filter(None, [spec.offset_column])),
        rows=usable,
        memory_bytes=cost.memory_bytes,
        seconds=cost.seconds,
        warnings=tuple(warnings),
        batch_rows=cost.batch_rows,
        units=units,
        memory_limit=memory_bytes,
        projection=projection,
        related=related,
        halvings=0.0 if related is not None and related.alone else halving_seconds(spec, chosen, task, size),
        reference=reference,
    )


def _for_task(spec: TrainSpec, task: Task) -> TrainSpec:
    """The request with the defaults of this task."""
    learner = nested.entry_of(spec.algorithm).algorithm.for_task(spec.algorithm, task)
    return spec.model_copy(update={"validation": spec.validation.of(task), "algorithm": learner})


def _streaming_faults(spec: TrainSpec, task: Task, batch_rows: int | None) -> Iterator[Fault]:
    """Parts of the request that need all rows in memory, where these are learned in parts."""
    yield from streaming_fault(spec.validation, batch_rows)
    yield from time_streaming_fault(spec.validation, batch_rows)
    yield from difficulty_streaming_fault(spec, batch_rows)
    in_batches = nested.entry_of(spec.algorithm).algorithm.update is not None
    yield from class_weight_faults(spec.class_weight, task, batch_rows if in_batches else None)


def _size(
    spec: TrainSpec,
    task: Task | None,
    chosen: Sequence[TableColumn],
    columns_by_name: Mapping[str, TableColumn],
    rows: int,
) -> tuple[Size, list[Fault]]:
    """The size of the matrix, and what the algorithm or the functions of columns cannot do with it."""
    kinds: Mapping[str, str] = {column.name: column.kind for column in chosen}
    widths = encoded_widths(spec, task, chosen)
    size = Size(rows, sum(widths), classes_of(spec, columns_by_name, task), sum(width for width in widths if width > 1))
    faults = [*(function_faults(spec.preprocessing, kinds) if kinds else ())]
    if kinds and not faults:
        size = size._replace(columns=size.columns + functions(spec.preprocessing, kinds))
        kinds = named_kinds(spec.preprocessing, kinds)
    if task is None:
        return size, faults
    form = None if spec.relations is None else Form(spec.relations.form)
    inputs = Inputs(kinds, size, form, spec.offset_role, fitted_ends(spec, columns_by_name, task))
    algorithm = nested.entry_of(spec.algorithm).algorithm
    return size, [*nested.faults(algorithm, spec.algorithm, task, "/algorithm", inputs), *faults]
