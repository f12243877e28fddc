"""Roles of columns beside features: every algorithm gets each that it takes, and the others are refused by name."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import InvalidRequest
from app.ml.contract.algorithm import Accepts, silent
from app.ml.models.golden import check_golden
from app.ml.models.model import decode
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.train import train
from tests.ml.contract.drawn_tables import plain, requests


def read(request):
    """The preparation of a fit of the request, what it learns from, and the numbers of its test rows in the table."""
    rows = TrainingSet.read(request.planned(), request.table)
    split = rows.holdout(0.25, np.random.default_rng(0))
    preparation = rows.prepare(split.train)
    return preparation, rows.training_data(preparation, split.train), rows.numbers[split.test]


@settings(settings.get_profile("contract"), max_examples=8)
@given(choice=st.data())
def test_a_fit_gets_the_roles_of_the_request(case, choice):
    request = choice.draw(requests(case))
    preparation, data, test = read(request)
    unlabelled = np.setdiff1d(np.arange(request.table.num_rows), request.labelled)
    assert np.union1d(data.numbers, test).tolist() == request.labelled.tolist()
    assert not np.intersect1d(data.numbers, test).size
    assert data.items.tolist() == request.column("name", data.numbers).tolist()
    if request.spec.validation.group:
        groups = [set(request.column("patient", part)) for part in (data.numbers, test)]
        assert groups[0].isdisjoint(groups[1])
    else:
        assert request.column("day", test).min() > request.column("day", data.numbers).max()
    own = request.column("weight", data.numbers)
    expected = own if request.spec.weights else own**-2.0 if request.spec.sigma else np.ones(own.size)
    np.testing.assert_allclose(data.weights / data.weights.sum(), expected / expected.sum(), rtol=1e-12)
    if Accepts.UNLABELLED in case.accepts and unlabelled.size:
        assert data.unlabelled.numbers.tolist() == unlabelled.tolist()
        sent = preparation.raw(request.table.take(pa.array(unlabelled)))
        np.testing.assert_array_equal(data.unlabelled.x, preparation.matrix(sent))
    else:
        assert data.unlabelled is None


def test_a_fit_weighs_the_rows_of_each_class(case, same_bytes):
    """As a fit of the same rows with the product of both weights does."""
    if not case.task.of_classes:
        return
    spec = plain(case).spec.model_copy(update={"class_weight": {"a": 3.0, "c": 0.5}, "weights": "weight"})
    request = plain(case)._replace(spec=spec)
    rows = TrainingSet.read(request.planned(), request.table)
    every = np.arange(rows.rows)
    data = rows.training_data(rows.prepare(every), every)
    weights = data.weights * np.array([3.0, 1.0, 0.5])[data.codes]
    expected = case.fit(replace(data, weights=weights), rows.params)
    same_bytes(rows.fit(data, 0, silent)[0].state, expected.state)


@settings(settings.get_profile("contract"), max_examples=3)
@given(choice=st.data())
def test_a_model_is_trained_with_them_and_the_report_counts_the_rows(case, choice):
    request = choice.draw(requests(case))
    planned = request.planned()
    made = train(planned, request.table, data_digest="sha256:0")
    lost = request.table.num_rows - request.labelled.size
    learned = lost if Accepts.UNLABELLED in case.accepts else 0
    assert made.report.rows_train + made.report.rows_test == request.labelled.size
    assert made.report.rows_unlabelled == learned
    use = "learned from as unlabelled rows" if learned else "not used"
    assert (f"{lost} rows without a target are {use}." in made.report.warnings) is bool(lost)
    check_golden(decode(made.blob), made.golden)


LACKED = {
    "class_weight": ("balanced", lambda case: case.task.of_classes, "Only classes have weights; this is {task}."),
    "sigma": ("weight", lambda case: case.task.of_numbers, "Only a numeric target has known errors; this is {task}."),
    "target": (
        "y",
        lambda case: case.algorithm.target_use(case.task).takes(has_target=True),
        "{name} learns without a target",
    ),
}
"""By field of a request: a value, whether a case takes it, and the detail of its fault where not."""


@pytest.mark.parametrize("field", LACKED)
def test_a_role_that_an_algorithm_does_not_take_is_refused_by_name(case, field):
    value, taken, detail = LACKED[field]
    if taken(case):
        assert plain(case).planned(**{field: value}).task is case.task
        return
    with pytest.raises(InvalidRequest) as refused:
        plain(case).planned(**{field: value})
    (fault,) = refused.value.faults
    if field == "target" and any(
        case.algorithm.target_use(task).takes(has_target=True) for task in case.algorithm.tasks
    ):
        assert fault[:2] == ("/task", f"{case.task} takes no target.")  # another of its tasks does
        return
    assert fault.pointer == f"/{field}"
    assert fault.detail.startswith(detail.format(task=case.task, name=case.entry.name))


def test_rows_are_learned_by_difficulty_or_it_is_refused_by_name(case):
    online = {"algorithm": {"name": "linear_sgd", "solver": "online"}} if case.entry.name == "linear_sgd" else {}
    spec = TrainSpec.model_validate(
        plain(case).spec.model_dump(exclude={"algorithm"}, exclude_unset=True)
        | {"algorithm": {"name": case.entry.name}, "difficulty": "weight", "difficulty_stages": 2}
        | online
    )
    request = plain(case)._replace(spec=spec)
    try:
        planned = request.planned()
    except InvalidRequest as refused:
        (fault,) = refused.faults
        assert fault.pointer == "/difficulty"
        assert case.entry.name in fault.detail
        return
    made = train(planned, request.table, data_digest="sha256:0")
    assert "weight" not in [column.name for column in decode(made.blob).inputs]
    check_golden(decode(made.blob), made.golden)


@pytest.mark.parametrize("role", ["exposure", "offset"])
def test_a_column_of_the_score_is_learned_with_or_refused_by_name(case, role):
    """Three classes have no one score, and a rate has another loss than the default."""
    request, takes = plain(case), Accepts.OFFSET in case.algorithm.accepts
    if not takes or case.task.of_classes or role == "exposure":
        with pytest.raises(InvalidRequest) as refused:
            request.planned(**{role: "weight"})
        pointers = {fault.pointer for fault in refused.value.faults}
        assert pointers <= ({"/algorithm/name", "/algorithm/loss"} if takes else {f"/{role}"})
        return
    made = train(request.planned(**{role: "weight"}), request.table, data_digest="sha256:0")
    check_golden(decode(made.blob), made.golden)


@pytest.mark.parametrize("field", ["target", "item", "weights", "exposure", "offset", "group", "time"])
def test_a_column_that_is_not_there_is_refused_by_name(case, field):
    within = {"group": "/validation/group", "time": "/validation/time"}
    spec = plain(case).spec
    changes = {"validation": spec.validation.model_copy(update={field: "nam"})} if field in within else {field: "nam"}
    with pytest.raises(InvalidRequest) as refused:
        plain(case).planned(**changes)
    assert within.get(field, f"/{field}") in {fault.pointer for fault in refused.value.faults}
