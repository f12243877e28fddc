"""The benchmark of quality beside other libraries: it runs, its errors are right, no algorithm is left out."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Task
from tests.benchmarks import choosing
from tests.benchmarks.choosing import measurable
from tests.benchmarks.paired import Paired, class_losses
from tests.benchmarks.quality import equivalents
from tests.benchmarks.quality.contest import _ours, peers_of
from tests.benchmarks.quality.peers import CLASSES, NUMBERS
from tests.benchmarks.quality.tables import BUNDLED

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_benchmark_runs_and_names_what_it_found():
    command = [sys.executable, "-m", "tests.benchmarks.quality", "tiny", "tiny.yes", "ridge", "ecoc"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    lines = [line.split() for line in found.stdout.splitlines()]
    assert {(line[0], line[1]) for line in lines if line[:1] in (["tiny"], ["tiny.yes"])} == {
        ("tiny", "ridge"),
        ("tiny.yes", "ridge"),
        ("tiny.yes", "ecoc"),
    }
    summary = {(line[0], line[1]): line[2:5] for line in lines[-3:]}
    assert set(summary) == {("ecoc", "error"), ("ridge", "RMSE"), ("ridge", "error")}
    assert all(sum(map(int, counts)) == 1 for counts in summary.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", choosing.TABLES)
def test_with_the_settings_of_the_peer_none_is_worse_by_a_standard_error(name):
    found = [*equivalents.lines(name, frozenset())]
    assert {line.algorithm for line in found} >= {"mlp", "svm" if choosing.TABLES[name].classes else "svr"}
    assert [line for line in found if line.matters and line.paired.t > 1] == []


@pytest.mark.parametrize(("task", "peers"), [(Task.REGRESSION, NUMBERS), (Task.CLASSIFICATION, CLASSES)])
def test_every_supervised_algorithm_has_a_peer(task, peers):
    assert set(peers) == {name for name in catalogue() if measurable(name, task)}


def test_folds_that_share_rows_have_the_corrected_standard_error():
    ours, theirs = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 1.0, 2.0, 2.0, 3.0])
    lead = Paired.of(ours, theirs, 1 / 4)
    assert lead.difference == pytest.approx(1.2)
    assert lead.error == pytest.approx(math.sqrt(0.7 * (1 / 5 + 1 / 4)))
    assert 0 < lead.z < lead.t  # four degrees of freedom are less than the normal has


def test_a_probability_of_zero_costs_a_finite_loss():
    losses = class_losses(np.array([[1.0, 0.0], [0.25, 0.75]]), np.array([1, 1]))
    assert losses == {"log-loss": pytest.approx((-math.log(1e-15) - math.log(0.75)) / 2), "error": 0.5}


ITERATIVE = ("logistic", "linear_sgd", "perceptron", "logitboost", "lasso", "additive")


@pytest.mark.parametrize(("algorithm", "name"), [(a, name) for a in ITERATIVE for name in BUNDLED])
def test_defaults_converge_on_the_bundled_tables(algorithm, name):
    table = BUNDLED[name]
    if algorithm in peers_of(table):
        _, unfinished = _ours(algorithm, table, [next(table.splits())])
        assert unfinished == 0
