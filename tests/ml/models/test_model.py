"""A model is its bytes, and bytes that are no model do no harm."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import CorruptModel, InvalidData, RetiredFormat
from app.ml.contract.columns import TableColumn
from app.ml.models import safetensors_format
from app.ml.models.header import read_header
from app.ml.models.model import Predicted, decode, digest, encode
from app.ml.preparation.flags import Flagged
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

TABLE = pa.table({"a": [0.0, 1.0, 2.0, 3.0] * 10, "c": ["x", "y", None, "x"] * 10, "y": ["no", "yes"] * 20})


@pytest.fixture(scope="module")
def blob():
    columns = [TableColumn("a", "numeric", 0, 4), TableColumn("c", "categorical", 10, 2)]
    columns.append(TableColumn("y", "categorical", 0, 2))
    spec = TrainSpec.model_validate({"target": "y", "algorithm": {"name": "logistic"}})
    return train(plan(spec, columns, TABLE.num_rows), TABLE, data_digest="sha256:0").blob


@pytest.fixture(scope="module")
def model(blob):
    return decode(blob)


def rewritten(blob, change):
    """The same arrays behind another document."""
    document, arrays = safetensors_format.read(blob)
    change(document)
    return safetensors_format.write(document, arrays)


def test_round_trip_to_the_byte(blob, model):
    assert encode(model) == blob
    assert digest(encode(decode(blob))) == digest(blob)


def test_it_predicts_the_same_from_wherever_it_came(blob, model):
    copies = [decode(memoryview(blob)), decode(bytearray(blob)), decode(memoryview(b"?" + blob)[1:])]
    predictions = [copy.predict(TABLE).probabilities.tobytes() for copy in copies]
    assert set(predictions) == {model.predict(TABLE).probabilities.tobytes()}


def test_one_row_is_predicted_as_among_others(model):
    together = model.predict(TABLE).probabilities
    alone = [model.predict(TABLE.slice(i, 1)).probabilities[0] for i in range(TABLE.num_rows)]
    np.testing.assert_allclose(alone, together, rtol=1e-14)


def test_the_header_says_what_it_is(blob, model):
    header = read_header(blob)
    assert (header.algorithm, header.task, header.target, header.classes) == (
        "logistic", "classification", "y", ("no", "yes"),
    )  # fmt: skip
    assert header.inputs == model.inputs
    assert header.parameters == model.params.model_dump()


def test_reading_the_header_does_not_depend_on_the_arrays(blob):
    document, _ = safetensors_format.read(blob)
    heavy = safetensors_format.write(document, {"x": np.zeros(1 << 20)})
    tracemalloc.start()
    read_header(heavy)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_it_knows_its_size(blob, model):
    assert len(blob) / 2 < model.nbytes < 5 * len(blob)


def test_other_columns_and_other_orders_do_not_matter(model):
    shuffled = TABLE.append_column("more", pa.array(range(40))).select(["more", "c", "y", "a"])
    assert model.predict(shuffled).predictions == model.predict(TABLE).predictions


def test_doubts_are_flagged(model):
    table = pa.table({"a": [None, 9.0, 1.0], "c": ["x", "never", None]})
    flags = {(flag.code, flag.column): flag.rows.tolist() for flag in model.predict(table).flags}
    assert flags == {("imputed", "a"): [0], ("outside_range", "a"): [1], ("unseen_category", "c"): [1]}


@pytest.mark.parametrize("classes", [(False, True), (1, 2), (0.5, 1.0), ("1", "1.0")])
def test_labels_are_reported_in_their_types(classes):
    result = Predicted(np.array([1, 0, 1]), None, classes, ()).predictions
    assert result == [classes[1], classes[0], classes[1]]
    assert [type(label) for label in result] == [type(classes[0])] * 3


def test_flags_carry_their_rows():
    assert Flagged("imputed", "a", np.array([1])).rows.tolist() == [1]


WRONG = {
    "a future format": lambda d: d.update(format=99),
    "no format": lambda d: d.pop("format"),
    "an unknown algorithm": lambda d: d.update(algorithm="oracle"),
    "an algorithm that is no text": lambda d: d.update(algorithm=["ridge"]),
    "another algorithm": lambda d: d.update(algorithm="kmeans"),
    "an unknown task": lambda d: d.update(task="magic"),
    "a parameter out of bounds": lambda d: d["parameters"].update(l2=-1),
    "an unknown parameter": lambda d: d["parameters"].update(shell="sh"),
    "inputs that are no list": lambda d: d.update(inputs={}),
    "an input too many": lambda d: d["inputs"].append(d["inputs"][0]),
    "no inputs": lambda d: d["inputs"].clear(),
    "a category without levels": lambda d: d["inputs"][1].pop("levels"),
    "an unknown kind": lambda d: d["inputs"][0].update(kind="image"),
    "half a surrogate": lambda d: d["inputs"][1].update(levels=["\ud800", "y"]),
    "a class that is a list": lambda d: d["classes"].append([]),
    "a target that is a number": lambda d: d.update(target=1),
    "a receipt that is none": lambda d: d.update(receipt=None),
    "a state that is none": lambda d: d.update(state=None),
    "a state without a field": lambda d: d["state"]["fields"].popitem(),
    "a state of other arrays": lambda d: d["preparation"]["fields"].update(fill={"array": "preparation.other"}),
    "a preparation that is none": lambda d: d.update(preparation=[]),
    "what it keeps is a text": lambda d: d["keeps"].update(missing="no"),
    "deep nesting": lambda d: d.update(state=json.loads("[" * 700 + "]" * 700)),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_what_does_not_fit_is_corrupt(blob, change):
    with pytest.raises(CorruptModel):
        decode(rewritten(blob, change))


TREE = {"name": "decision_tree", "max_depth": 2}
OF_CATEGORIES = [
    {"name": "gradient_boosting", "n_estimators": 2},
    {"name": "random_subspace", "estimator": TREE, "n_estimators": 2, "max_features": 2},
    {"name": "additive", "fit": "backfitting", "estimator": TREE, "max_iter": 2},
    {"name": "stacking", "estimators": [TREE], "final_estimator": TREE},
]


@pytest.mark.parametrize("algorithm", OF_CATEGORIES, ids=lambda algorithm: algorithm["name"])
def test_inputs_with_more_categories_than_the_trees_know_are_corrupt(algorithm):
    """Compiled code looks up a category by its code, and does not look whether it is there."""
    table = pa.table({"a": [0.0, 1.0] * 20, "c": ["x", "y", "z", "x"] * 10, "y": [0.0, 5.0, 9.0, 1.0] * 10})
    kinds = {"a": "numeric", "c": "categorical", "y": "numeric"}
    columns = [TableColumn(name, kind, 0, 4) for name, kind in kinds.items()]
    spec = TrainSpec.model_validate({"target": "y", "algorithm": algorithm})
    blob = train(plan(spec, columns, table.num_rows), table, data_digest="sha256:0").blob
    assert decode(blob).predict(table).values.size == 40

    def name_another(document):
        document["inputs"][1]["levels"].append("zz")

    def read_a_number(document):
        document["inputs"][1] |= {"kind": "numeric", "levels": None}

    for change in (name_another, read_a_number):
        with pytest.raises(CorruptModel, match="do not know all categories"):
            decode(rewritten(blob, change))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_model_of_an_earlier_release_is_refused_with_what_to_do(blob, number):
    """Its parameters have names that this release does not know."""
    old = rewritten(blob, lambda d: d.update(format=number, parameters={"penalty": 1.0}))
    for read in (decode, read_header):
        with pytest.raises(
            RetiredFormat, match=f"^Version 3 of rent is stored in format {number} .* Train the model again"
        ):
            read(old, "Version 3 of rent")


@pytest.mark.parametrize("document", [None, [], 1, "x", {}])
def test_documents_of_others_are_corrupt(document):
    for read in (decode, read_header):
        with pytest.raises(CorruptModel):
            read(safetensors_format.write(document, {}))


def test_every_truncation_is_corrupt(blob):
    for cut in range(0, len(blob), 7):
        with pytest.raises(CorruptModel):
            decode(blob[:cut])


@given(st.data())
def test_damage_gives_a_model_or_corrupt_model(blob, data):
    """Never another exception, never much memory. (Flips within numbers are the digest's to find.)"""
    places = st.tuples(st.integers(0, len(blob) - 1), st.integers(0, 255))
    hostile = bytearray(blob)
    for place, value in data.draw(st.lists(places, min_size=1, max_size=3)):
        hostile[place] = value
    tracemalloc.start()
    try:
        decode(bytes(hostile))
    except CorruptModel:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 5 << 20


def test_a_header_too_large_to_be_read_back_is_not_written(model):
    wide = replace(model, receipt={"notes": "x" * safetensors_format.MAX_HEADER_BYTES})
    with pytest.raises(InvalidData):
        encode(wide)
