"""The order of a trainer is read as it was written."""

from app.ml.contract.columns import TableColumn
from app.ml.contract.notation import CellTexts, Notation, OtherNotation
from app.ml.kinds.job import Sheet
from workers.trainer_messages import Order


def test_facts_of_columns_come_through():
    column = TableColumn(
        "price",
        "numeric",
        missing=1,
        distinct=2,
        notation=Notation(missing=("x",)),
        other_notation=OtherNotation(notation=Notation(decimal=",", thousands="."), exact=True),
        levels=("a", "b"),
        markers=("-999",),
        cell_texts=CellTexts(texts={"5": "05"}, unique=True),
    )
    order = Order("predict", {}, None, [Sheet("sha256:0", 1, (column,), {"missing": ["x"]})], [], 5)
    assert Order.read(order.written()).datasets == order.datasets
