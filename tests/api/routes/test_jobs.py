import json
from itertools import islice
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from sklearn.datasets import make_classification

from app.api.edge.server_sent_events import DATA
from app.schemas.jobs import Job, JobState

IRIS = Path(__file__).parents[3] / "app" / "samples" / "iris.csv"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def dataset(client):
    return client.post("/v1/datasets", content=IRIS.read_bytes(), params={"name": "iris"}).json()["id"]


@pytest.fixture
def request_body(dataset):
    return {
        "model": f"jobs-{uuid4().hex[:8]}",
        "dataset": dataset,
        "target": "species",
        "algorithm": {"name": "ridge", "l2": 1.0},
    }


def test_an_accepted_job_says_where_it_is(client, request_body):
    response = client.post("/v1/jobs/train", json=request_body, headers={"X-Request-Id": "the-submission"})
    assert response.status_code == 202
    job = Job.model_validate(response.json())
    assert (job.kind, job.model, job.algorithm) == ("train", request_body["model"], "ridge")
    assert response.headers["location"] == f"/v1/jobs/{job.id}"
    assert int(response.headers["retry-after"]) > 0
    seen = Job.model_validate(client.get(response.headers["location"]).json())
    assert (seen.id, seen.created_at) == (job.id, job.created_at)
    newest = client.get("/v1/jobs", params={"limit": 5}).json()["items"]
    assert str(job.id) in [item["id"] for item in newest]


def test_the_same_key_and_body_give_the_first_response(client, request_body):
    key = {"Idempotency-Key": f"key-{uuid4()}"}
    first = client.post("/v1/jobs/train", json=request_body, headers=key)
    same = client.post("/v1/jobs/train", content=json.dumps(request_body, indent=3), headers=key | JSON)
    assert (first.status_code, same.status_code) == (202, 202)
    assert first.json() == same.json()
    other = client.post("/v1/jobs/train", json=request_body | {"seed": 1}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


def test_a_dry_run_tells_everything_and_makes_nothing(client, request_body):
    estimate = client.post("/v1/jobs/train:validate", json=request_body)
    assert estimate.status_code == 200
    assert estimate.json()["rows"] == 150
    assert estimate.json()["memory_bytes"] > 0
    wrong = request_body | {"target": "colour", "features": ["height", "width"]}
    problem = client.post("/v1/jobs/train:validate", json=wrong).json()
    assert problem["code"] == "invalid_request"
    assert {"/target", "/features/0", "/features/1"} <= {error["pointer"] for error in problem["errors"]}
    models = client.get("/v1/jobs").json()["items"]
    assert request_body["model"] not in [job.get("model") for job in models]


def test_no_plan_doubts_a_target_that_a_model_learns_well(client):
    """Near rows are not alike here, for 2 of 20 columns matter: a random forest has an AUC of .90 all the same."""
    x, y = make_classification(3000, 20, n_informative=2, n_redundant=0, class_sep=0.5, random_state=1)
    rows = [",".join([*map(repr, row), ["no", "yes"][code]]) for row, code in zip(x.tolist(), y, strict=True)]
    file = "\n".join([",".join([*(f"x{i}" for i in range(20)), "y"]), *rows])
    columns = client.post("/v1/datasets", content=file.encode(), params={"name": "few-matter"}).json()
    smoothness = client.get(f"/v1/datasets/{columns['id']}").json()["columns"][-1]["smoothness"]
    assert smoothness["lower"] < 0
    body = {"model": "few-matter", "dataset": columns["id"], "target": "y", "algorithm": {"name": "random_forest"}}
    assert client.post("/v1/jobs/train:validate", json=body).json().get("warnings", []) == []


def test_an_unknown_dataset_is_not_found(client, request_body):
    nowhere = request_body | {"dataset": str(uuid4())}
    for path in ("/v1/jobs/train", "/v1/jobs/train:validate"):
        response = client.post(path, json=nowhere)
        assert (response.status_code, response.json()["code"]) == (404, "dataset_not_found")


def test_cancelling_is_idempotent(client, request_body):
    where = client.post("/v1/jobs/train", json=request_body).headers["location"]
    first = client.post(f"{where}/cancel")
    again = client.post(f"{where}/cancel")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.headers["location"] == where
    assert JobState(again.json()["state"]) not in {JobState.QUEUED, JobState.RUNNING}


def test_pages_hold_every_job_once(client, request_body):
    made = {client.post("/v1/jobs/train", json=request_body).json()["id"] for _ in range(5)}
    found, cursor = [], None
    while made - set(found):
        page = client.get("/v1/jobs", params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        found += [job["id"] for job in page["items"]]
        cursor = page["next_cursor"]
    assert len(found) == len(set(found))


@pytest.mark.usefixtures("worker")
def test_a_job_is_watched_to_its_end_and_once(api_factory, request_body):
    _, address = api_factory()
    with httpx.Client(base_url=address, timeout=60) as http:
        where = http.post("/v1/jobs/train", json=request_body).headers["location"]
        with http.stream("GET", f"{where}/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert stream.headers["x-request-id"]
            events = list(parsed(stream))
        for event, data, _ in events:
            assert DATA[event].model_validate(data).model_dump(mode="json") == data
        states = [data["state"] for event, data, _ in events if event == "state"]
        assert states[0] == "queued"
        assert states[-1] == "succeeded"
        assert [event for event, _, _ in events].count("end") == 1
        event, job, last_id = events[-1]
        assert (event, job["state"], job["version"]) == ("end", "succeeded", 1)
        again = http.get(f"{where}/events", headers={"Last-Event-ID": last_id})
        assert (again.status_code, again.content) == (204, b"")


def test_head_of_the_events_of_a_waiting_job_ends_at_once(api_factory, request_body, services):
    _, address = api_factory()
    with httpx.Client(base_url=address, timeout=10) as http:
        where = http.post("/v1/jobs/train", json=request_body).headers["location"]
        head = http.head(f"{where}/events")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"].startswith("text/event-stream")
        assert http.get("/livez").status_code == 200
        http.post(f"{where}/cancel")


@pytest.mark.slow
def test_shutting_down_is_announced_and_ends_streams_whole(stack_factory, request_body):
    """Also: hundreds of clients that hang up leave no connection to the database behind."""
    from app.commands import processes
    from app.processes import ports

    stack = stack_factory()
    with ports.listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    settings = stack.settings.model_copy(update={"port": port, "drain_seconds": 1.5, "database_pool": 2})
    child = processes.api(settings, stack.folder, to_terminal=False)
    child.start()
    with httpx.Client(base_url=ports.address(settings), timeout=60) as http:
        body = request_body | {"dataset": http.post("/v1/datasets", content=IRIS.read_bytes()).json()["id"]}
        where = http.post("/v1/jobs/train", json=body).headers["location"]  # nobody will run it
        for _ in range(100):
            with http.stream("GET", f"{where}/events") as stream:
                next(stream.iter_raw())
        while http.get("/readyz").status_code != 200:  # the pool of two is free again
            assert child.process.poll() is None
        with http.stream("GET", f"{where}/events") as stream:
            events = parsed(stream)
            assert [event for event, _, _ in islice(events, 2)] == ["state", "progress"]
            child.begin_stop()
            states = set()
            while 503 not in states:
                states.add(http.get("/readyz").status_code)
                assert http.get("/livez").status_code == 200
            assert list(events) == []  # the end of the body, not a cut line
    child.process.wait(30)
    assert child.process.returncode == 0
    log = [json.loads(line) for line in child.logfile.read_text().splitlines()]
    assert [line for line in log if line["level"] in {"error", "critical"}] == []
    submitted = next(line for line in log if line.get("route") == "/v1/jobs/train")
    assert submitted["job_id"] == where.rpartition("/")[2]
    assert submitted["request_id"]


def parsed(stream):
    """Events as (event, data, id), comments left out."""
    for block in _blocks(stream):
        fields = dict(line.split(": ", 1) for line in block if not line.startswith(":"))
        if fields:
            yield fields["event"], json.loads(fields["data"]), fields.get("id")


def _blocks(stream):
    block = []
    for line in stream.iter_lines():
        if line:
            block.append(line)
        elif block:
            yield block
            block = []
