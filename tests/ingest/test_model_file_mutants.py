"""Two thousand damaged files of each format: refused in this service's words, or a model that predicts as its library.

No index of a damaged file leads a parser out of its arrays: no process ends, and each leaf is a number of the file.
"""

import json
import re

import numpy as np
import pytest

from app.base.errors import CorruptModel, ImportMismatch, ImportUnsupported, InvalidData
from app.ingest.model_file_child import read_model
from app.ml.models.import_check import check_probes
from app.ml.models.imported_model import Naming, imported
from app.ml.models.model import decode, encode
from tests.ingest.model_file_mutants import mutants, outcomes

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
pytest.importorskip("treelite")
MUTANTS = 2000
FOREIGN = re.compile(
    r"bad_alloc|Traceback|std::|\.cc|\.h:|Check failed|terminate|numpy|Error\b|pydantic", re.IGNORECASE
)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
X[:, 3] = RNG.integers(0, 40, 300)
X[RNG.random(X.shape) < 0.05] = np.nan
Y = np.nan_to_num(X[:, 0]) + (np.nan_to_num(X[:, 3]) % 3 == 1) * 2 > 0.5
ROWS = np.where(np.isnan(X), 0.0, X)


def lightgbm_text():
    data = lightgbm.Dataset(X, Y * 1, categorical_feature=[3])
    params = {"objective": "binary", "verbose": -1, "num_leaves": 5, "min_data_per_group": 5, "num_threads": 1}
    text = lightgbm.train(params, data, 3).model_to_string()
    return text.encode()


def xgboost_file(form, **params):
    matrix = xgboost.DMatrix(X, Y * 1.0, feature_types=["float"] * 3 + ["c"], enable_categorical=True, nthread=1)
    return bytes(
        xgboost.train({"max_depth": 3, "nthread": 1, "max_cat_to_onehot": 1} | params, matrix, 3).save_raw(form)
    )


def linear_booster():
    matrix = xgboost.DMatrix(ROWS, Y * 1.0, nthread=1)
    return bytes(xgboost.train({"booster": "gblinear", "nthread": 1}, matrix, 3).save_raw("json"))


def estimator(kind):
    from sklearn import linear_model, tree

    from valiant.fitted_estimator import fitted

    made = tree.DecisionTreeClassifier(max_depth=3) if kind == "trees" else linear_model.LogisticRegression()
    document = json.loads(fitted(made.fit(ROWS, Y)).content)
    for name in ("rows", "sums", "predictions"):
        document[name] = document[name][:20]  # the damage is to the model then, more often
    return json.dumps(document).encode()


def graph(_=None):
    from sklearn import ensemble

    skl2onnx = pytest.importorskip("skl2onnx")
    forest = ensemble.RandomForestClassifier(2, max_depth=3, random_state=0).fit(ROWS, Y * 1)
    types = [("X", skl2onnx.common.data_types.FloatTensorType([None, 4]))]
    return skl2onnx.to_onnx(forest, initial_types=types).SerializeToString()


def artifact(path):
    path.write_bytes(lightgbm_text())
    parsed = read_model("lightgbm", path)
    return encode(imported(parsed, Naming(None, None, None, "y"), {"data_digest": "", "libraries": {}}))


FORMATS = {
    "lightgbm": ("lightgbm", lambda _: lightgbm_text()),
    "xgboost json": ("xgboost", lambda _: xgboost_file("json", objective="binary:logistic")),
    "xgboost ubjson": ("xgboost", lambda _: xgboost_file("ubj")),
    "xgboost dart": ("xgboost", lambda _: xgboost_file("json", booster="dart", rate_drop=0.5)),
    "gblinear": ("xgboost", lambda _: linear_booster()),
    "scikit-learn trees": ("scikit-learn", lambda _: estimator("trees")),
    "scikit-learn weights": ("scikit-learn", lambda _: estimator("weights")),
    "onnx": ("onnx", graph),
    "artifact": ("valiant", artifact),
}


def refusal(error):
    texts = [error.detail, *(fault.detail for fault in error.faults)]
    foreign = [text for text in texts if FOREIGN.search(text or "")]
    return f"foreign words: {foreign}" if foreign else "refused"


def library(file_format, content):
    """Predictions of the library itself; None: it does not take the file, or there is none."""
    try:
        if file_format == "lightgbm":
            return lightgbm.Booster(model_str=content.decode()).predict(X, num_threads=1)
        if file_format == "xgboost":
            booster = xgboost.Booster({"nthread": 1})
            booster.load_model(bytearray(content))
            types = booster.feature_types
            matrix = xgboost.DMatrix(
                X, feature_types=types, enable_categorical=True, feature_names=booster.feature_names, nthread=1
            )
            return booster.predict(matrix)
    except (lightgbm.basic.LightGBMError, xgboost.core.XGBoostError, UnicodeDecodeError, ValueError):
        pass
    return None


def leaves_of(content, single):
    kind = np.float32 if single else np.float64
    numbers = re.findall(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", content)
    with np.errstate(over="ignore"):
        return {float(kind(number)) for number in numbers} | {0.0}


def reader(file_format, path):
    def read(content):
        path.write_bytes(content)
        try:
            if file_format == "valiant":
                model = decode(content, "The file")
                model.predict_raw(model.preparation.no_values)
                return "model"
            parsed = read_model(file_format, path)
            check_probes(parsed)
        except (InvalidData, ImportUnsupported, ImportMismatch, CorruptModel) as error:
            return refusal(error)
        if not np.isfinite(parsed.probes.sums[np.isfinite(parsed.probes.x).all(axis=1)]).all():
            return "sums that are not finite"
        single = file_format == "xgboost"
        if parsed.trees and content.startswith((b"tree", b'{"learner"')) and b"dart" not in content:
            strange = set(parsed.state.trees.values.ravel().tolist()) - leaves_of(content, single)
            if strange:
                return f"leaves that are not in the file: {sorted(strange)[:3]}"
        return "model"

    return read


def comparer(file_format, path):
    """The library may end its process on a file that is read here."""

    def compare(content):
        path.write_bytes(content)
        parsed = read_model(file_format, path)
        theirs = library(file_format, content) if parsed.algorithm == "imported_trees" else None
        if theirs is None or theirs.ndim > 1 or parsed.state.classes > 2:
            return "not compared"
        ours = predictions(parsed)
        return "same" if np.allclose(ours, theirs, rtol=1e-5, atol=1e-6, equal_nan=True) else f"other: {ours} {theirs}"

    return compare


def predictions(parsed):
    from app.ml.algorithms.imported_trees import predict

    x = X.copy()
    for j, column in enumerate(parsed.columns[: x.shape[1]]):
        if (levels := parsed.state.trees.levels[j]) and column.levels is not None:
            x[:, j] = np.where(np.isnan(x[:, j]), np.nan, np.where(x[:, j] < levels - 1, x[:, j], levels - 1))
    found = predict(parsed.params, parsed.state, x)
    return found[:, 1] if found.ndim == 2 else found


@pytest.mark.slow  # two thousand files
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_are_refused_or_predict_as_their_library(name, tmp_path):
    file_format, make = FORMATS[name]
    whole, read = make(tmp_path / "whole"), reader(file_format, tmp_path / "model")
    assert read(whole) == "model"
    found = list(outcomes([*mutants(whole, MUTANTS)], read))
    assert len(found) == MUTANTS
    wrong = [(outcome, content) for content, outcome in found if outcome not in {"refused", "model"}]
    for place, (_, content) in enumerate(wrong[:20]):
        (tmp_path / f"wrong{place}").write_bytes(content)
    assert not wrong, [outcome[-600:] for outcome, _ in wrong[:5]]
    assert sum(outcome == "refused" for _, outcome in found) > MUTANTS / 5
    if file_format in {"lightgbm", "xgboost"}:
        models, compare = (
            [content for content, outcome in found if outcome == "model"],
            comparer(file_format, tmp_path / "model"),
        )
        assert compare(whole) == (
            "not compared" if name == "gblinear" else "same"
        )  # what each process would load is loaded
        others = [each for each in outcomes(models, compare) if each[1].startswith("other")]
        for place, (content, _) in enumerate(others):
            (tmp_path / f"other{place}").write_bytes(content)
        assert not others, [outcome[-600:] for _, outcome in others[:5]]


@pytest.mark.parametrize("name", ["lightgbm", "xgboost ubjson"])
def test_some_damaged_files(name, tmp_path):
    file_format, make = FORMATS[name]
    read = reader(file_format, tmp_path / "model")
    found = [outcome for _, outcome in outcomes([*mutants(make(None), 40, seed=1)], read)]
    assert set(found) <= {"refused", "model"}, found
