"""Choice of the columns to learn from: those that the request names, else all that can be features."""

from collections.abc import Iterable, Sequence

from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.training.train_spec import TrainSpec


def chosen_features(spec: TrainSpec, columns: Sequence[TableColumn], rows: int) -> tuple[tuple[str, ...], list[str]]:
    """The columns to learn from, in the order of the table or of the request."""
    if spec.features is not None:
        named = [column.name for column in columns if column.identifier_like and column.name in spec.features]
        return tuple(spec.features), _reasons(named, "looks like an identifier: it may not mean anything for new rows")
    left = without_role(spec, columns)
    if spec.relations is not None and spec.relations.form == "square":
        return tuple(column.name for column in left), []
    texts = spec.preprocessing.text
    left_out = [column for column in left if column.name not in texts]
    reasons = {
        "is free text and was left out; to learn from it, name it in preprocessing.text": [
            c.name for c in left_out if c.kind == ColumnKind.TEXT
        ],
        "looks like an identifier and was left out": [
            c.name for c in left_out if c.identifier_like and c.kind != ColumnKind.TEXT
        ],
        "has no values and was left out": [c.name for c in left if c.missing == rows],
    }
    out = {name for names in reasons.values() for name in names}
    warnings = [sentence for reason, names in reasons.items() for sentence in _reasons(names, reason)]
    return tuple(column.name for column in left if column.name not in out), warnings


def without_role(spec: TrainSpec, columns: Iterable[TableColumn]) -> list[TableColumn]:
    """Columns that the request does not name for something else than to learn from."""
    roles = spec.target, spec.weights, spec.sigma, spec.item, spec.difficulty
    others = {*roles, spec.validation.group, spec.validation.time}
    return [column for column in columns if column.name not in others]


def _reasons(names: Sequence[str], reason: str) -> list[str]:
    return [f"Column {name!r} {reason}." for name in names]
