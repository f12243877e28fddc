"""From POST to succeeded: iris on an idle embedded stack, median of 20.

python tests/benchmarks/job_latency.py
"""

import statistics
import tempfile
import time
from pathlib import Path

import httpx

import app
from app.settings import Settings
from app.up import running

ROUNDS = 20
PAUSE = 4.0
"""Between jobs, so that the next trainer is warm again: the stack is idle."""


def main() -> None:
    with tempfile.TemporaryDirectory() as data:
        settings = Settings(data=Path(data), port=0, log_level="WARNING")
        with (
            running(settings, workers=1, to_terminal=True) as service,
            httpx.Client(base_url=service.address) as client,
        ):
            table = (Path(app.__file__).parent / "samples" / "iris.csv").read_bytes()
            dataset = client.post(
                "/v1/datasets", params={"name": "iris"}, content=table,
                headers={"Content-Type": "application/octet-stream"},
            ).json()  # fmt: skip
            target = dataset["columns"][-1]["name"]
            body = {
                "model": "iris", "dataset": dataset["id"], "target": target, "algorithm": {"name": "logistic"},
            }  # fmt: skip
            measured = []
            for _ in range(ROUNDS):
                time.sleep(PAUSE)
                measured.append(once(client, body))
    print(f"median {statistics.median(measured):.3f} s, best {min(measured):.3f} s, worst {max(measured):.3f} s")  # noqa: T201


def once(client: httpx.Client, body: dict) -> float:
    begun = time.perf_counter()
    job = client.post("/v1/jobs/train", json=body).raise_for_status().json()
    while job["state"] not in {"succeeded", "failed"}:
        time.sleep(0.005)
        job = client.get(f"/v1/jobs/{job['id']}").json()
    taken = time.perf_counter() - begun
    assert job["state"] == "succeeded", job
    return taken


if __name__ == "__main__":
    main()
