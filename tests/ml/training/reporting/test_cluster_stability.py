"""Stability of clusters under halving: the index of scikit-learn over halves that share no row."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier

from app.ml.contract.columns import TableColumn
from app.ml.evaluation.splits import kfold
from app.ml.training.planning.plan import plan
from app.ml.training.planning.related_table import RelatedTable
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.reporting.cluster_stability import HALVINGS, STREAM
from app.ml.training.train import train

NAMES = ["a", "b"]


def rows(n, clusters, *, apart, seed=0):
    place = np.arange(n)[:, None] % clusters * np.array([[1.0, 0.0]])
    return np.random.default_rng(seed).normal(size=(n, 2)) + apart * place


def stability(x, algorithm, *, beside=None, related=None, **more):
    table = pa.table(dict(zip(NAMES, x.T, strict=True)) | (beside or {}))
    columns = [TableColumn(name, "numeric", 0, len(x)) for name in NAMES]
    columns += [TableColumn(name, "categorical", 0, len(set(cells))) for name, cells in (beside or {}).items()]
    body = {"algorithm": algorithm, "preprocessing": {"scaling": "none"}, "features": NAMES} | more
    made = train(plan(TrainSpec.model_validate(body), columns, len(x), related=related), table, data_digest="sha256:0")
    return made.report.stability


def test_it_is_the_mean_adjusted_rand_index_of_fits_of_halves():
    x = rows(60, 3, apart=3.0)
    found = stability(x, {"name": "agglomerative", "n_clusters": 3}, seed=5)
    rng = np.random.Generator(np.random.PCG64([5, STREAM]))
    chosen = np.sort(rng.choice(np.arange(60), 60, replace=False))
    expected = []
    for _ in range(HALVINGS):
        labels = []
        for half in (chosen[split.test] for split in kfold(60, 2, rng)):
            own = AgglomerativeClustering(3).fit_predict(x[half])
            labels.append(KNeighborsClassifier(1).fit(x[half], own).predict(x))
        expected.append(adjusted_rand_score(*labels))
    assert found.value == pytest.approx(np.mean(expected))
    reach = 2.2621572 * np.std(expected, ddof=1) / np.sqrt(HALVINGS)  # Student's t of 9 degrees of freedom
    assert (found.lower, found.upper) == pytest.approx((found.value - reach, found.value + reach))


def test_clusters_that_are_there_are_stable_and_those_of_noise_are_not():
    sure, noise = rows(90, 3, apart=20.0), rows(90, 1, apart=0.0)
    for algorithm in ({"name": "kmeans", "n_clusters": 3}, {"name": "agglomerative", "n_clusters": 3}):
        found = stability(sure, algorithm)
        assert (found.value, found.upper, found.interval) == (1.0, 1.0, "clopper-pearson")
        assert found.lower == pytest.approx(0.025 ** (1 / HALVINGS))
        assert stability(noise, algorithm).upper < 0.9


def test_groups_stay_together():
    x, patients = rows(60, 2, apart=9.0), [f"p{i // 10}" for i in range(60)]
    grouped = {"validation": {"group": "patient", "test_fraction": 0}}
    found = stability(x, {"name": "kmeans", "n_clusters": 2}, beside={"patient": patients}, **grouped)
    assert found.value == 1.0


def test_halves_that_cannot_be_fitted_leave_it_undefined_with_the_reason():
    x = rows(12, 1, apart=0.0)
    towns = [f"t{i:02}" for i in range(12)]
    square = cdist(x, x)
    chain = [(i, i + 1) for i in range(11)]
    roads = pa.table({
        "one": [towns[i] for i, _ in chain], "other": [towns[j] for _, j in chain],
        "km": [square[pair] for pair in chain],
    })  # fmt: skip
    kinds = {"one": "categorical", "other": "categorical", "km": "numeric"}
    related = RelatedTable("sha256:1", tuple(TableColumn(*one, 0, 11) for one in kinds.items()), lambda: roads)
    relations = {"form": "edges", "dataset": "roads", "first": "one", "second": "other", "value": "km"}
    found = stability(
        x, {"name": "agglomerative", "linkage": "single"}, beside={"town": towns}, related=related,
        item="town", relations=relations | {"meaning": "dissimilarity"},
    )  # fmt: skip
    assert found.value is None
    assert found.note.startswith("Half of the rows cannot be fitted: ")


def test_other_tasks_have_none():
    assert stability(rows(30, 2, apart=3.0), {"name": "pca"}) is None
