"""Rows without a target over HTTP: an algorithm that learns from them does, all others leave them out."""

import numpy as np
import pytest
from sklearn import datasets


@pytest.fixture(scope="module")
def moons():
    x, y = datasets.make_moons(300, noise=0.06, random_state=1)
    known = np.zeros(300, bool)
    known[np.r_[np.flatnonzero(y == 0)[:15], np.flatnonzero(y == 1)[:15]]] = True
    return x, y, known


@pytest.fixture
def dataset(client, moons):
    lines = [f"{a},{b},{'upper' if code == 0 else 'lower'}" for (a, b), code in zip(*moons[:2], strict=True)]
    lines = [line if there else line.rpartition(",")[0] + "," for line, there in zip(lines, moons[2], strict=True)]
    return client.post("/v1/datasets", content="\n".join(["a,b,kind", *lines])).json()["id"]


NEAREST = {"name": "self_training", "estimator": {"name": "knn", "n_neighbors": 3}, "k_best": 40, "max_iter": 50}


def test_rows_without_a_target_are_labelled_round_by_round(client, dataset, done, moons):
    x, y, known = moons
    body = {"model": "moons", "dataset": dataset, "target": "kind", "algorithm": NEAREST}
    plan = client.post("/v1/jobs/train:validate", json=body).json()
    assert "270 rows without a target are learned from as unlabelled rows." in plan["warnings"]
    job = done("train", body)
    report = client.get(f"/v1/models/moons/versions/{job['version']}/report").json()
    assert (report["rows_train"], report["rows_test"], report["rows_unlabelled"]) == (24, 6, 270)
    assert "270 rows without a target are learned from in every fit, and tested in none." in report["evidence"]
    summary = report["summary"]
    assert summary["unlabelled_rows"] == 270
    assert (
        sum(part["labelled_rows"] for part in summary["rounds"]) == summary["labelled_rows"] == len(summary["labels"])
    )
    assert [part["round"] for part in summary["rounds"]] == list(range(1, len(summary["rounds"]) + 1))
    for part in summary["rounds"]:
        own = [label for label in summary["labels"] if label["round"] == part["round"]]
        assert len(own) == part["labelled_rows"] <= NEAREST["k_best"]
        lowest = min(label["probability"] for label in own)
        assert lowest == part["lowest_probability"] >= summary["min_probability"] == 0.75
    labels = {label["row"]: label["class"] for label in summary["labels"]}
    assert not set(labels) & set(np.flatnonzero(known).tolist())
    right = [(label == "upper") == (y[row] == 0) for row, label in labels.items()]
    assert np.mean(right) > 0.97
    predicted = client.post("/v1/models/moons/predict", json={"columns": ["a", "b"], "data": x.tolist()}).json()
    assert np.mean((np.array(predicted["predictions"]) == "upper") == (y == 0)) > 0.97


def test_a_margin_among_rows_without_a_target(client, dataset, done, moons):
    x, y, known = moons
    algorithm = {"name": "transductive_svm", "gamma": 5, "init": "both"}
    body = {"model": "margin", "dataset": dataset, "target": "kind", "algorithm": algorithm}
    job = done("train", body | {"preprocessing": {"scaling": "none"}})
    report = client.get(f"/v1/models/margin/versions/{job['version']}/report").json()
    assert (report["rows_train"], report["rows_test"], report["rows_unlabelled"]) == (24, 6, 270)
    assert report["converged"]
    summary = report["summary"]
    (machine,) = summary["machines"]
    assert machine["classes"] == ["upper"]
    assert machine["labelled_as_class"] == 135
    assert machine["switched_rows"] == sum(step["switched_rows"] for step in machine["steps"])
    falls = [
        after["objective"] < before["objective"]
        for before, after in zip(machine["steps"], machine["steps"][1:], strict=False)
        if after["switched_rows"]
    ]
    assert all(falls)
    labels = {label["row"]: label["class"] for label in summary["labels"]}
    assert set(labels) == set(np.flatnonzero(~known).tolist())
    assert np.mean([(label == "upper") == (y[row] == 0) for row, label in labels.items()]) > 0.97
    predicted = client.post(
        "/v1/models/margin/predict?include=decision", json={"columns": ["a", "b"], "data": x.tolist()}
    ).json()
    sides = np.array(predicted["outputs"]["decision"]) > 0
    assert ((np.array(predicted["predictions"]) == "upper") == sides.reshape(-1)).all()
    assert np.mean(sides.reshape(-1) == (y == 0)) > 0.97


def test_priors_of_a_transductive_machine_are_one_for_each_class(client, dataset):
    algorithm = {"name": "transductive_svm", "priors": [0.2, 0.3, 0.5], "unlabelled_weight": -1}
    body = {"model": "priors", "dataset": dataset, "target": "kind", "algorithm": algorithm}
    refused = client.post("/v1/jobs/train", json=body)
    assert refused.status_code == 422
    errors = {error["pointer"]: error["detail"] for error in refused.json()["errors"]}
    assert errors.keys() == {"/algorithm/unlabelled_weight", "/algorithm/priors"}
    assert errors["/algorithm/priors"] == "There are 2 classes, and 3 priors."


def test_folds_divide_labelled_rows_and_every_fit_learns_from_the_others(client, dataset, done):
    body = {
        "model": "folded",
        "dataset": dataset,
        "target": "kind",
        "algorithm": NEAREST,
        "validation": {"method": "kfold", "folds": 3},
    }
    job = done("train", body)
    report = client.get(f"/v1/models/folded/versions/{job['version']}/report").json()
    assert sum(fold["rows"] for fold in report["folds"]) == report["rows_train"] == 24
    others = body | {"algorithm": NEAREST["estimator"], "model": "labelled-alone"}
    report = client.get(f"/v1/models/labelled-alone/versions/{done('train', others)['version']}/report").json()
    assert (report["rows_train"], report["rows_unlabelled"]) == (24, 0)
    assert "270 rows without a target are not used." in report["warnings"]


def test_scales_are_learned_from_all_rows(client, done):
    """Two labelled rows lie near 0; of all rows the deviation is hundreds of times theirs."""
    lines = ["0,x", "0.1,x", "1,y", "1.1,y", *[f"{100 + i % 7}," for i in range(40)]]
    dataset = client.post("/v1/datasets", content="\n".join(["a,kind", *lines])).json()["id"]
    body = {
        "model": "scaled",
        "dataset": dataset,
        "target": "kind",
        "features": ["a"],
        "algorithm": {"name": "self_training"},
        "preprocessing": {"scaling": "standard"},
        "validation": {"test_fraction": 0},
    }
    report = client.get(f"/v1/models/scaled/versions/{done('train', body)['version']}/report").json()
    values = np.array([0, 0.1, 1, 1.1, *[100 + i % 7 for i in range(40)]])
    assert report["scales"] == pytest.approx([values.std()], rel=0.02)
