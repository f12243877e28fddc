"""Fits of rows whose matrix lies in a mapped file: the bytes of a fit of the same rows in memory."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.models.model import decode
from app.ml.training.planning import cost
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.prepared_rows import prepared_rows
from app.ml.training.train import train
from tests.ml.jobs.test_evaluate import sheet
from tests.ml.training.beyond_memory import BEYOND, plan_within
from workers.mapped_dataset import spooled_rows

ROWS = 900
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 3)).round(2)
SCORE = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=ROWS)
FITS = {
    "ridge": (Task.REGRESSION, {}),
    "linear": (Task.REGRESSION, {}),
    "lasso": (Task.REGRESSION, {}),
    "logistic": (Task.CLASSIFICATION, {"early_stopping": True}),
    "gradient_boosting": (Task.CLASSIFICATION, {"n_estimators": 3, "early_stopping": True}),
    "random_forest": (Task.REGRESSION, {"n_estimators": 2}),
    "decision_tree": (Task.CLASSIFICATION, {}),
    "generative_bayes": (Task.CLASSIFICATION, {}),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_of_mapped_rows_has_the_bytes_of_one_in_memory(name):
    task, params = FITS[name]
    y = SCORE if task is Task.REGRESSION else (np.digitize(SCORE, [-1.0, 1.0])).astype(float)
    weights = RNG.uniform(0.5, 2, ROWS)
    spans = [slice(0, 400), slice(400, 401), slice(401, ROWS)]
    parts = [Data.of(task, X[span], y[span], classes=3, weights=weights[span]) for span in spans]
    mapped = prepared_rows(iter(parts), parts[0], ROWS, spooled_rows)
    assert not mapped.x.flags.writeable
    assert not mapped.x.flags.owndata
    algorithm = find(name).algorithm
    whole = Data.of(task, X, y, classes=3, weights=weights)
    states = [algorithm.fit(algorithm.params(**params), rows, Context.of(7)).state for rows in (whole, mapped)]
    mine, theirs = (leaves(state) for state in states)
    assert mine == theirs


def leaves(state):
    """Bytes of all arrays within."""
    if isinstance(state, tuple):
        return [leaf for part in state for leaf in leaves(part)]
    return [np.asarray(state).tobytes()]


@pytest.fixture
def _small_parts(monkeypatch):
    monkeypatch.setattr(cost, "BATCH_CELLS", 300)
    monkeypatch.setattr(cost, "FEWEST", 50)


@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize(("name", "target", "metric"), [("ridge", "score", "r2"), ("logistic", "sign", "accuracy")])
def test_a_table_beyond_memory_is_fitted_whole(name, target, metric):
    rows = pa.table({f"x{j}": column for j, column in enumerate(X.T)} | {"score": SCORE})
    rows = rows.append_column("sign", pa.array(np.where(SCORE > 0, "plus", "minus").tolist()))
    weights = {"class_weight": "balanced"} if target == "sign" else {}
    requested = {"algorithm": {"name": name}, "target": target, "features": ["x0", "x1", "x2"], **weights}
    spec, columns = TrainSpec.model_validate(requested), sheet(rows).columns
    made = [
        train(plan_within(spec, columns, ROWS, memory), rows, data_digest="sha256:0", spool_rows=spooled_rows)
        for memory in (BEYOND, np.inf)
    ]
    assert any("in batches of about" in warning for warning in made[0].report.warnings)
    assert made[0].report.rows_train + made[0].report.rows_test == ROWS
    beyond, within = (next(one.value for one in each.report.test if one.name == metric) for each in made)
    assert beyond == pytest.approx(within, abs=0.05)
    beyond, within = (decode(each.blob).state.coef for each in made)
    np.testing.assert_allclose(beyond, within, rtol=0.1, atol=0.1)  # other rows are held out
