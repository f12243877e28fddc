"""A stored version is made again from its receipt: the same bytes, or every difference by name."""

import numpy as np
import pytest
from sqlalchemy import text


@pytest.fixture(scope="module")
def lines():
    def rows(seed):
        x = np.random.default_rng(seed).normal(size=(120, 2))
        return "\n".join(["a,b,y", *(f"{a:.6f},{b:.6f},{'up' if a + b > 0 else 'down'}" for a, b in x)])

    return rows


@pytest.fixture(scope="module")
def upload(client, lines):
    def run(name="reproduced", seed=5):
        return client.post("/v1/datasets", content=lines(seed), params={"name": name}).json()["id"]

    return run


@pytest.fixture(scope="module")
def reproduced(client, awaited):
    """The job that made the version again, when it has ended."""

    def run(model, version=1, **headers):
        return awaited(client.post(f"/v1/models/{model}/versions/{version}/reproduce", headers=headers))

    return run


def test_versions_of_every_kind_of_job_have_the_same_bytes_again(client, done, upload, reproduced):
    dataset, new_rows, model = upload(), upload("new-rows", 6), "again"
    spec = {"target": "y", "algorithm": {"name": "linear_sgd"}, "seed": 3}
    done("train", {"model": model, "dataset": dataset} | spec)
    done("update", {"model": model, "dataset": new_rows})
    done("calibrate", {"model": model, "version": 1, "dataset": new_rows, "store_worse": True})
    done("train", {"model": model, "dataset": dataset} | spec | {"algorithm": {"name": "random_forest"}})
    members = [{"model": model, "version": version} for version in (1, 4)]
    done("combine", {"members": members, "model": "both", "dataset": new_rows})
    for name, version in [(model, 1), (model, 2), (model, 3), (model, 4), ("both", 1)]:
        stored = client.get(f"/v1/models/{name}/versions/{version}").json()
        job = reproduced(name, version)
        assert job["state"] == "succeeded", job
        result = job["result"]
        assert (result["kind"], result["model"], result["version"]) == ("reproduce", name, version)
        assert (result["digest"], result["size_bytes"]) == (stored["digest"], stored["size_bytes"])
    assert client.get(f"/v1/models/{model}").json()["versions"] == [1, 2, 3, 4]  # none was added


def test_another_dataset_of_the_same_digest_takes_the_place_of_a_deleted_one(client, done, lines, reproduced):
    changed = lines(5).replace("up", "north").encode()

    def upload():
        return client.post("/v1/datasets", content=changed, params={"name": "north"}).json()["id"]

    dataset = upload()
    done("train", {"model": "moved", "dataset": dataset, "target": "y", "algorithm": {"name": "ridge"}})
    assert client.delete(f"/v1/datasets/{dataset}").status_code == 204
    refused = client.post("/v1/models/moved/versions/1/reproduce")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_reproducible")
    digest = client.get("/v1/models/moved/versions/1").json()["receipt"]["data_digest"]
    assert digest in refused.json()["detail"]
    upload()
    assert reproduced("moved")["state"] == "succeeded"


def test_what_differs_is_named(client, done, upload, reproduced, services):
    job = done("train", {"model": "drifts", "dataset": upload(), "target": "y", "algorithm": {"name": "linear_sgd"}})
    with services.work() as w:
        sql = text("update jobs set request = jsonb_set(request, '{seed}', '7') where id = :id")
        w.jobs.session.execute(sql, {"id": job["id"]})
    again = reproduced("drifts")
    assert (again["state"], again["error"]["code"]) == ("failed", "not_reproduced")
    faults = {one["pointer"]: one["detail"] for one in again["error"]["errors"]}
    assert "/receipt/seed" in faults
    assert any(place.startswith("/arrays/") and "numbers differ, by at most" in faults[place] for place in faults)


def test_a_key_replays_the_first_job(client, done, upload):
    done("train", {"model": "keyed", "dataset": upload(), "target": "y", "algorithm": {"name": "ridge"}})
    headers = {"Idempotency-Key": "make-it-again"}
    first, second = (client.post("/v1/models/keyed/versions/1/reproduce", headers=headers) for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    assert client.post("/v1/models/keyed/versions/9/reproduce").status_code == 404
    assert client.post("/v1/jobs/reproduce", json={}).status_code in {404, 405}


def test_a_reserved_name_is_refused_at_its_place(client, done, upload):
    done("train", {"model": "named", "dataset": upload(), "target": "y", "algorithm": {"name": "linear_sgd"}})
    refused = client.post("/v1/models/named/versions/1/reproduce", params={"name": "train"})
    assert refused.status_code == 422
    assert [(e["pointer"], e["code"]) for e in refused.json()["errors"]] == [("/query/name", "reserved_name")]
