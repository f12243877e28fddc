"""Requests that last: a key that is revoked or expires meanwhile is good for no more of them."""

import json

import pyarrow as pa
import pytest

from app.api.edge.admission import RightsEnded
from app.schemas.keys import KeyRotation, KeySpec
from app.store.base.new_ids import uuid7
from app.store.jobs.job_records import NewJob


def call(client, method, url, header, receive):
    """Messages that the application sends to a request that `receive` gives, and RightsEnded if it raises that."""
    path, _, query = url.partition("?")
    headers = {"Host": "testserver"} | header
    sent = []
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "", "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1), "server": ("testserver", 80), "state": {},
    }  # fmt: skip

    async def send(message):
        sent.append(message)
        receive.sent(message)

    try:
        client.portal.call(client.app, scope, receive, send)
    except RightsEnded as error:
        sent.append(error)
    return sent


class Caller:
    """Sends a body in so many parts, and loses its right after the first message of one type, sent or received."""

    def __init__(self, parts=(b"",), lose=lambda: None, after="http.request"):
        self._parts, self._lose, self._after = list(parts), lose, after

    async def __call__(self):
        from anyio import sleep_forever

        if not self._parts:
            await sleep_forever()
        message = {"type": "http.request", "body": self._parts.pop(0), "more_body": bool(self._parts)}
        self.sent(message)
        return message

    def sent(self, message):
        if message["type"] == self._after:
            self._lose()
            self._lose = lambda: None


@pytest.fixture(params=["revoked", "expired"])
def losing(request, guarded, services):
    """`losing(role)`: the header of a key, and what takes its right away in this process."""

    def make(role):
        made = services.keys.create_first(KeySpec(name=role, role=role), "default")
        header = {"Authorization": f"Bearer {made.secret}"}
        ends = services.keys.revoke if request.param == "revoked" else services.keys.rotate
        more = () if request.param == "revoked" else (KeyRotation(grace_seconds=0),)

        def lose():
            ends(made.id, *more, services.access.anyone)
            guarded.app.services.access.refresh()

        return header, lose

    return make


def test_a_download_is_cut_once_its_key_is_good_for_nothing(guarded, services, add_table, losing, monkeypatch):
    monkeypatch.setattr("app.api.edge.admission.LOOK_SECONDS", 0.0)
    dataset = add_table(services.work, pa.table({"a": [1.0, 2.0]}), times=3)
    path = f"/v1/datasets/{dataset}/file"
    header, _ = losing("viewer")
    whole = call(guarded, "GET", path, header, Caller())
    assert whole[-1] == {"type": "http.response.body", "body": b"", "more_body": False}
    header, lose = losing("viewer")
    *sent, error = call(guarded, "GET", path, header, Caller(lose=lose, after="http.response.body"))
    assert isinstance(error, RightsEnded)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


def test_an_upload_is_refused_once_its_key_is_good_for_nothing(guarded, losing, monkeypatch):
    monkeypatch.setattr("app.api.edge.admission.LOOK_SECONDS", 0.0)
    for role, url in (("editor", "/v1/datasets?file_format=csv"), ("caller", "/v1/models/a/predict")):
        header, lose = losing(role)
        start, body = call(guarded, "POST", url, header, Caller([b"a,b\n", b"1,2\n"], lose))
        assert (start["status"], json.loads(body["body"])["status"]) == (401, 401)


def test_an_event_stream_ends_with_the_refusal_of_its_key(guarded, services, add_iris, losing):
    job, dataset = uuid7(), add_iris(services.work)
    with services.work() as w:  # announced to no worker
        new = NewJob(job, "train", {}, str(job), None, None, dataset, "streamed", "ridge", [], 1, 60.0)
        w.jobs.add(new)
    header, lose = losing("viewer")
    caller = Caller(lose=lose, after="http.response.body")
    start, *messages = call(guarded, "GET", f"/v1/jobs/{job}/events", header, caller)
    assert start["status"] == 200
    events = b"".join(message["body"] for message in messages).decode().strip().split("\n\n")
    assert events[0].startswith("event: state\n")
    assert events[-1].startswith("event: refused\n")
    code = json.loads(events[-1].partition("data: ")[2])["code"]
    assert code in {"credential_invalid", "credential_expired"}
    again = guarded.get(f"/v1/jobs/{job}/events", headers=header)
    assert (again.status_code, again.json()["code"]) == (401, code)
    services.jobs.cancel(job)


def test_a_result_that_took_long_is_refused_and_a_change_is_stated(guarded, losing, monkeypatch):
    monkeypatch.setattr("app.api.edge.admission.LOOK_SECONDS", 0.0)
    for method, url, name, status in (("GET", "/v1/datasets", "page", 401), ("POST", "/v1/files", "keep", 201)):
        header, lose = losing("editor")
        holder = getattr(guarded.app.services, url.split("/")[2])
        work = getattr(holder, name)

        def losing_meanwhile(*given, work=work, lose=lose, **named):
            result = work(*given, **named)
            lose()
            return result

        monkeypatch.setattr(holder, name, losing_meanwhile)
        start, *_ = call(guarded, method, url, header, Caller([b"tree"]))
        assert start["status"] == status
