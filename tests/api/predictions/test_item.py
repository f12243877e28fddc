"""The column `item` names rows: cuts and neighbours list the names, and bad names are refused with their rows."""

import numpy as np
import pytest

ROWS = [("Bonn", 0.0), ("Köln", 1.0), ("Kiel", 20.0), ("Husum", 22.0), ("Aachen", 3.0)]


@pytest.fixture
def dataset(client):
    lines = [f"{city},{place},{2 * place},{'north' if place > 9 else 'west'}" for city, place in ROWS]
    return client.post("/v1/datasets", content="\n".join(["city,x,price,part", *lines]).encode()).json()["id"]


@pytest.fixture
def trained(client, dataset, done):
    def train(model, algorithm, **more):
        request = {"model": model, "dataset": dataset, "features": ["x"], "item": "city", "algorithm": algorithm}
        done("train", request | {"preprocessing": {"scaling": "none"}} | more)
        return f"/v1/models/{model}"

    return train


def test_a_cut_and_neighbours_list_the_names_of_rows(client, trained):
    cut = client.post(f"{trained('cities', {'name': 'agglomerative', 'linkage': 'single'})}/cut", json={}).json()
    by_row = [ROWS[row][0] for row in cut["rows"]]
    assert cut["items"] == by_row
    assert sorted(np.array(cut["items"])[np.array(cut["labels"]) == cut["labels"][by_row.index("Kiel")]]) == [
        "Husum",
        "Kiel",
    ]
    near = trained("near", {"name": "knn", "n_neighbors": 2}, target="price", validation={"method": "loo"})
    found = client.post(f"{near}/neighbours", json={"rows": [{"x": 0.4}]}).json()["neighbours"][0]
    assert [(one["item"], one["row"]) for one in found] == [("Bonn", 0), ("Köln", 1)]
    by_name = client.post(f"{near}/neighbours", json={"items": ["Husum", "Aachen"]}).json()["neighbours"]
    assert [[one["item"] for one in each] for each in by_name] == [["Husum", "Aachen"], ["Aachen", "Köln"]]
    rows = {"rows": [{"x": 22.0}, {"x": 3.0}]}
    assert client.post(f"{near}/neighbours", json=rows).json()["neighbours"] == by_name
    for body, pointers in [
        ({"items": ["Husumm", "Bonn", "Ulm"]}, ["/items/0", "/items/2"]),
        ({"items": ["Kiel"]} | rows, ["/items"]),
        ({}, ["/items"]),
    ]:
        refused = client.post(f"{near}/neighbours", json=body)
        assert refused.status_code == 422
        assert [fault["pointer"] for fault in refused.json()["errors"]] == pointers


def test_rows_without_names_are_not_given_by_name(client, dataset, done):
    body = {"model": "nameless", "dataset": dataset, "features": ["x"], "algorithm": {"name": "mds"}}
    done("train", body)
    refused = client.post("/v1/models/nameless/neighbours", json={"items": ["Kiel"]})
    assert refused.status_code == 422
    (fault,) = refused.json()["errors"]
    assert (fault["pointer"], fault["detail"]) == ("/items", "The training rows have no names: give rows.")


def test_a_name_is_no_feature_unless_it_is_named_one(client, dataset):
    request = {"model": "m", "dataset": dataset, "item": "part", "algorithm": {"name": "kmeans"}}
    planned = client.post("/v1/jobs/train:validate", json=request).json()
    assert "part" not in planned["features"]


@pytest.mark.parametrize(("item", "target", "code"), [("town", None, "unknown_column"), ("price", "price", "invalid")])
def test_columns_that_cannot_name_rows_are_refused(client, dataset, item, target, code):
    request = {"model": "m", "dataset": dataset, "item": item, "algorithm": {"name": "kmeans" if not target else "knn"}}
    response = client.post("/v1/jobs/train:validate", json=request | ({"target": target} if target else {}))
    assert [(error["pointer"], error["code"]) for error in response.json()["errors"]] == [("/item", code)]


def test_two_rows_of_one_name_fail_the_training_with_their_numbers():
    import pyarrow as pa

    from app.base.errors import InvalidData
    from app.ml.training.planning.items import read_items

    with pytest.raises(InvalidData, match="Rows 1 and 3 have the same value in 'a'"):
        read_items(pa.table({"a": ["x", "y", "z", "y"]}), "a")
    assert read_items(pa.table({"a": [3, 1]}), "a").tolist() == ["3", "1"]
