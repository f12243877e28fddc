"""Metrics equal the published numbers and scikit-learn's, and are undefined where they are 0/0."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as oracle

from app.ml.evaluation import auc, metrics
from app.ml.evaluation.cluster_metrics import clustering
from app.ml.evaluation.decisions import decisions
from app.ml.evaluation.roc import curve, placements, steps
from app.ml.numerics.clustering import validity
from app.ml.statistics.intervals import Resamples

LABELS = ["a", "b", "c", "d", "e"]


def rng(seed=0):
    return np.random.default_rng(seed)


def draws(n, seed=0):
    return Resamples.of(n, rng(seed))


def by_name(measured, label=None):
    return {metric.name: metric for metric in measured if metric.label == label}


def regression(truth, predicted):
    truth, predicted = np.asarray(truth, float), np.asarray(predicted, float)
    return by_name(metrics.regression(truth, predicted, draws(len(truth))))


def certain(codes, k):
    return np.eye(k)[codes]


def classification(truth, probabilities, label=None):
    k = probabilities.shape[1]
    measured = metrics.classification(np.asarray(truth), probabilities, LABELS[:k], draws(len(truth)))
    return by_name(measured, label)


def binary_counts(tp, fp, fn, tn):
    truth = np.repeat([1, 0, 1, 0], [tp, fp, fn, tn])
    assigned = np.repeat([1, 1, 0, 0], [tp, fp, fn, tn])
    return truth, certain(assigned, 2)


def test_rms_error_of_the_book():
    """B3.11: errors [1, -2, 2] give √3."""
    assert regression([0, 0, 0], [1, -2, 2])["rmse"].value == pytest.approx(1.7320508, abs=5e-8)


def test_regression_is_scikit_learns():
    truth = rng(1).normal(size=80) + 1e3
    predicted = truth + 0.3 * rng(2).normal(size=80)
    result = regression(truth, predicted)
    assert result["rmse"].value == pytest.approx(oracle.root_mean_squared_error(truth, predicted), rel=1e-12)
    assert result["mae"].value == pytest.approx(oracle.mean_absolute_error(truth, predicted), rel=1e-12)
    assert result["r2"].value == pytest.approx(oracle.r2_score(truth, predicted), rel=1e-9)
    for metric in result.values():
        assert metric.lower < metric.value < metric.upper
        assert metric.n == 80
    ways = {name: metric.interval for name, metric in result.items()}
    assert ways == dict.fromkeys(("rmse", "mae", "r2"), "bootstrap (studentised)")


@pytest.mark.parametrize("unit", [2.0**-700, 2.0**700])
def test_the_unit_of_a_target_does_not_change_r2_and_its_bars(unit):
    truth = rng(1).normal(size=80)
    predicted = truth + 0.3 * rng(2).normal(size=80)
    assert regression(truth * unit, predicted * unit)["r2"] == regression(truth, predicted)["r2"]


def test_r2_of_a_constant_target_is_undefined():
    result = regression([0.1] * 7, rng().normal(size=7))
    assert result["r2"].value is None
    assert result["rmse"].value is not None


def test_accuracy_precision_recall_of_the_book():
    """B3.17: TP=8 FP=2 FN=4 TN=86 give .94, .8 and .666667."""
    truth, probabilities = binary_counts(8, 2, 4, 86)
    assert classification(truth, probabilities)["accuracy"].value == pytest.approx(0.94)
    result = classification(truth, probabilities, label="b")
    assert result["precision"].value == pytest.approx(0.8)
    assert result["recall"].value == pytest.approx(0.666667, abs=5e-7)
    assert (result["precision"].n, result["recall"].n) == (10, 12)
    assert result["f1"].value == pytest.approx(2 * 0.8 * (2 / 3) / (0.8 + 2 / 3))


def test_never_assigned_means_no_precision():
    result = classification([0, 0, 1], certain([0, 0, 0], 3), label="b")
    assert (result["precision"].value, result["recall"].value, result["f1"].value) == (None, 0.0, 0.0)
    nowhere = classification([0, 0, 1], certain([0, 0, 0], 3), label="c")
    assert [nowhere[name].value for name in ("precision", "recall", "f1")] == [None, None, None]


@pytest.mark.parametrize("k", [2, 3, 5])
def test_classification_is_scikit_learns(k):
    truth = rng(k).integers(0, k, 120)
    probabilities = rng(k + 1).dirichlet(np.ones(k), 120)
    probabilities = (probabilities + 0.5 * certain(truth, k)) / 1.5
    assigned = probabilities.argmax(axis=1)
    result = classification(truth, probabilities)
    assert result["accuracy"].value == pytest.approx(oracle.accuracy_score(truth, assigned))
    assert result["log_loss"].value == pytest.approx(oracle.log_loss(truth, probabilities), rel=1e-12)
    scores = probabilities[:, 1] if k == 2 else probabilities
    assert result["roc_auc"].value == pytest.approx(oracle.roc_auc_score(truth, scores, multi_class="ovr"), rel=1e-12)
    theirs = oracle.precision_recall_fscore_support(truth, assigned, average=None)[:3]
    for name, values in zip(("precision", "recall", "f1"), theirs, strict=True):
        assert result[name].value == pytest.approx(values.mean())
        for label, value in zip(LABELS, values, strict=False):
            assert classification(truth, probabilities, label)[name].value == pytest.approx(value)
    assert all(metric.lower <= metric.value <= metric.upper for metric in result.values())


def test_area_counts_ties_half():
    """E17: the probability that a positive scores above a negative; here every pair counted by hand."""
    scores, positive = np.array([0.1, 0.4, 0.4, 0.4, 0.8]), np.array([0, 0, 1, 1, 1], bool)
    place = placements(steps(scores, positive))
    assert place[positive].tolist() == [0.75, 0.75, 1.0]
    assert [place[positive].mean(), place[~positive].mean()] == pytest.approx([5 / 6, 5 / 6])


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_area_and_curve_are_scikit_learns_with_ties(levels):
    scores = rng(levels).integers(0, levels, 200) / levels
    truth = (rng(1).random(200) < 0.2 + 0.6 * scores).astype(int)
    result = classification(truth, np.stack([1 - scores, scores], axis=1))
    assert result["roc_auc"].value == pytest.approx(oracle.roc_auc_score(truth, scores), rel=1e-12)
    x, y = curve(steps(scores, truth == 1))
    theirs = oracle.roc_curve(truth, scores, drop_intermediate=False)
    np.testing.assert_allclose(np.interp(theirs[0], x, y)[-1], 1)
    assert np.trapezoid(y, x) == pytest.approx(result["roc_auc"].value, rel=1e-12)
    assert set(zip(x, y, strict=True)) <= set(zip(theirs[0], theirs[1], strict=True))


def test_long_curves_are_thinned_from_end_to_end():
    x, y = curve(steps(rng(0).random(5000), rng(1).random(5000) < 0.5))
    assert len(x) == 201
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)


def test_area_needs_both_kinds():
    assert classification([0, 0], certain([0, 0], 2))["roc_auc"].value is None
    assert curve(steps(np.array([0.1, 0.2]), np.array([True, True])))[0].size == 0
    assert auc.curves(np.array([0, 0]), certain([0, 0], 2), ["a", "b"]) == []


def test_bootstrap_of_the_area_covers_about_what_it_says():
    """Scores N(1, 1) against N(0, 1): the area is Φ(1/√2) = 0.760250."""
    covered = 0
    for seed in range(200):
        truth = np.repeat([0, 1], [40, 30])
        scores = rng(seed).normal(size=70) + truth
        metric = metrics.classification(truth, np.stack([-scores, scores], axis=1) * 1e-3 + 0.5, "ab", draws(70, seed))
        result = by_name(metric)["roc_auc"]
        covered += result.lower <= 0.760250 <= result.upper
    assert 0.87 <= covered / 200 <= 0.99


def test_confusion_matrix_is_scikit_learns():
    truth, assigned = rng(1).integers(0, 4, 60), rng(2).integers(0, 4, 60)
    matrix = metrics.confusion(truth, assigned, LABELS[:4])
    np.testing.assert_array_equal(matrix.counts, oracle.confusion_matrix(truth, assigned))
    assert matrix.classes == LABELS[:4]


def test_confusion_row_of_the_book():
    """B3.18: of the digit 3, 632 right, 8 as 2, 10 as 5, 7 as 8: recall 632/657."""
    assigned = np.repeat([3, 2, 5, 8], [632, 8, 10, 7])
    matrix = metrics.confusion(np.full(657, 3), assigned, [str(digit) for digit in range(10)])
    assert matrix.counts[3] == [0, 0, 8, 632, 0, 10, 0, 0, 7, 0]
    measured = metrics.classification(np.full(657, 3), certain(assigned, 10), list("0123456789"), draws(657))
    assert by_name(measured, "3")["recall"].value == pytest.approx(0.961948, abs=5e-7)


def test_one_row():
    result = classification([1], np.array([[0.2, 0.8]]))
    assert (result["accuracy"].value, result["accuracy"].lower) == (1.0, pytest.approx(0.025))
    assert (result["log_loss"].value, result["log_loss"].lower) == (pytest.approx(-np.log(0.8)), None)
    assert regression([1.0], [3.0])["rmse"].value == 2.0
    assert regression([1.0], [3.0])["r2"].value is None


def test_no_error_seen_is_no_proof_of_certainty():
    truth = np.repeat([0, 1], [10, 20])
    result = classification(truth, certain(truth, 2)) | {"f1 of b": classification(truth, certain(truth, 2), "b")["f1"]}
    for name, trials in {"roc_auc": 10, "mcc": 10}.items():
        assert (result[name].value, result[name].upper) == (1.0, 1.0)
        assert result[name].lower == pytest.approx(0.025 ** (1 / trials))
    jaccard = 0.025 ** (1 / 20)
    assert result["f1 of b"].lower == pytest.approx(2 * jaccard / (1 + jaccard))
    z2 = stats.t.ppf(0.975, 30 - 2) ** 2
    shares = np.array([10, 20]) / (z2 + np.array([10, 20]))  # score intervals of both, and F1 of their ends
    assert result["f1"].lower == pytest.approx(1 - np.hypot(*(1 - 2 * shares / (1 + shares))) / 2)
    assert result["log_loss"].lower is None


def test_log_loss_of_an_impossible_class_is_finite():
    assert classification([1], np.array([[1.0, 0.0]]))["log_loss"].value == pytest.approx(36.04, abs=0.01)


def test_clustering():
    x = np.array([[0.0], [2.0], [10.0], [14.0]])
    measured = clustering(x, np.array([0, 0, 1, 1]), np.array([[1.0], [12.0], [50.0]]), draws(4))
    result = by_name(measured)
    assert (result["inertia"].value, result["mean_inertia"].value) == (10.0, 2.5)
    sizes = [metric for metric in measured if metric.name == "size"]
    assert [(metric.label, metric.value, metric.n) for metric in sizes] == [("0", 2, 4), ("1", 2, 4), ("2", 0, 4)]
    assert sizes[0].lower < 2 < sizes[0].upper <= 4
    assert result["silhouette"].value == pytest.approx(np.mean([1 - 2 / 12, 1 - 2 / 10, 1 - 4 / 9, 1 - 4 / 13]))
    assert result["calinski_harabasz"].value == pytest.approx((121 / 1) / (10 / 2))
    assert result["davies_bouldin"].value == pytest.approx(3 / 11)
    assert all(metric.interval for metric in measured if metric.name != "davies_bouldin")  # draws lack a cluster


def test_one_cluster_has_no_separation():
    x = np.array([[0.0], [2.0], [10.0]])
    result = by_name(clustering(x, np.zeros(3, int), np.array([[4.0]]), draws(3)))
    for name in ("silhouette", "calinski_harabasz", "davies_bouldin"):
        assert result[name].value is None
    assert result["inertia"].value == 56


def test_of_many_rows_the_silhouettes_of_a_sample_have_an_interval(monkeypatch):
    x = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0.0], [4.0], [8.0]], 100, axis=0)
    labels, centres = np.repeat([0, 1, 2], 100), np.array([[0.0, 0], [4, 4], [8, 8]])
    whole = by_name(clustering(x, labels, centres, draws(300)))["silhouette"]
    monkeypatch.setattr(validity, "DISTANCES", 300 * 200)
    part = by_name(clustering(x, labels, centres, draws(300)))["silhouette"]
    assert (whole.n, part.n) == (300, 200)
    assert part.lower < whole.value < part.upper
    assert part.upper - part.lower > whole.upper - whole.lower


def test_projection():
    x = np.array([[0.0, 1.0], [2.0, -1.0], [4.0, 0.0]])
    result = by_name(metrics.projection(x, x * [1, 0], np.array([2.0, 0.0]), draws(3)))
    assert result["reconstruction_error"].value == pytest.approx(2 / 3)
    assert result["explained_variance"].value == pytest.approx(8 / 10)


def test_separation():
    """η² of two columns by its definition; its interval moves with the rows of each draw."""
    z, codes = rng().normal(size=(60, 2)), np.arange(60) % 3
    z += 2.0 * codes[:, None]
    within = sum(np.square(z[codes == c] - z[codes == c].mean(axis=0)).sum() for c in range(3))
    found = metrics.separation(z, codes, 4, draws(60))
    assert found.value == pytest.approx(1 - within / np.square(z - z.mean(axis=0)).sum(), rel=1e-12)
    assert found.lower < found.value < found.upper < 1
    assert metrics.separation(np.ones((6, 1)), np.arange(6) % 2, 2, draws(6)).value is None
    assert metrics.separation(codes[:, None] * 1.0, codes, 3, draws(60)).value == pytest.approx(1)


def test_many_classes_stay_cheap():
    k = auc.MANY_CLASSES + 1
    truth = rng().integers(0, k, 300)
    measured = metrics.classification(truth, certain(truth, k), [str(code) for code in range(k)], draws(300))
    assert by_name(measured)["roc_auc"].value is None
    assert by_name(measured)["f1"].value == 1.0
    assert auc.curves(truth, certain(truth, k), [str(code) for code in range(k)]) == []


# labels alone, weights, Brier


def test_brier_is_scikit_learns():
    for k in (2, 4):
        truth, probabilities = rng(k).integers(0, k, 90), rng(k + 1).dirichlet(np.ones(k), 90)
        labels = list(range(k))
        theirs = oracle.brier_score_loss(truth, probabilities[:, 1] if k == 2 else probabilities, labels=labels)
        assert classification(truth, probabilities)["brier"].value == pytest.approx(theirs, rel=1e-12)


def test_labels_alone_tell_what_labels_can():
    truth, assigned = rng(1).integers(0, 3, 60), rng(2).integers(0, 3, 60)
    alone = decisions(truth, assigned, LABELS[:3], draws(60))
    with_all = metrics.classification(truth, certain(assigned, 3), LABELS[:3], draws(60))
    left_out = {"log_loss", "brier", "roc_auc", "pr_auc"}
    assert alone == [metric for metric in with_all if metric.name not in left_out]


@pytest.fixture(scope="module")
def weights():
    return rng(9).exponential(size=150)


def test_weighted_metrics_are_scikit_learns(weights):
    truth = rng(1).integers(0, 3, 150)
    probabilities = (5 * rng(2).dirichlet(np.ones(3), 150) + certain(truth, 3)) / 6
    assigned = probabilities.argmax(axis=1)
    result = by_name(metrics.classification(truth, probabilities, LABELS[:3], draws(150), weights))
    w = {"sample_weight": weights}
    assert result["accuracy"].value == pytest.approx(oracle.accuracy_score(truth, assigned, **w))
    assert result["log_loss"].value == pytest.approx(oracle.log_loss(truth, probabilities, **w))
    assert result["brier"].value == pytest.approx(oracle.brier_score_loss(truth, probabilities, **w))
    theirs = oracle.precision_recall_fscore_support(truth, assigned, average="macro", **w)[:3]
    assert [result[name].value for name in ("precision", "recall", "f1")] == pytest.approx(theirs)
    both = np.stack([1 - probabilities[:, 1], probabilities[:, 1]], axis=1)
    result = by_name(metrics.classification((truth == 1) * 1, both, "ab", draws(150), weights))
    assert result["roc_auc"].value == pytest.approx(oracle.roc_auc_score(truth == 1, probabilities[:, 1], **w))
    for metric in result.values():
        assert metric.lower < metric.value < metric.upper


def test_weighted_regression_is_scikit_learns(weights):
    truth = rng(3).normal(size=150)
    predicted = truth + rng(4).normal(size=150)
    result = by_name(metrics.regression(truth, predicted, draws(150), weights))
    w = {"sample_weight": weights}
    assert result["rmse"].value == pytest.approx(oracle.root_mean_squared_error(truth, predicted, **w))
    assert result["mae"].value == pytest.approx(oracle.mean_absolute_error(truth, predicted, **w))
    assert result["r2"].value == pytest.approx(oracle.r2_score(truth, predicted, **w))


def test_equal_weights_change_no_value():
    truth, probabilities = rng(1).integers(0, 2, 80), rng(2).dirichlet([1, 1], 80)
    plain = metrics.classification(truth, probabilities, "ab", draws(80))
    weighed = metrics.classification(truth, probabilities, "ab", draws(80), np.full(80, 2.5))
    assert [f.value for f in weighed] == pytest.approx([f.value for f in plain])


def test_weighted_bars_are_wider_where_few_rows_count():
    truth, assigned = rng(1).integers(0, 2, 400), np.zeros(400, np.intp)
    few = np.where(np.arange(400) < 20, 1000.0, 1.0)
    wide, narrow = (by_name(decisions(truth, assigned, "ab", draws(400), w))["accuracy"] for w in (few, np.ones(400)))
    assert wide.upper - wide.lower > 3 * (narrow.upper - narrow.lower)


def test_weighted_intervals_hold_the_truth():
    """Right with probability 3/4 whatever the weight: 400 samples of 100 rows."""
    random, held = rng(7), 0
    shared = draws(100)
    for _ in range(400):
        truth, right = random.integers(0, 2, 100), random.random(100) < 0.75
        assigned, weights = np.where(right, truth, 1 - truth), random.exponential(size=100)
        accuracy = decisions(truth, assigned, "ab", shared, weights)[0]
        held += accuracy.lower <= 0.75 <= accuracy.upper
    assert 0.915 <= held / 400 <= 0.985
