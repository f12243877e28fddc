"""Faults of relations between rows, before any row is read."""

from collections.abc import Iterator, Mapping

from app.errors import Fault
from app.ml import nested
from app.ml.contract.algorithm import Form, Meaning
from app.ml.contract.columns import TableColumn
from app.ml.training.square_table import square_faults
from app.ml.training.train_spec import TrainSpec

AT = "/relations"


def relation_faults(spec: TrainSpec, known: Mapping[str, TableColumn], rows: int) -> Iterator[Fault]:
    """known: columns of the dataset by name. rows: of the dataset."""
    given = spec.relations
    if given is None:
        return
    yield from _not_taken(spec)
    if given.form == "square":
        yield from square_faults(spec, known, rows)


def _not_taken(spec: TrainSpec) -> Iterator[Fault]:
    """Relations that the algorithm does not learn from."""
    assert spec.relations is not None  # noqa: S101 - the caller has looked
    form, meaning, name = Form(spec.relations.form), Meaning(spec.relations.meaning), spec.algorithm.name
    taken = nested.entry_of(spec.algorithm).algorithm.relations
    if form not in taken:
        does = f"takes relations in the form {' or '.join(taken)} only" if taken else "takes no relations between rows"
        yield Fault(f"{AT}/form", f"{name} {does}.", "not_taken")
    elif meaning not in taken[form]:
        yield Fault(f"{AT}/meaning", f"{name} takes the meaning {' or '.join(taken[form])} only.", "not_taken")
