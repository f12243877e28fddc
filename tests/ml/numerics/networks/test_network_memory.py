"""Memory of a network as it is declared, beside what a training takes, and refusal of one that does not fit."""

import tracemalloc

import numpy as np
import pytest

from app.base.errors import InvalidRequest
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Context, Data, Size, Task
from app.ml.contract.columns import TableColumn
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec

OPTIMIZERS = ("adam", "sgd", "lbfgs", "conjugate_gradient", "one_step_secant", "bold_driver", "gradient_descent")
NETWORKS = [("mlp", [300, 300], optimizer) for optimizer in OPTIMIZERS]
NETWORKS += [("autoencoder", [300, 150], "adam"), ("autoencoder", [300, 150], "lbfgs"), ("mlp", [1000], "adam")]
COLUMNS = [TableColumn(f"x{j}", "numeric", 0, 100) for j in range(5)] + [TableColumn("y", "numeric", 0, 100)]


@pytest.mark.parametrize(("name", "layers", "optimizer"), NETWORKS)
def test_a_training_takes_about_the_memory_that_is_declared(name, layers, optimizer):
    algorithm = find(name).algorithm
    x = np.random.default_rng(0).normal(size=(200, 40))
    data = Data.of(Task.REGRESSION, x, x[:, 0]) if name == "mlp" else Data.of(Task.PROJECTION, x)
    params = algorithm.params(hidden_layers=layers, optimizer=optimizer, epochs=1, max_iter=11)
    declared = algorithm.memory(params, Size(200, 40))
    algorithm.fit(params, data.take(np.arange(30)), Context.of(0))  # compiles
    tracemalloc.start()
    algorithm.fit(params, data, Context.of(0))
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert declared / 2 < taken < 1.5 * declared


@pytest.mark.parametrize("rows", [100, 10_000_000])
def test_a_network_that_no_job_holds_is_refused(rows):
    def planned(layers):
        spec = {"target": "y", "algorithm": {"name": "mlp", "hidden_layers": layers}}
        return plan(TrainSpec.model_validate(spec), COLUMNS, rows, memory_bytes=2 * 2**30)

    assert planned([100]).memory_bytes < 2 * 2**30
    with pytest.raises(InvalidRequest) as refused:
        planned([10_000] * 3)
    (fault,) = refused.value.faults
    assert (fault.pointer, fault.code) == ("/algorithm", "too_large")
