"""Relations between the rows of a table, read for a training."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.errors import InvalidData, InvalidRequest
from app.base.faults import Fault
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Meaning
from app.ml.contract.relations import Relations
from app.ml.preparation.arrow_columns import Raw
from app.ml.training.planning.edge_table import read_edges
from app.ml.training.planning.items import read_items
from app.ml.training.planning.pair_table import read_pairs
from app.ml.training.planning.plan import Plan
from app.ml.training.planning.related_table import RelatedTable
from app.ml.training.planning.square_table import check_square
from app.ml.training.planning.train_spec import TrainSpec


def check_relations(planned: Plan, table: pa.Table) -> None:
    """Raises InvalidRequest, naming cells, for relations of the rows of this table that cannot be learned from."""
    spec = planned.spec
    try:
        items = None if spec.item is None else read_items(table, spec.item)
        read_relations(spec, Raw.read(table, planned.inputs), items, planned.related)
    except InvalidData as error:
        raise InvalidRequest(error.detail, faults=[*map(_of_request, error.faults)]) from None


def _of_request(fault: Fault) -> Fault:
    """Cells of the table are in what the request names as its dataset."""
    return fault._replace(pointer=f"/dataset{fault.pointer}") if fault.pointer.startswith("/rows/") else fault


def read_relations(
    spec: TrainSpec,
    raw: Raw,
    items: NDArray[np.str_] | None,
    related: RelatedTable | None,
) -> Relations | None:
    """Between the rows of the table; None: none are given. Raises InvalidData, naming cells.

    items: names of the rows.
    """
    if spec.relations is None:
        return None
    relations, meaning = spec.relations, Meaning(spec.relations.meaning)
    if relations.form == "square":
        algorithm = find(spec.algorithm.name).algorithm
        check_square(raw, items, meaning, algorithm.accepts, definite=not algorithm.projects_kernels(spec.algorithm))
        square = raw.values.view()
        square.setflags(write=False)
        return Relations(meaning, square=square)
    if related is None or related.read is None or items is None:
        raise ValueError("only a plan with the table of relations reads rows")
    table = related.read()
    edges = read_edges(relations, table, items) if relations.form == "edges" else read_pairs(relations, table, items)
    return Relations(meaning, edges=edges, by_item=related.alone)
