"""Faults of relations between rows, before any row is read."""

from collections.abc import Iterator, Mapping, Sequence

from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.contract.algorithm import JSON, Form, Meaning, Task
from app.ml.contract.columns import InputColumn, TableColumn
from app.ml.training.planning.edge_table import edge_faults
from app.ml.training.planning.pair_table import pair_faults
from app.ml.training.planning.related_table import RelatedTable, related_faults
from app.ml.training.planning.relation_request import EdgeRelations
from app.ml.training.planning.square_table import square_faults
from app.ml.training.planning.train_spec import TrainSpec

AT = "/relations"


def relation_faults(
    spec: TrainSpec, columns_by_name: Mapping[str, TableColumn], rows: int, related: RelatedTable | None
) -> Iterator[Fault]:
    """columns_by_name: columns of the dataset by name. rows: of the dataset. related: the dataset that the relations
    name.
    """
    relations = spec.relations
    if relations is None:
        return
    yield from _not_taken(spec, Form(relations.form), Meaning(relations.meaning))
    if relations.form == "square":
        yield from square_faults(spec, columns_by_name, rows)
    else:
        yield from related_faults(relations, related, spec.item)
        columns = {column.name: column for column in (related.columns if related else ())}
        yield from edge_faults(relations, columns) if relations.form == "edges" else pair_faults(relations, columns)
    if spec.validation.method == "bootstrap":
        yield repeated_rows("/validation/method", "kfold")


def repeated_rows(pointer: str, instead: str) -> Fault:
    return Fault(pointer, f"Resamples repeat rows, and relations are between different rows: take {instead}.")


def _not_taken(spec: TrainSpec, form: Form, meaning: Meaning) -> Iterator[Fault]:
    """Relations that the algorithm does not learn from."""
    name, algorithm = spec.algorithm.name, nested.entry_of(spec.algorithm).algorithm
    taken, relations = algorithm.relations, spec.relations
    if form not in taken:
        does = f"takes relations in the form {' or '.join(taken)} only" if taken else "takes no relations between rows"
        yield Fault(f"{AT}/form", f"{name} {does}.", "not_taken")
    elif meaning not in taken[form]:
        yield Fault(f"{AT}/meaning", f"{name} takes the meaning {' or '.join(taken[form])} only.", "not_taken")
    elif isinstance(relations, EdgeRelations) and relations.weight is not None and not algorithm.pair_weights:
        yield Fault(f"{AT}/weight", f"{name} takes no weights of pairs: leave weight out.", "not_taken")


def evaluation_faults(task: Task, receipt: Mapping[str, JSON], inputs: Sequence[InputColumn]) -> Iterator[Fault]:
    """A model without a target that learned a square table lacks the values of other rows beside each other, and one of
    items has no others.
    """
    relations = (receipt.get("spec") or {}).get("relations") or {}
    if any(column.strict_levels for column in inputs) and not task.supervised:
        yield Fault("/model", "It was trained on edges alone: it has no values of rows that metrics compare.")
    elif relations.get("form") == "square" and not task.supervised:
        detail = "It was trained on a square table: metrics of other rows need their values beside each other."
        yield Fault("/model", f"{detail} Hold rows out in the training instead.")
