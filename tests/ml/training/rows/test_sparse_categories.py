"""Wide tables of categories are fitted as sparse rows, with the result, the report and the options of an array."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.catalogue.algorithm_files import find
from app.ml.contract.columns import TableColumn
from app.ml.contract.sparse_rows import SparseRows, dense
from app.ml.models.model import decode
from app.ml.preparation.preparation import Preparation
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.train import train

ROWS, LEVELS = 6_000, 60
FITS = {
    "ridge": ("price", {"name": "ridge"}, 1e-9),
    "ridge of classes": ("plan", {"name": "ridge"}, 1e-9),
    "logistic": ("plan", {"name": "logistic"}, 1e-6),
    "linear_sgd": ("plan", {"name": "linear_sgd"}, 1e-9),
    "lasso": ("price", {"name": "lasso", "l1": 0.01}, 1e-7),
    "lasso by folds": ("price", {"name": "lasso", "selection": "one_standard_error"}, 1e-5),
}
"""Target, algorithm, and the largest difference of predictions: of `logistic` that of its tolerance."""


def drawn(rows=ROWS):
    """Four columns of 60 categories, the first with gaps, and two of numbers far from 0."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, LEVELS, (rows, 4))
    numbers = np.array([1e3, -5.0]) + rng.normal(size=(rows, 2))
    effects = rng.normal(size=(4, LEVELS))
    price = effects[np.arange(4), codes].sum(axis=1) + numbers.sum(axis=1) + 0.3 * rng.normal(size=rows)
    columns = {f"c{j}": pa.array([f"v{code:02}" for code in codes[:, j]]) for j in range(4)}
    columns["c0"] = pa.array(columns["c0"].to_pylist(), mask=rng.random(rows) < 0.1)
    columns |= {f"x{j}": pa.array(numbers[:, j]) for j in range(2)}
    return pa.table(columns | {"price": price, "plan": np.where(price > np.median(price), "a", "b")})


@pytest.fixture(scope="module")
def table():
    return drawn()


def planned(target, algorithm, rows=ROWS, **spec):
    columns = [TableColumn(f"c{j}", "categorical", 600 if j == 0 else 0, LEVELS) for j in range(4)]
    columns += [TableColumn(f"x{j}", "numeric", 0, None) for j in range(2)]
    columns.append(TableColumn("price", "numeric", 0, None))
    columns.append(TableColumn("plan", "categorical", 0, 2))
    other = {"price", "plan"} - {target}
    features = [column.name for column in columns if column.name not in {target, *other}]
    return plan(
        TrainSpec.model_validate({"target": target, "features": features, "algorithm": algorithm, **spec}),
        columns,
        rows,
    )


def matrix_of(target, algorithm, table, rows=ROWS):
    training_set = TrainingSet.read(planned(target, algorithm, rows), table.slice(0, rows))
    numbers = np.arange(rows)
    return training_set.data(training_set.prepare(numbers), numbers).x


@pytest.mark.parametrize("name", FITS)
def test_the_rows_are_sparse_and_hold_the_numbers_of_the_array(name, table, monkeypatch):
    target, algorithm, _ = FITS[name]
    found = matrix_of(target, algorithm, table)
    assert isinstance(found, SparseRows)
    assert found.csr.nnz <= 6 * ROWS
    monkeypatch.setattr(Preparation, "mostly_zero", lambda *_: False)
    assert (matrix_of(target, algorithm, table) == dense(found)).all()


@pytest.mark.parametrize(
    ("algorithm", "rows"),
    [
        ({"name": "ridge"}, 2_000),
        ({"name": "ridge", "selection": "generalised_cross_validation"}, ROWS),
        ({"name": "ridge", "penalise_intercept": True}, ROWS),
        ({"name": "ridge", "l2": 0}, ROWS),
        ({"name": "linear_sgd", "solver": "online"}, ROWS),
        ({"name": "linear"}, ROWS),
    ],
    ids=["few rows", "path", "pulled intercept", "no penalty", "online", "not taken"],
)
def test_rows_are_an_array_where_that_is_quicker_or_an_option_needs_it(algorithm, rows, table):
    assert isinstance(matrix_of("price", algorithm, table, rows), np.ndarray)


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_model_and_report_are_those_of_an_array(name, table, monkeypatch):
    target, algorithm, tolerance = FITS[name]
    sparse = train(planned(target, algorithm), table, data_digest="sha256:0")
    monkeypatch.setattr(Preparation, "mostly_zero", lambda *_: False)
    plain = train(planned(target, algorithm), table, data_digest="sha256:0")
    models = [decode(made.blob) for made in (sparse, plain)]
    linear = find(algorithm["name"]).algorithm.linear
    coefs = [linear(model.state).coef for model in models]
    np.testing.assert_allclose(coefs[0], coefs[1], rtol=0, atol=tolerance * np.abs(coefs[1]).max())
    raw = models[0].preparation.raw(table.slice(0, 500))
    predicted = [model.algorithm.predict(model.params, model.state, model.preparation.matrix(raw)) for model in models]
    np.testing.assert_allclose(*predicted, rtol=0, atol=tolerance * np.abs(predicted[1]).max())
    ours, theirs = (made.report.model_dump() for made in (sparse, plain))
    assert {key for key, value in ours.items() if value is not None} == {
        key for key, value in theirs.items() if value is not None
    }
    assert ours["evaluation"].keys() == theirs["evaluation"].keys() if "evaluation" in ours else True
