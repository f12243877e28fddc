"""Pairs that must be together or cannot: read by names, closed under must, and refused where they contradict."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidData
from app.ml.contract.columns import TableColumn
from app.ml.numerics.clustering.pair_constraints import together
from app.ml.training.planning.pair_table import pair_faults, read_pairs
from app.ml.training.planning.relation_request import PairRelations

NAMES = np.array(["a", "b", "c", "d"])
GIVEN = PairRelations(form="pairs", dataset="pairs", first="one", second="other", kind="kind")


def pairs(*rows, weights=None):
    one, other, kind = zip(*rows, strict=True)
    table = {"one": list(one), "other": list(other), "kind": list(kind)}
    return pa.table(table if weights is None else table | {"weight": weights})


def test_pairs_have_the_sign_of_their_kind_and_their_weight():
    found = read_pairs(GIVEN, pairs(("b", "a", "must"), ("c", "d", " Cannot "), ("a", "a", "must")), NAMES)
    assert [part.tolist() for part in found[:3]] == [[0, 2], [1, 3], [1.0, -1.0]]
    weighted = GIVEN.model_copy(update={"weight": "weight"})
    found = read_pairs(weighted, pairs(("b", "a", "must"), ("c", "d", "cannot"), weights=[2.0, 3.0]), NAMES)
    assert found.values.tolist() == [2.0, -3.0]


def test_rows_that_must_be_with_the_same_row_are_together():
    found = read_pairs(GIVEN, pairs(("a", "b", "must"), ("b", "d", "must")), NAMES)
    groups = together(found, 4)
    assert groups[0] == groups[1] == groups[3] != groups[2]


@pytest.mark.parametrize(
    ("rows", "pointers", "detail"),
    [
        (
            [("a", "b", "must"), ("b", "c", "must"), ("c", "a", "cannot")],
            ["/relations/rows/2/kind"],
            "must be together",
        ),
        ([("a", "b", "must"), ("b", "a", "cannot")], ["/relations/rows/1/kind"], "another value"),
        ([("a", "a", "cannot")], ["/relations/rows/0/kind"], "apart from itself"),
        ([("a", "b", "must"), ("a", "c", "maybe")], ["/relations/rows/1/kind"], "neither must nor cannot"),
        ([("a", "z", "must")], ["/relations/rows/0/other"], "no row of this name"),
    ],
)
def test_pairs_that_contradict_or_mean_nothing_are_refused_by_row(rows, pointers, detail):
    with pytest.raises(InvalidData) as refused:
        read_pairs(GIVEN, pairs(*rows), NAMES)
    assert [fault.pointer for fault in refused.value.faults] == pointers
    assert detail in refused.value.faults[0].detail


def test_columns_of_another_kind_are_refused_before_a_row_is_read():
    weighted = GIVEN.model_copy(update={"weight": "weight"})
    columns = {
        "kind": TableColumn("kind", "numeric", 0, 2),
        "weight": TableColumn("weight", "numeric", 0, 2, minimum=0),
    }
    assert [(fault.pointer, fault.code) for fault in pair_faults(weighted, columns)] == [
        ("/relations/kind", "wrong_kind"),
        ("/relations/weight", "bad_weight"),
    ]
