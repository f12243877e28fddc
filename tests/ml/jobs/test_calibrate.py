"""A calibrated version of a stored classifier: rows, maps, what stays, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest

from app.errors import CorruptModel, InvalidData, InvalidRequest
from app.ml.contract.progress import unheard
from app.ml.job import Inputs, JobContext, Source
from app.ml.jobs import bootstrap, calibrate, combine, evaluate, update
from app.ml.models import safetensors_format
from app.ml.models.model import FORMATS, decode, encode
from tests.ml.jobs.test_combine import combined, flats, loaded, model
from tests.ml.jobs.test_evaluate import NOWHERE, sheet

NAMES = ["size", "rooms", "place", "garden"]
ALL = {"validation": {"test_fraction": 0}}
DEEP = {"algorithm": {"name": "decision_tree"}}


def outcome(base, table, data_digest="sha256:new", **changes):
    request = calibrate.CalibrateRequest.model_validate({"model": "m", "dataset": NOWHERE} | changes)
    known = JobContext((sheet(table, data_digest),), (base.version,))
    calibrate.KIND.check(request, known)
    source = Source(known.datasets[0], iter([table.slice(0, 50), table.slice(50)]))
    return calibrate.KIND.run(request, Inputs((source,), (base,)), unheard)


def calibrated(base, table, data_digest="sha256:new", **changes):
    made = outcome(base, table, data_digest, **changes).trained
    return loaded(made, base.version.model, base.version.version + 1)


def evaluated(base, table, data_digest="sha256:new", **changes):
    request = evaluate.EvaluateRequest.model_validate({"model": "m", "dataset": NOWHERE} | changes)
    source = Source(sheet(table, data_digest), iter([table]))
    return evaluate.KIND.run(request, Inputs((source,), (base,)), unheard).result


def faults(base, table, **changes):
    with pytest.raises(InvalidRequest) as raised:
        outcome(base, table, **changes)
    return sorted((fault.pointer, fault.code) for fault in raised.value.faults)


def error_of(side):
    return side.metrics[0]


@pytest.fixture(scope="module")
def table():
    return flats(700, seed=1)


@pytest.fixture(scope="module")
def forest():
    """Of 1-row leaves on few columns: far too sure of itself."""
    return model(flats(80, seed=0), "decision_tree", "dear", **ALL)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_that_are_too_sure_become_those_of_new_rows(forest, table, method):
    """The error of all new rows there are, here 20,000, lies within the interval that 350 rows give."""
    made = outcome(forest, table, method=method)
    before, after = error_of(made.result.before), error_of(made.result.after)
    assert after.value < before.lower
    assert (made.result.rows_fit, made.result.rows_test) == (350, 350)
    new, wide = loaded(made.trained, "m", 2).model, flats(20_000, seed=9)
    codes = np.array([new.classes.index(one) for one in wide["dear"].to_pylist()])
    for side, of in ((before, forest.model), (after, new)):
        p = of.predict(wide).probabilities
        bins = [np.searchsorted(np.linspace(0, 1, 11)[1:-1], column) for column in p.T]
        gaps = [np.bincount(b, (codes == j) - p[:, j], 10) for j, b in enumerate(bins)]
        assert side.lower <= np.abs(gaps).sum() / codes.size / 3 <= side.upper
    losses = {metric.name: metric.value for metric in made.result.after.metrics}
    assert losses["log_loss"] < next(one.value for one in made.result.before.metrics if one.name == "log_loss")
