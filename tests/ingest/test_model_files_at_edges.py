"""Every family of boosted trees beside its own library, on the numbers where two readings of a tree part.

The rows hold thresholds, the numbers beside them with 32 and 64 bits, zeros of both signs, the smallest numbers, those
that LightGBM takes for zero, and the largest: the reference is the library, which shares no code with what is tested.
"""

import json
import re
from contextlib import nullcontext

import numpy as np
import pytest

from app.base.errors import ImportUnsupported, InvalidData, InvalidRequest
from app.ingest.model_file_child import read_model
from app.ml.algorithms import imported_linear, imported_trees
from app.ml.contract.model_file_options import ModelFileOptions
from app.ml.models.import_check import check_probes
from app.ml.models.imported_model import ImportedInput, Naming, imported

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
pytest.importorskip("treelite")

ZERO = float(np.float32(1e-35))
SPECIAL = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1e-45,
    ZERO,
    -ZERO,
    np.nextafter(ZERO, 1),
    np.nextafter(-ZERO, -1),
    1e-36,
    -1e-36,
]
LARGEST = {"lightgbm": [1e308, -1e308, np.inf, -np.inf, 1e39], "xgboost": [3.4e38, -3.4e38]}
FAMILIES = {
    "lightgbm": {
        "gbdt": {},
        "dart": {"boosting": "dart", "drop_rate": 0.5},
        "rf": {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1},
        "goss": {"data_sample_strategy": "goss"},
        "without missing values": {"use_missing": False},
        "binary": {"objective": "binary", "sigmoid": 0.7},
        "multiclass": {"objective": "multiclass", "num_class": 3},
        "one against rest": {"objective": "multiclassova", "num_class": 3, "sigmoid": 1.3},
        "poisson": {"objective": "poisson"},
        "square roots": {"objective": "regression", "reg_sqrt": True},
        "entropy": {"objective": "cross_entropy"},
    },
    "xgboost": {
        "gbtree": {},
        "dart": {"booster": "dart", "rate_drop": 0.5},
        "gblinear": {"booster": "gblinear"},
        "base score": {"base_score": -3.25},
        "exact": {"tree_method": "exact"},
        "forest": {"num_parallel_tree": 3, "subsample": 0.5},
        "logistic": {"objective": "binary:logistic", "base_score": 0.2},
        "hinge": {"objective": "binary:hinge"},
        "softprob": {"objective": "multi:softprob", "num_class": 3},
        "poisson": {"objective": "count:poisson"},
        "ranks": {"objective": "rank:pairwise"},
    },
}
CASES = [(library, name) for library, families in FAMILIES.items() for name in families]
SOON = {("lightgbm", "gbdt"), ("lightgbm", "one against rest"), ("xgboost", "softprob"), ("xgboost", "gblinear")}


def grown(library, params, x, y):
    """The file, and the library's own predictions."""
    if library == "lightgbm":
        params = {"objective": "regression", "verbose": -1, "num_leaves": 6, "num_threads": 1, "seed": 1} | params
        booster = lightgbm.train(params, lightgbm.Dataset(x, y), 6)
        return booster.model_to_string().encode(), booster.predict
    matrix = xgboost.DMatrix(x, y)
    if params.get("objective", "").startswith("rank"):
        matrix.set_group([len(x)])
    booster = xgboost.train({"max_depth": 4, "nthread": 1, "seed": 1} | params, matrix, 6)
    return bytes(booster.save_raw("ubj")), lambda rows: booster.predict(xgboost.DMatrix(rows))


def edges(library, parsed, columns, rng):
    """(n, columns) all of these numbers in every column, among others of them."""
    bounds = parsed.state.trees.threshold if parsed.trees else rng.normal(size=20)
    bounds = bounds[np.isfinite(bounds)]
    single = bounds.astype(np.float32)
    near = [bounds, single, *(np.nextafter(bounds, end) for end in (-np.inf, np.inf))]
    near += [np.nextafter(single, np.float32(end)).astype(np.float64) for end in (-np.inf, np.inf)]
    values = np.concatenate([*near, SPECIAL, LARGEST[library] if parsed.trees else [], [np.nan]])
    values = values[(np.abs(values) < 3.41e38) | np.isnan(values)] if library == "xgboost" else values
    return np.stack([rng.permutation(np.resize(values, 3 * values.size)) for _ in range(columns)], axis=1)


@pytest.mark.parametrize(
    ("library", "name"), [pytest.param(*case, marks=[] if case in SOON else pytest.mark.slow) for case in CASES]
)
def test_a_family_predicts_as_its_library_at_every_edge(library, name, tmp_path):
    params, rng = FAMILIES[library][name], np.random.default_rng(3)
    x = rng.normal(size=(300, 3)) * (rng.random((300, 3)) < 0.6)  # zeros have bins of their own in LightGBM
    x[rng.random(x.shape) < 0.05] = np.nan
    raw = np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1] > 0) + rng.normal(0, 0.2, 300)
    objective = params.get("objective", "")
    y = np.exp(raw / 4) if "poisson" in objective else np.digitize(raw, [-0.2, 0.5]) if "num_class" in params else raw
    y = (raw > 0.3) * 1.0 if re.search("binary|entropy|rank", objective) else y
    content, theirs = grown(library, params, x, y)
    (tmp_path / "model").write_bytes(content)
    parsed = read_model(library, tmp_path / "model")
    check_probes(parsed)
    rows = edges(library, parsed, 3, rng)
    module = imported_trees if parsed.trees else imported_linear
    ours = module.predict(parsed.params, parsed.state, rows if parsed.trees else np.nan_to_num(rows, nan=0.0))
    expected = np.asarray(theirs(rows), np.float64)
    if ours.ndim > expected.ndim:
        ours = ours[:, 1]
    tolerance = 1e-12 if library == "lightgbm" else 2e-6
    np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance * np.nanmax(np.abs(expected)))


def text(**changes):
    """A small model of LightGBM, with other fields of its tree."""
    tree = {
        "num_leaves": "3", "num_cat": "1", "split_feature": "0 1", "threshold": "0.5 0", "decision_type": "2 1",
        "left_child": "-1 -2", "right_child": "1 -3", "leaf_value": "-1 1 2", "cat_boundaries": "0 1",
        "cat_threshold": "4",
    }  # fmt: skip
    head = {"num_class": "1", "num_tree_per_iteration": "1", "max_feature_idx": "1", "objective": "regression",
            "feature_names": "a b", "feature_infos": "[0:1] 0:1:2"}  # fmt: skip
    head |= {name: value for name, value in changes.items() if name in head}
    tree |= {name: value for name, value in changes.items() if name not in head}
    lines = ["tree", *(f"{name}={value}" for name, value in head.items()), "", "Tree=0"]
    return "\n".join([*lines, *(f"{name}={value}" for name, value in tree.items()), "", "end of trees", ""])


DAMAGED = {
    "a child before the first leaf": text(left_child="-13 -2"),
    "a child after the last node": text(right_child="7 -3"),
    "a circle": text(left_child="0 -2"),
    "two parents": text(left_child="-1 -1"),
    "a column that is not there": text(split_feature="0 2"),
    "a column before the first": text(split_feature="0 -1"),
    "categories that are not there": text(threshold="0.5 1"),
    "half of a subset": text(threshold="0.5 0.5"),
    "words beyond the last": text(cat_boundaries="0 9"),
    "words that go back": text(num_cat="2", cat_boundaries="0 3 1", cat_threshold="4"),
    "too many leaves claimed": text(num_leaves="1000000000"),
    "too few thresholds": text(threshold="0.5"),
    "three million thresholds": text(threshold=" ".join(["0"] * 3_000_000)),
    "a threshold that is no number": text(threshold="nan 0"),
    "a leaf that is infinite": text(leaf_value="-1 inf 2"),
    "a number with a letter": text(leaf_value="-1 1 2x"),
    "a name with NUL": text(feature_names="a\0 b"),
    "a column more": text(max_feature_idx="2"),
    "a billion columns": text(max_feature_idx="999999999"),
    "a million classes": text(num_class="1000000"),
    "no trees": re.sub(r"(?s)Tree=0.*?(?=end of trees)", "", text()),
    "a line that is there twice": text().replace("num_cat=1", "num_cat=1\nnum_cat=1"),
    "a missing kind that does not exist": text(decision_type="14 1"),
    "trees of other sizes": text().replace("\n\nTree=0", "\ntree_sizes=0\n\nTree=0"),
    "an objective of no library": text(objective="regression\x1b"),
}


def test_the_small_model_is_whole(tmp_path):
    (tmp_path / "model").write_text(text())
    assert read_model("lightgbm", tmp_path / "model").state.trees.values.ravel().tolist() == [-1, 1, 2]


@pytest.mark.parametrize("name", DAMAGED)
def test_an_index_that_leads_nowhere_is_refused_before_a_parser_sees_it(name, tmp_path, monkeypatch):
    import treelite

    monkeypatch.setattr(treelite.frontend, "load_lightgbm_model", lambda _: pytest.fail("the parser saw it"))
    (tmp_path / "model").write_text(DAMAGED[name])
    with pytest.raises(InvalidData) as refused:
        read_model("lightgbm", tmp_path / "model")
    assert refused.value.faults[0].code == "damaged_file"


def test_a_line_after_the_last_tree_is_none_of_it(tmp_path):
    (tmp_path / "model").write_text(text() + "\nleaf_value=7 8 9\nleft_child=-99 -99\n")
    assert read_model("lightgbm", tmp_path / "model").state.trees.values.ravel().tolist() == [-1, 1, 2]


def test_leaves_whose_sum_is_not_finite_are_refused_by_name(tmp_path):
    (tmp_path / "model").write_text(text(leaf_value="1.7e308 1 2").replace("end of trees", "").rstrip() + "\n")
    whole = text(leaf_value="1.7e308 1 2")
    tree = whole[whole.index("Tree=0") : whole.index("end of trees")]
    (tmp_path / "model").write_text(whole.replace("end of trees", tree.replace("Tree=0", "Tree=1") + "end of trees"))
    with pytest.raises(ImportUnsupported) as refused:
        read_model("lightgbm", tmp_path / "model")
    assert refused.value.faults[0].code == "overflow"


def test_trees_with_vectors_in_their_leaves_are_refused_by_name(tmp_path):
    x = np.random.default_rng(0).normal(size=(100, 2))
    for strategy in ("multi_output_tree", "one_output_per_tree"):
        booster = xgboost.train({"multi_strategy": strategy, "tree_method": "hist"}, xgboost.DMatrix(x, x), 2)
        booster.save_model(tmp_path / "model.json")
        with pytest.raises(ImportUnsupported) as refused:
            read_model("xgboost", tmp_path / "model.json")
        assert refused.value.faults[0].code == "several_outputs"


def test_rounds_of_an_early_stopped_booster(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    y = (x[:, 0] > 0) * 1 + rng.normal(0, 0.9, 200)
    split = [(xgboost.DMatrix(x[:100], y[:100]), "valid")]
    booster = xgboost.train(
        {"nthread": 1, "max_depth": 5}, xgboost.DMatrix(x[100:], y[100:]), 60, split, early_stopping_rounds=5,
        verbose_eval=False,
    )  # fmt: skip
    booster.save_model(tmp_path / "model.ubj")
    best, rows = booster.best_iteration + 1, xgboost.DMatrix(x)
    whole = read_model("xgboost", tmp_path / "model.ubj")
    assert f"All {booster.num_boosted_rounds()} trees of the file are used" in whole.warnings[0]
    assert f"iterations: {best}" in whole.warnings[0]
    expected = {(0, booster.num_boosted_rounds()): whole}
    for options in (ModelFileOptions(best), ModelFileOptions(best=True)):
        parsed = read_model("xgboost", tmp_path / "model.ubj", options)
        assert f"{best} of the" in parsed.warnings[0]
        expected[0, best] = parsed
        for rounds, model in expected.items():
            found = imported_trees.predict(model.params, model.state, x)
            np.testing.assert_allclose(found, booster.predict(rows, iteration_range=rounds), rtol=1e-6)


LEVELS = ["x", "yé", "zz"]


@pytest.fixture(scope="module")
def accented(tmp_path_factory):
    """A file with a category beyond ASCII, the table it was made of, and XGBoost's own predictions."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"a": rng.normal(size=300), "c": pandas.Categorical(rng.choice(LEVELS, 300), LEVELS)})
    y = table["a"] + (table["c"] == "zz") * 2.0 + (table["c"] == "x")
    matrix = xgboost.DMatrix(table, y, enable_categorical=True)
    booster = xgboost.train({"max_depth": 3, "nthread": 1}, matrix, 4)
    path = tmp_path_factory.mktemp("accented") / "model.ubj"
    booster.save_model(path)
    return path, table, booster.predict(matrix)


def naming(*levels):
    inputs = [ImportedInput(name="a"), ImportedInput(name="c", kind="categorical", levels=list(levels) or None)]
    return Naming(inputs, None, None, "y")


def test_names_that_xgboost_cut_wrongly_come_from_the_request(accented):
    import pyarrow as pa

    path, table, theirs = accented
    parsed = read_model("xgboost", path)
    for wrong in (Naming(None, None, None, "y"), naming(), naming("x", "yé")):
        with pytest.raises(InvalidRequest) as refused:
            imported(parsed, wrong, {})
        assert refused.value.faults[0].pointer in {"/inputs", "/inputs/1/levels"}
        assert refused.value.faults[0].code in {"required", "wrong_count"}
    check_probes(parsed)
    model = imported(parsed, naming(*LEVELS), {})
    found = model.predict(pa.table({"a": table["a"], "c": table["c"].astype(str)}))
    np.testing.assert_allclose(found.values, theirs, rtol=1e-6)


def test_categories_of_a_column_of_numbers_are_refused(tmp_path):
    codes = np.arange(40.0)[:, None] % 4
    matrix = xgboost.DMatrix(codes, codes[:, 0] == 1, feature_types=["c"], enable_categorical=True)
    document = json.loads(xgboost.train({}, matrix, 2).save_raw("json"))
    for types, refused in ((["c"], False), ([], False), (["float"], True), (["c", "c"], True)):
        document["learner"]["feature_types"] = types
        (tmp_path / "model").write_text(json.dumps(document))
        with pytest.raises(InvalidData) if refused else nullcontext():
            read_model("xgboost", tmp_path / "model")


def changed(document, name, place, value):
    found = json.loads(json.dumps(document))
    tree = found["learner"]["gradient_booster"]["model"]["trees"][0]
    tree[name][place] = value
    return json.dumps(found)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("left_children", 0, -13), ("right_children", 0, 99), ("left_children", 1, 0), ("split_indices", 0, 2),
        ("split_indices", 0, -1), ("split_conditions", 0, float("nan")), ("default_left", 0, 7),
        ("split_type", 0, 1), ("left_children", 0, 1.5), ("left_children", 0, "1"),
    ],
)  # fmt: skip
def test_an_index_of_xgboost_that_leads_nowhere_is_refused_before_a_parser_sees_it(
    name, place, value, tmp_path, monkeypatch
):
    import treelite

    x = np.random.default_rng(0).normal(size=(60, 2))
    document = json.loads(xgboost.train({"max_depth": 2}, xgboost.DMatrix(x, x[:, 0]), 2).save_raw("json"))
    monkeypatch.setattr(treelite.frontend, "from_xgboost_json", lambda _: pytest.fail("the parser saw it"))
    (tmp_path / "model").write_text(changed(document, name, place, value))
    with pytest.raises(InvalidData) as refused:
        read_model("xgboost", tmp_path / "model")
    assert refused.value.faults[0].code == "damaged_file"
