"""Self-organising maps over HTTP: cells of rows, planes in units of the table, and names by a target."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

FLATS = Path(__file__).parents[3] / "app" / "samples" / "wohnungen.csv"
IRIS = Path(__file__).parents[3] / "app" / "samples" / "iris.csv"
SHAPE = {"grid_height": 4, "grid_width": 5, "radius_end": 0.7}


@pytest.fixture
def flowers(client, done):
    """A model of four columns, with names by a target; the rows and their classes."""
    dataset = client.post("/v1/datasets", content=IRIS.read_bytes()).json()["id"]
    with IRIS.open() as file:
        rows = list(csv.DictReader(file))
    *names, target = rows[0]
    body = {"model": "flower-map", "dataset": dataset, "target": target, "preprocessing": {"scaling": "none"}}
    done("train", body | {"algorithm": {"name": "som", **SHAPE}})
    x = np.array([[float(row[name]) for name in names] for row in rows])
    return names, x, np.array([row[target] for row in rows])


def test_cells_planes_and_names_are_those_of_the_prototypes(client, flowers):
    names, x, classes = flowers
    found = client.post("/v1/models/flower-map/planes", json={}).json()
    assert (found["topology"], found["grid_height"], found["grid_width"]) == ("hexagonal", 4, 5)
    assert [plane["column"] for plane in found["planes"]] == names
    prototypes = np.array([plane["values"] for plane in found["planes"]]).T
    far = cdist(x, prototypes)
    cells = far.argmin(axis=1)
    outputs = "coordinates,distance,second_cell,torn"
    rows = {"columns": names, "data": x.tolist()}
    response = client.post("/v1/models/flower-map/predict", params={"include": outputs}, json=rows).json()
    assert response["predictions"] == cells.tolist()
    places = np.stack([found["x"], found["y"]], axis=1)
    np.testing.assert_allclose(response["outputs"]["coordinates"], places[cells])
    np.testing.assert_allclose(response["outputs"]["distance"], far.min(axis=1), rtol=1e-9)
    assert response["outputs"]["second_cell"] == far.argsort(axis=1)[:, 1].tolist()
    assert found["topographic_error"] == pytest.approx(np.mean(response["outputs"]["torn"]))
    assert found["quantisation_error"] == pytest.approx(far.min(axis=1).mean())
    assert found["hits"] == np.bincount(cells, minlength=20).tolist()
    for border in found["borders"]:
        first, second = border["first"], border["second"]
        assert np.linalg.norm(places[first] - places[second]) == pytest.approx(1)
        assert border["distance"] == pytest.approx(np.linalg.norm(prototypes[first] - prototypes[second]))
    sides = [border["distance"] for border in found["borders"] if 7 in (border["first"], border["second"])]
    assert len(sides) == 6
    assert found["u_matrix"][7] == pytest.approx(np.mean(sides))
    for cell, (name, share) in enumerate(zip(found["names"], found["name_shares"], strict=True)):
        held = classes[cells == cell]
        assert (name is None) == (held.size == 0)
        assert held.size == 0 or share == pytest.approx(np.mean(held == name))
    report = client.get("/v1/models/flower-map/versions/1/report").json()
    assert report["summary"]["names"] == found["names"]
    assert "adjusted_rand" in {metric["name"] for metric in report["train"]}


def test_planes_of_categories_have_shares_and_unknown_inputs_are_named(client, done):
    dataset = client.post("/v1/datasets", content=FLATS.read_bytes()).json()["id"]
    body = {"model": "flat-cells", "dataset": dataset, "features": ["Fläche_m²", "Lage"]}
    done("train", body | {"algorithm": {"name": "som", "mode": "online", "epochs": 4, **SHAPE}})
    url = "/v1/models/flat-cells/planes"
    found = client.post(url, json={"columns": ["Lage"]}).json()
    (plane,) = found["planes"]
    assert plane["column"] == "Lage"
    assert all(0 < share <= 1 for share in plane["shares"])
    assert found.get("names") is None
    refused = client.post(url, json={"columns": ["Lage", "Laage"]})
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/columns/1", "unknown_column")
    assert "Lage" in error["detail"]
    decoded = client.post("/v1/models/flat-cells/decode", json={"predictions": [3]}).json()["rows"][0]
    assert decoded["values"]["Lage"] == plane["values"][3]


def test_models_that_are_no_maps_have_no_planes(client, done):
    dataset = client.post("/v1/datasets", content=b"x\n1\n2\n3\n4\n").json()["id"]
    done("train", {"model": "no-map", "dataset": dataset, "features": ["x"], "algorithm": {"name": "kmeans"}})
    refused = client.post("/v1/models/no-map/planes", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_offered")
