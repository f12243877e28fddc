"""Clusters beside classes: the metrics of scikit-learn, intervals that cover, and results of degenerate labels."""

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn import metrics as peers

from app.ml.evaluation.cluster_agreement import agreement, between
from app.ml.statistics.intervals import Resamples

DEGENERATE = {
    "one row": ([0], [0]),
    "one cluster and one class": ([0] * 5, [0] * 5),
    "every row alone": (range(5), range(5)),
}


def measured(labels, classes, seed=0):
    draws = Resamples.of(len(labels), np.random.default_rng(seed))
    return {one.name: one for one in agreement(np.asarray(labels), np.asarray(classes), draws)}


def drawn(rng, n, k, c):
    classes = rng.integers(0, c, n)
    return np.where(rng.random(n) < 0.6, classes % k, rng.integers(0, k, n)), classes


@pytest.mark.parametrize(("n", "k", "c"), [(40, 3, 3), (90, 30, 2), (300, 4, 40), (2000, 7, 5)])
def test_the_metrics_are_those_of_scikit_learn(n, k, c):
    labels, classes = drawn(np.random.default_rng(n), n, k, c)
    found = {name: one.value for name, one in measured(labels, classes).items()}
    table = peers.cluster.contingency_matrix(classes, labels)
    assert found == {
        "adjusted_rand": pytest.approx(peers.adjusted_rand_score(classes, labels), abs=1e-12),
        "normalized_mutual_information": pytest.approx(peers.normalized_mutual_info_score(classes, labels), abs=1e-12),
        "adjusted_mutual_information": pytest.approx(peers.adjusted_mutual_info_score(classes, labels), abs=1e-10),
        "purity": pytest.approx(table.max(axis=0).sum() / n),
    }


def test_rows_without_a_class_do_not_count():
    labels, classes = drawn(np.random.default_rng(1), 60, 3, 3)
    known = np.arange(60) % 4 > 0
    found, expected = measured(labels, np.where(known, classes, -1)), measured(labels[known], classes[known])
    assert {name: (one.value, one.n) for name, one in found.items()} == {
        name: (one.value, 45) for name, one in expected.items()
    }
    assert measured(labels, np.full(60, -1)) == {}


def test_other_names_of_the_labels_change_no_value():
    labels, classes = drawn(np.random.default_rng(2), 80, 4, 3)
    renamed = measured(7 * (3 - labels), 2 - classes)
    assert {name: one.value for name, one in renamed.items()} == pytest.approx(
        {name: one.value for name, one in measured(labels, classes).items()}
    )


def test_intervals_cover_the_agreement_of_the_distribution():
    """Of 200 samples of 80 rows, at least 88 % of 95 % intervals cover: the shortfall of a bootstrap of few rows."""
    share = np.array([[0.3, 0.03, 0.0], [0.03, 0.25, 0.05], [0.0, 0.04, 0.3]])
    rows, columns = share.sum(axis=1), share.sum(axis=0)
    chance = (rows**2).sum() * (columns**2).sum()
    truth = ((share**2).sum() - chance) / (((rows**2).sum() + (columns**2).sum()) / 2 - chance)
    rng, hits = np.random.default_rng(3), 0
    for seed in range(200):
        cells = rng.choice(9, 80, p=share.ravel())
        one = measured(cells // 3, cells % 3, seed)["adjusted_rand"]
        hits += one.lower <= truth <= one.upper
    assert 176 <= hits <= 199


def test_unrelated_labels_agree_by_chance_only():
    rng = np.random.default_rng(4)
    found = [measured(rng.integers(0, 5, 60), rng.integers(0, 3, 60), seed) for seed in range(60)]
    for name in ("adjusted_rand", "adjusted_mutual_information"):
        values = np.array([one[name].value for one in found])
        assert abs(values.mean()) < 4 * values.std() / np.sqrt(60)


@pytest.mark.parametrize("case", DEGENERATE)
def test_what_has_no_meaning_is_undefined(case):
    found = measured(*DEGENERATE[case])
    assert found["adjusted_rand"].value is None
    assert found["purity"].value == 1.0
    assert found["adjusted_mutual_information"].value is None


def apart(one, other, seed=0):
    draws = Resamples.of(len(one), np.random.default_rng(seed))
    return {found.name: found for found in between(np.asarray(one), np.asarray(other), draws)}


@pytest.mark.parametrize(("n", "k", "c"), [(40, 3, 3), (90, 30, 2), (2000, 7, 5)])
def test_two_clusterings_agree_as_scikit_learn_has_it_both_ways_around(n, k, c):
    one, other = drawn(np.random.default_rng(n), n, k, c)
    found, back = apart(one, other), apart(other, one)
    sizes = (np.bincount(labels) for labels in (one, other, one * c + other))
    first, second, both = map(entropy, sizes)
    assert {name: metric.value for name, metric in found.items()} == {
        "adjusted_rand": pytest.approx(peers.adjusted_rand_score(one, other), abs=1e-12),
        "normalized_mutual_information": pytest.approx(peers.normalized_mutual_info_score(one, other), abs=1e-12),
        "variation_of_information": pytest.approx(2 * both - first - second, abs=1e-12),
    }
    for name, metric in found.items():
        assert metric.lower <= metric.value <= metric.upper
        assert back[name].value == pytest.approx(metric.value)


def test_a_clustering_beside_itself_agrees_wholly():
    labels = np.random.default_rng(5).integers(0, 6, 200)
    found = apart(labels, 9 - labels)
    assert found["adjusted_rand"].value == 1.0
    assert found["normalized_mutual_information"].value == pytest.approx(1.0)
    assert found["variation_of_information"].value == 0.0


def test_the_variation_of_information_is_a_distance_of_known_size():
    """One cluster beside n of one row each is log n apart, and so is no pair of groupings of more; Meila (2007)."""
    rng = np.random.default_rng(6)
    assert apart([0] * 12, range(12))["variation_of_information"].value == pytest.approx(np.log(12))
    for seed in range(10):
        one, two, three = rng.integers(0, 4, (3, 30))
        distances = [
            apart(*pair, seed)["variation_of_information"].value for pair in ((one, two), (two, three), (one, three))
        ]
        assert 0 <= max(distances) <= min(np.log(30), sum(sorted(distances)[:2]) + 1e-12)
    assert apart([0] * 5, [0] * 5)["variation_of_information"].value == 0.0
    assert apart([0] * 5, [0] * 5)["adjusted_rand"].value is None
