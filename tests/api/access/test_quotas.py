"""Quotas of projects: what a project has, and what it is refused beyond them."""

import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from app.schemas.keys import KeySpec, Scope
from app.schemas.projects import STANDARD

IRIS = b"length,width,species\n" + b"5.1,3.5,setosa\n4.9,3.0,setosa\n6.1,2.8,versicolor\n6.4,3.2,versicolor\n" * 5
TRAIN = {"model": "m", "dataset": "iris", "target": "species", "algorithm": {"name": "ridge"}}


class Caller:
    """A project of its own, by the key of an operator in it."""

    def __init__(self, client, services, **quotas):
        self.client, self.name = client, f"p-{uuid4().hex[:8]}"
        made = services.keys.create_first(KeySpec(name="test", scopes=list(Scope)), self.name)
        self.headers = {"Authorization": f"Bearer {made.secret}"}
        self.limit(**quotas)

    def send(self, method, path, **options):
        return self.client.request(method, path, headers=self.headers, **options)

    def limit(self, **quotas):
        changed = self.send("PATCH", f"/v1/projects/{self.name}", json={"quotas": quotas})
        assert changed.is_success, changed.text

    def upload(self, name="iris"):
        return self.send("POST", f"/v1/datasets?name={name}&file_format=csv", content=IRIS)

    def train(self, **changes):
        return self.send("POST", "/v1/jobs/train", json=TRAIN | changes)

    def usage(self):
        return self.send("GET", "/v1/usage").json()

    def ended(self, job):
        until = time.monotonic() + 120
        while (found := self.send("GET", job.headers["location"]).json())["state"] in {"queued", "running"}:
            assert time.monotonic() < until
            time.sleep(0.05)
        return found


@pytest.fixture
def caller(guarded, services):
    return lambda **quotas: Caller(guarded, services, **quotas)


def refused(response, status, code):
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    return next((fault["detail"] for fault in response.json().get("errors", [])), None)


def test_a_new_project_has_the_standard_quotas_and_each_may_be_changed(caller):
    own = caller(queued_jobs=7, storage_bytes=None)
    quotas = STANDARD.model_dump(exclude_none=True, exclude={"storage_bytes"})
    assert own.usage()["quotas"] == quotas | {"queued_jobs": 7}
    made = own.send("POST", "/v1/projects", json={"name": f"{own.name}-2", "quotas": {"running_jobs": 2}}).json()
    assert made["quotas"] == {"running_jobs": 2}
    assert own.send("PATCH", "/v1/projects/nobody", json={"quotas": {}}).json()["code"] == "project_not_found"
    assert own.send("PATCH", f"/v1/projects/{own.name}", json={"quotas": {"running_jobs": -1}}).status_code == 422


def test_the_project_of_a_service_without_keys_has_none(client):
    assert client.get("/v1/usage").json()["quotas"] == {}


def test_storage_is_counted_with_the_file_that_would_be_too_much(caller):
    own = caller(storage_bytes=2 * len(IRIS))
    kept = [own.upload(f"iris-{n}") for n in range(2)]
    assert all(response.status_code == 201 for response in kept)
    detail = refused(own.upload("iris-2"), 403, "quota_exceeded")
    assert detail == f"The project has {3 * len(IRIS)} of {2 * len(IRIS)} bytes."
    refused(own.send("POST", "/v1/files", content=b"tree"), 403, "quota_exceeded")
    assert own.usage()["storage_bytes"] == 2 * len(IRIS)
    assert len(own.send("GET", "/v1/datasets").json()["items"]) == 2
    own.send("DELETE", f"/v1/datasets/{kept[0].json()['id']}")
    assert own.upload("iris-2").status_code == 201


def test_many_at_once_do_not_pass_the_number_of_waiting_jobs(caller):
    own = caller(queued_jobs=5, running_jobs=0)
    own.upload()
    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(lambda n: own.train(model=f"m-{n}"), range(24)))
    accepted = [response for response in responses if response.status_code == 202]
    over = [response for response in responses if response.status_code != 202]
    assert len(accepted) == 5
    for response in over:
        assert refused(response, 429, "quota_reached") == "The project has 5 of 5 jobs that wait."
        assert int(response.headers["retry-after"]) > 0
    own.send("POST", f"/v1/jobs/{accepted[0].json()['id']}/cancel")
    assert own.train(model="again").status_code == 202


def test_versions_beyond_the_quota_are_refused_before_and_after_their_training(caller, worker):
    own = caller(model_versions=1)
    own.upload()
    jobs = [own.ended(own.train(model=f"m-{n}")) for n in range(1)]
    assert [job["state"] for job in jobs] == ["succeeded"]
    assert refused(own.train(model="m-1"), 403, "quota_exceeded") == "The project has 1 of 1 model versions."
    own.limit(model_versions=2)
    both = [own.train(model=f"m-{n}") for n in (2, 3)]  # room for one of them, as is seen once the first is stored
    ends = [own.ended(job) for job in both if job.status_code == 202]
    assert max(job["state"] for job in ends) == "succeeded"
    assert own.usage()["model_versions"] == 2
    assert all(job["error"]["code"] == "quota_exceeded" for job in ends if job["state"] == "failed")


def test_jobs_wait_for_the_next_day_once_the_time_of_this_one_is_used(caller, worker):
    own = caller()
    own.upload()
    assert own.ended(own.train())["state"] == "succeeded"
    used = own.usage()["run_seconds_per_day"]
    assert 0 < used < 60
    own.limit(run_seconds_per_day=used / 2)
    response = own.train()
    refused(response, 429, "quota_reached")
    assert 0 < int(response.headers["retry-after"]) <= 86_400


def test_jobs_that_a_quota_holds_back_run_when_others_have_ended(caller, worker):
    own = caller(running_jobs=1)
    own.upload()
    jobs = [own.train(model=f"m-{n}") for n in range(4)]
    assert [own.ended(job)["state"] for job in jobs] == ["succeeded"] * 4


def test_more_requests_than_the_rate_are_refused(caller):
    own = caller(requests_per_second=0.05)
    until = time.monotonic() + 60
    while (response := own.send("GET", "/v1/me")).is_success and time.monotonic() < until:
        pass  # processes read the limits once a second
    refused(response, 429, "rate_limited")
    assert int(response.headers["retry-after"]) >= 1
    assert response.headers["ratelimit-policy"] == '"requests";q=1;w=20'
