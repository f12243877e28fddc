"""Algorithms whose scores are linear in the columns say so, and their coefficients are found by that alone."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import app.ml
from app.ml.contract.algorithm import Task
from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import unheard
from app.ml.jobs.bootstrap import KIND
from app.ml.kinds.job import Inputs, Sheet, Source

CORE = Path(app.ml.__file__).parent


def test_a_state_with_coefficients_and_intercept_is_declared_linear(case):
    if case.algorithm.linear is None:
        assert not {"coef", "intercept"} <= set(case.algorithm.state._fields)
        return
    data = case.data(columns=3)
    state = case.fit(data).state
    coef, intercept = case.algorithm.linear(state)
    scores, predicted = data.x @ coef + intercept, case.predict(state, data.x)
    if case.task is Task.REGRESSION:
        np.testing.assert_allclose(scores[:, 0], predicted, rtol=1e-9)
    else:
        np.testing.assert_array_equal(scores.argmax(axis=1), predicted.argmax(axis=1))


def test_nothing_is_looked_up_in_a_state_or_parameters_by_a_name():
    """What the core needs of an algorithm stands in its record."""
    found = [
        path.name
        for folder in ("training", "evaluation", "jobs", "models/conformal.py", "models/model.py")
        for path in ([CORE / folder] if folder.endswith(".py") else sorted((CORE / folder).glob("*.py")))
        if re.search(r"\bgetattr\(", path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize("name", ["linear_sgd", "logistic"])
def test_as_many_scores_as_columns_leave_no_doubt_which_are_which(name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3))
    table = pa.table({**{f"x{j}": x[:, j] for j in range(3)}, "y": np.array(["a", "b", "c"])[x.argmax(axis=1)]})
    columns = [*(TableColumn(f"x{j}", "numeric", 0, 90) for j in range(3)), TableColumn("y", "categorical", 0, 3)]
    source = Source(Sheet("sha256:0", 90, tuple(columns)), iter([table]))
    training = {"target": "y", "algorithm": {"name": name}}
    dataset = "00000000-0000-7000-8000-000000000000"
    request = KIND.request.model_validate({"dataset": dataset, "training": training, "resamples": 50})
    result = KIND.run(request, Inputs((source,)), unheard).result
    own = {(one.name, one.label): one.estimate for one in result.coefficients if one.name != "(intercept)"}
    assert len(own) == 9
    for label, column in zip("abc", range(3), strict=True):
        assert max("012", key=lambda j: own[f"x{j}", label]) == str(column)
