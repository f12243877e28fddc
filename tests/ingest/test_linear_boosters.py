"""Linear models of XGBoost, beside XGBoost itself."""

import json

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import ImportUnsupported, InvalidData
from app.ingest import xgboost_file
from app.ml.models.import_check import check_probes
from app.ml.models.imported_model import Naming, imported
from app.ml.models.parsed_model import read, write

xgboost = pytest.importorskip("xgboost")
OBJECTIVES = ["reg:squarederror", "reg:logistic", "count:poisson", "reg:gamma", "binary:logistic", "binary:hinge",
              "multi:softprob", "reg:absoluteerror"]  # fmt: skip
FEATURES, TOLERANCE = 5, 1e-6


def boosted(objective, seed, rounds=10):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, FEATURES)).astype(np.float32)
    raw = x @ rng.normal(size=FEATURES) / 2 + rng.normal(0, 0.3, 300)
    y = {"multi": np.digitize(raw, [-0.5, 0.5]), "count": rng.poisson(np.exp(raw)), "binary": raw > 0}.get(
        objective.partition(":")[0], np.exp(raw) if objective == "reg:gamma" else 1 / (1 + np.exp(-raw))
    )
    params = {"booster": "gblinear", "objective": objective, "nthread": 1, "lambda": 0.1, "seed": seed}
    params |= {"num_class": 3} if "multi" in objective else {}
    return xgboost.train(params, xgboost.DMatrix(x, y), rounds)


def compared(tmp_path, objective, seed, n):
    booster, rng = boosted(objective, seed), np.random.default_rng(seed + 1)
    (tmp_path / "model").write_bytes(bytes(booster.save_raw(("json", "ubj")[seed % 2])))
    parsed = read(write(xgboost_file.parse(tmp_path / "model")))
    check_probes(parsed)
    rows = rng.normal(size=(n, FEATURES)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    model = imported(parsed, Naming(None, None, None, "y"), {})
    table = pa.table({f"f{j}": pa.array(rows[:, j].astype(np.float64), from_pandas=True) for j in range(FEATURES)})
    found, theirs = model.predict(table), booster.predict(xgboost.DMatrix(rows))
    ours = found.values if found.probabilities is None else found.probabilities
    if ours.ndim == 2 and theirs.ndim == 1:
        ours = ours[:, 1]
    np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE * np.abs(theirs).max())
    if ours.ndim == 2:
        assert np.array_equal(ours.argmax(axis=1), theirs.argmax(axis=1))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_sums_and_transforms_are_those_of_xgboost(tmp_path, objective):
    compared(tmp_path, objective, 1, 500)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(40))
def test_many_models_predict_as_xgboost(tmp_path, number):
    compared(tmp_path, OBJECTIVES[number % 8], number, 10_000)


def changed(**fields):
    """The document of a model with some fields of its learner replaced."""
    found = json.loads(boosted("reg:squarederror", 0, 2).save_raw("json"))
    for path, value in fields.items():
        *way, last = path.split("__")
        part = found["learner"]
        for name in way:
            part = part[name]
        part[last] = value
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    "fields",
    [
        {"gradient_booster__model__weights": [1.0, 2.0]},
        {"gradient_booster__model__weights": [1.0] * FEATURES + [float("nan")]},
        {"gradient_booster__model__weights": "none"},
        {"gradient_booster__model": {}},
        {"learner_model_param__num_feature": "0"},
        {"learner_model_param__num_feature": "99999999"},
        {"learner_model_param__num_class": "3"},
        {"objective__name": "multi:softprob"},
        {"learner_model_param__base_score": "[]"},
        {"learner_model_param__base_score": "[1E999]"},
        {"feature_names": ["a", "a", "b", "c", "d"]},
        {"feature_names": ["a"]},
    ],
    ids=str,
)
def test_damaged_documents_are_refused(tmp_path, fields):
    (tmp_path / "model").write_bytes(changed(**fields))
    with pytest.raises(InvalidData):
        xgboost_file.parse(tmp_path / "model")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"objective__name": "survival:aft"}, "survival:aft"),
        ({"learner_model_param__num_target": "2"}, "several_outputs"),
        ({"gradient_booster__name": "gbnothing"}, "gbnothing"),
    ],
)
def test_models_that_would_be_predicted_otherwise_are_refused_by_name(tmp_path, fields, code):
    (tmp_path / "model").write_bytes(changed(**fields))
    with pytest.raises(ImportUnsupported) as refused:
        xgboost_file.parse(tmp_path / "model")
    assert refused.value.faults[0].code == code
