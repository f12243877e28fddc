"""Model files of other libraries: what this service makes of them beside the libraries themselves."""

import json

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidData
from app.ingest import lightgbm_file, ubjson, xgboost_file
from app.ml.algorithms.imported_trees import predict
from app.ml.models.import_check import check_probes
from app.ml.models.imported_model import Naming, imported
from app.ml.models.parsed_model import read, write

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
pytest.importorskip("treelite")

FEATURES, LEVELS = 6, 7
OBJECTIVES = {
    "lightgbm": ["regression", "regression_l1", "poisson", "tweedie", "binary", "multiclass", "multiclassova",
                 "cross_entropy"],
    "xgboost": ["reg:squarederror", "reg:logistic", "count:poisson", "reg:gamma", "binary:logistic", "binary:hinge",
                "multi:softprob", "rank:pairwise"],
}  # fmt: skip
MISSING = ["never", "in training", "later"]


def rows(n, rng, missing, *, categorical):
    x = rng.normal(size=(n, FEATURES)).astype(np.float32).astype(np.float64)
    x[:, 1] = np.round(x[:, 1])
    if categorical:
        x[:, -1] = rng.integers(0, LEVELS, n)
    if missing:
        x[rng.random(x.shape) < 0.1] = np.nan
    return x


def target(x, objective, rng):
    raw = np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) * (np.nan_to_num(x[:, -1]) % 2) + rng.normal(0, 0.5, len(x))
    if "multi" in objective:
        return np.digitize(raw, [-0.5, 0.5])
    if any(name in objective for name in ("binary", "logistic", "cross", "rank")):
        return (raw > 0) * 1
    return np.exp(raw) if any(name in objective for name in ("poisson", "gamma", "tweedie")) else raw


def grown_by_lightgbm(x, y, objective, count, seed, **further):
    columns = [FEATURES - 1] if further.pop("categorical") else []
    params = {"objective": objective, "verbose": -1, "seed": seed, "num_threads": 1, "min_data_per_group": 5} | further
    params |= {"num_class": 3} if "multi" in objective else {}
    booster = lightgbm.train(params, lightgbm.Dataset(x, y, categorical_feature=columns), count)
    return booster.model_to_string().encode(), booster.predict


def grown_by_xgboost(x, y, objective, count, seed, **further):
    types = ["float"] * (FEATURES - 1) + ["c" if further.pop("categorical") else "float"]

    def matrix(x, y=None):
        return xgboost.DMatrix(x, y, feature_types=types, enable_categorical=True)

    data = matrix(x, y)
    if "rank" in objective:
        data.set_group([len(x)])
    params = {"objective": objective, "seed": seed, "nthread": 1, "tree_method": "hist"} | further
    params |= {"num_class": 3} if "multi" in objective else {}
    booster = xgboost.train(params, data, count)
    form = ("json", "ubj")[seed % 2]
    return bytes(booster.save_raw(form)), lambda x: booster.predict(matrix(x))


LIBRARIES = {
    "lightgbm": (grown_by_lightgbm, lightgbm_file.parse, 1e-12),
    "xgboost": (grown_by_xgboost, xgboost_file.parse, 1e-6),
}


def table(model, x):
    """Rows as texts and numbers: a code is its text."""
    texts = [[None if np.isnan(code) else str(int(code)) for code in column] for column in x[:, -1:].T]
    columns = [*x.T[:-1], *texts] if model.inputs[-1].levels is not None else list(x.T)
    names = [column.name for column in model.inputs]
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in zip(names, columns, strict=True)})


def same(library, tmp_path, seed, objective, *, missing, categorical, count, n, **further):
    """Assert that n rows are predicted as by the library."""
    grow, parse, tolerance = LIBRARIES[library]
    rng = np.random.default_rng(seed)
    x = rows(400, rng, missing == "in training", categorical=categorical)
    content, theirs = grow(x, target(x, objective, rng), objective, count, seed, categorical=categorical, **further)
    file = tmp_path / "model"
    file.write_bytes(content)
    parsed = read(write(parse(file)))
    check_probes(parsed)
    new = rows(n, rng, missing != "never", categorical=categorical)
    given = np.nan_to_num(new) if missing == "never" else new
    model = imported(parsed, Naming(None, None, None, "y"), {})
    found = model.predict(table(model, given))
    ours, theirs = found.values if found.probabilities is None else found.probabilities, theirs(given)
    if ours.ndim == 2 and theirs.ndim == 1:
        ours = ours[:, 1]
    reach = tolerance * np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=reach)
    if ours.ndim == 2:
        assert np.array_equal(ours.argmax(axis=1), theirs.argmax(axis=1))
    return parsed


FEW = [
    ("lightgbm", "multiclass", {"categorical": True}),
    ("lightgbm", "regression", {"categorical": False, "boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1}),
    ("xgboost", "binary:logistic", {"categorical": True}),
    ("xgboost", "reg:squarederror", {"categorical": False, "booster": "dart", "rate_drop": 0.3}),
]


@pytest.mark.parametrize(("library", "objective", "further"), FEW, ids=[one[1] for one in FEW])
def test_a_few_models_predict_as_their_libraries(tmp_path, library, objective, further):
    same(library, tmp_path, 1, objective, missing="in training", count=20, n=2000, **further)


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("number", range(40))
def test_many_models_predict_as_their_libraries(tmp_path, library, number):
    """Objectives, missing values, categories and 1 to 500 trees, on 10,000 rows each."""
    objective = OBJECTIVES[library][number % 8]
    count = [1, 7, 40, 150, 500][number // 8]
    how = {"missing": MISSING[number % 3], "categorical": number % 2 == 1, "count": count, "n": 10_000}
    same(library, tmp_path, number, objective, **how)


def test_zeros_and_gaps_of_a_model_without_missing_values(tmp_path):
    """LightGBM with use_missing=False compares NaN as 0."""
    parsed = same(
        "lightgbm", tmp_path, 3, "regression", missing="later", categorical=False, count=5, n=500, use_missing=False
    )
    assert parsed.params.arithmetic == "float64"


def test_a_file_that_was_cut_off_is_refused_or_the_same_model(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    booster = lightgbm.train({"verbose": -1, "num_leaves": 4}, lightgbm.Dataset(x, x[:, 0]), 6)
    (tmp_path / "model").write_text(booster.model_to_string(num_iteration=4))
    whole, same = lightgbm_file.parse(tmp_path / "model"), 0
    content = (tmp_path / "model").read_bytes()
    for size in range(100, len(content), 41):
        (tmp_path / "model").write_bytes(content[:size])
        try:
            same += repr(lightgbm_file.parse(tmp_path / "model")) == repr(whole)
        except InvalidData:
            continue
        assert size > content.index(b"end of trees")
    assert same > 0


def test_levels_that_the_file_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(
        {"a": rng.normal(size=300), "c": rng.choice(["x", "y", "zz"], 300), "n": rng.choice([5, 7], 300)}
    )
    table = table.astype({"c": "category", "n": "category"})
    y = table["a"] + (table["c"] == "y") * 2 + (table["n"] == 7)
    params = {"verbose": -1, "min_data_per_group": 5}
    texts = lightgbm.train(params, lightgbm.Dataset(table, y), 3).model_to_string().encode()
    booster = xgboost.train({"max_depth": 3}, xgboost.DMatrix(table, y, enable_categorical=True), 3)
    files = [
        (lightgbm_file.parse, texts),
        *((xgboost_file.parse, bytes(booster.save_raw(form))) for form in ("json", "ubj")),
    ]
    for parse, content in files:
        (tmp_path / "model").write_bytes(content)
        parsed = parse(tmp_path / "model")
        check_probes(parsed)
        found = [(column.name, column.levels, column.source_kind) for column in parsed.columns]
        assert found == [("a", None, None), ("c", ("x", "y", "zz"), None), ("n", ("5", "7"), "numeric")]


def test_an_objective_that_is_not_stated_gives_raw_sums_and_a_warning(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    own = lambda p, data: (p - data.get_label(), np.ones(len(p)))  # noqa: E731  as lightgbm wants it
    booster = lightgbm.train({"objective": own, "verbose": -1}, lightgbm.Dataset(x, x[:, 0]), 3)
    (tmp_path / "model").write_text(booster.model_to_string())
    parsed = lightgbm_file.parse(tmp_path / "model")
    assert parsed.params.transform == "identity"
    assert "raw_margin" in parsed.warnings[0]
    assert np.array_equal(predict(parsed.params, parsed.state, x), booster.predict(x))


def test_ubjson_is_the_document_that_json_is():
    x = np.random.default_rng(0).normal(size=(50, 2))
    booster = xgboost.train({"max_depth": 2}, xgboost.DMatrix(x, x[:, 0], feature_names=["ä", "b"]), 2)
    binary, text = (ubjson.parse(bytes(booster.save_raw("ubj"))), json.loads(booster.save_raw("json")))
    assert binary["learner"]["feature_names"] == text["learner"]["feature_names"] == ["ä", "b"]
    ours, theirs = (one["learner"]["gradient_booster"]["model"]["trees"][1] for one in (binary, text))
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        if name in {"tree_param", "id"}:
            assert ours[name] == values
        else:
            assert np.array_equal(np.array(ours[name], np.float32), np.array(values, np.float32)), name


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"{i\x01ai\x05i\x01b[i\x01TFZ]}", {"a": 5, "b": [1, True, False, None]}),
        (b"[#i\x02Si\x01xCy", ["x", "y"]),
        (b"{$i#i\x01i\x01a\x07", {"a": 7}),
        (b"D?\xf8\0\0\0\0\0\0", 1.5),
    ],
)
def test_values_of_ubjson(content, value):
    assert ubjson.parse(content) == value


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[$i",
        b"[#L\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"[$d#i\xff",
        b"Si\x05ab",
        b"?",
        b"[" * 100,
        b"Si\x01\xff",
    ],
)
def test_damaged_ubjson_is_refused(content):
    with pytest.raises(InvalidData):
        ubjson.parse(content)
