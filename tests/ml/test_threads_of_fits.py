"""A fit makes use of threads, and has the same bytes for any number of them."""

import contextvars
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Data, Task
from app.ml.contract.threads import THREADS
from app.ml.models import state_format
from app.ml.numerics import row_blocks
from app.ml.numerics.boosting import gradient_trees, losses
from app.ml.numerics.clustering import bounds
from app.ml.numerics.linear_models import cross_entropy


class Pool:
    """`Threads` of a machine that is idle."""

    def __init__(self, threads):
        self.threads, self.calls = threads, 0

    def at_once(self, calls):
        self.calls += len(calls) - 1
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(lambda call: call(), calls))


def arrays_of(algorithm, params, data, threads):
    def fit():
        THREADS.set(threads)
        return algorithm.fit(params, data, nested.context(0)).state

    arrays = {}
    document = state_format.pack(contextvars.copy_context().run(fit), "state", arrays)
    return document, {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize(
    ("name", "task", "classes", "options"),
    [
        ("linear", Task.REGRESSION, 0, {}),
        ("ridge", Task.REGRESSION, 0, {}),
        ("logistic", Task.CLASSIFICATION, 2, {}),
        ("logistic", Task.CLASSIFICATION, 3, {}),
        ("linear_sgd", Task.REGRESSION, 0, {}),
        ("linear_sgd", Task.CLASSIFICATION, 2, {}),
        ("pca", Task.PROJECTION, 0, {}),
        ("gradient_boosting", Task.REGRESSION, 0, {"n_estimators": 4, "early_stopping": True}),
        ("gradient_boosting", Task.CLASSIFICATION, 2, {"n_estimators": 4}),
        ("gradient_boosting", Task.CLASSIFICATION, 3, {"n_estimators": 2}),
        ("kmeans", Task.CLUSTERING, 0, {"n_init": 1, "n_clusters": 3}),
        ("kmeans", Task.CLUSTERING, 0, {"n_init": 1, "n_clusters": 9}),
    ],
)
def test_a_fit_has_the_same_bytes_for_any_number_of_threads(monkeypatch, name, task, classes, options):
    monkeypatch.setattr(row_blocks, "SECTION_ROWS", 400)
    monkeypatch.setattr(gradient_trees, "MIN_PARALLEL_ROWS", 1000)
    monkeypatch.setattr(losses, "MIN_PARALLEL_ROWS", 1000)
    monkeypatch.setattr(bounds, "MAX_DIRECT_CELLS", 0)
    monkeypatch.setattr(bounds, "MANY_NEAR", 0)
    monkeypatch.setattr(cross_entropy, "CELLS", 5_000)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3000, 5)) + 4 * rng.integers(0, 3, (3000, 1))
    y = x @ rng.normal(size=5) + rng.normal(size=3000)
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    data = Data.of(task, x, *((y,) if task.supervised else ()))
    entry = find(name)
    one, several = Pool(1), Pool(3)
    params = entry.spec(name=name, **options)
    assert arrays_of(entry.algorithm, params, data, one) == arrays_of(entry.algorithm, params, data, several)
    assert several.calls > 0
