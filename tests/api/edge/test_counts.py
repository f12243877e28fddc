"""An algorithm of counts over HTTP: nothing is scaled, and other numbers are refused by name."""

import numpy as np
import pytest

NAMES = ["ball", "goal", "vote", "law"]
RNG = np.random.default_rng(0)
COUNTS = np.vstack([RNG.multinomial(30, p, size=40) for p in ([0.5, 0.4, 0.05, 0.05], [0.05, 0.05, 0.4, 0.5])])
REQUEST = {"model": "count-topics", "algorithm": {"name": "multinomial_mixture", "n_components": 2}}


@pytest.fixture(scope="module")
def dataset(client):
    lines = [",".join([*NAMES, "change"]), *(f"{','.join(map(str, row))},{-row[0]}" for row in COUNTS.tolist())]
    return client.post("/v1/datasets", content="\n".join(lines)).json()["id"]


def test_counts_are_grouped_by_their_composition(client, done, dataset):
    done("train", REQUEST | {"dataset": dataset, "features": NAMES})
    body = {"columns": NAMES, "data": [[3, 2, 0, 0], [0, 0, 20, 30], [1, 0, 0, 1]]}
    params = {"include": "memberships"}
    found = client.post("/v1/models/count-topics/predict", params=params, json=body).json()
    first, second, between = found["outputs"]["memberships"]
    assert max(first) > 0.99 < max(second)
    assert 0.3 < max(between) < 0.7
    assert found["predictions"][0] != found["predictions"][1]
    decoded = client.post("/v1/models/count-topics/decode", json={"predictions": found["predictions"][:2]}).json()
    means = [[row["values"][name] for name in NAMES] for row in decoded["rows"]]
    np.testing.assert_allclose(means, [COUNTS[:40].mean(axis=0), COUNTS[40:].mean(axis=0)], rtol=0.02, atol=0.02)
    report = client.get("/v1/models/count-topics/versions/1/report").json()
    assert (report["offsets"], report["scales"]) == ([0] * 4, [1] * 4)


def test_scaling_and_numbers_below_zero_are_refused_together(client, dataset):
    body = REQUEST | {"dataset": dataset, "preprocessing": {"scaling": "minmax"}}
    refused = client.post("/v1/jobs/train", json=body)
    assert refused.status_code == 422
    assert {one["pointer"]: one["detail"] for one in refused.json()["errors"]} == {
        "/preprocessing/scaling": "multinomial_mixture learns from counts, which are not scaled: leave it out.",
        "/features": "multinomial_mixture learns from counts; these columns have numbers below 0: 'change'.",
    }
    ignored = {"columns": NAMES, "data": [[-3, 2, 0, 0]]}
    assert client.post("/v1/models/count-topics/predict", json=ignored).status_code == 200


def test_standard_scaling_is_refused_by_name_where_a_request_names_it(client, dataset):
    spec = {"algorithm": REQUEST["algorithm"], "features": NAMES, "preprocessing": {"scaling": "standard"}}
    grid = [{"pointer": "/algorithm/n_clusters", "values": [2, 3]}]
    bodies = {
        "train": spec | {"model": "count-none", "dataset": dataset},
        "search": spec | {"dataset": dataset, "grid": grid},
        "bootstrap": {"dataset": dataset, "training": spec},
    }
    for kind, body in bodies.items():
        refused = client.post(f"/v1/jobs/{kind}", json=body)
        pointer = "/training/preprocessing/scaling" if kind == "bootstrap" else "/preprocessing/scaling"
        assert refused.status_code == 422
        assert [error["pointer"] for error in refused.json()["errors"]] == [pointer]
        assert "multinomial_mixture learns from counts" in refused.text
    none = bodies["train"] | {"preprocessing": {"scaling": "none"}}
    assert client.post("/v1/jobs/train:validate", json=none).status_code == 200
