"""Clusterings and projections of tables that memory does not hold: CPU time and peak memory by number of rows.

    python tests/benchmarks/streamed_fits.py [rows of the largest table, in millions]

Tables of 1e5, 1e6 and 1e7 rows of 20 columns lie in a mapped file; each fit runs in a process of its own, in blocks as
large as those of a job. `seconds`: CPU on one thread of what depends on the rows: the look at the table, its
preparation and the fit; not the metrics, which rest on a sample. `peak`: anonymous bytes at most beyond those before,
as the limit of a job counts them; pages of mapped files are not among them. `slope`: of the logarithm of the seconds
over that of the rows, by least squares; 1 is linear.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from app.ml.contract.columns import TableColumn
from app.ml.training.fitting.out_of_core import Stream
from app.ml.training.planning.cost import BATCH_CELLS
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from workers.mapped_dataset import spooled, spooled_rows

COLUMNS, PART = 20, 50_000
FITS: dict[str, dict[str, Any]] = {
    "pca": {"n_components": 5},
    "kmeans": {"n_clusters": 8, "n_init": 1, "max_iter": 5},
    "gmm": {"n_components": 3, "n_init": 1, "max_iter": 3, "tol": 0},
}


def part(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(PART, COLUMNS)) * 2 + rng.integers(0, 8, (PART, 1)) * rng.normal(size=COLUMNS)
    return pa.table({f"x{j}": column for j, column in enumerate(x.T)})


def anonymous() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) << 10


class Peak:
    """The largest anonymous memory while it is open, looked at every few milliseconds."""

    def __enter__(self) -> Self:
        self.before = self.most = anonymous()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.most = max(self.most, anonymous())

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def fitted(name: str, rows: int) -> dict[str, float]:
    table = spooled(part(at) for at in range(rows // PART))
    sheet = [TableColumn(column, "numeric", 0, None) for column in table.column_names]
    spec = TrainSpec.model_validate({"algorithm": {"name": name, **FITS[name]}, "validation": {"test_fraction": 0}})
    planned = plan(spec, sheet, rows)._replace(batch_rows=BATCH_CELLS // COLUMNS, memory_limit=0.0)
    once(planned, table.slice(0, 2 * PART))  # what is compiled is compiled
    with Peak() as memory:
        begun = time.process_time()
        once(planned, table)
        seconds = time.process_time() - begun
    return {"seconds": seconds, "peak": memory.most - memory.before}


def once(planned: Any, table: pa.Table) -> None:
    stream = Stream.look(planned, table, lambda *_, **__: None)
    sample = TrainingSet.read(planned, stream.sample)
    stream.fit(sample, lambda *_, **__: None, spooled_rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=10.0)
    parser.add_argument("--one", nargs=2)
    given = parser.parse_args()
    if given.one:
        sys.stdout.write(json.dumps(fitted(given.one[0], int(given.one[1]))))
        return
    sizes = [rows for rows in (100_000, 1_000_000, 10_000_000) if rows <= given.millions * 1e6]
    print(f"{'fit':10}{'rows':>12}{'seconds':>10}{'peak MiB':>10}")
    for name in FITS:
        found = [measured(name, rows) for rows in sizes]
        for rows, one in zip(sizes, found, strict=True):
            print(f"{name:10}{rows:12,}{one['seconds']:10.2f}{one['peak'] / 2**20:10.0f}")
        slope = np.polyfit(np.log10(sizes), np.log10([one["seconds"] for one in found]), 1)[0]
        print(f"{name:10}{'slope':>12}{slope:10.3f}", flush=True)


def measured(name: str, rows: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", name, str(rows)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(run.stdout))


if __name__ == "__main__":
    main()
