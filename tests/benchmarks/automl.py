"""The best model in N seconds beside FLAML, on the same splits, one after the other, one core each.

    python -m tests.benchmarks.automl --rival /path/of/a/venv/bin/python --seconds 30 --splits 1

The rival's interpreter has flaml[automl]. Tables are those that come with scikit-learn. Each line: table, split, metric
of the test rows and wall seconds of both; a search of ours without the final choice of the simplest (`choose`: metric).
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import train_test_split

from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import unheard
from app.ml.jobs.automl import KIND, AutomlRequest
from app.ml.kinds.job import Inputs, Sheet, Source
from app.ml.models.model import decode
from app.processes.processor_cores import Cores
from workers.timed_forks import TimedForks

TABLES = {"breast_cancer": load_breast_cancer, "digits": load_digits, "diabetes": load_diabetes}
RIVAL = """
import json, sys, time
import numpy as np
from flaml import AutoML
data = np.load(sys.argv[1])
classes = sys.argv[2] == "classification"
automl, begun = AutoML(), time.monotonic()
automl.fit(data["x"], data["y"], task=sys.argv[2], metric="log_loss" if classes else "rmse",
           time_budget=float(sys.argv[3]), n_jobs=1, seed=0, verbose=0)
predicted = automl.predict_proba(data["test"]) if classes else automl.predict(data["test"])
print(json.dumps({"seconds": time.monotonic() - begun, "best": automl.best_estimator, "predicted": predicted.tolist()}))
"""


def ours(x, y, test, *, classes, seconds):
    """Predictions, seconds and the algorithm of a search in this process, whose fits are forks."""
    names = [f"x{place}" for place in range(x.shape[1])]
    table = pa.table(dict(zip(names, x.T, strict=True)) | {"y": [f"c{code:02.0f}" for code in y] if classes else y})
    kinds = {True: "categorical", False: "numeric"}
    distinct = {name: len(table[name].unique()) for name in [*names, "y"]}
    columns = [TableColumn(name, kinds[classes and name == "y"], 0, count) for name, count in distinct.items()]
    sheet = Sheet("sha256:0", table.num_rows, tuple(columns))
    body = {"dataset": "table", "target": "y", "model": "m", "seconds": seconds, "choose": "metric"}
    request = AutomlRequest.model_validate(body | {"validation": {"test_fraction": 0.0}})
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        within = TimedForks(Cores(folder, 1), lambda: None)
        outcome = KIND.run(request, Inputs((Source(sheet, iter([table])),), each_within=within), unheard)
    spent = time.monotonic() - begun
    if outcome.trained is None:
        return None, spent, "none"
    model = decode(outcome.trained.blob)
    predicted = model.predict(pa.table(dict(zip(names, test.T, strict=True))))
    what = f"{model.name}, {outcome.result.units_done} fits"
    return predicted.probabilities if classes else predicted.values, spent, what


def rival(python, x, y, test, *, classes, seconds):
    """The same of FLAML."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "data.npz", x=x, y=y, test=test)
        task = "classification" if classes else "regression"
        command = [python, "-c", RIVAL, str(Path(folder) / "data.npz"), task, str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    return np.array(result["predicted"]), result["seconds"], result["best"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rival", required=True)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--tables", nargs="+", default=[*TABLES])
    options = parser.parse_args()
    for name in options.tables:
        data = TABLES[name]()
        classes = hasattr(data, "target_names")
        for split in range(options.splits):
            strata = data.target if classes else None
            x, test, y, truth = train_test_split(
                data.data, data.target, test_size=0.3, random_state=split, stratify=strata
            )
            for who, find in (("valiant", ours), ("flaml", lambda *a, **k: rival(options.rival, *a, **k))):
                predicted, spent, what = find(x, y, test, classes=classes, seconds=options.seconds)
                score = np.nan
                if predicted is not None:
                    score = log_loss(truth, predicted) if classes else root_mean_squared_error(truth, predicted)
                print(f"{name:15} {split} {who:8} {score:10.4f} {spent:7.1f} s  {what}", flush=True)


if __name__ == "__main__":
    main()
