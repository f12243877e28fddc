"""Areas under precision-recall curves, balanced accuracy and MCC equal scikit-learn's, and say what they average."""

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn import metrics as oracle

from app.ml.evaluation import metrics, precision_recall
from app.ml.evaluation.auc import areas, curves
from app.ml.evaluation.bootstrap_estimate import corrected
from app.ml.evaluation.decisions import decisions
from app.ml.evaluation.metrics_across_folds import across_folds
from app.ml.evaluation.precision_recall import average_precision
from app.ml.evaluation.roc import steps
from app.ml.evaluation.train_test_gaps import gaps
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.metric_value import fold_mean
from app.ml.statistics.resampling import Rows

LABELS = ["a", "b", "c", "d", "e"]
MACRO = ("precision", "recall", "f1")


def rng(seed=0):
    return np.random.default_rng(seed)


def drawn(k, n=150):
    """Classes, and probabilities that know something of them."""
    truth = rng(k).integers(0, k, n)
    return truth, (5 * rng(k + 1).dirichlet(np.ones(k), n) + np.eye(k)[truth]) / 6


def metrics_of(truth, probabilities, weights=None, draws=None):
    n, k = probabilities.shape
    draws = Resamples.of(n, rng()) if draws is None else draws
    measured = metrics.classification(np.asarray(truth), probabilities, LABELS[:k], draws, weights)
    return {(metric.name, metric.label): metric for metric in measured}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_metrics_are_scikit_learns(k, weighted):
    truth, probabilities = drawn(k)
    weights = rng(9).exponential(size=150) if weighted else None
    found, assigned = metrics_of(truth, probabilities, weights), probabilities.argmax(axis=1)
    w = {"sample_weight": weights}
    each = [oracle.average_precision_score(truth == j, probabilities[:, j], **w) for j in range(k)]
    expected = {
        ("pr_auc", None): each[1] if k == 2 else np.mean(each),
        **{("pr_auc", LABELS[j]): each[j] for j in range(k)},
        ("balanced_accuracy", None): oracle.balanced_accuracy_score(truth, assigned, **w),
        ("mcc", None): oracle.matthews_corrcoef(truth, assigned, **w),
    }
    assert {key: found[key].value for key in expected} == pytest.approx(expected, rel=1e-12)
    assert all(found[key].lower < found[key].value < found[key].upper for key in expected)


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_average_precision_and_its_curve_are_exact_with_ties(levels):
    scores = rng(levels).integers(0, levels, 200) / levels
    positive = rng(1).random(200) < 0.2 + 0.6 * scores
    ranked = steps(scores, positive)
    value = oracle.average_precision_score(positive, scores)
    assert average_precision(ranked).value == pytest.approx(value, rel=1e-12)
    recall, precision = precision_recall.curve(ranked, most=1000)
    assert (np.diff(recall, prepend=0.0) * precision).sum() == pytest.approx(value, rel=1e-12)


def test_slopes_are_the_derivatives_of_the_area():
    scores, positive, weights = rng(1).integers(0, 9, 40), rng(2).random(40) < 0.4, rng(3).exponential(size=40)
    slopes, step = average_precision(steps(scores, positive, weights)).slopes, 1e-6
    moved = [average_precision(steps(scores, positive, weights + step * np.eye(40)[row])).value for row in range(40)]
    value = average_precision(steps(scores, positive, weights)).value
    np.testing.assert_allclose((np.array(moved) - value) / step, slopes, atol=1e-5)


def test_what_is_nothing_over_nothing_is_undefined():
    one_class = metrics_of([0, 0], np.array([[0.9, 0.1], [0.4, 0.6]]))
    assert [one_class[name, None].value for name in ("pr_auc", "roc_auc", "mcc")] == [None, None, None]
    assert one_class["balanced_accuracy", None].value == 0.5
    one_prediction = metrics_of([0, 0, 1], np.array([[0.9, 0.1]] * 3))
    assert one_prediction["mcc", None].value is None
    assert (one_prediction["pr_auc", None].value, one_prediction["balanced_accuracy", None].value) == (
        pytest.approx(1 / 3),
        0.5,
    )


def test_no_error_seen_is_no_proof_of_certainty():
    truth = np.repeat([0, 1], [10, 20])
    found = metrics_of(truth, np.eye(2)[truth])
    for name in ("pr_auc", "mcc"):
        metric = found[name, None]
        assert (metric.value, metric.upper, metric.lower) == (1.0, 1.0, pytest.approx(0.025 ** (1 / 10)))
    z2 = stats.t.ppf(0.975, 30 - 2) ** 2
    least = 1 - np.hypot(z2 / (10 + z2), z2 / (20 + z2)) / 2  # score intervals of both shares
    for name in ("balanced_accuracy", "precision", "recall"):
        metric = found[name, None]
        assert (metric.value, metric.upper, metric.lower) == (1.0, 1.0, pytest.approx(least))


def test_a_rare_class_without_a_mistake_keeps_its_doubt():
    """20 of 20 are right, and 176 of 180: resampling knows of no doubt about the 20 and gave 0.978 to 0.995."""
    truth = np.repeat([1, 0], [20, 180])
    assigned = np.concatenate([np.ones(20, np.intp), np.repeat([1, 0], [4, 176])])
    metric = metrics_of(truth, np.eye(2)[assigned])["balanced_accuracy", None]
    assert metric.value == pytest.approx((1 + 176 / 180) / 2)
    assert metric.lower < 0.92
    assert metric.interval == "score (of shares)"


DECISIONS = [(60, 0.5, 0.8, 0.8), (200, 0.1, 0.7, 0.9), (200, 0.05, 0.6, 0.95), (1000, 0.05, 0.6, 0.97)]
DECISIONS.append((200, 0.1, 0.95, 0.98))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "share", "found", "left"), DECISIONS)
def test_intervals_of_decisions_hold_the_truth(n, share, found, left):
    """1,000 samples of a class that may be rare; `found` of its rows and `left` of the others are assigned right."""
    random, held = rng(0), {}
    table = np.array([[(1 - share) * left, (1 - share) * (1 - left)], [share * (1 - found), share * found]])
    there, given, hits = table.sum(axis=1), table.sum(axis=0), table.diagonal()
    truths = {
        "balanced_accuracy": (hits / there).mean(),
        "precision": (hits / given).mean(),
        "f1": (2 * hits / (there + given)).mean(),
        "mcc": (hits.sum() - there @ given) / np.sqrt((1 - there @ there) * (1 - given @ given)),
    }
    draws = Resamples.of(n, random)
    for _ in range(1000):
        truth = (random.random(n) < share) * 1
        assigned = np.where(random.random(n) < np.where(truth, found, left), truth, 1 - truth)
        for metric in decisions(truth, assigned, ["a", "b"], draws):
            if metric.label is None and metric.name in truths and metric.lower is not None:
                held.setdefault(metric.name, []).append(metric.lower <= truths[metric.name] <= metric.upper)
    shares = {name: np.mean(hit) for name, hit in held.items()}
    assert {name: s for name, s in shares.items() if not 0.925 <= s <= 0.985} == {}


def test_means_over_classes_say_so():
    found = metrics_of(*drawn(3))
    averaged = {key for key, metric in found.items() if metric.average == "macro"}
    assert averaged == {(name, None) for name in (*MACRO, "pr_auc", "roc_auc")}
    assert all(found[key].display.endswith(", macro") for key in averaged)
    of_two = metrics_of(*drawn(2))
    assert {name for (name, _), metric in of_two.items() if metric.average == "macro"} == set(MACRO)
    assert of_two["pr_auc", None].note == "The positive class is b."


def test_means_over_folds_and_the_632_rule_keep_saying_so():
    folds = [list(metrics_of(*drawn(3, n)).values()) for n in (60, 90)]
    for measured in (across_folds(folds), corrected(*folds)):
        messages = {metric.name: metric for metric in measured if metric.label is None}
        assert {name for name, metric in messages.items() if metric.average} == {*MACRO, "pr_auc", "roc_auc"}
        assert messages["f1"].display.endswith(", macro")


def test_curves_of_each_class():
    truth, probabilities = drawn(3)
    names = [curve.name for curve in curves(truth, probabilities, LABELS[:3])]
    assert names == [f"{kind} {label}" for label in "abc" for kind in ("roc", "precision_recall")]
    long = precision_recall.curve(steps(rng(0).random(5000), rng(1).random(5000) < 0.5))
    assert len(long[0]) == 201
    assert long[0][-1] == 1.0


def area(apart, share):
    """That of scores N(apart, 1) against N(0, 1), with this share of positive rows."""

    def density(s):
        up, down = share * stats.norm.sf(s, apart), (1 - share) * stats.norm.sf(s)
        return stats.norm.pdf(s, apart) * up / (up + down)

    return integrate.quad(density, apart - 9, apart + 9, limit=200)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "share"), [(50, 0.5), (50, 0.2), (200, 0.2), (200, 0.05), (1000, 0.02)])
@pytest.mark.parametrize("apart", [0.0, 0.7, 2.0])
def test_intervals_of_average_precision_hold_the_truth(n, share, apart):
    """1,000 samples each; the module's docstring says 93 to 97 %."""
    random, held, truth = rng(1), [], area(apart, share)
    rows = Rows(Resamples(np.zeros(n, np.intp), np.ones((1, 1))))
    while len(held) < 1000:
        positive = random.random(n) < share
        if 1 < positive.sum() < n - 1:
            scores = random.normal(size=n) + apart * positive
            metric = areas(positive * 1, np.stack([-scores, scores], axis=1), ["a", "b"], rows)[1]
            held.append(metric.lower <= truth <= metric.upper)
    assert 0.925 <= np.mean(held) <= 0.975


def test_gaps_and_means_of_a_search_say_so_too():
    one, other = (list(metrics_of(*drawn(3, n)).values()) for n in (60, 90))
    messages = {gap.name: gap.average for gap in gaps(one, other)}
    assert {name for name, average in messages.items() if average} == {*MACRO, "pr_auc", "roc_auc"}
    assert fold_mean("f1", np.array([0.5, 0.6])).average == "macro"
    assert fold_mean("f1", np.array([0.5, 0.6]), "a").average is None
