"""Datasets and jobs are found by the names that their callers give."""

from pathlib import Path
from uuid import uuid4

import pytest

IRIS = (Path(__file__).parents[3] / "app" / "samples" / "iris.csv").read_bytes()


@pytest.fixture
def upload(client):
    def create(name):
        return client.post("/v1/datasets", content=IRIS, params={"name": name})

    return create


@pytest.fixture
def train(client):
    def submit(dataset, **more):
        body = {"model": "named", "dataset": dataset, "target": "species", "algorithm": {"name": "ridge"}}
        return client.post("/v1/jobs/train", json=body | more)

    return submit


def new_name():
    return f"n-{uuid4().hex[:12]}"


def test_a_dataset_is_found_by_its_id_or_as_the_newest_of_its_name(client, upload):
    name = f"Wohnungen, März {new_name()}"
    older, newer = (upload(name).json() for _ in range(2))
    assert client.get(f"/v1/datasets/{name}").json() == newer
    assert client.get(f"/v1/datasets/{older['id']}").json() == older
    assert client.get(f"/v1/datasets/{older['id'].upper()}").json() == older
    assert client.get(f"/v1/datasets/{name}/rows", params={"limit": 1}).json()["total"] == 150
    listed = client.get("/v1/datasets", params={"name": name, "limit": 1}).json()
    rest = client.get("/v1/datasets", params={"name": name, "cursor": listed["next_cursor"]}).json()
    assert listed["items"] + rest["items"] == [newer, older]
    assert client.delete(f"/v1/datasets/{name}").status_code == 204
    assert client.get(f"/v1/datasets/{name}").json() == older


def test_a_job_keeps_the_id_of_the_dataset_it_was_given_by_name(client, services, upload, train):
    name = new_name()
    dataset = upload(name).json()["id"]
    job = train(name).json()
    upload(name)
    assert client.get(f"/v1/jobs/{job['id']}").json()["dataset"] == dataset
    assert client.get(f"/v1/jobs/{job['id']}").json().get("name") is None
    with services.work() as w:
        from app.store.jobs.job_tables import JobRow

        row = w.session.get(JobRow, job["id"])
        assert row.request["dataset"] == dataset
        assert row.inputs["datasets"] == [dataset]
    assert client.post("/v1/jobs/train:validate", json={"model": "named", "dataset": name, "target": "species",
                       "algorithm": {"name": "ridge"}}).json()["rows"] == 150  # fmt: skip


def test_a_job_is_found_by_its_id_or_as_the_newest_of_its_name(client, upload, train):
    dataset, name = upload("iris").json()["id"], new_name()
    older, newer = (train(dataset, name=name).json() for _ in range(2))
    assert older["name"] == name
    assert client.get(f"/v1/jobs/{name}").json()["id"] == newer["id"]
    assert client.get(f"/v1/jobs/{older['id']}").json()["name"] == name
    listed = client.get("/v1/jobs", params={"name": name}).json()["items"]
    assert [job["id"] for job in listed] == [newer["id"], older["id"]]
    for _ in range(2):
        cancelled = client.post(f"/v1/jobs/{name}/cancel")
        assert (cancelled.status_code, cancelled.json()["id"]) == (202, newer["id"])
        assert cancelled.headers["location"] == f"/v1/jobs/{newer['id']}"


def test_a_name_that_reads_as_a_uuid_is_refused(client, upload, train):
    for name in (str(uuid4()), uuid4().hex, f"{{{uuid4()}}}"):
        assert upload(name).json()["errors"][0]["pointer"] == "/query/name"
    form = client.post("/v1/datasets/upload", files={"file": (str(uuid4()), IRIS)})
    assert form.json()["name"] == "dataset"  # its file's name is a UUID, so it has none
    for name in (str(uuid4()), "Großes Ü", "", "a" * 101):
        problem = train(upload("iris").json()["id"], name=name)
        assert problem.status_code == 422
        assert [error["pointer"] for error in problem.json()["errors"]] == ["/name"]


@pytest.mark.parametrize("reference", ["01980000-0000-7000-8000-000000000000", "no-such-name", "kein Datensatz"])
def test_what_does_not_exist_is_not_found(client, train, reference):
    assert client.get(f"/v1/datasets/{reference}").json()["code"] == "dataset_not_found"
    assert client.delete(f"/v1/datasets/{reference}").json()["code"] == "dataset_not_found"
    assert train(reference).json()["code"] == "dataset_not_found"
    missing = client.get(f"/v1/jobs/{reference.replace(' ', '-').lower()}").json()
    assert missing["code"] == "job_not_found"


@pytest.mark.parametrize("reference", [5, None, "", "\u0007", "a" * 201, ["iris"]])
def test_what_cannot_be_a_reference_is_named_by_its_place(train, reference):
    problem = train(reference)
    assert problem.status_code == 422
    assert [error["pointer"] for error in problem.json()["errors"]] == ["/dataset"]


@pytest.mark.parametrize("kind", ["train", "compare", "search"])
def test_no_job_has_the_name_of_a_kind_of_job(client, upload, train, kind):
    """There its address would not be found."""
    dataset = upload(new_name()).json()["id"]
    assert client.get(f"/v1/jobs/{kind}").status_code == 405
    refused = train(dataset, name=kind)
    assert refused.status_code == 422
    assert [(e["pointer"], e["code"]) for e in refused.json()["errors"]] == [("/name", "reserved_name")]


def test_no_dataset_has_the_name_of_an_address(client, upload):
    refused = upload("upload")
    assert refused.status_code == 422
    assert [e["pointer"] for e in refused.json()["errors"]] == ["/query/name"]
