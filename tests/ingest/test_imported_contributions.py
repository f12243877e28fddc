"""Contributions to imported trees beside those of LightGBM (in 64 bits) and of XGBoost (in 32)."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import NoContributions
from app.ingest import lightgbm_file, xgboost_file
from app.ml.models.contributions import contributions_of, demand_contributions
from app.ml.models.imported_model import Naming, imported
from app.ml.models.model import decode, encode
from app.ml.models.parsed_model import read, write

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
pytest.importorskip("treelite")

FEATURES, LEVELS = 5, 6


def rows(n, rng):
    """Numbers of 32 bits, one column with gaps, and the codes of a category."""
    x = rng.normal(size=(n, FEATURES)).astype(np.float32).astype(np.float64)
    x[rng.random(n) < 0.1, 1] = np.nan
    x[:, -1] = rng.integers(0, LEVELS, n)
    return x


def target(x, objective, rng):
    raw = x[:, 0] * x[:, 2] + np.nan_to_num(x[:, 1]) + (x[:, -1] == 2) + rng.normal(0, 0.5, len(x))
    if "multi" in objective:
        return np.digitize(raw, [-0.5, 0.8])
    return (raw > 0) * 1 if "binary" in objective else np.exp(raw) if "poisson" in objective else raw


def model_of(content, parse, folder):
    file = folder / "model"
    file.write_bytes(content)
    made = imported(read(write(parse(file))), Naming(None, None, None, "y"), {})
    return decode(encode(made))


def beside_lightgbm(objective, seed, folder, **further):
    rng = np.random.default_rng(seed)
    x, new = rows(400, rng), rows(50, rng)
    params = {"objective": objective, "verbose": -1, "seed": seed, "num_threads": 1, "min_data_per_group": 5} | further
    params |= {"num_class": 3} if "multi" in objective else {}
    data = lightgbm.Dataset(x, target(x, objective, rng), categorical_feature=[FEATURES - 1])
    booster = lightgbm.train(params, data, 15)
    model = model_of(booster.model_to_string().encode(), lightgbm_file.parse, folder)
    table = pa.table({
        column.name: pa.array(values, from_pandas=True) if column.levels is None
        else pa.array([str(int(code)) for code in values])
        for column, values in zip(model.inputs, new.T, strict=True)
    })  # fmt: skip
    found = contributions_of(model, model.preparation.raw(table))
    theirs = booster.predict(new, pred_contrib=True).reshape(len(new), -1, FEATURES + 1)
    np.testing.assert_allclose(found.values, theirs[:, :, :-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.tile(found.base, (len(new), 1)), theirs[:, :, -1], rtol=0, atol=1e-9)
    return found


def beside_xgboost(objective, seed, folder, **further):
    rng = np.random.default_rng(seed)
    x, new = rows(400, rng), rows(50, rng)
    params = {"objective": objective, "seed": seed, "nthread": 1} | further
    params |= {"num_class": 3} if "multi" in objective else {}
    booster = xgboost.train(params, xgboost.DMatrix(x, target(x, objective, rng)), 15)
    model = model_of(bytes(booster.save_raw("json")), xgboost_file.parse, folder)
    found = contributions_of(model, new)
    theirs = booster.predict(xgboost.DMatrix(new), pred_contribs=True).reshape(len(new), -1, FEATURES + 1)
    np.testing.assert_allclose(found.values, theirs[:, :, :-1], rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.tile(found.base, (len(new), 1)), theirs[:, :, -1], rtol=0, atol=1e-5)
    return found


def test_lightgbm(tmp_path):
    assert beside_lightgbm("regression", 1, tmp_path).unit == "target"
    assert beside_lightgbm("multiclass", 2, tmp_path, bagging_fraction=0.5, bagging_freq=1).scores == (0, 1, 2)


def test_xgboost(tmp_path):
    assert beside_xgboost("binary:logistic", 1, tmp_path).unit == "log_odds"
    assert beside_xgboost("multi:softprob", 2, tmp_path, subsample=0.5).scores == (0, 1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("objective", ["regression", "binary", "multiclass", "poisson"])
def test_forty_models_of_lightgbm(objective, seed, tmp_path):
    leaves = 3 + 9 * seed
    beside_lightgbm(objective, seed, tmp_path, num_leaves=leaves, min_data_in_leaf=1 + seed, bagging_fraction=0.7,
                    bagging_freq=seed % 2, max_depth=-1)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("objective", ["reg:squarederror", "binary:logistic", "multi:softprob", "count:poisson"])
def test_forty_models_of_xgboost(objective, seed, tmp_path):
    beside_xgboost(objective, seed, tmp_path, max_depth=2 + seed, subsample=1 - 0.04 * seed)


def test_a_file_without_numbers_of_rows_is_refused_by_name(tmp_path):
    rng = np.random.default_rng(3)
    x = rows(200, rng)
    booster = lightgbm.train({"verbose": -1, "num_threads": 1}, lightgbm.Dataset(x, x[:, 0]), 3)
    lines = booster.model_to_string().split("\n")
    kept = [line for line in lines if not line.startswith(("leaf_count", "internal_count", "tree_sizes"))]
    model = model_of("\n".join(kept).encode(), lightgbm_file.parse, tmp_path)
    with pytest.raises(NoContributions, match="no_covers"):
        demand_contributions(model)
