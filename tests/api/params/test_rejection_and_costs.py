"""Predictions with a rule of rejection: what is accepted, what goes to a person, what is cheapest."""

from uuid import uuid4

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_iris

ROWS = [[width, length] for width in (0.2, 1.0, 1.5, 1.7, 2.3) for length in (4.8, 6.0, 7.0)]


@pytest.fixture(scope="module")
def models(services, publish):
    """Three classes, two classes, and a regression, published."""
    prefix = f"deciding-{uuid4().hex[:8]}"
    for name, target in (("species", "species"), ("size", "size"), ("number", "length")):
        publish(services.work, f"{prefix}-{name}", algorithm="ridge" if name == "number" else "logistic", target=target)
    return prefix


@pytest.fixture
def ask(client, models):
    def go(name, query=""):
        def row(width, length):
            return {"width": width, "length": length, "size": "large" if width > 1 else "small", "species": "virginica"}

        body = {"rows": [row(*pair) for pair in ROWS]}
        return client.post(f"/v1/models/{models}-{name}/predict{query}", json=body)

    return go


def test_without_a_rule_nothing_is_decided(ask):
    assert "decisions" not in ask("species").json()


@pytest.mark.parametrize("threshold", [0.7, 0.9])
def test_doubtful_rows_are_rejected(ask, threshold):
    plain, result = ask("species").json(), ask("species", f"?min_probability={threshold}").json()
    top = np.array(result["probabilities"]).max(axis=1)
    assert result["decisions"] == ["accepted" if p >= threshold else "rejected" for p in top]
    assert set(result["decisions"]) == {"accepted", "rejected"}
    assert result["predictions"] == plain["predictions"]


def test_the_curve_of_an_ensemble_says_what_a_threshold_leaves(client, services, publish):
    """E15, E18: the share that is rejected, and the accuracy of the others with its exact bars."""
    name, iris = f"curve-{uuid4().hex[:8]}", load_iris()
    publish(services.work, name, algorithm="random_forest", target="species")
    assert client.get(f"/v1/models/{name}/versions/1/report").json()["rejection"]["thresholds"][0] == pytest.approx(
        1 / 3
    )
    truth = iris.target_names[np.roll(iris.target, 20)].tolist()
    rows = [{"width": w, "length": long, "size": "large" if w > 1 else "small"} for long, w in iris.data[:, [0, 3]]]
    result = client.post(f"/v1/models/{name}/predict", json={"rows": rows}).json()
    pairs = {"task": "classification", "truth": truth, "probabilities": result["probabilities"]}
    curve = client.post("/v1/metrics", json={**pairs, "classes": result["classes"]}).json()["rejection"]
    for place in (0, 20, 35):
        threshold = curve["thresholds"][place]
        decided = client.post(f"/v1/models/{name}/predict?min_probability={threshold}", json={"rows": rows}).json()
        accepted = np.array(decided["decisions"]) == "accepted"
        hits = (np.array(decided["predictions"]) == truth)[accepted].sum()
        assert curve["rejected"][place] == pytest.approx(1 - accepted.mean())
        assert curve["accuracy"][place] == pytest.approx(hits / accepted.sum())
        bars = stats.binomtest(int(hits), int(accepted.sum())).proportion_ci(0.95, method="exact")
        assert [curve["lower"][place], curve["upper"][place]] == pytest.approx([*bars])
    assert 0 < curve["rejected"][35] < 1


def test_a_threshold_for_each_class(ask):
    result = ask("species", "?min_probability=0.99&min_probability=0&min_probability=1").json()
    p = np.array(result["probabilities"])
    limits = np.array([0.99, 0, 1])[p.argmax(axis=1)]
    assert result["decisions"] == ["accepted" if one else "rejected" for one in p.max(axis=1) >= limits]


def test_the_band_of_the_book(ask):
    """B3.4: 0.4 to 0.6 goes to a human."""
    result = ask("size", "?reject_low=0.4&reject_high=0.6").json()
    second = [p[1] for p in result["probabilities"]]
    assert result["decisions"] == ["rejected" if 0.4 <= p <= 0.6 else "accepted" for p in second]


def test_a_threshold_moves_the_border(ask):
    """B8.1: yes if P reaches a threshold that may be set."""
    result = {t: ask("size", f"?threshold={t}").json() for t in (0.05, 0.5, 0.95)}
    for t, response in result.items():
        second = [p[1] for p in response["probabilities"]]
        assert response["predictions"] == [response["classes"][p >= t] for p in second]
        assert set(response["decisions"]) == {"accepted"}
    assert result[0.5]["predictions"] == ask("size").json()["predictions"]
    assert result[0.05]["predictions"] != result[0.95]["predictions"]


def test_the_lead_over_the_second(ask):
    result = ask("species", "?min_margin=0.5").json()
    p = np.sort(result["probabilities"], axis=1)
    assert result["decisions"] == ["accepted" if one else "rejected" for one in p[:, -1] - p[:, -2] >= 0.5]


def test_the_cheapest_class_is_predicted(ask):
    """B3.19: argminⱼ Σᵢ pᵢ Cᵢⱼ, by hand."""
    cost = np.array([[0, 1, 1], [1, 0, 1], [50, 50, 0]])
    query = "?costs=" + ";".join(",".join(map(str, row)) for row in cost)
    plain, result = ask("species").json(), ask("species", f"{query}&reject_cost=0.3").json()
    expected = np.array(result["probabilities"]) @ cost
    assert result["predictions"] == [result["classes"][j] for j in expected.argmin(axis=1)]
    assert result["predictions"] != plain["predictions"]
    assert result["decisions"] == ["rejected" if low > 0.3 else "accepted" for low in expected.min(axis=1)]


def test_a_row_without_a_prediction_has_no_decision(client, models):
    rows = [{"width": 0.2, "length": 5.0, "size": "small"}, {"width": "wide", "length": 5.0, "size": "small"}]
    query = "?min_probability=0.5&on_error=null"
    result = client.post(f"/v1/models/{models}-species/predict{query}", json={"rows": rows}).json()
    assert result["decisions"] == ["accepted", None]
    none = client.post(f"/v1/models/{models}-species/predict{query}", json={"rows": rows[1:]}).json()
    assert none["decisions"] == [None]


@pytest.mark.parametrize(
    ("name", "query", "pointer"),
    [
        ("number", "min_probability=0.5", "/query"),
        ("species", "reject_low=0.4&reject_high=0.6", "/query/reject_low"),
        ("species", "min_probability=0.4&min_probability=0.6", "/query/min_probability"),
        ("size", "reject_low=0.4", "/query/reject_high"),
        ("size", "reject_low=0.6&reject_high=0.4", "/query/reject_high"),
        ("species", "costs=0,1;1,0", "/query/costs"),
        ("species", "costs=0,1;1", "/query/costs"),
        ("species", "costs=0,1;x,0", "/query/costs"),
        ("species", "reject_cost=1", "/query/reject_cost"),
        ("species", "threshold=0.4", "/query/threshold"),
        ("size", "threshold=0.4&costs=0,1;1,0", "/query/threshold"),
        ("number", "threshold=0.4", "/query"),
        ("species", "min_probability=2", "/query/min_probability/0"),
        ("species", "min_probability=nan", "/query/min_probability/0"),
    ],
)
def test_rules_that_do_not_fit_are_reported(ask, name, query, pointer):
    response = ask(name, f"?{query}")
    assert response.status_code == 422, response.text
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]
