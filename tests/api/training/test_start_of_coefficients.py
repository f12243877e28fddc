"""Trainings that start from the coefficients of a stored version, over HTTP."""

import numpy as np
import pytest

AT = "/initialise_from"


def csv(seed, classes=("no", "yes"), rows=200):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2)) * [1 + seed, 30] + [5, 100 * seed]
    score = (x - x.mean(axis=0)) / x.std(axis=0) @ [2.0, -1.0] + rng.normal(size=rows)
    code = np.digitize(score, np.linspace(-1, 1, len(classes) + 1)[1:-1])
    lines = (f"{a!r},{b!r},{classes[c]},{s!r}" for (a, b), c, s in zip(x.tolist(), code, score.tolist(), strict=True))
    return "\n".join(["a,b,outcome,score", *lines])


@pytest.fixture(scope="module")
def datasets(client):
    texts = [csv(1), csv(2), csv(1, ("no", "perhaps", "yes")), csv(1, ("left", "right"))]
    return [client.post("/v1/datasets", content=text).json()["id"] for text in texts]


def request(model, dataset, algorithm, **more):
    body = {"model": model, "dataset": dataset, "target": "outcome", "features": ["a", "b"], "algorithm": algorithm}
    return body | more


LEARNERS = {
    "logistic": {"name": "logistic"},
    "linear-sgd": {"name": "linear_sgd", "tol": 1e-6},
    "perceptron": {"name": "perceptron", "epochs": 5},
}


@pytest.fixture(scope="module")
def starts(done, datasets):
    for word, algorithm in LEARNERS.items():
        done("train", request(f"coefficients-{word}", datasets[0], algorithm))
    return {word: {"model": f"coefficients-{word}", "version": 1} for word in LEARNERS}


def report_of(client, model):
    return client.get(f"/v1/models/{model}/versions/1/report").json()


@pytest.mark.parametrize("word", ["logistic", "linear-sgd"])
def test_other_rows_end_at_their_own_minimum(client, done, datasets, starts, word):
    """The second table has other means and deviations, so the start is converted."""
    done("train", request(f"coefficients-anew-{word}", datasets[1], LEARNERS[word]))
    done("train", request(f"coefficients-on-{word}", datasets[1], LEARNERS[word], initialise_from=starts[word]))
    anew, on = report_of(client, f"coefficients-anew-{word}"), report_of(client, f"coefficients-on-{word}")
    assert on["converged"]
    assert on["iterations"] > 0
    np.testing.assert_allclose(on["summary"]["coefficients"], anew["summary"]["coefficients"], rtol=1e-3)
    receipt = client.get(f"/v1/models/coefficients-on-{word}/versions/1").json()["receipt"]["initialised_from"]
    assert receipt["model"] == starts[word]["model"]


@pytest.mark.parametrize("word", ["logistic", "linear-sgd"])
def test_the_same_rows_end_where_they_start(client, done, datasets, starts, word):
    model = f"coefficients-stay-{word}"
    done("train", request(model, datasets[0], LEARNERS[word], initialise_from=starts[word]))
    report, start = report_of(client, model), report_of(client, starts[word]["model"])
    assert report["iterations"] == 0 < start["iterations"]
    assert report["summary"]["coefficients"] == start["summary"]["coefficients"]
    assert any("has learned from this dataset" in warning for warning in report["warnings"])


def test_the_start_of_a_perceptron_is_kept(client, done, datasets, starts):
    done(
        "train", request("coefficients-kept", datasets[1], LEARNERS["perceptron"], initialise_from=starts["perceptron"])
    )
    refused = client.delete("/v1/models/coefficients-perceptron/versions/1")
    assert (refused.status_code, refused.json()["code"]) == (409, "version_in_use")
    assert "coefficients-kept/1" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("place", "changes", "fault"),
    [
        (2, {}, ("/target", "wrong_classes")),
        (0, {"features": ["a"]}, (AT, "wrong_columns")),
        (0, {"kinds": {"a": "categorical"}}, (AT, "wrong_kind")),
        (0, {"preprocessing": {"basis": [{"kind": "polynomial"}]}}, ("/preprocessing/basis", "invalid")),
        (0, {"algorithm": {"name": "ridge"}, "target": "score"}, (AT, "not_offered")),
        (0, {"algorithm": {"name": "perceptron"}}, (AT, "invalid")),
    ],
)
def test_other_columns_classes_and_preparations_are_refused(client, datasets, starts, place, changes, fault):  # noqa: PLR0917
    body = request("coefficients-no", datasets[place], LEARNERS["logistic"], initialise_from=starts["logistic"])
    response = client.post("/v1/jobs/train:validate", json=body | changes)
    assert response.status_code == 422
    assert [(error["pointer"], error["code"]) for error in response.json()["errors"]] == [fault]


def test_another_task_and_another_constant_are_refused_together(client, datasets, starts):
    algorithm = {"name": "linear_sgd", "fit_intercept": False}
    body = request("coefficients-no", datasets[0], algorithm, target="score", initialise_from=starts["linear-sgd"])
    errors = client.post("/v1/jobs/train", json=body).json()["errors"]
    assert {error["pointer"] for error in errors} == {AT, "/algorithm/fit_intercept"}


def test_other_names_of_classes_fail_by_name(ended, datasets, starts):
    body = request("coefficients-no", datasets[3], LEARNERS["logistic"], initialise_from=starts["logistic"])
    error = ended("train", body)["error"]
    assert error["code"] == "invalid_data"
    assert "Its classes are 'no', 'yes', those of this dataset 'left', 'right'" in error["detail"]
