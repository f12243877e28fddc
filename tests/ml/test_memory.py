"""A fit takes at most twice its binned data, and the model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COLUMNS = 30
TREES = [
    ("decision_tree", {"splits": "binned"}, 1),
    ("decision_tree", {"splits": "binned", "min_samples_leaf": 1}, 1),
    ("decision_tree", {"splits": "exact"}, 16),
    ("random_forest", {"n_estimators": 3, "min_samples_leaf": 3}, 1),
]
"""What is fitted, and the bytes of its codes for a value: a bin; or a rank, what it stands for, and a row in order."""
BOOSTED = [
    ("gradient_boosting", {"n_estimators": 2, "max_leaf_nodes": 8, **held}, 1)
    for held in ({}, {"early_stopping": True, "n_iter_no_change": 1})
]
WEAK = [
    ("logitboost", {"n_estimators": 2}, 1),
    ("adaboost", {"n_estimators": 2, "max_depth": 3}, 1),
    ("boost_majority", {"n_estimators": 2, "max_depth": 3, "edge": 0.02}, 1),
]


OUT = [("random_forest", {"n_estimators": 3}, 1)]
"""Grown to the last row: most of what it takes is trees, whose arrays come and go."""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells how much was resident at most")
@pytest.mark.parametrize(
    ("classes", "rows", "specs", "options"),
    [
        pytest.param(0, 100_000, TREES, [], marks=pytest.mark.slow),
        pytest.param(2, 100_000, TREES + WEAK, [], marks=pytest.mark.slow),
        pytest.param(3, 400_000, BOOSTED + WEAK, [], marks=pytest.mark.slow),
        (0, 200_000, OUT, ["--kept"]),
    ],
    ids=["numbers", "two", "three", "grown out"],
)
def test_a_fit_takes_at_most_twice_its_codes_and_the_model(classes, rows, specs, options):
    result = [part for name, params, _ in specs for part in (name, json.dumps(params))]
    script = Path(__file__).parents[1] / "benchmarks" / "fit_memory.py"
    run = subprocess.run(
        [sys.executable, str(script), *options, str(classes), str(rows), str(COLUMNS), *result],
        check=True,
        capture_output=True,
        text=True,
    )
    for (name, params, width), found in zip(specs, json.loads(run.stdout), strict=True):
        codes = rows * COLUMNS * width
        times = (found["peak"] - found["model"]) / codes
        assert times <= 2, f"{name} {params}: {times:.2f} times its codes beyond a model of {found['model']} bytes"
