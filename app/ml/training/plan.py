"""Deciding, before any row is read, what a training request means: its task, its columns, its cost.

Every fault is found at once, each with its JSON pointer into the request.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pydantic import Field

from app.errors import Fault, InvalidRequest
from app.ml import nested
from app.ml.catalogue import any_algorithm
from app.ml.contract.algorithm import Inputs, Learner, Size, Task
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.given_kinds import KindName
from app.ml.evaluation.evaluation import Validation
from app.ml.preparation.function_checks import function_faults, function_names, functions
from app.ml.preparation.request import MAX_LEVELS, Preprocessing
from app.ml.preparation.target_limits import limit_faults
from app.ml.tables.casting import kind_faults, kind_warnings, recast_columns
from app.ml.training.cost import closed_form, cost_of, encoded_widths
from app.ml.training.data_faults import value_faults
from app.ml.training.groups import group_faults, group_warnings, streaming_fault, units_of
from app.suggestions import no_such
from app.wire import Body

MANY_FITS = 200
"""More are worth a warning."""
MAX_CLASSES = 1000
"""A target with more different values is not a set of classes."""

if TYPE_CHECKING:
    AlgorithmSpec: TypeAlias = Learner
else:
    AlgorithmSpec = any_algorithm()


class TrainSpec(Body):
    """Columns, algorithm, preparation and validation of a training."""

    target: str | None = Field(None, description="The column to predict; absent for unsupervised learning.")
    features: list[str] | None = Field(
        None,
        min_length=1,
        max_length=10_000,
        description="Columns to learn from. Null: every column but the target, weights, sigma, the group of the "
        "validation, text and identifier-like ones.",
    )
    weights: str | None = Field(None, description="A numeric column of positive row weights.")
    sigma: str | None = Field(
        None,
        description="A numeric column with the error (standard deviation) of each row's target: instead of weights, a "
        "row counts as 1/sigma². Algorithms with a test of goodness of fit (linear) take them as known.",
    )
    kinds: dict[str, KindName] = Field(
        {},
        description="Kinds of columns that are used as another kind than the dataset has them, by name: numbers as "
        "`categorical`, texts as `numeric` or `date` (`date:DMY` names the order, `numeric:comma` the decimal mark), "
        "categories as `text`, which is no feature. Texts that cannot be read so are missing.",
    )
    task: Task | None = Field(None, description="Task; null: regression for a numeric target, else classification.")
    algorithm: AlgorithmSpec = Field(description="Algorithm with its parameters.")
    preprocessing: Preprocessing = Field(
        Preprocessing(), description="How columns become numbers; by default each of its fields has its own default."
    )
    validation: Validation = Field(
        Validation(), description="How the model is validated; by default each of its fields has its own default."
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Same seed, same bytes.")


class Plan(NamedTuple):
    """What a request without faults means."""

    task: Task
    features: tuple[str, ...]
    rows: int
    """Rows that have a target."""
    memory_bytes: int
    """Rough peak of the training process."""
    seconds: float
    """Rough time from start to end."""
    warnings: tuple[str, ...]
    lot: int | None
    """Rows learned at a time, where memory does not hold all: see `app.ml.training.out_of_core`."""
    units: int
    """What splits divide: rows, or groups of them."""


def plan(spec: TrainSpec, columns: Sequence[TableColumn], rows: int, memory_bytes: float = math.inf) -> Plan:
    """Decide what to do for a table of `rows` rows with these columns, within so much memory.

    Raises InvalidRequest with every fault of the request.
    """
    unread, warned = [*kind_faults(spec.kinds, columns)], [*kind_warnings(spec.kinds, columns)]
    columns = recast_columns(columns, spec.kinds)
    known = {column.name: column for column in columns}
    task, faults = _task(spec, known)
    faults += [*unread, *_target_faults(spec, known, task, rows), *_weight_faults(spec, known)]
    faults += [*_feature_faults(spec, known, rows), *value_faults(spec, known)]
    faults += group_faults(spec.validation, known, spec.target)
    if spec.validation.method == "loo" and spec.target is None:
        faults.append(Fault("/validation/method", "Leave-one-out compares predictions with a target: take kfold."))
    features, warnings = _features(spec, columns, rows)
    chosen = [known[name] for name in features if name in known]
    kinds = {column.name: column.kind for column in chosen}
    functional = [*(function_faults(spec.preprocessing, kinds) if kinds else ())]
    widths = encoded_widths(spec, task, chosen)
    size = Size(rows, sum(widths), _classes(spec, known, task), sum(width for width in widths if width > 1))
    if not functional:
        size = size._replace(columns=size.columns + functions(spec.preprocessing, kinds))
    if task is not None:
        algorithm = nested.entry_of(spec.algorithm).algorithm
        made = function_names(spec.preprocessing, kinds) if kinds and not functional else ()
        named = kinds | dict.fromkeys(made, ColumnKind.NUMERIC)
        faults += nested.faults(algorithm, spec.algorithm, task, "/algorithm", Inputs(named, size))
    faults += [*functional, *_transform_faults(spec, task)]
    if not features and not faults:
        faults.append(Fault("/features", "No column is left to learn from.", "missing"))
    if faults or task is None:
        raise InvalidRequest(faults=faults)
    usable = rows - (known[spec.target].missing if spec.target is not None else 0)
    units = units_of(spec.validation, known, usable)
    cost = cost_of(spec, task, chosen, size, units=units, memory_bytes=memory_bytes)
    if faults := [*streaming_fault(spec.validation, cost.lot)]:
        raise InvalidRequest(faults=faults)
    warnings += [*warned, *_warnings(spec, chosen, known, usable), *_lot_warnings(cost.lot)]
    warnings += group_warnings(spec.validation, known, features)
    return Plan(task, features, usable, cost.memory_bytes, cost.seconds, tuple(warnings), cost.lot, units)


def _task(spec: TrainSpec, known: Mapping[str, TableColumn]) -> tuple[Task | None, list[Fault]]:
    """The task, or none if it cannot be told; and what speaks against it."""
    name, offered = spec.algorithm.name, sorted(nested.entry_of(spec.algorithm).algorithm.tasks)
    supervised = spec.target is not None
    if not any(task.supervised is supervised for task in offered):
        if supervised:
            return None, [Fault("/target", f"{name} learns without a target: leave it out.")]
        return None, [Fault("/target", f"{name} needs a target column to learn from.", "missing")]
    if spec.task is not None and spec.task.supervised is not supervised:
        return None, [Fault("/task", f"{spec.task} {'takes no' if supervised else 'needs a'} target.")]
    task = spec.task or _natural(spec.target, known, offered)
    return task, [] if task is None or task in offered else [_not_offered(spec, name, task, offered)]


def _natural(target: str | None, known: Mapping[str, TableColumn], offered: Sequence[Task]) -> Task | None:
    """What follows from the target's kind; nothing from a column that is not there."""
    if target is None:
        return next(task for task in offered if not task.supervised)
    if target not in known:
        return None
    return Task.REGRESSION if known[target].kind == ColumnKind.NUMERIC else Task.CLASSIFICATION


def _not_offered(spec: TrainSpec, name: str, task: Task, offered: Sequence[Task]) -> Fault:
    pointer = "/algorithm/name" if spec.task is None else "/task"
    advice = ""
    if spec.task is None and task is Task.REGRESSION:
        advice = " To take the numbers of the target for classes, set task to classification."
    return Fault(pointer, f"{name} does {' and '.join(offered)}, not {task}.{advice}")


def _classes(spec: TrainSpec, known: Mapping[str, TableColumn], task: Task | None) -> int:
    """Of the target; 0 where there are none, or nothing is known of them."""
    target = known.get(spec.target or "")
    return target.distinct or 0 if target is not None and task is Task.CLASSIFICATION else 0


def no_column(at: str, name: str, known: Iterable[str]) -> Fault:
    """The dataset has no column of this name; with the closest name that it has."""
    return Fault(at, no_such("The dataset has no column", name, known), "unknown_column")


def _target_faults(spec: TrainSpec, known: Mapping[str, TableColumn], task: Task | None, rows: int) -> Iterator[Fault]:
    at = "/target"
    if spec.target is None:
        if rows < 2:
            yield Fault("/dataset", "At least 2 rows are needed.")
        return
    column = known.get(spec.target)
    if column is None:
        yield no_column(at, spec.target, known)
        return
    usable = rows - column.missing
    if usable == 0:
        yield Fault(at, "Every value of the target is missing.")
    elif usable < 2:
        yield Fault(at, "At least 2 rows with a target are needed.")
    elif column.distinct == 1:
        yield Fault(at, "The target has a single value: there is nothing to learn.")
    yield from _kind_of_target_faults(spec, column, task)


def _kind_of_target_faults(spec: TrainSpec, column: TableColumn, task: Task | None) -> Iterator[Fault]:
    at = "/target"
    if task is Task.REGRESSION and column.kind != ColumnKind.NUMERIC:
        yield Fault(at, f"Regression needs a numeric target, not a {column.kind} one.")
    if spec.task is None and column.mostly_numbers:
        numbers = f'To predict numbers, give kinds: {{"{column.name}": "numeric"}}'
        yield Fault(at, f"{column.mostly_numbers} {numbers}; to predict classes, give the task.", "mostly_numbers")
    if task is Task.CLASSIFICATION and column.kind == ColumnKind.DATETIME:
        yield Fault(at, "Points in time cannot be classes.")
    if task is Task.CLASSIFICATION and (column.distinct is None or column.distinct > MAX_CLASSES):
        yield Fault(at, f"The target has more than {MAX_CLASSES} different values: too many classes.")


def _transform_faults(spec: TrainSpec, task: Task | None) -> Iterator[Fault]:
    if spec.preprocessing.target != "none" and task not in {None, Task.REGRESSION}:
        yield Fault("/preprocessing/target", "Only the target of a regression can be transformed.")
    if spec.preprocessing.categories == "target" and spec.target is None:
        yield Fault("/preprocessing/categories", "There is no target to encode categories by: set it to levels.")
    yield from limit_faults(spec.preprocessing, task)


def _weight_faults(spec: TrainSpec, known: Mapping[str, TableColumn]) -> Iterator[Fault]:
    for at, name in (("/weights", spec.weights), ("/sigma", spec.sigma)):
        if name is None:
            continue
        column = known.get(name)
        if column is None:
            yield no_column(at, name, known)
        elif column.kind != ColumnKind.NUMERIC:
            yield Fault(at, f"Numbers are needed; this column is {column.kind}.")
        if name == spec.target:
            yield Fault(at, "The target cannot weigh the rows too.")
    if spec.weights is not None and spec.sigma is not None:
        yield Fault("/sigma", "Rows have weights or errors, not both: a row of error sigma weighs 1/sigma².")


def _feature_faults(spec: TrainSpec, known: Mapping[str, TableColumn], rows: int) -> Iterator[Fault]:
    seen: Counter[str] = Counter()
    for place, name in enumerate(spec.features or ()):
        at = f"/features/{place}"
        column = known.get(name)
        if column is None:
            yield no_column(at, name, known)
        elif name == spec.target:
            yield Fault(at, "The target cannot be a feature too.")
        elif name in {spec.weights, spec.sigma}:
            yield Fault(at, "What weighs the rows cannot be a feature too.")
        elif column.kind == ColumnKind.TEXT:
            yield Fault(at, "Free text cannot be a feature.")
        elif column.missing == rows:
            yield Fault(at, "This column has no values.")
        seen[name] += 1
        if seen[name] == 2:
            yield Fault(at, "This feature is named twice.", "duplicate")


def _features(spec: TrainSpec, columns: Sequence[TableColumn], rows: int) -> tuple[tuple[str, ...], list[str]]:
    """The columns to learn from, in the order of the table or of the request."""
    if spec.features is not None:
        named = [column.name for column in columns if column.identifier_like and column.name in spec.features]
        return tuple(spec.features), _said(named, "looks like an identifier: it may not mean anything for new rows")
    others = {spec.target, spec.weights, spec.sigma, spec.validation.group}
    left = [column for column in columns if column.name not in others]
    reasons = {
        "is free text and was left out": [c.name for c in left if c.kind == ColumnKind.TEXT],
        "looks like an identifier and was left out": [
            c.name for c in left if c.identifier_like and c.kind != ColumnKind.TEXT
        ],
        "has no values and was left out": [c.name for c in left if c.missing == rows],
    }
    out = {name for names in reasons.values() for name in names}
    warnings = [said for reason, names in reasons.items() for said in _said(names, reason)]
    return tuple(column.name for column in left if column.name not in out), warnings


def _two_numbers(target: TableColumn) -> bool:
    return target.kind == ColumnKind.NUMERIC and target.distinct == 2


def _said(names: Sequence[str], reason: str) -> list[str]:
    return [f"Column {name!r} {reason}." for name in names]


def _warnings(
    spec: TrainSpec, chosen: Sequence[TableColumn], known: Mapping[str, TableColumn], usable: int
) -> Iterator[str]:
    limit = spec.preprocessing.max_levels
    for column in chosen:
        if column.kind == ColumnKind.CATEGORICAL and (column.distinct is None or column.distinct > limit):
            yield _many_categories(column, spec)
    if spec.target is not None and spec.task is None and _two_numbers(known[spec.target]):
        yield (
            f"The target {spec.target!r} is numeric with two different values: a regression is fitted. To predict them "
            "as classes, with probabilities, set task to classification."
        )
    if spec.target is not None and (missing := known[spec.target].missing):
        yield f"{missing} rows without a target are not used."
    fits = spec.validation.fits(units_of(spec.validation, known, usable))
    if fits > MANY_FITS and not closed_form(spec, chosen):
        yield f"The model is fitted about {fits} times."
    if spec.validation.method == "kfold" and spec.validation.folds > usable:
        yield f"There are fewer rows than the {spec.validation.folds} requested folds."


def _many_categories(column: TableColumn, spec: TrainSpec) -> str:
    limit = spec.preprocessing.max_levels
    said = f"Column {column.name!r} has more than {limit} categories"
    if spec.preprocessing.categories == "target":
        return f"{said}: each is replaced by a mean of the target."
    more = "" if limit == MAX_LEVELS else f"raise preprocessing.max_levels (at most {MAX_LEVELS}), or "
    encode = 'set preprocessing.categories to "target", which encodes every category by the mean of the target'
    return f"{said}: the rarest count as one, other. To tell them apart, {more}{encode}."


def _lot_warnings(batch: int | None) -> Iterator[str]:
    if batch is not None:
        yield (
            f"Too large for the memory of a job: learned in batches of about {batch} rows. Scales, levels, metrics and "
            f"any cross-validation rest on random samples of about as many."
        )
