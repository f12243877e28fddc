"""Sessions while the API, the worker and the database are killed: no round is lost, none is learned twice."""

import http.client
import json
import random
import threading
import time
from uuid import uuid4

import pytest

from app import ports, processes

SESSIONS, ROUNDS, BATCH, KILLS = 5, 2000, 10, 20
PATIENCE = 90
"""Seconds until a writer gives up; no promise is measured by it."""
SPEC = {
    "learner": {"name": "weighted_majority", "hypotheses": {"name": "thresholds", "grid": [1, 2, 3, 4, 5]}},
    "inputs": [{"name": "dose"}],
    "target": "effect",
}


class Writer(threading.Thread):
    """Sends the rounds of one session in order, each request until it has a response."""

    def __init__(self, port, number, *, keyed):
        super().__init__(daemon=True)
        self.port, self.keyed, self.failures, self.predictions = port, keyed, [], []
        rng = random.Random(number)
        doses = [rng.randint(0, 6) for _ in range(ROUNDS)]
        self.rows = [{"dose": dose, "effect": dose >= 3 or rng.random() < 0.1} for dose in doses]
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
        for revision, start in enumerate(range(0, ROUNDS, BATCH)):
            body, headers = {"rows": self.rows[start : start + BATCH]}, {}
            if self.keyed:
                headers = {"Idempotency-Key": f"{self.path[-12:]}-{start}"}
            else:
                body["revision"] = revision
            found = self.until("POST", f"{self.path}/rounds", body, headers)
            if (found["first_round"], found["revision"]) != (start + 1, revision + 1):
                self.failures.append((start, found["first_round"], found["revision"]))
            self.predictions += found["predictions"]


def responses_arrive(writers, number):
    """Waits for responses after a restart, so that each kill meets a service at work, however slow its start."""
    before = sum(len(writer.predictions) for writer in writers)
    while sum(len(writer.predictions) for writer in writers) < before + number * BATCH:
        assert any(writer.is_alive() for writer in writers), "the writers ended before the last kill"
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
            writer.join()
        for writer in writers:
            assert writer.failures == []
            found = writer.until("GET", writer.path)
            assert (found["counts"]["rounds"], found["counts"]["learned"]) == (ROUNDS, ROUNDS)
            wrong = sum(one != row["effect"] for one, row in zip(writer.predictions, writer.rows, strict=True))
            assert (found["revision"], found["counts"]["mistakes"]) == (ROUNDS // BATCH, wrong)
            other = writer.until("POST", "/v1/sessions", SPEC)
            undisturbed = writer.until(
                "POST", f"/v1/sessions/{other['id']}/rounds", {"revision": 0, "rows": writer.rows}
            )
            assert undisturbed["predictions"] == writer.predictions
            assert undisturbed["counts"] == found["counts"]
    finally:
        worker.stop()
        api.stop()
