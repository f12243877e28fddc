"""Littlestone dimension of a finite class: the mistakes that the best online learner cannot avoid.

It is the depth of the largest game tree whose every path of instances and labels is that of a hypothesis. Such a tree
is part of the result: along it any deterministic learner can be made wrong at every level.
"""

import math
from collections.abc import Iterator

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData, InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body
from app.ml.contract.calculator import TheoryResult, value
from app.ml.kinds.query import Query
from app.ml.numerics.online_learning.littlestone import Littlestone


class LittlestoneRequest(Body):
    """A finite class of hypotheses, as a table of their labels."""

    table: list[list[bool]] = Field(
        min_length=1,
        max_length=1000,
        description="Labels: a list for each hypothesis, with a label for each of at most 1,000 instances.",
    )


class LittlestoneResult(TheoryResult):
    """Littlestone dimension, and the tree that proves it."""

    tree: list[int] = Field(
        description="Instances of a shattered tree, numbered from 0: the first is the root; behind place i follow "
        "places 2i + 1 where the label is false, and 2i + 2 where it is true."
    )


def calculate(request: LittlestoneRequest) -> LittlestoneResult:
    """Raises InvalidRequest for a table of another shape, and where the search takes too long."""
    if faults := list(_faults(request.table)):
        raise InvalidRequest(faults=faults)
    table = np.unique(np.array(request.table, bool), axis=0)
    game = Littlestone(table.T.astype(np.float64))
    try:
        dimension = game.dimension(game.everything)
    except InvalidData as error:
        raise InvalidRequest(faults=[Fault("/table", str(error), "limit")]) from None
    return LittlestoneResult(
        calculator="littlestone_dimension",
        values=[
            value(
                "littlestone_dimension", dimension, "Mistakes that the best learner makes at most, and cannot avoid."
            ),
            value(
                "halving_bound",
                math.log2(len(table)),
                "Binary logarithm of the number of hypotheses: the bound of halving.",
            ),
            value("hypotheses", len(table), "Number of hypotheses with different labels."),
        ],
        formula="largest d such that the class shatters a tree of depth d; at most log2 of the number of hypotheses",
        source="Littlestone (1988), Mach. Learn. 2:285; Shalev-Shwartz and Ben-David (2014), Understanding Machine "
        "Learning, section 21.1.",
        assumptions=[
            "A hypothesis of the table gives every label without error.",
            "The true label is known after each round.",
        ],
        notes=["The learner `soa` of a session reaches this bound, `halving` that of its own."],
        curves=[],
        tree=game.tree(game.everything, dimension),
    )


def _faults(table: list[list[bool]]) -> Iterator[Fault]:
    widths = {len(row) for row in table}
    if widths == {0}:
        yield Fault("/table/0", "A hypothesis needs a label for each instance: this one has none.")
    for place, row in enumerate(table):
        if len(row) != len(table[0]):
            detail = f"Every hypothesis needs {len(table[0])} labels, as many as the first; this one has {len(row)}."
            yield Fault(f"/table/{place}", detail)
        elif len(row) > 1000:
            yield Fault(f"/table/{place}", f"At most 1,000 instances; these are {len(row)}.", "limit")


QUERY = Query(
    operation="calculate_littlestone_dimension",
    request=LittlestoneRequest,
    response=LittlestoneResult,
    run=calculate,
    path="/v1/theory/littlestone_dimension",
    tag="theory",
)
