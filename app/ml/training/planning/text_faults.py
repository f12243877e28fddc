"""Faults of columns of text that a training learns from."""

from collections.abc import Iterator, Mapping, Sequence

from app.base.faults import Fault, place
from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Accepts
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.given_kinds import KindName
from app.ml.tables.casting import TEXTS
from app.ml.training.planning.train_spec import TrainSpec


def kinds_with_texts(spec: TrainSpec, columns: Sequence[TableColumn]) -> dict[str, KindName]:
    """Kinds of columns as they are used: categories that `preprocessing.text` names are texts."""
    named = [column.name for column in columns if column.name in spec.preprocessing.text]
    categories = {c.name for c in columns if c.kind == ColumnKind.CATEGORICAL}
    texts: dict[str, KindName] = {name: "text" for name in named if name in categories and name not in spec.kinds}
    return {**spec.kinds, **texts}


def text_faults(spec: TrainSpec, columns_by_name: Mapping[str, TableColumn]) -> Iterator[Fault]:
    """columns_by_name: columns by name, as they are used."""
    how = spec.preprocessing
    if not how.text:
        return
    algorithm = nested.entry_of(spec.algorithm).algorithm
    if Accepts.SPARSE not in algorithm.accepts:
        takers = [name for name, entry in catalogue().items() if Accepts.SPARSE in entry.algorithm.accepts]
        detail = f"{spec.algorithm.name} takes no columns of text: take one of {', '.join(takers)}, or leave it out."
        yield Fault("/preprocessing/text", detail, "wrong_kind")
    if how.projection is not None:
        yield Fault("/preprocessing/text", "Behind a projection there are no columns of text: leave one of them out.")
    if how.categories == "target":
        yield Fault("/preprocessing/categories", "Beside columns of text categories are levels: set it to levels.")
    for name in how.text:
        yield from _column_faults(spec, name, columns_by_name)


def _column_faults(spec: TrainSpec, name: str, columns_by_name: Mapping[str, TableColumn]) -> Iterator[Fault]:
    pointer, column = place("preprocessing", "text", name), columns_by_name.get(name)
    if column is None:
        yield no_column(pointer, name, columns_by_name)
        return
    roles = {"target": spec.target, "weights": spec.weights, "sigma": spec.sigma, "item": spec.item}
    roles |= {"difficulty": spec.difficulty, "group": spec.validation.group, "time": spec.validation.time}
    if role := next((role for role, other in roles.items() if other == name), None):
        yield Fault(pointer, f"The column is the {role} of the request: it cannot be a text to learn from too.")
    elif ColumnKind(column.kind) not in TEXTS:
        detail = f"{name!r} is {column.kind}: only texts and categories have terms. Its kind can be given in kinds."
        yield Fault(pointer, detail, "wrong_kind")
    elif spec.features is not None and name not in spec.features:
        yield Fault(pointer, f"{name!r} is not among the features: add it, or leave it out here.")
    if not isinstance(spec.preprocessing.imputation, str) and name in spec.preprocessing.imputation:
        where = place("preprocessing", "imputation", name)
        yield Fault(where, "A missing text counts as an empty one: leave this column out.", "wrong_kind")
