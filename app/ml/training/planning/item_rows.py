"""A dataset that has names and a target for its rows, and no column to learn from: edges alone relate the rows."""

from collections.abc import Sequence
from typing import NamedTuple

from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.preparation.request import Preprocessing
from app.ml.training.planning.feature_choice import chosen_features
from app.ml.training.planning.related_table import RelatedTable
from app.ml.training.planning.square_table import AS_IT_IS
from app.ml.training.planning.train_spec import TrainSpec


class ItemRows(NamedTuple):
    """A request in which the item is the one input of the model, where it is so."""

    spec: TrainSpec
    columns: Sequence[TableColumn]
    """Those of the dataset, with texts as categories where they name the rows."""
    related: RelatedTable | None
    faults: list[Fault]


def by_item(spec: TrainSpec, columns: Sequence[TableColumn], rows: int, related: RelatedTable | None) -> ItemRows:
    """The request as it was, unless edges relate the rows, nothing else is known of them, and the algorithm takes it.

    columns, rows: of the dataset.
    """
    item = next((column for column in columns if column.name == spec.item), None)
    if item is None or related is None or not _alone(spec, columns, rows):
        return ItemRows(spec, columns, related, [])
    faults = []
    if spec.preprocessing not in (Preprocessing(), AS_IT_IS):
        faults.append(Fault("/preprocessing", "There are no columns to prepare but names: leave preprocessing out."))
    changes = {"features": [item.name], "preprocessing": AS_IT_IS}
    kinds = {item.name: ColumnKind.CATEGORICAL.value} if ColumnKind(item.kind).measured else {}
    changed = spec.model_copy(update=changes | {"kinds": (spec.kinds or {}) | kinds})
    categories = item._replace(kind=ColumnKind.CATEGORICAL.value) if item.kind == ColumnKind.TEXT else item
    used = [categories if column is item else column for column in columns]
    return ItemRows(changed, used, related._replace(alone=True), faults)


def _alone(spec: TrainSpec, columns: Sequence[TableColumn], rows: int) -> bool:
    if spec.relations is None or spec.relations.form != "edges" or spec.item == spec.target:
        return False
    if not nested.entry_of(spec.algorithm).algorithm.edges_and_target:
        return False
    return spec.features == [spec.item] if spec.features else not chosen_features(spec, columns, rows)[0]
