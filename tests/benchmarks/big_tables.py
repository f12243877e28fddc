"""Trainings of big tables through the job path, beside polars with LightGBM and scikit-learn in the same run.

    python -m tests.benchmarks.big_tables [--columns 25] [--fits boosting ridge logistic] [rows=1000000] …

Of each number of rows a CSV is written, uploaded, and trained on by default settings. `job`: seconds from the request
to its end, with queue, reading, preparation, metrics and storage. `memory`: anonymous bytes of the trainer at most,
which the limit of a job counts; pages of mapped files are the system's to drop. The rival's seconds are those of a
process that reads the file, standardises and fits; `memory` its resident peak. `score`: R² or accuracy of rows held out
on either side. Slopes are those of the logarithm of the job's seconds over that of the rows, from one size to the next.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Self

import httpx
import numpy as np
import psutil

from app.base.settings import Settings
from app.commands.up import running

PART_ROWS = 100_000
FITS: dict[str, tuple[str, str, str]] = {
    "boosting": ("gradient_boosting", "score", "r2"),
    "ridge": ("ridge", "score", "r2"),
    "logistic": ("logistic", "sign", "accuracy"),
}
MAX_SCORE_DIFFERENCE = 0.01
RIVAL = """
import json, resource, sys, time
import numpy as np, polars as pl
fit, path, target = sys.argv[1:]
begun = time.perf_counter()
table = pl.read_csv(path)
y = table[target].to_numpy()
x = table.drop("score", "sign").to_numpy()
del table
test = np.arange(len(x)) % 50 == 0
if fit == "boosting":
    import lightgbm
    model = lightgbm.train({"objective": "regression", "verbosity": -1}, lightgbm.Dataset(x[~test], y[~test]), 100)
    predicted = model.predict(x[test])
else:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    model = make_pipeline(StandardScaler(), Ridge() if fit == "ridge" else LogisticRegression())
    predicted = model.fit(x[~test], y[~test]).predict(x[test])
seconds = time.perf_counter() - begun
truth = y[test]
score = (predicted == truth).mean() if target == "sign" else 1 - ((predicted - truth) ** 2).mean() / truth.var()
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
print(json.dumps({"seconds": seconds, "memory": memory, "score": float(score)}))
"""


def write_csv(path: Path, rows: int, columns: int) -> None:
    import polars as pl

    weights = np.random.default_rng(0).normal(size=columns)
    with path.open("wb") as file:
        for start in range(0, rows, PART_ROWS):
            rng = np.random.default_rng([1, start])
            x = rng.normal(size=(min(PART_ROWS, rows - start), columns)).round(4)
            score = x @ weights + 2 * np.sin(3 * x[:, 0]) + rng.normal(size=len(x))
            part = {f"x{j}": column for j, column in enumerate(x.T)} | {"score": score.round(4)}
            part["sign"] = np.where(score > 0, "plus", "minus")
            pl.DataFrame(part).write_csv(file, include_header=start == 0)


class Watch:
    """The most anonymous memory of any trainer while it is open."""

    def __enter__(self) -> Self:
        self.memory = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            for process in psutil.Process().children(recursive=True):
                try:
                    if any("workers.template" in part for part in process.cmdline()):
                        status = Path(f"/proc/{process.pid}/status").read_text()
                        line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
                        self.memory = max(self.memory, int(line.split()[1]) << 10)
                except (psutil.Error, OSError, StopIteration):
                    continue

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def upload(client: httpx.Client, path: Path) -> str:
    def chunks() -> Any:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                yield chunk

    headers = {"Content-Type": "application/octet-stream"}
    response = client.post("/v1/datasets", params={"name": "big"}, content=chunks(), headers=headers, timeout=3600)
    return str(response.raise_for_status().json()["id"])


def trained(client: httpx.Client, dataset: str, fit: str) -> dict[str, Any]:
    name, target, metric = FITS[fit]
    others = [column for column in ("score", "sign") if column != target]
    columns = client.get(f"/v1/datasets/{dataset}").json()["columns"]
    features = [column["name"] for column in columns if column["name"] not in (target, *others)]
    body = {"model": fit, "dataset": dataset, "target": target, "features": features, "algorithm": {"name": name}}
    plan = client.post("/v1/jobs/train:validate", json=body).raise_for_status().json()
    begun = time.perf_counter()
    with Watch() as watch:
        job = client.post("/v1/jobs/train", json=body).raise_for_status().json()
        while job["state"] not in {"succeeded", "failed"}:
            time.sleep(0.1)
            job = client.get(f"/v1/jobs/{job['id']}").json()
    seconds = time.perf_counter() - begun
    if job["state"] != "succeeded":
        raise SystemExit(f"{fit}: {job['error']}")
    report = client.get(f"/v1/models/{fit}/versions/{job['version']}/report").json()
    score = next(one["value"] for one in report["test"] if one["name"] == metric and one.get("label") is None)
    return {"seconds": seconds, "memory": watch.memory, "score": score, "estimate": plan["memory_bytes"]}


def rival(fit: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-c", RIVAL, fit, str(path), FITS[fit][1]]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def write_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*", type=int, default=[1_000_000])
    parser.add_argument("--columns", type=int, default=25)
    parser.add_argument("--fits", nargs="+", choices=FITS, default=[*FITS])
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {fit: [] for fit in options.fits}
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data=Path(folder) / "data", port=0, log_level="WARNING")
        with (
            running(settings, workers=1, to_terminal=True) as service,
            httpx.Client(base_url=service.address, timeout=60) as client,
        ):
            for rows in options.rows:
                path = Path(folder) / "big.csv"
                write_csv(path, rows, options.columns)
                begun = time.perf_counter()
                dataset = upload(client, path)
                taken, size = time.perf_counter() - begun, path.stat().st_size / 2**20
                write_line(f"{rows:,} rows, {size:,.0f} MiB: {taken:.0f} s of upload")
                for fit in options.fits:
                    ours, theirs = trained(client, dataset, fit), rival(fit, path)
                    seconds[fit].append(ours["seconds"])
                    write_line(
                        f"{fit:10} job {ours['seconds']:7.1f} s of {theirs['seconds']:7.1f}, "
                        f"memory {ours['memory'] / 2**20:6.0f} MiB of {theirs['memory'] / 2**20:6.0f} "
                        f"(plan {ours['estimate'] / 2**20:6.0f}), score {ours['score']:.4f} and {theirs['score']:.4f}",
                    )
                    assert ours["score"] > theirs["score"] - MAX_SCORE_DIFFERENCE, "the fits are not alike"
                client.delete(f"/v1/datasets/{dataset}")
    for fit, each in seconds.items():
        for slope in np.diff(np.log(each)) / np.diff(np.log(options.rows)):
            write_line(f"{fit:10} slope {slope:.2f}")


if __name__ == "__main__":
    main()
