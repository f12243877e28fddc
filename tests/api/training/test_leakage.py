"""Training rows that come again in another file evaluate no model unless the request says so."""

import numpy as np
import pytest

ROWS, NEW = 300, 10
SPEC = {"target": "price", "algorithm": {"name": "linear"}, "features": ["area", "place"]}


@pytest.fixture(scope="module")
def tables(client):
    """A table, and the same rows in another order with ten more, which three other columns surround."""
    rng = np.random.default_rng(0)
    area, place, house = (
        rng.uniform(20, 200, ROWS + NEW),
        rng.choice(["a", "b"], ROWS + NEW),
        np.arange(ROWS + NEW) // 4,
    )
    price = 10 * area + 300 * (place == "a") + rng.normal(0, 30, ROWS + NEW)
    rows = [[f"{a:.6f}", p, f"{c:.2f}", f"h{h}"] for a, p, c, h in zip(area, place, price, house, strict=True)]
    mixed = [
        [house, price, area, place] for area, place, price, house in map(rows.__getitem__, rng.permutation(len(rows)))
    ]

    def upload(name, lines):
        text = "\n".join(map(",".join, lines)) + "\n"
        return client.post("/v1/datasets", content=text, params={"name": name}).json()["id"]

    first = upload("flats", [["area", "place", "price", "house"], *rows[:ROWS]])
    return first, upload("flats-again", [["house", "price", "area", "place"], *mixed])


def test_only_rows_that_training_has_not_seen_are_evaluated(client, done, tables):
    first, again = tables
    done("train", {"model": "flats", "dataset": first} | SPEC)
    report = client.get("/v1/models/flats/versions/1/report").json()
    seen = report["rows_train"]
    result = done("evaluate", {"model": "flats", "dataset": again})["result"]
    assert result["rows"] == ROWS + NEW - seen == report["rows_test"] + NEW
    assert any(f"{seen} of {ROWS + NEW} rows equal a training row" in warning for warning in result["warnings"])
    every = done("evaluate", {"model": "flats", "dataset": again, "rows": "all"})["result"]
    assert every["rows"] == ROWS + NEW
    assert any(f"{seen} of {ROWS + NEW} rows" in warning and "optimistic" in warning for warning in every["warnings"])
    team = {"model": "flats-team", "members": [{"model": "flats"}], "dataset": again}
    version = done("combine", team)["version"]
    combined = client.get(f"/v1/models/flats-team/versions/{version}/report").json()
    assert combined["rows_test"] == result["rows"]
    of_team = done("evaluate", {"model": "flats-team", "dataset": first})["result"]
    assert of_team["rows"] == report["rows_test"], "a committee knows what its members have seen"
    client.delete("/v1/models/flats-team/versions/1")


def test_a_model_split_by_groups_is_evaluated_on_the_same_groups(client, done, tables):
    body = {"model": "grouped", "dataset": tables[0], "validation": {"method": "kfold", "group": "house"}} | SPEC
    assert client.post("/v1/jobs/train:validate", json=body).status_code == 200
    done("train", body)
    report = client.get("/v1/models/grouped/versions/1/report").json()
    result = done("evaluate", {"model": "grouped", "dataset": tables[0]})["result"]
    assert (result["rows"], result["reuse"]["rows"]) == (report["rows_test"], report["reuse"]["rows"])
    wrong = body | {"validation": {"group": "hose"}}
    (fault,) = client.post("/v1/jobs/train", json=wrong).json()["errors"]
    assert (fault["pointer"], fault["code"]) == ("/validation/group", "unknown_column")
    assert "did you mean 'house'" in fault["detail"]
