"""Sessions while the API, the worker and the database are killed: no round is lost, none is learned twice."""

import http.client
import json
import random
import sys
import threading
import time
from uuid import uuid4

import pytest

from app.commands import processes
from app.ml.sessions.session_rounds import MOST_ROWS
from app.processes import ports

SESSIONS, BATCH, KILLS = 5, 10, 20
PATIENCE = 90
"""Seconds until a writer gives up; no promise is measured by it."""
SPEC = {
    "learner": {"name": "weighted_majority", "hypotheses": {"name": "thresholds", "grid": [1, 2, 3, 4, 5]}},
    "inputs": [{"name": "dose"}],
    "target": "effect",
}


class Writer(threading.Thread):
    """Sends rounds of one session in order until it is ended, each request until it has a response."""

    def __init__(self, port, number, *, keyed):
        super().__init__(daemon=True)
        self.port, self.keyed, self.failures, self.rows, self.predictions = port, keyed, [], [], []
        self.rng, self.ended = random.Random(number), threading.Event()
        self.path = self.until("POST", "/v1/sessions", SPEC, {"Idempotency-Key": uuid4().hex})["id"]
        self.path = f"/v1/sessions/{self.path}"

    def until(self, method, path, body=None, headers=None):
        """Retries whatever is not accepted: connections refused and cut, 503."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                sent = None if body is None else json.dumps(body)
                line.request(method, path, sent, {"Content-Type": "application/json"} | (headers or {}))
                response = line.getresponse()
                found = json.loads(response.read())
                if response.status < 300:
                    return found
                if response.status != 503:
                    self.failures.append(found)
                    break
            except (OSError, http.client.HTTPException, ValueError):
                pass
            finally:
                line.close()
            time.sleep(0.05)
        raise AssertionError((path, self.failures))

    def run(self):
        for revision, start in enumerate(range(0, sys.maxsize, BATCH)):
            if self.ended.is_set():
                return
            self.rows += (self.row() for _ in range(BATCH))
            body, headers = {"rows": self.rows[start:]}, {}
            if self.keyed:
                headers = {"Idempotency-Key": f"{self.path[-12:]}-{start}"}
            else:
                body["revision"] = revision
            found = self.until("POST", f"{self.path}/rounds", body, headers)
            if (found["first_round"], found["revision"]) != (start + 1, revision + 1):
                self.failures.append((start, found["first_round"], found["revision"]))
            self.predictions += found["predictions"]

    def row(self):
        dose = self.rng.randint(0, 6)
        return {"dose": dose, "effect": dose >= 3 or self.rng.random() < 0.1}


def responses_arrive(writers, number):
    """Waits for responses after a restart, so that each kill meets a service at work, however slow its start."""
    before = sum(len(writer.predictions) for writer in writers)
    while sum(len(writer.predictions) for writer in writers) < before + number * BATCH:
        assert any(writer.is_alive() for writer in writers), [writer.failures for writer in writers]
        time.sleep(0.005)


def restarted(child):
    child.kill()
    for _ in range(20):
        try:
            return child.start()
        except Exception:  # noqa: BLE001 - a server that is killed as it starts is started again
            time.sleep(0.5)
    raise AssertionError("it did not start again")


@pytest.mark.slow
def test_killed_at_any_moment_rounds_are_learned_once(module_stack_factory):
    stack = module_stack_factory()
    with ports.listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    api = processes.api(stack.settings.model_copy(update={"port": port}), stack.folder, to_terminal=False)
    worker = processes.worker(stack.settings, stack.folder)
    victims = [api, stack.servers["postgres"], worker]
    api.start()
    worker.start()
    try:
        writers = [Writer(port, number, keyed=number % 2 == 1) for number in range(SESSIONS)]
        for writer in writers:
            writer.start()
        rng = random.Random(0)
        for kill in range(KILLS):
            responses_arrive(writers, rng.randint(1, 30))
            time.sleep(rng.uniform(0, 0.02))
            restarted(victims[kill % len(victims)])
        for writer in writers:
            writer.ended.set()
        for writer in writers:
            writer.join()
        for writer in writers:
            assert writer.failures == []
            found, rounds = writer.until("GET", writer.path), len(writer.rows)
            assert (found["counts"]["rounds"], found["counts"]["learned"]) == (rounds, rounds)
            wrong = sum(one != row["effect"] for one, row in zip(writer.predictions, writer.rows, strict=True))
            assert (found["revision"], found["counts"]["mistakes"]) == (rounds // BATCH, wrong)
            other = writer.until("POST", "/v1/sessions", SPEC)
            undisturbed = []
            for revision, start in enumerate(range(0, rounds, MOST_ROWS)):
                body = {"revision": revision, "rows": writer.rows[start : start + MOST_ROWS]}
                played = writer.until("POST", f"/v1/sessions/{other['id']}/rounds", body)
                undisturbed += played["predictions"]
            assert undisturbed == writer.predictions
            assert played["counts"] == found["counts"]
    finally:
        worker.stop()
        api.stop()
