"""Medoids over HTTP: rows of the table by number and name, of columns and of a square table of dissimilarities."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

PLACES = np.random.default_rng(3).normal(size=(14, 2)) + 6 * (np.arange(14) % 2)[:, None]
TOWNS = [f"town {i}" for i in range(14)]
FAR = cdist(PLACES, PLACES, "cityblock")
BEST = min(combinations(range(14), 2), key=lambda pair: FAR[list(pair)].min(axis=0).sum())


@pytest.fixture
def upload(client):
    def send(header, rows):
        lines = [",".join([name, *map(repr, row)]) for name, row in zip(TOWNS, rows.tolist(), strict=True)]
        return client.post("/v1/datasets", content="\n".join([",".join(header), *lines]).encode()).json()["id"]

    return send


def request_of(model, dataset, **algorithm):
    params = {"name": "kmedian", "n_clusters": 2, "metric": "manhattan"} | algorithm
    return {"model": model, "dataset": dataset, "item": "town", "algorithm": params}


def cards(client, model):
    report = client.get(f"/v1/models/{model}/versions/1/report").json()
    return report, [(card["row"], card["item"]) for card in report["summary"]["clusters"]]


def test_medoids_of_columns_are_rows_of_the_table(client, done, upload):
    dataset = upload(["town", "east", "north"], PLACES)
    done("train", request_of("sites", dataset) | {"preprocessing": {"scaling": "none"}})
    report, found = cards(client, "sites")
    assert sorted(found) == [(row, TOWNS[row]) for row in BEST]
    assert report["summary"]["loss"] == pytest.approx(FAR[list(BEST)].min(axis=0).sum(), rel=1e-9)
    own = [PLACES[row].tolist() for row, _ in found]
    assert [list(row["values"].values()) for row in report["prototypes"]] == [pytest.approx(row) for row in own]
    decoded = client.post("/v1/models/sites/decode", json={"predictions": [1]}).json()["rows"]
    assert list(decoded[0]["values"].values()) == pytest.approx(own[1])
    rows = {"columns": ["east", "north"], "data": PLACES.tolist()}
    response = client.post("/v1/models/sites/predict", params={"include": "distance"}, json=rows).json()
    to_medoids = FAR[:, [row for row, _ in found]]
    assert response["predictions"] == to_medoids.argmin(axis=1).tolist()
    assert response["outputs"]["distance"] == pytest.approx(to_medoids.min(axis=1).tolist())


def test_medoids_of_a_square_table_have_names_and_no_columns(client, done, upload):
    square = upload(["town", *TOWNS], FAR)
    done("train", request_of("hubs", square) | {"relations": {"form": "square", "meaning": "dissimilarity"}})
    report, found = cards(client, "hubs")
    assert sorted(found) == [(row, TOWNS[row]) for row in BEST]
    assert report.get("prototypes") is None
    refused = client.post("/v1/models/hubs/decode", json={"predictions": [0]})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_offered")
    new = dict.fromkeys(TOWNS, 9.0) | {found[1][1]: 0.5}
    url = "/v1/models/hubs/predict"
    response = client.post(url, params={"include": "distance"}, json={"rows": [new]}).json()
    assert (response["predictions"], response["outputs"]["distance"]) == ([1], [0.5])
    again = client.post("/v1/models/hubs/reconstruct", json={"rows": [new]})
    assert (again.status_code, again.json()["code"]) == (409, "not_offered")
