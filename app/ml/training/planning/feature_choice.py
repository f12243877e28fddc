"""Choice of the columns to learn from: those that the request names, else all that can be features."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from app.base.faults import Fault
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.task import PredictionKind, Task
from app.ml.training.planning.train_spec import TrainSpec

TEXT = "is free text and was left out; to learn from it, name it in preprocessing.text"
IDENTIFIER = "looks like an identifier and was left out; to learn from it, name it in features"
EMPTY = "has no values and was left out"
CLASS = (
    "looks like a class and was left out of the clustering; to learn from it, name it in features, and to compare the "
    "clusters with it, make it the target"
)
CLASS_NAMES = {"class", "classes", "diagnosis", "label", "labels", "outcome", "species", "target", "y"}
"""Names of columns, in lower case, that hold classes in tables of all fields."""
MAX_CLASSES = 30
"""Categories of a column that looks like a class, at most."""
MAX_NAMED_COLUMNS = 50
"""Columns named in one fault."""


def chosen_features(
    spec: TrainSpec, columns: Sequence[TableColumn], rows: int, task: Task | None = None
) -> tuple[tuple[str, ...], list[str]]:
    """The columns to learn from, in the order of the table or of the request.

    task: None where it is not known; of a clustering without a target, what looks like a class is left out.
    """
    texts = spec.preprocessing.text
    if spec.features is not None:
        alike = {column.name for column in columns if column.identifier_like} - {*texts}
        named = [name for name in spec.features if name in alike]
        reason = "looks like an identifier: it may not mean anything for new rows"
        return tuple(spec.features), [*_sentences(named, reason)]
    left = without_role(spec, columns)
    if spec.relations is not None and spec.relations.form == "square":
        return tuple(column.name for column in left), []
    reasons = {**_reasons(spec, left, rows)}
    if task is not None and task.record.prediction is PredictionKind.LABEL and spec.target is None:
        out = {name for names in reasons.values() for name in names}
        features = [column for column in left if column.name not in out]
        reasons[CLASS] = [*_class_like(features, columns)]
    out = {name for names in reasons.values() for name in names}
    warnings = [sentence for reason, names in reasons.items() for sentence in _sentences(names, reason)]
    return tuple(column.name for column in left if column.name not in out), warnings


def no_feature_fault(spec: TrainSpec, columns: Sequence[TableColumn], rows: int) -> Fault:
    """The fault of a request that leaves no column to learn from, with the reason for each column."""
    names = {column.name for column in columns}
    roles = [f"Column {name!r} is {role}." for role, name in _roles(spec).items() if name in names]
    reasons = _reasons(spec, without_role(spec, columns), rows)
    sentences = [*roles, *(sentence for reason, names in reasons.items() for sentence in _sentences(names, reason))]
    more = len(sentences) - MAX_NAMED_COLUMNS
    shown = [*sentences[:MAX_NAMED_COLUMNS], *([f"{more} more columns were left out for such reasons."] * (more > 0))]
    remedy = "" if any(reasons.values()) else " The dataset needs a further column."
    return Fault("/features", f"No column is left to learn from. {' '.join(shown)}{remedy}", "missing")


def without_role(spec: TrainSpec, columns: Iterable[TableColumn]) -> list[TableColumn]:
    """Columns that the request does not name for something else than to learn from."""
    others = {*_roles(spec).values()}
    return [column for column in columns if column.name not in others]


def _roles(spec: TrainSpec) -> Mapping[str, str | None]:
    """Columns that the request names for something else than to learn from, by what they are."""
    return {
        "the target": spec.target,
        "the row weights": spec.weights,
        "the errors of rows (sigma)": spec.sigma,
        "the exposure": spec.exposure,
        "the offset": spec.offset,
        "the item": spec.item,
        "the difficulty": spec.difficulty,
        "the group of the validation": spec.validation.group,
        "the time of the validation": spec.validation.time,
    }


def _reasons(spec: TrainSpec, left: Sequence[TableColumn], rows: int) -> Mapping[str, list[str]]:
    """Names of the columns that can be no features, by the reason."""
    others = [column for column in left if column.name not in spec.preprocessing.text]
    return {
        TEXT: [c.name for c in others if c.kind == ColumnKind.TEXT],
        IDENTIFIER: [c.name for c in others if c.identifier_like and c.kind != ColumnKind.TEXT],
        EMPTY: [c.name for c in left if c.missing == rows],
    }


def _class_like(features: Sequence[TableColumn], columns: Sequence[TableColumn]) -> Iterator[str]:
    """Names of the categorical columns that look like a class: by their names, or as the only one, at an end of a table
    of numbers. None where nothing else would be left.
    """
    categories = [column for column in features if column.kind in {ColumnKind.CATEGORICAL, ColumnKind.BOOLEAN}]
    ends = {columns[0].name, columns[-1].name} if columns else set()
    if len(features) - len(categories) < 2:
        return
    for column in categories:
        few = column.distinct is not None and 2 <= column.distinct <= MAX_CLASSES
        alone = len(categories) == 1 and column.name in ends
        if few and (alone or column.name.lower() in CLASS_NAMES):
            yield column.name


def _sentences(names: Sequence[str], reason: str) -> Iterator[str]:
    return (f"Column {name!r} {reason}." for name in names)
