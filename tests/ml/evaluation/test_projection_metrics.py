"""Maps of rows: scikit-learn's trustworthiness, Kruskal's stress by brute force, and degenerate maps."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_wine
from sklearn.manifold import trustworthiness
from sklearn.preprocessing import scale

from app.ml.contract.algorithm import Data, Meaning, Task
from app.ml.contract.relations import Relations
from app.ml.evaluation import projection_metrics
from app.ml.evaluation.projection_metrics import retained_metrics
from app.ml.statistics.intervals import Resamples

TIED = scale(load_wine().data)
WINE = TIED + np.random.default_rng(9).normal(0, 1e-4, TIED.shape)
CORNER = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]])


def measured(x, z, seed=0):
    data = Data.of(Task.PROJECTION, x)
    return {
        metric.name: metric for metric in retained_metrics(data, z, Resamples.of(len(x), np.random.default_rng(seed)))
    }


def stress_of(x, z):
    before, after = pdist(x), pdist(z)
    best = minimize_scalar(lambda b: np.square(after - b * before).sum(), options={"xtol": 1e-12})
    return np.sqrt(best.fun / np.square(after).sum())


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_the_values_are_those_of_scikit_learn_and_of_brute_force(columns):
    z = WINE[:, :columns] * 3
    metrics = measured(WINE, z)
    assert metrics["trustworthiness"].value == pytest.approx(trustworthiness(WINE, z, n_neighbors=5), rel=1e-12)
    assert metrics["continuity"].value == pytest.approx(trustworthiness(z, WINE, n_neighbors=5), rel=1e-12)
    assert metrics["stress"].value == pytest.approx(stress_of(WINE, z), rel=1e-6)
    assert all(metric.lower < metric.value < metric.upper for metric in metrics.values())


def test_of_a_square_its_own_values_are_compared():
    far, z = squareform(pdist(WINE, "cityblock")), WINE[:, :2]
    data = Data.of(Task.PROJECTION, far, relations=Relations(Meaning.DISSIMILARITY, far))
    trust, _, stress = retained_metrics(data, z, Resamples.none(len(far)))
    assert trust.value == pytest.approx(trustworthiness(far, z, n_neighbors=5, metric="precomputed"), rel=1e-12)
    best = minimize_scalar(lambda b: np.square(pdist(z) - b * squareform(far)).sum(), options={"xtol": 1e-12})
    assert stress.value == pytest.approx(np.sqrt(best.fun / np.square(pdist(z)).sum()), rel=1e-6)


def test_a_map_that_turns_and_stretches_keeps_all():
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(13, 13)))[0]
    metrics = measured(WINE, 7 * WINE @ turn)
    assert {name: round(metric.value, 9) for name, metric in metrics.items()} == {
        "trustworthiness": 1,
        "continuity": 1,
        "stress": 0,
    }


def test_of_many_rows_some_are_compared_and_the_note_counts_them(monkeypatch):
    monkeypatch.setattr(projection_metrics, "MOST_ROWS", 60)
    rows = np.linspace(0, len(WINE) - 1, 60).astype(int)
    metrics, z = measured(WINE, WINE[:, :2]), WINE[rows, :2]
    assert metrics["trustworthiness"].value == pytest.approx(trustworthiness(WINE[rows], z, n_neighbors=5))
    assert metrics["stress"].value == pytest.approx(stress_of(WINE[rows], z), rel=1e-6)
    assert {metric.n for metric in metrics.values()} == {60}
    assert all("Of 60 rows, evenly spaced among 178." in metric.note for metric in metrics.values())


def test_few_rows_have_few_neighbours_and_two_have_none():
    metrics = measured(CORNER, CORNER[:, :1])
    assert metrics["trustworthiness"].note.startswith("Over the 1 nearest rows")
    assert 0 <= metrics["trustworthiness"].value <= 1
    assert {metric.value for metric in measured(CORNER[:2], CORNER[:2, :1]).values()} == {None}


def test_equal_distances_favour_no_order_of_the_rows():
    rows = np.random.default_rng(2).integers(0, 4, (40, 2)) * 1.0
    assert measured(rows, 3 * rows[:, ::-1])["trustworthiness"].value == 1
    metrics, order = measured(rows, rows[:, :1]), np.random.default_rng(3).permutation(40)
    again = measured(rows[order], rows[order, :1])
    assert {name: metric.value for name, metric in again.items()} == pytest.approx(
        {name: metric.value for name, metric in metrics.items()}, rel=1e-12
    )


@pytest.mark.parametrize("place", [np.zeros((178, 2)), np.full((178, 2), np.inf)])
def test_a_map_to_one_point_has_no_stress(place):
    assert measured(WINE, place)["stress"].value is None


def test_intervals_of_stress_cover_that_of_the_distribution():
    """Rows of a cross with a long and a short arm, mapped to the long one: at least 88 % of 120 samples cover."""
    rng, shape = np.random.default_rng(1), np.array([3.0, 1.0])
    many = rng.normal(size=(1500, 2)) * shape
    truth, hits = stress_of(many, many[:, :1]), 0
    for seed in range(120):
        x = rng.normal(size=(60, 2)) * shape
        metric = measured(x, x[:, :1], seed)["stress"]
        hits += metric.lower <= truth <= metric.upper
    assert hits >= 106
