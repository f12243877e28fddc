"""Preparation with columns of text: learned from training rows only, stored whole, the same alone as among others."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import CorruptModel
from app.ml.contract.columns import TableColumn
from app.ml.models import safetensors_format
from app.ml.models.header import TEXT_FORMAT
from app.ml.models.model import decode, encode
from app.ml.preparation.arrow_columns import Raw
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.train import train

RNG = np.random.default_rng(2)
WORDS = [["ball", "goal", "team"], ["vote", "court", "party"]]
LABELS = ["sport", "law"] * 40
NOTES = [" ".join(RNG.choice(WORDS[place % 2], 5)) for place in range(80)]
TABLE = pa.table(
    {"note": NOTES, "hour": RNG.normal(size=80), "city": ["Ulm", "Bonn", None, "Ulm"] * 20, "topic": LABELS}
)
COLUMNS = [
    TableColumn("note", "text", 0, 80),
    TableColumn("hour", "numeric", 0, 80, minimum=-3.0, maximum=3.0),
    TableColumn("city", "categorical", 20, 2),
    TableColumn("topic", "categorical", 0, 2),
]


def planned(features=("note", "hour", "city"), algorithm="logistic", **how):
    spec = {"target": "topic", "features": list(features), "algorithm": {"name": algorithm}}
    return plan(TrainSpec.model_validate(spec | {"preprocessing": {"text": {"note": how}}}), COLUMNS, 80)


def trained(**more):
    return train(planned(**more), TABLE, data_digest="sha256:0")


@pytest.mark.parametrize("features", [["note"], ["hour", "note"], ["note", "hour", "city"]], ids=len)
def test_a_model_of_texts_survives_storage(features):
    blob = trained(features=features).blob
    model = decode(blob)
    assert encode(model) == blob == trained(features=features).blob
    rows = TABLE.slice(0, 9)
    together = model.predict(rows).probabilities
    assert (together.argmax(axis=1) == [place % 2 == 0 for place in range(9)]).all()  # law comes before sport
    for place in range(9):
        np.testing.assert_array_equal(model.predict(rows.slice(place, 1)).probabilities[0], together[place])
    assert model.nbytes > 250 * 6


def test_a_vocabulary_has_the_terms_of_training_rows_only():
    table = TABLE.set_column(0, "note", pa.array([*NOTES[:79], "unheard of"]))
    drawn = TrainingSet.read(planned(), table)
    preparation = drawn.prepare(np.arange(79))
    assert preparation.layout.names[-6:] == tuple(f"note: {word}" for word in sorted([*WORDS[0], *WORDS[1]]))
    assert "note: unheard" in drawn.prepare(np.arange(80)).layout.names


def test_rows_of_a_training_have_the_matrix_that_their_table_has():
    drawn = TrainingSet.read(planned(ngram_range=[1, 2]), TABLE)
    rows = np.arange(0, 80, 3)
    preparation = drawn.prepare(rows)
    trained_on = preparation.of(drawn.raw, rows).csr
    again = preparation.matrix(preparation.raw(TABLE)).csr[rows]
    np.testing.assert_array_equal(trained_on.toarray(), again.toarray())
    assert trained_on.shape[1] == preparation.layout.width == len(preparation.layout.names)
    assert (np.diff(trained_on.indices)[np.diff(trained_on.indptr).cumsum()[:-1] - 1] < 0).all()  # ascending in rows


def test_memory_follows_the_terms_of_documents():
    rng = np.random.default_rng(0)
    documents = [" ".join(f"w{word}" for word in rng.integers(0, 20_000, 8)) for _ in range(3000)]
    table = pa.table({"note": documents, "topic": ["a", "b"] * 1500})
    columns = [TableColumn("note", "text", 0, None), TableColumn("topic", "categorical", 0, 2)]
    spec = TrainSpec.model_validate(
        {"target": "topic", "algorithm": {"name": "logistic"}, "preprocessing": {"text": {"note": {}}}}
    )
    made = plan(spec, columns, 3000)
    drawn = TrainingSet.read(made, table)
    rows = drawn.prepare(np.arange(3000)).of(drawn.raw, np.arange(3000))
    assert rows.shape[1] > 10_000
    assert rows.csr.nnz <= 8 * 3000
    assert made.memory_bytes < 8 * rows.shape[0] * rows.shape[1]


def test_rows_without_known_terms_are_flagged():
    model = decode(trained(features=["note"]).blob)
    flags = model.predict(pa.table({"note": ["ball", "zebra", "", None, "zebra goal"]})).flags
    assert [(flag.text, flag.rows.tolist()) for flag in flags] == [("no_known_term:note", [1, 2, 3])]


def test_categories_can_be_texts():
    columns = [COLUMNS[0]._replace(kind="categorical", distinct=50), *COLUMNS[1:]]
    spec = planned().spec
    made = plan(spec, columns, 80)
    assert made.inputs[0].kind == "text"
    model = decode(train(made, TABLE, data_digest="sha256:0").blob)
    assert [column.kind for column in model.inputs] == ["numeric", "categorical", "text"]


def stored(**changes):
    document, arrays = safetensors_format.read(trained(features=["note"]).blob)
    assert document["format"] == TEXT_FORMAT
    arrays = {name: np.array(array) for name, array in arrays.items()}
    for name, change in changes.items():
        arrays[f"preparation.texts.0.{name}"] = change(arrays[f"preparation.texts.0.{name}"])
    return safetensors_format.write(document, arrays)


@pytest.mark.parametrize(
    "changes",
    [
        {"ends": lambda ends: ends[:-1]},
        {"ends": lambda ends: ends[::-1]},
        {"ends": lambda ends: ends + 1},
        {"idf": lambda idf: idf[1:]},
        {"idf": lambda idf: idf * np.nan},
        {"terms": lambda terms: terms[::-1]},
        {"terms": lambda terms: np.full_like(terms, 255)},
        {"terms": lambda terms: terms.astype(np.float64)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_vocabulary_that_does_not_fit_together_is_refused(changes):
    assert decode(stored())
    with pytest.raises(CorruptModel):
        decode(stored(**changes))


def test_raw_reads_a_text_once():
    raw = Raw.read(TABLE, planned(features=["note"]).inputs)
    assert raw.vocabularies[0].to_pylist() == sorted(set(NOTES))
