"""Networks over HTTP: fitted by a worker, predicted, continued, started from, and refused by name."""

import numpy as np
import pytest

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 2))
LINES = ["a,b,inside,y", *(f"{a:.4f},{b:.4f},{'in' if a * a + b * b < 1.2 else 'out'},{a * b:.4f}" for a, b in X)]
SMALL = {"name": "mlp", "hidden_layers": [12], "optimizer": "lbfgs"}


@pytest.fixture(scope="module")
def dataset(client):
    return client.post("/v1/datasets", content="\n".join(LINES).encode()).json()["id"]


def training(model, dataset, target, **algorithm):
    body = {"model": model, "dataset": dataset, "target": target, "features": ["a", "b"]}
    return body | {"algorithm": SMALL | algorithm}


def losses(client, model):
    curves = client.get(f"/v1/models/{model}/versions/1/report").json()["curves"]
    return next(curve["values"] for curve in curves if curve["name"] == "loss")


def test_a_network_learns_a_circle_and_reports_its_layers(client, done, dataset):
    done("train", training("circle", dataset, "inside", optimizer="adam", epochs=400, learning_rate=0.01))
    rows = [{"a": 0, "b": 0}, {"a": 2, "b": 2}, {"a": -2, "b": 1}]
    found = client.post("/v1/models/circle/predict", json={"rows": rows}).json()
    assert found["predictions"] == ["in", "out", "out"]
    report = client.get("/v1/models/circle/versions/1/report").json()
    assert report["summary"]["layer_sizes"] == [2, 12, 1]
    assert len(report["summary"]["gradient_norms"]) == 2
    curve = losses(client, "circle")
    assert curve[-1] < 0.5 * curve[0]
    assert done("update", {"model": "circle", "version": 1, "dataset": dataset})["version"] == 2


def test_a_fit_starts_from_the_weights_of_a_version(client, done, dataset):
    done("train", training("product", dataset, "y"))
    start = {"model": "product", "version": 1}
    done("train", training("product-again", dataset, "y", max_iter=1) | {"initialise_from": start})
    assert losses(client, "product-again")[0] == pytest.approx(losses(client, "product")[-1], rel=0.05)


def test_rows_are_learned_in_stages(client, done, dataset):
    staged = training("staged-network", dataset, "y", optimizer="adam", epochs=3) | {"features": ["b"]}
    done("train", staged | {"difficulty": "a", "difficulty_stages": 2})
    assert client.get("/v1/models/staged-network/versions/1/report").json()["iterations"] == 2 * 3


@pytest.mark.parametrize(
    ("parameters", "at"),
    [
        ({"dropout": 0.5}, "/algorithm/dropout"),
        ({"frozen_layers": 2}, "/algorithm/frozen_layers"),
        ({"hidden_layers": [0]}, "/algorithm/hidden_layers/0"),
        ({"activation": "sine"}, "/algorithm/activation"),
    ],
)
def test_what_does_not_fit_together_is_refused_by_name(client, dataset, parameters, at):
    response = client.post("/v1/jobs/train", json=training("no", dataset, "y", **parameters))
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == [at]
