"""Rows of plots in a report: which rows, and values beside those of scikit-learn, scipy and the model."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_samples

from app.ml.contract.columns import TableColumn
from app.ml.evaluation.row_sample import MOST_ROWS, written
from app.ml.models.model import decode
from app.ml.numerics.clustering import validity
from app.ml.training.planning.edge_rows import read_edge_rows
from app.ml.training.planning.plan import plan
from app.ml.training.planning.related_table import RelatedTable
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

IRIS = load_iris()
NAMES = ["a", "b", "c", "d"]


def trained(columns, algorithm, **more):
    table = pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    sheet = [
        TableColumn(name, "numeric" if pa.types.is_floating(cells.type) else "categorical", cells.null_count, 9)
        for name, cells in zip(table.column_names, table.columns, strict=True)
    ]
    spec = TrainSpec.model_validate({"algorithm": algorithm} | more)
    return train(plan(spec, sheet, table.num_rows), table, data_digest="sha256:0")


def flowers(**more):
    return dict(zip(NAMES, IRIS.data.T, strict=True)) | more


def cloud(n, seed=0):
    return dict(zip(NAMES, np.random.default_rng(seed).normal(size=(4, n)), strict=True))


def test_rows_of_clusters_have_the_silhouettes_and_components_of_scikit_learn():
    raw = {"preprocessing": {"scaling": "none"}}
    sample = trained(flowers(), {"name": "kmeans", "n_clusters": 3}, **raw).report.row_sample
    assert (sample.rows, sample.rows_train) == (list(range(150)), 150)
    expected = silhouette_samples(IRIS.data, sample.clusters)
    assert np.array(sample.silhouettes) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    for metric in sample.cluster_silhouettes:
        own = expected[np.array(sample.clusters) == int(metric.label)]
        assert (metric.value, metric.n) == (pytest.approx(own.mean()), own.size)
        assert metric.lower < metric.value < metric.upper
    oracle = PCA(2).fit(IRIS.data)
    assert [axis.variance_share for axis in sample.axes] == pytest.approx(oracle.explained_variance_ratio_.tolist())
    for axis, values in zip(sample.axes, oracle.transform(IRIS.data).T, strict=True):
        assert np.abs(axis.values) == pytest.approx(np.abs(values), rel=1e-4, abs=1e-4)


def test_of_many_rows_a_sample_is_drawn_by_the_seed():
    columns = cloud(1500)
    first, again, other = (
        trained(columns, {"name": "pca"}, seed=seed).report.row_sample.model_dump_json() for seed in (1, 1, 2)
    )
    assert first == again != other
    made = trained(columns, {"name": "pca"}, seed=1)
    sample, model = made.report.row_sample, decode(made.blob)
    assert sample.rows == sorted(set(sample.rows))
    assert (len(sample.rows), sample.rows_train, len(first) < 45_000) == (MOST_ROWS, 1500, True)
    predicted = model.predict(pa.table({name: values[sample.rows] for name, values in columns.items()})).values
    assert [axis.values for axis in sample.axes] == [written(values) for values in predicted.T]


@pytest.mark.slow
def test_silhouettes_of_a_large_table_are_those_of_some_rows():
    columns = cloud(40_000)
    sample = trained(columns, {"name": "kmeans", "n_clusters": 2, "n_init": 1}).report.row_sample
    known = sum(value is not None for value in sample.silhouettes)
    assert known == validity.DISTANCES // 40_000
    assert sum(metric.n for metric in sample.cluster_silhouettes) == known


def test_numbers_are_those_of_the_dataset_and_classes_those_of_the_rows():
    species = IRIS.target_names[IRIS.target].astype(object)
    species[::2] = None
    kept = trained(flowers(species=species), {"name": "lda"}, target="species").report.row_sample
    assert kept.rows == list(range(1, 150, 2))
    assert kept.classes == species[1::2].tolist()
    compared = trained(flowers(species=species), {"name": "kmeans", "n_clusters": 3}, target="species")
    assert compared.report.row_sample.classes == species.tolist()
    assert compared.report.row_sample.rows == list(range(150))


def test_log_densities_are_those_of_the_model():
    made = trained(flowers(), {"name": "gaussian"})
    sample = made.report.row_sample
    assert sample.rows_train == 120, "rows held out are no training rows"
    rows = pa.table({name: values[sample.rows] for name, values in flowers().items()})
    assert sample.log_densities == written(decode(made.blob).predict(rows).values)
    mixture = {"name": "gmm", "n_components": 2}
    both = [
        trained(flowers(), mixture, task=task, validation={"test_fraction": 0}) for task in ("density", "clustering")
    ]
    assert both[0].report.row_sample.log_densities == both[1].report.row_sample.log_densities


def test_one_cluster_has_no_silhouettes_and_other_tasks_no_sample():
    single = trained(flowers(), {"name": "kmeans", "n_clusters": 1}).report
    assert (single.row_sample.silhouettes, single.row_sample.cluster_silhouettes) == (None, [])
    assert single.cluster_profiles.sizes == [150]
    other = trained(flowers(), {"name": "ridge"}, target="d").report
    assert (other.row_sample, other.cluster_profiles) == (None, None)


def test_rows_of_a_square_have_its_silhouettes_and_no_axes():
    square = cdist(IRIS.data[::5], IRIS.data[::5])
    relations = {"form": "square", "meaning": "dissimilarity"}
    columns = {f"d{place}": cells for place, cells in enumerate(square.T)}
    report = trained(
        columns, {"name": "agglomerative", "linkage": "average", "n_clusters": 3}, relations=relations
    ).report
    sample = report.row_sample
    expected = silhouette_samples(square, sample.clusters, metric="precomputed")
    assert np.array(sample.silhouettes) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert (sample.axes, report.cluster_profiles) == ([], None)


def test_items_of_edges_alone_have_no_sample():
    first, second = np.triu_indices(6, 1)
    roads = pa.table({"a": first.astype(str), "b": second.astype(str), "km": 1.0 + 9.0 * (first // 3 != second // 3)})
    sheet = tuple(TableColumn(name, "numeric" if name == "km" else "categorical", 0, 6) for name in ("a", "b", "km"))
    relations = {
        "form": "edges",
        "first": "a",
        "second": "b",
        "value": "km",
        "dataset": "r",
        "meaning": "dissimilarity",
    }
    spec = TrainSpec.model_validate(
        {"algorithm": {"name": "agglomerative", "linkage": "single", "n_clusters": 2}, "relations": relations}
    )
    planned, items = read_edge_rows(spec, RelatedTable("sha256:1", sheet, lambda: roads), roads, 1e9)
    report = train(planned, items, data_digest="sha256:0").report
    assert (report.row_sample, report.cluster_profiles) == (None, None)
