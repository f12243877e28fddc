"""Fits that read a table in blocks: the same model as with all rows in memory."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.algorithms.gmm import log_density
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Context, Data, StreamedRows, Task
from app.ml.contract.columns import TableColumn
from app.ml.contract.streamed_rows import Block
from app.ml.models.model import decode
from app.ml.training.planning import cost
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.training.beyond_memory import plan_within as plan

ROWS = 6000


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """So that few rows make many blocks."""
    monkeypatch.setattr(cost, "BATCH_CELLS", 3000)
    monkeypatch.setattr(cost, "FEWEST", 100)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 4)) * [1, 5, 0.1, 2] + rng.integers(0, 3, (ROWS, 1)) * [6, 20, 0, -9] + [0, 1e4, 0, 3]
    a = pa.array(x[:, 0], mask=np.arange(ROWS) % 11 == 0)
    town = np.array(["Bonn", "Trier"])[rng.integers(0, 2, ROWS)]
    weight = rng.uniform(0.5, 2, ROWS)
    return pa.table({"a": a, "b": x[:, 1], "c": x[:, 2], "d": x[:, 3], "town": town, "weight": weight})


def planned(table, memory_bytes, name, params, **more):
    columns = [
        TableColumn(column, "categorical" if cells.type == pa.string() else "numeric", cells.null_count, 1000)
        for column, cells in zip(table.column_names, table.columns, strict=True)
    ]
    requested = {"algorithm": {"name": name, **params}, "features": ["a", "b", "c", "d"]} | more
    return plan(TrainSpec.model_validate(requested), columns, table.num_rows, memory_bytes)


def run(table, memory_bytes, name, more=None, **params):
    made = planned(table, memory_bytes, name, params, **(more or {}))
    assert (made.batch_rows is not None) == (memory_bytes == 1)
    return train(made, table, data_digest="sha256:0")


def models(table, name, more=None, **params):
    """Trained in blocks, and in memory."""
    return [decode(run(table, memory, name, more, **params).blob) for memory in (1, np.inf)]


@pytest.mark.parametrize("more", [{}, {"weights": "weight"}, {"preprocessing": {"scaling": "minmax"}}])
def test_principal_components_are_those_of_all_rows(table, more):
    blocks, whole = models(table, "pca", more, n_components=3)
    for mine, theirs in zip(blocks.state, whole.state, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-10)
    np.testing.assert_allclose(blocks.predict(table).values, whole.predict(table).values, rtol=0, atol=1e-10)


@pytest.mark.parametrize("imputation", ["mean", {"a": "mean"}])
def test_means_and_scales_are_those_of_all_rows(table, imputation):
    more = {"preprocessing": {"imputation": imputation}}
    blocks, whole = (one.preparation for one in models(table, "pca", more))
    for mine, theirs in zip(blocks.learned, whole.learned, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13)
    assert [(one.minimum, one.maximum) for one in blocks.inputs] == [(one.minimum, one.maximum) for one in whole.inputs]


def test_clusters_are_those_of_all_rows(table):
    """Three far groups: starts from a sample end where starts from all rows end."""
    blocks, whole = models(table, "kmeans", n_clusters=3, n_init=2)
    order, other = np.argsort(blocks.state.centres[:, 0]), np.argsort(whole.state.centres[:, 0])
    np.testing.assert_allclose(blocks.state.centres[order], whole.state.centres[other], rtol=0, atol=1e-10)
    np.testing.assert_array_equal(blocks.state.sizes[order], whole.state.sizes[other])
    np.testing.assert_allclose(blocks.state.inertias[order], whole.state.inertias[other], rtol=1e-10)


def test_the_report_states_the_sample(table):
    report = run(table, 1, "kmeans", n_clusters=3, n_init=2).report
    assert report.rows_train == ROWS
    assert "the metrics are of a random sample of" in report.evidence
    assert f"of the {ROWS} training rows" in report.evidence
    assert any("in batches of about" in warning for warning in report.warnings)
    (inertia,) = [curve for curve in report.curves if curve.name == "inertia"]
    assert (np.diff(inertia.y) < 0).all()
    assert run(table, 1, "kmeans", n_clusters=3, n_init=2).blob == run(table, 1, "kmeans", n_clusters=3, n_init=2).blob


def test_levels_are_columns_of_blocks_too(table):
    more = {"features": ["a", "b", "town"]}
    blocks, whole = models(table, "pca", more, n_components=4)
    np.testing.assert_allclose(blocks.state.variance, whole.state.variance, rtol=0, atol=1e-10)


def test_mixtures_are_trained_in_blocks(table):
    more = {"task": "density", "validation": {"test_fraction": 0}, "features": ["b", "c", "d"]}
    blocks, whole = models(table, "gmm", more, n_components=3, n_init=1, tol=1e-10)
    x = whole.preparation.matrix(whole.preparation.raw(table))
    mine, theirs = (log_density(one.params, one.state, x).mean() for one in (blocks, whole))
    assert mine == pytest.approx(theirs, rel=1e-8)
    assert blocks.state.threshold == pytest.approx(whole.state.threshold, abs=0.5)


def in_blocks(x, weights, size=700):
    data = Data.of(Task.DENSITY, x, weights=weights)
    parts = [Block(x[at : at + size], weights[at : at + size]) for at in range(0, len(x), size)]
    return data, StreamedRows(lambda: iter(parts), len(x), data)


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
def test_from_the_same_start_mixtures_have_the_same_likelihood(covariance):
    """The sample is the whole: the starts end where EM ends, and all rows leave it there."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 3)) * [1, 100, 1] + rng.integers(0, 3, (1500, 1)) * [8, 800, -8]
    data, rows = in_blocks(x, rng.uniform(0.5, 2, 1500))
    algorithm = find("gmm").algorithm
    params = algorithm.params(n_components=3, covariance=covariance, n_init=1, tol=1e-11)
    whole, blocks = algorithm.fit(params, data, Context.of(0)), algorithm.fit_blocks(params, rows, Context.of(0))
    assert blocks.curves["log_density"][-1] == pytest.approx(whole.curves["log_density"][-1], rel=1e-8)
    assert (np.diff(blocks.curves["log_density"]) >= 0).all()
    np.testing.assert_allclose(blocks.state.means, whole.state.means, rtol=0, atol=1e-4)


def test_a_constant_column_is_named(table):
    constant = table.set_column(2, "c", pa.array(np.full(ROWS, 0.1)))
    report = run(constant, 1, "gmm", {"preprocessing": {"scaling": "none"}}, n_init=1, max_iter=2).report
    assert any("do not vary" in warning and "'c'" in warning for warning in report.warnings)


def test_clusters_start_from_another_fit():
    """So many numbers that rows are not exchanged one by one."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(22_000, 12)) + rng.integers(0, 4, (22_000, 1)) * 2
    weights = np.ones(len(x))
    data, rows = in_blocks(x, weights, 7000)
    algorithm = find("kmeans").algorithm
    params = algorithm.params(n_clusters=4, max_iter=500)
    start = algorithm.fit(params, data.take(np.arange(50)), Context.of(0)).state._replace(centres=x[:4])
    started = StreamedRows(rows.blocks, rows.rows, data.take(np.arange(50)), start)
    blocks = algorithm.fit_blocks(params, started, Context.of(0))
    whole = algorithm.warm_start.fit(params, start, data, Context.of(0))
    np.testing.assert_allclose(blocks.state.centres, whole.state.centres, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(blocks.state.sizes, whole.state.sizes)


def test_what_fits_is_fitted_in_memory(table):
    assert planned(table, np.inf, "kmeans", {}).batch_rows is None
    small, large = planned(table, 1, "gmm", {}), planned(table, np.inf, "gmm", {})
    assert small.batch_rows == 750
    assert small.memory_bytes < large.memory_bytes
