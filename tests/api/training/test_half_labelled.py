"""Digits of which 5 % have a target: learners that use the others beside one that does not, in one comparison."""

import numpy as np
import pytest
from sklearn import datasets

NEAREST = {"name": "knn", "n_neighbors": 1}
LEARNERS = {
    "labelled-alone": NEAREST,
    "labels-on-graph": {"name": "harmonic"},
    "labels-by-itself": {"name": "self_training", "estimator": NEAREST, "k_best": 100},
    "labels-after-pca": {"name": "two_step", "estimator": NEAREST},
    "labels-and-margin": {"name": "transductive_svm"},
}
LABELLED = 3
"""Rows of each digit, of 600 in all."""


@pytest.fixture(scope="module")
def tables(client):
    """Rows to learn from and other rows, all of which have a target."""
    x, y = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))[:1200]
    known = np.zeros(1200, bool)
    known[600:] = True
    for digit in range(10):
        known[np.flatnonzero(y[order[:600]] == digit)[:LABELLED]] = True
    names = [*(f"p{j}" for j in range(64)), "digit"]
    lines = [
        ",".join([*(f"{value:g}" for value in x[row]), f"digit {y[row]}" if there else ""])
        for row, there in zip(order, known, strict=True)
    ]
    parts = lines[:600], lines[600:]
    return [client.post("/v1/datasets", content="\n".join([",".join(names), *part])).json()["id"] for part in parts]


@pytest.fixture(scope="module")
def compared(tables, done):
    learned, other = tables
    for model, algorithm in LEARNERS.items():
        body = {"model": model, "dataset": learned, "target": "digit", "preprocessing": {"scaling": "none"}}
        done("train", body | {"algorithm": algorithm, "validation": {"test_fraction": 0}})
    return done("compare", {"dataset": other, "versions": [{"model": model} for model in LEARNERS]})["result"]


@pytest.mark.slow
def test_all_are_compared_on_the_same_rows_that_none_has_seen(compared):
    assert compared["rows"] == 600
    assert [one["model"] for one in compared["versions"]] == [*LEARNERS]
    assert [(pair["first"], pair["second"]) for pair in compared["pairs"]] == [
        (first, second) for first in range(5) for second in range(first + 1, 5)
    ]
    for pair in compared["pairs"]:
        difference = pair["difference"]
        assert difference["lower"] <= difference["value"] <= difference["upper"]


@pytest.mark.slow
def test_rows_without_a_target_help_where_digits_of_a_kind_are_near_each_other(compared):
    """Labels that spread along a graph against the nearest labelled row: all of the paired interval is on one side."""
    alone, graph = (
        next(one["value"] for one in version["metrics"] if one["name"] == "accuracy")
        for version in compared["versions"][:2]
    )
    assert graph > alone + 0.05
    assert next(pair for pair in compared["pairs"] if (pair["first"], pair["second"]) == (0, 1))["better"] == 1
