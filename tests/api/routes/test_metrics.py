"""POST /v1/metrics: pairs in, metrics out."""

import numpy as np
import pytest
from sklearn import metrics

URL = "/v1/metrics"


def measure(client, **body):
    response = client.post(URL, json=body)
    assert response.status_code == 200, response.text
    reply = response.json()
    return reply, {(f["name"], f.get("label")): f for f in reply["metrics"]}


def faults(client, **body):
    response = client.post(URL, json=body)
    assert response.status_code == 422, response.text
    assert response.json()["code"] == "invalid_request"
    return {(error["pointer"], error["code"]) for error in response.json()["errors"]}


def test_numbers(client):
    """B3.11: errors 1, -2, 2 give √3. Every number is rounded to its error bar."""
    response, measured = measure(client, task="regression", truth=[1, 5, 9], predicted=[2, 3, 11])
    assert (response["task"], response["rows"]) == ("regression", 3)
    assert measured["rmse", None]["value"] == pytest.approx(1.7320508, abs=5e-8)
    assert measured["mae", None]["value"] == pytest.approx(5 / 3)
    assert measured["r2", None]["value"] == pytest.approx(1 - 9 / 32)
    for metric in measured.values():
        assert metric["lower"] <= metric["value"] <= metric["upper"]
        assert metric["interval"] == "bootstrap (studentised)"
        assert len(metric["display"]) < 25


def test_residuals_are_looked_at_without_a_model(client):
    """B5.10: the ten of the book, A² = 0.1293204, and the pair that is far out when there is one."""
    residuals = [-1.2, -0.7, -0.3, -0.25, -0.1, 0.05, 0.2, 0.4, 0.8, 1.1]
    response, _ = measure(client, task="regression", truth=residuals, predicted=[0] * 10)
    first = response["residuals"]["normality"][0]
    assert (response["residuals"]["part"], first["name"]) == ("evaluation", "anderson-darling")
    assert first["statistic"] == pytest.approx(0.1293204, abs=5e-8)
    response, _ = measure(client, task="regression", truth=[*residuals, 30], predicted=[0] * 11)
    assert response["residuals"]["outlier_rows"] == [10]


def test_the_counts_of_the_book(client):
    """B3.17: TP=8 FP=2 FN=4 TN=86 give .94, .8 and .666667; the cells name the pairs."""
    truth, predicted = 8 * ["+"] + 2 * ["-"] + 4 * ["+"] + 86 * ["-"], 10 * ["+"] + 90 * ["-"]
    response, measured = measure(client, task="classification", truth=truth, predicted=predicted, examples=3)
    assert measured["accuracy", None]["value"] == pytest.approx(0.94)
    assert measured["precision", "+"]["value"] == pytest.approx(0.8)
    assert measured["recall", "+"]["value"] == pytest.approx(0.666667, abs=5e-7)
    assert measured["accuracy", None]["interval"] == "clopper-pearson"
    matrix = response["confusion_matrix"]
    assert (matrix["classes"], matrix["counts"]) == (["+", "-"], [[8, 4], [2, 86]])
    assert matrix["cells"] == [
        {"truth": 0, "assigned": 1, "count": 4, "rows": [10, 11, 12]},
        {"truth": 1, "assigned": 0, "count": 2, "rows": [8, 9]},
        {"truth": 1, "assigned": 1, "count": 86, "rows": [14, 15, 16]},
        {"truth": 0, "assigned": 0, "count": 8, "rows": [0, 1, 2]},
    ]
    assert "rejection" not in response
    assert response["curves"] == []


def test_undefined_is_null_never_0(client):
    """B3.17: 0/0. Nothing was called b, nothing is c."""
    body = {"truth": ["a", "a", "b"], "predicted": ["a", "a", "a"], "classes": ["a", "b", "c"]}
    _, measured = measure(client, task="classification", **body)
    for name, label in (("precision", "b"), ("precision", "c"), ("recall", "c"), ("f1", "c")):
        assert measured[name, label]["value"] is None
        assert measured[name, label]["display"] == "undefined"
    assert measured["recall", "b"]["value"] == 0
    _, measured = measure(client, task="regression", truth=[2, 2, 2], predicted=[1, 2, 3])
    assert measured["r2", None]["value"] is None


@pytest.fixture(scope="module")
def drawn():
    random = np.random.default_rng(3)
    scores = random.random(200)
    return (random.random(200) < scores).astype(int), scores, random.exponential(size=200)


def test_scores_are_probabilities_of_the_second_class(client, drawn):
    """Against scikit-learn; E17: the area is P(score of a positive > score of a negative)."""
    truth, scores, weights = drawn
    body = {"truth": truth.tolist(), "scores": scores.tolist(), "weights": weights.tolist()}
    response, measured = measure(client, task="classification", **body)
    w = {"sample_weight": weights}
    expected = {
        "accuracy": metrics.accuracy_score(truth, scores > 0.5, **w),
        "log_loss": metrics.log_loss(truth, np.clip(scores, 1e-15, 1 - 1e-15), **w),
        "brier": metrics.brier_score_loss(truth, scores, **w),
        "roc_auc": metrics.roc_auc_score(truth, scores, **w),
        "pr_auc": metrics.average_precision_score(truth, scores, **w),
        "balanced_accuracy": metrics.balanced_accuracy_score(truth, scores > 0.5, **w),
        "mcc": metrics.matthews_corrcoef(truth, scores > 0.5, **w),
    }
    assert {name: measured[name, None]["value"] for name in expected} == pytest.approx(expected, rel=1e-6)
    curve, of_precision = response["curves"]
    assert (curve["name"], of_precision["name"]) == ("roc", "precision_recall")
    assert [measured[name, None].get("average") for name in ("f1", "accuracy")] == ["macro", None]
    area = np.trapezoid(curve["y"], curve["x"])
    assert area == pytest.approx(expected["roc_auc"], abs=1e-3)
    rejection = response["rejection"]
    assert rejection["thresholds"][:3] == [0.5, 0.51, 0.52]
    assert rejection["accuracy"][0] == pytest.approx(expected["accuracy"])
    both = {"probabilities": np.stack([1 - scores, scores], 1).tolist(), "classes": [0, 1]}
    same, _ = measure(client, task="classification", truth=body["truth"], weights=body["weights"], **both)
    assert same["rejection"]["rejected"] == pytest.approx(rejection["rejected"])


def test_a_threshold_decides_between_two_classes(client):
    """B8.1: yes from a probability on that may be set."""
    body = {"truth": [0, 1, 1, 0], "scores": [0.2, 0.3, 0.9, 0.6]}
    for threshold, counts in (
        (0.25, [[1, 1], [0, 2]]),
        (0.5, [[1, 1], [1, 1]]),
        (0.6, [[1, 1], [1, 1]]),
        (0.61, [[2, 0], [1, 1]]),
    ):
        response, _ = measure(client, task="classification", threshold=threshold, **body)
        assert response["confusion_matrix"]["counts"] == counts
    assert faults(client, task="classification", threshold=0.5, truth=[1, 0], predicted=[1, 1]) == {
        ("/threshold", "invalid")
    }


def test_costs(client):
    """B3.19: a poisonous mushroom eaten costs 100: what is edible with 0.98 is left."""
    costs = {"classes": ["edible", "poisonous"], "costs": [[0, 1], [100, 0]], "reject": 0.9}
    body = {"truth": ["edible", "poisonous", "edible"], "scores": [0.02, 0.02, 0.001]}
    response, _ = measure(client, task="classification", classes=["edible", "poisonous"], costs=costs, **body)
    cost = response["costs"]
    assert cost["threshold"] == pytest.approx(1 / 101)
    assert cost["rejected"]["value"] == pytest.approx(2 / 3)
    assert cost["cost"]["value"] == pytest.approx(1.8 / 3)
    assert cost["cost_of_most_probable"]["value"] == pytest.approx(100 / 3)


def test_one_and_the_text_one_are_different_classes(client):
    response, measured = measure(
        client, task="classification", truth=[1, "1", True, 1.0], predicted=[1.0, "1", True, "1"]
    )
    assert len(response["confusion_matrix"]["classes"]) == 3
    assert measured["accuracy", None]["value"] == 0.75


def test_every_fault_at_once(client):
    body = {
        "truth": ["a", "b", "x"], "predicted": ["a"], "classes": ["a", "b", "b"],
        "probabilities": [[0.5, 0.6, -0.1], [0.1, 0.1, 0.1], [1]], "scores": [0.5, 0.5, 0.5], "weights": [0, 0, 0],
        "costs": {"classes": ["a", "q"], "costs": [[0, 1], [1, 0]]},
    }  # fmt: skip
    assert faults(client, task="classification", **body) == {
        ("/predicted", "wrong_length"),
        ("/weights", "invalid"),
        ("/scores", "invalid"),
        ("/classes", "duplicate"),
        ("/truth/2", "unknown_class"),
        ("/probabilities/0", "wrong_sum"),
        ("/probabilities/1", "wrong_sum"),
        ("/probabilities/2", "wrong_length"),
        ("/costs/classes", "invalid"),
    }
    assert faults(client, task="classification", truth=["a"]) == {("/predicted", "missing")}
    assert faults(client, task="regression", truth=[1, 2], predicted=[1]) == {("/predicted", "wrong_length")}


def test_what_does_not_fit_the_schema_has_one_fault_each(client):
    wrong = {"task": "classification", "truth": [None, {}, "a"], "predicted": ["a"]}
    assert faults(client, **wrong) == {
        ("/truth/0", "class_label"),
        ("/truth/1", "class_label"),
        ("/predicted", "wrong_length"),
    }
    assert faults(client, **wrong, scores=[2, 0.5, 0.5], classes=[None]) == {
        ("/classes/0", "class_label"),
        ("/scores/0", "less_than_equal"),
    }
    assert {pointer for pointer, _ in faults(client, task="guessing", truth=[])} <= {"", "/task"}


def test_one_pair_has_metrics_without_bars(client):
    _, measured = measure(client, task="regression", truth=[1], predicted=[3])
    assert (measured["mae", None]["value"], measured["mae", None].get("lower")) == (2, None)
    _, measured = measure(client, task="classification", truth=["a"], predicted=["a"])
    assert measured["accuracy", None]["value"] == 1
