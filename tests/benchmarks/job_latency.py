"""Small jobs on an embedded stack: from POST to succeeded, median of 20 on iris, and jobs a second of 200 in a row.

python tests/benchmarks/job_latency.py
"""

import statistics
import tempfile
import time
from pathlib import Path

import httpx

import app
from app.base.settings import Settings
from app.commands.up import running

ROUNDS = 20
WORKERS = 2
IDLE_SECONDS = 20.0
"""Before the first job: workers load their kernels while nothing runs."""
IN_A_ROW = 200


def main() -> None:
    with tempfile.TemporaryDirectory() as data:
        settings = Settings(data=Path(data), port=0, log_level="WARNING")
        with (
            running(settings, workers=WORKERS, to_terminal=True) as service,
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
            time.sleep(IDLE_SECONDS)
            measured = [once(client, body) for _ in range(ROUNDS)]
            print(f"median {statistics.median(measured):.3f} s, {min(measured):.3f} to {max(measured):.3f} s")
            print(f"{IN_A_ROW / in_a_row(client, body):.1f} jobs a second, {IN_A_ROW} in a row, {WORKERS} workers")


def once(client: httpx.Client, body: dict) -> float:
    begun = time.perf_counter()
    job = client.post("/v1/jobs/train", json=body).raise_for_status().json()
    while job["state"] not in {"succeeded", "failed"}:
        time.sleep(0.005)
        job = client.get(f"/v1/jobs/{job['id']}").json()
    taken = time.perf_counter() - begun
    assert job["state"] == "succeeded", job
    return taken


def in_a_row(client: httpx.Client, body: dict) -> float:
    """Seconds from the first POST to the end of the last job."""
    begun = time.perf_counter()
    jobs = [client.post("/v1/jobs/train", json=body).raise_for_status().json()["id"] for _ in range(IN_A_ROW)]
    for job_id in jobs:
        while (state := client.get(f"/v1/jobs/{job_id}").json()["state"]) not in {"succeeded", "failed"}:
            time.sleep(0.05)
        assert state == "succeeded", job_id
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
