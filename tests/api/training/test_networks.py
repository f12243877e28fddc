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
    return next(curve["y"] for curve in curves if curve["name"] == "loss")


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


def test_a_sweep_has_the_predictions_of_its_points(client, done, dataset):
    done("train", training("swept", dataset, "y"))
    vary = [{"column": "a", "values": [-1, 0.5]}, {"column": "b", "start": -1, "stop": 1, "points": 3}]
    surface = client.post("/v1/models/swept/sweep", json={"vary": vary}).json()
    assert [axis["values"] for axis in surface["axes"]] == [[-1, 0.5], [-1, 0, 1]]
    rows = [{"a": a, "b": b} for a in (-1, 0.5) for b in (-1, 0, 1)]
    points = client.post("/v1/models/swept/predict", json={"rows": rows}).json()["predictions"]
    assert np.ravel(surface["predictions"]) == pytest.approx(points, rel=1e-9)
    fixed = client.post("/v1/models/swept/sweep", json={"vary": vary[:1], "fixed": {"b": 1}}).json()
    assert fixed["predictions"] == pytest.approx(points[2::3], rel=1e-9)


def test_rows_without_a_target_are_left_out_with_a_warning(client, done):
    lines = [LINES[0], *(f"{line.rpartition(',')[0]}," if i % 3 == 0 else line for i, line in enumerate(LINES[1:]))]
    dataset = client.post("/v1/datasets", content="\n".join(lines).encode()).json()["id"]
    done("train", training("two-thirds", dataset, "y", max_iter=5))
    report = client.get("/v1/models/two-thirds/versions/1/report").json()
    assert (report["rows_train"] + report["rows_test"], report["rows_unlabelled"]) == (80, 0)
    assert "40 rows without a target are not used." in report["warnings"]


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


@pytest.fixture(scope="module")
def codes(done, dataset):
    """An autoencoder of both columns."""
    algorithm = {"name": "autoencoder", "hidden_layers": [6], "n_components": 2, "epochs": 50}
    done("train", {"model": "codes", "dataset": dataset, "features": ["a", "b"], "algorithm": algorithm})
    return {"model": "codes", "version": 1}


def test_codes_are_decoded_and_rows_restored(client, codes):
    rows = [{"a": 0.5, "b": -0.5}, {"a": 30, "b": 30}]
    body = {"rows": rows}
    found = client.post("/v1/models/codes/predict?include=distance,anomaly", json=body).json()
    assert [len(code) for code in found["predictions"]] == [2, 2]
    assert found["outputs"]["anomaly"][1] is True
    again = client.post("/v1/models/codes/reconstruct", json=body).json()
    assert again["errors"] == pytest.approx(np.square(found["outputs"]["distance"]))
    decoded = client.post("/v1/models/codes/decode", json={"predictions": found["predictions"]}).json()
    assert [row["values"] for row in decoded["rows"]] == [row["values"] for row in again["rows"]]


def test_codes_stand_in_front_of_any_learner(done, client, dataset, codes):
    body = {"model": "behind-codes", "dataset": dataset, "target": "inside", "algorithm": {"name": "knn"}}
    done("train", body | {"preprocessing": {"projection": codes}})
    found = client.post("/v1/models/behind-codes/predict", json={"rows": [{"a": 0, "b": 0}]}).json()
    assert found["predictions"] == ["in"]


def test_a_network_starts_from_codes_and_from_a_network_of_another_target(client, done, dataset, codes):
    sizes = {"hidden_layers": [6, 2], "frozen_layers": 2}
    done("train", training("after-codes", dataset, "inside", **sizes) | {"initialise_from": codes})
    receipt = client.get("/v1/models/after-codes/versions/1").json()["receipt"]["initialised_from"]
    assert receipt["model"] == "codes"
    start = {"model": "after-codes", "version": 1}
    done("train", training("transferred", dataset, "y", **sizes) | {"initialise_from": start})
    other = training("no", dataset, "y", **sizes, activation="relu") | {"initialise_from": codes}
    response = client.post("/v1/jobs/train:validate", json=other)
    assert [error["pointer"] for error in response.json()["errors"]] == ["/algorithm/activation"]
