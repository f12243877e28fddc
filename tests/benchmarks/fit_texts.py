"""Classifiers of 20,000 short texts beside scikit-learn's pipelines: CPU seconds, memory, accuracy, on one thread.

    python tests/benchmarks/fit_texts.py

Two tables: short descriptions of Debian packages by section, where `apt-cache dumpavail` has them, and texts drawn from
a model of topics. Each fit is a process of its own, of the whole training: terms, fit, report, model; then 5,000 other
texts are predicted. Memory is what was resident at most, less what was before. Goals: 10 seconds; an accuracy within
one standard error of scikit-learn's, of the same terms and penalty; at most twice its time and memory.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import numpy as np
import pyarrow as pa

ROWS, TEST, TERMS, SECTIONS = 20_000, 5_000, 20_000, 12
SIDES = ["logistic", "generative_bayes", "linear_sgd", "svm", "ridge"]
PARAMS = {
    "logistic": {"l2": 1 / ROWS},
    "generative_bayes": {"density": "multinomial"},
    "linear_sgd": {"l2": 1 / ROWS, "tol": 1e-4},
    "svm": {"kernel": "linear", "multiclass": "one_vs_rest", "cv": None},
    "ridge": {"l2": 1.0},
}


def packages() -> list[tuple[str, str]]:
    """Description and section of each package of the commonest sections, none where there is no list of them."""
    try:
        listed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    found = re.findall(r"^Description: (.+)\n(?:.+\n)*?Section: (\S+)$", listed, re.MULTILINE)
    common = {section for section, _ in Counter(section for _, section in found).most_common(SECTIONS)}
    return [pair for pair in dict.fromkeys(found) if pair[1] in common]


def topics() -> list[tuple[str, str]]:
    """Of 12 topics, each a multinomial distribution of 50,000 words that are rare as in language; 40 words a text."""
    rng = np.random.default_rng(0)
    zipf = 1 / np.arange(1, 50_001)
    shares = [own / own.sum() for own in (zipf * rng.gamma(0.3, size=zipf.size) + 0.5 * zipf for _ in range(SECTIONS))]
    labels = rng.integers(SECTIONS, size=ROWS + TEST)
    edges = [np.cumsum(own) for own in shares]
    words = [np.searchsorted(edges[label][:-1], rng.random(40)) for label in labels]
    return [(" ".join(f"w{word}" for word in own), f"topic {label}") for own, label in zip(words, labels, strict=True)]


def ours(name: str, train: Any, test: Any) -> list[str]:
    """Predicted classes of the test texts."""
    from app.ml.contract.columns import TableColumn
    from app.ml.models.model import decode
    from app.ml.training.planning.plan import plan
    from app.ml.training.planning.train_spec import TrainSpec
    from app.ml.training.train import train as trained

    spec = {"target": "label", "algorithm": {"name": name, **PARAMS[name]}, "validation": {"test_fraction": 0}}
    spec["preprocessing"] = {"text": {"text": {"max_features": TERMS}}}
    columns = [TableColumn("text", "text", 0, None), TableColumn("label", "categorical", 0, SECTIONS)]
    made = trained(plan(TrainSpec.model_validate(spec), columns, ROWS), train, data_digest="sha256:0")
    predicted = decode(made.blob).predict(test.select(["text"]))
    return [str(label) for label in predicted.predictions]


def theirs(name: str, train: Any, test: Any) -> list[str]:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    terms = (CountVectorizer if name == "generative_bayes" else TfidfVectorizer)(max_features=TERMS)
    peers = {"generative_bayes": MultinomialNB(), "svm": LinearSVC(loss="hinge"), "ridge": RidgeClassifier()}
    last = peers.get(name, LogisticRegression(C=1.0, max_iter=1000))
    made = make_pipeline(terms, last).fit(train["text"].to_pylist(), train["label"].to_pylist())
    found: list[str] = made.predict(test["text"].to_pylist()).tolist()
    return found


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def measured(side: str, name: str, train: Any, test: Any) -> dict[str, Any]:
    run = {"ours": ours, "theirs": theirs}[side]
    run(name, train.slice(0, 300), test.slice(0, 10))  # what is imported and compiled is so
    Path("/proc/self/clear_refs").write_text("5")  # the most that was resident begins anew, after the texts were drawn
    before, begun = resident("VmRSS"), time.process_time()
    labels = run(name, train, test)
    spent, most = time.process_time() - begun, resident("VmHWM") - before
    right = np.mean(np.array(labels) == np.array(test["label"].to_pylist()))
    return {"seconds": spent, "bytes": most, "accuracy": float(right)}


def compared(table: str, name: str) -> None:
    found = {}
    for side in ("ours", "theirs"):
        run = [sys.executable, __file__, table, name, side]
        found[side] = json.loads(subprocess.run(run, capture_output=True, check=True, text=True).stdout)
    own, other = found["ours"], found["theirs"]
    error = (other["accuracy"] * (1 - other["accuracy"]) / TEST) ** 0.5
    sys.stdout.write(
        f"{table:9} {name:17} seconds {own['seconds']:6.2f} and {other['seconds']:6.2f}, "
        f"ratio {own['seconds'] / other['seconds']:.2f}; MB {own['bytes'] / 1e6:4.0f} and {other['bytes'] / 1e6:4.0f}, "
        f"ratio {own['bytes'] / other['bytes']:.2f}; accuracy {own['accuracy']:.4f} and {other['accuracy']:.4f}, "
        f"standard error {error:.4f}\n"
    )
    sys.stdout.flush()


def main() -> None:
    if len(sys.argv) == 1:
        for table in ("packages", "topics"):
            for name in SIDES if TABLES[table]() else []:
                compared(table, name)
        return
    table, name, side = sys.argv[1:]
    rows = TABLES[table]()
    order = np.random.default_rng(1).permutation(len(rows))[: ROWS + TEST]
    texts, labels = zip(*(rows[place] for place in order), strict=True)
    whole = pa.table({"text": texts, "label": labels})
    sys.stdout.write(json.dumps(measured(side, name, whole.slice(0, ROWS), whole.slice(ROWS))))


TABLES = {"packages": packages, "topics": topics}
if __name__ == "__main__":
    main()
