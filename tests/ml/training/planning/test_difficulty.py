"""Stages of rows by difficulty: nested, equal to passes by hand, and only for algorithms that learn in an order."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InvalidData, InvalidRequest
from app.ml.algorithms import linear_sgd, perceptron
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.columns import TableColumn
from app.ml.contract.difficulty_stages import Curriculum
from app.ml.models import state_format
from app.ml.models.model import decode
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.train import train
from tests.ml.training.beyond_memory import plan_within as plan
from tests.ml.training.test_train import sheet

N, RATE = 23, 0.05
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
TABLE = pa.table(
    {
        "a": X[:, 0],
        "b": X[:, 1],
        "d": np.round(np.abs(X).sum(axis=1), 1),
        "y": X @ [1.0, -2.0] + 0.1 * RNG.normal(size=N),
        "sign": np.where(X @ [1.0, 1.0] + 0.8 * RNG.normal(size=N) > 0, "plus", "minus"),
    }
)
D = TABLE["d"].to_numpy()
ONLINE = {"name": "linear_sgd", "solver": "online"}
LITERAL = {"learning_rate": RATE, "schedule": "constant", "l2": 0.0, "epochs": 1, "shuffle": False}
LACKING = (
    "2 rows have no value in 'e', and every row that is learned from needs one: fill them in, or leave these rows out "
    "of the dataset."
)
AT_ONCE = "Only the solver online learns rows in an order of difficulty: set solver to online."
AS_IS = {"preprocessing": {"scaling": "none"}, "validation": {"test_fraction": 0.0}}


def requested(algorithm, target="y", **more):
    given = {"algorithm": algorithm, "target": target, "features": ["a", "b"], "difficulty": "d"}
    return TrainSpec.model_validate(given | AS_IS | more)


def trained(algorithm, target="y", **more):
    planned = plan(requested(algorithm, target, **more), sheet(TABLE), N)
    return train(planned, TABLE, data_digest="sha256:0")


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 40))
def test_stages_are_nested_and_have_the_easiest_rows(difficulty, count):
    stages = Curriculum(np.array(difficulty, float), count).stages()
    easiest = sorted(range(len(difficulty)), key=lambda row: (difficulty[row], row))
    sizes = [-(-k * len(difficulty) // count) for k in range(1, count + 1)]
    assert [stage.tolist() for stage in stages] == [sorted(easiest[:size]) for size in sizes]
    assert stages[-1].tolist() == list(range(len(difficulty)))


@pytest.mark.parametrize("stages", [1, 3, 5, 60])
def test_linear_sgd_is_the_rule_of_widrow_and_hoff_stage_by_stage(stages):
    x, y, w, easiest = (
        np.column_stack([X, np.ones(N)]),
        TABLE["y"].to_numpy(),
        np.zeros(3),
        np.argsort(D, kind="stable"),
    )
    for k in range(1, stages + 1):
        for row in sorted(easiest[: int(np.ceil(k * N / stages))]):
            w += RATE * (y[row] - w @ x[row]) * x[row]
    state = decode(trained(ONLINE | LITERAL, difficulty_stages=stages).blob).state
    np.testing.assert_allclose([*state.coef[0], *state.intercept], w, rtol=1e-12)
    assert state.steps == sum(-(-k * N // stages) for k in range(1, stages + 1))


def test_the_perceptron_corrects_its_mistakes_stage_by_stage():
    x, t = np.column_stack([X, np.ones(N)]), np.where(TABLE["sign"].to_numpy() == "plus", 1.0, -1.0)
    w, mistakes = np.zeros(3), 0
    for size in (6, 12, 18, 23):
        rows, wrong = sorted(np.argsort(D, kind="stable")[:size]), 1
        for _ in range(7):
            wrong = 0
            for row in rows:
                if t[row] * (w @ x[row]) <= 0:
                    w += t[row] * x[row]
                    wrong += 1
            mistakes += wrong
            if not wrong:
                break
    state = decode(trained({"name": "perceptron", "epochs": 7, "shuffle": False}, "sign").blob).state
    assert state.mistakes == mistakes > 0
    np.testing.assert_allclose(state.coef[1] - state.coef[0], 2 * w, rtol=1e-12)


@pytest.mark.parametrize(
    ("module", "params", "task"),
    [
        (linear_sgd, linear_sgd.LinearSGD(solver="online", epochs=3), Task.REGRESSION),
        (linear_sgd, linear_sgd.LinearSGD(solver="online", epochs=3), Task.CLASSIFICATION),
        (perceptron, perceptron.Perceptron(epochs=3), Task.CLASSIFICATION),
    ],
)
def test_one_stage_is_a_fit_as_ever(module, params, task):
    data = Data.of(task, X, np.arange(N) % 3)
    staged = [replace(data, curriculum=Curriculum(D, k)) for k in (1, 4)]
    plain, one, four = (module.fit(params, rows, Context.of(5)) for rows in (data, *staged))
    arrays = [{}, {}, {}]
    for fit, packed in zip((plain, one, four), arrays, strict=True):
        state_format.pack(fit.state, "state", packed)
    assert all(arrays[0][name].tobytes() == arrays[1][name].tobytes() for name in arrays[0])
    assert any(arrays[0][name].tobytes() != arrays[2][name].tobytes() for name in arrays[0])
    assert (plain.curves, plain.warnings, plain.iterations) == (one.curves, one.warnings, one.iterations)
    assert len(next(iter(four.curves.values()))) == four.iterations > one.iterations


def test_each_fit_has_the_stages_of_its_own_rows_and_no_column_of_difficulty():
    planned = plan(requested(ONLINE, features=None), sheet(TABLE), N)
    assert planned.features == ("a", "b", "sign")
    rows = np.array([3, 3, 0, 20, 7])
    training_set = TrainingSet.read(planned, TABLE)
    data = training_set.data(training_set.prepare(rows), rows)
    assert data.curriculum.difficulty.tolist() == D[rows].tolist()
    assert data.take(np.array([4, 0])).curriculum.difficulty.tolist() == D[[7, 3]].tolist()
    assert plan(requested(ONLINE, features=["a", "d"]), sheet(TABLE), N).features == ("a", "d")


def test_a_target_that_is_transformed_is_learned_in_stages_too():
    squared = {"preprocessing": {"scaling": "none", "target": "square"}}
    rows = TABLE.set_column(3, "y", pa.array(np.abs(TABLE["y"].to_numpy())))
    specs = [requested(ONLINE | LITERAL, difficulty=name, **squared) for name in ("d", None)]
    made = [train(plan(spec, sheet(rows), N), rows, data_digest="sha256:0") for spec in specs]
    assert [decode(one.blob).state.steps for one in made] == [6 + 12 + 18 + 23, N]


@pytest.mark.parametrize(
    ("more", "faults"),
    [
        ({"difficulty": "dd"}, [("/difficulty", "The dataset has no column 'dd'; did you mean 'd'?")]),
        ({"difficulty": "y"}, [("/difficulty", "The target cannot order the rows too: name another column.")]),
        (
            {"difficulty": "sign"},
            [("/difficulty", "Numbers are needed, larger ones for harder rows; this column is categorical.")],
        ),
        (
            {"algorithm": {"name": "knn"}},
            [("/difficulty", "knn does not learn rows in an order. Algorithms that do: linear_sgd, mlp, perceptron.")],
        ),
        (
            {"algorithm": {"name": "linear_sgd"}, "difficulty": "e"},
            [("/difficulty", LACKING), ("/algorithm/solver", AT_ONCE)],
        ),
    ],
)
def test_what_gives_no_order_is_refused(more, faults):
    columns = [*sheet(TABLE), TableColumn("e", "numeric", 2, 9)]
    with pytest.raises(InvalidRequest) as refused:
        plan(requested(**{"algorithm": ONLINE} | more), columns, N)
    assert [(fault.pointer, fault.detail) for fault in refused.value.faults] == faults


def test_a_difficulty_that_a_row_with_a_target_lacks_is_named_and_batches_have_none():
    rows = pa.table({"a": [1.0, 2, 3, 4], "b": [1.0, 0, 0, 1], "d": [1.0, None, 2, 3], "y": [1.0, 2, 3, None]})
    with pytest.raises(InvalidData) as refused:
        TrainingSet.read(plan(requested(ONLINE), sheet(rows), 4), rows)
    assert [fault.pointer for fault in refused.value.faults] == ["/rows/1/d"]
    with pytest.raises(InvalidRequest) as refused:
        plan(requested(ONLINE), [TableColumn(name, "numeric", 0, None) for name in "abdy"], 10**7, 1.0)
    assert [fault.pointer for fault in refused.value.faults] == ["/difficulty"]
