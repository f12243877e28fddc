"""Learners made of learners."""

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from app.base.errors import InvalidRequest
from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import any_algorithm, catalogue, find
from app.ml.contract.algorithm import Accepts, Data, FittedLearner, NestedFit, Task, in_turn
from app.ml.contract.columns import TableColumn
from app.ml.models import state_format
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec

COLUMNS = [TableColumn("x", "numeric", 0, 50), TableColumn("y", "numeric", 0, 50)]


def parsed(**spec):
    return TypeAdapter(any_algorithm()).validate_python(spec)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    return Data.of(Task.REGRESSION, x, x @ [1.0, -2.0, 0.5] + rng.normal(size=80))


def test_a_learner_is_read_by_its_name_wherever_it_stands():
    spec = parsed(name="bagging", estimator={"name": "bagging", "estimator": {"name": "ridge", "l2": 3.0}})
    assert spec.estimator.estimator.l2 == 3.0
    assert parsed(name="bagging").estimator.name == "decision_tree"
    for wrong in ({"name": "nobody"}, {"l2": 1.0}, {"name": "ridge", "nonsense": 1}):
        with pytest.raises(ValidationError):
            parsed(name="bagging", estimator=wrong)


LEARNERS = [
    (name, task)
    for name, entry in catalogue().items()
    for task in (Task.REGRESSION, Task.CLASSIFICATION)
    if task in entry.algorithm.tasks
]


@pytest.mark.parametrize(("name", "task"), LEARNERS)
def test_any_learner_of_the_catalogue_may_stand_in_another(data, name, task):
    rows = data if task is Task.REGRESSION else data.with_target(task, (data.y > 0) * 1.0, classes=2)
    outer = parsed(name="committee", estimators=[{"name": name}, {"name": name}])
    fitted = nested.context(0).fit(outer, rows)
    members = [member.predict(rows.x) for member in fitted.state.members]
    predicted = fitted.predict(rows.x)
    np.testing.assert_allclose(predicted, np.mean(members, axis=0), rtol=1e-9, atol=1e-12)
    arrays = {}
    packed = state_format.pack(fitted.state, "state", arrays)
    again = state_format.unpack(find("committee").algorithm.state, packed, arrays)
    np.testing.assert_array_equal(again.members[1].predict(rows.x), members[1])


def test_each_inner_fit_draws_for_itself(data):
    """What one inner learner draws changes nothing for the next."""
    tree = parsed(name="bagging", n_estimators=3)
    first, second = (nested.context(7) for _ in range(2))
    first.fit(parsed(name="bagging", n_estimators=9), data)
    second.fit(tree, data)
    result = [context.fit(tree, data).predict(data.x) for context in (first, second)]
    np.testing.assert_array_equal(*result)


def test_inner_learners_are_stored_with_their_parameters(data):
    spec = parsed(name="bagging", n_estimators=2, estimator={"name": "ridge", "l2": 3.0})
    state = nested.context(0).fit(spec, data).state
    arrays = {}
    again = state_format.unpack(find("bagging").algorithm.state, state_format.pack(state, "state", arrays), arrays)
    assert [type(one) for one in again.members] == [FittedLearner, FittedLearner]
    assert again.members[0].params.l2 == 3.0
    np.testing.assert_array_equal(again.members[1].predict(data.x), state.members[1].predict(data.x))


def test_stored_learners_that_are_none(data):
    spec = parsed(name="bagging", n_estimators=1, estimator={"name": "ridge"})
    arrays = {}
    packed = state_format.pack(nested.context(0).fit(spec, data).state, "state", arrays)
    for wrong in ({"name": "nobody"}, {"name": "ridge", "l2": -1}, {}):
        packed["fields"]["members"][0]["learner"] = wrong
        with pytest.raises((ValueError, KeyError)):
            state_format.unpack(find("bagging").algorithm.state, packed, arrays)


def test_it_accepts_what_all_of_its_members_accept():
    bagging = find("bagging").algorithm
    of = lambda **base: nested.accepts(bagging, parsed(name="bagging", estimator=base), Task.REGRESSION)  # noqa: E731
    assert of(name="decision_tree") == {Accepts.MISSING, Accepts.CATEGORIES}
    assert of(name="bagging") == {Accepts.MISSING, Accepts.CATEGORIES}
    assert of(name="lasso") == {Accepts.INDICATORS}
    assert of(name="svr") == frozenset()
    committee = find("committee").algorithm
    two = lambda *names: parsed(name="committee", estimators=[{"name": name} for name in names])  # noqa: E731
    assert not nested.accepts(committee, two("decision_tree", "ridge"), Task.REGRESSION)
    assert len(nested.accepts(committee, two("decision_tree", "random_forest"), Task.REGRESSION)) == 2


def faults(algorithm):
    spec = TrainSpec.model_validate({"target": "y", "algorithm": algorithm})
    with pytest.raises(InvalidRequest) as refused:
        plan(spec, COLUMNS, 100)
    return [(fault.pointer, fault.code) for fault in refused.value.faults]


def test_a_second_level_sees_predictions_and_no_columns():
    tree, named = {"name": "decision_tree"}, {"name": "random_subspace", "groups": [["x"]]}
    spec = parsed(name="stacking", estimators=[tree], final_estimator={"name": "ridge"})
    stacking = find("stacking").algorithm
    assert nested.accepts(stacking, spec, Task.REGRESSION) == {Accepts.MISSING, Accepts.CATEGORIES}
    with pytest.raises(InvalidRequest) as refused:
        plan(
            TrainSpec(target="y", algorithm={"name": "stacking", "estimators": [tree], "final_estimator": named}),
            COLUMNS,
            50,
        )
    assert [fault.pointer for fault in refused.value.faults] == ["/algorithm/final_estimator/groups/0/0"]


def test_members_that_cannot_do_the_task_are_named():
    assert faults({"name": "bagging", "estimator": {"name": "kmeans"}}) == [("/algorithm/estimator/name", "invalid")]
    inner = {"name": "bagging", "estimator": {"name": "logistic"}}
    assert faults({"name": "bagging", "estimator": inner}) == [("/algorithm/estimator/estimator/name", "invalid")]


def test_learners_do_not_nest_without_end():
    spec = {"name": "ridge"}
    for _ in range(nested.MAX_NESTING + 1):
        spec = {"name": "bagging", "estimator": spec}
    assert faults(spec) == [("/algorithm" + "/estimator" * (nested.MAX_NESTING + 1), "too_deep")]


def test_names_of_no_inputs_are_refused_where_they_stand():
    tree = {"name": "decision_tree", "missing_exceptions": ["x", "gone", "y"]}
    for algorithm, at in ((tree, "/algorithm"), ({"name": "bagging", "estimator": tree}, "/algorithm/estimator")):
        with pytest.raises(InvalidRequest) as refused:
            plan(TrainSpec(target="y", algorithm=algorithm), COLUMNS, 50)
        result = [(fault.pointer, fault.code) for fault in refused.value.faults]
        assert result == [(f"{at}/missing_exceptions/{place}", "unknown_column") for place in (1, 2)]


def test_groups_and_meta_features_name_inputs_levels_or_functions():
    columns = [*COLUMNS, TableColumn("plan", "categorical", 0, 3)]
    groups = {"name": "random_subspace", "groups": [["x", "gone"], ["plan", "plan=pro"], ["z=1", "x + 1", "log(x)"]]}
    meta = {"name": "feature_weighted_stacking", "meta_features": ["x", "plan=pro", "gone", "log(x)"]}
    formula = {"kind": "expression", "expression": "log(x)"}

    def fit_warnings(algorithm, basis, scaling="standard"):
        how = {"basis": basis, "scaling": scaling}
        spec = {"target": "y", "algorithm": algorithm, "preprocessing": how}
        with pytest.raises(InvalidRequest) as refused:
            plan(TrainSpec.model_validate(spec), columns, 50)
        assert {fault.code for fault in refused.value.faults} == {"unknown_column"}
        return [fault.pointer.removeprefix("/algorithm") for fault in refused.value.faults]

    assert fit_warnings(groups, [formula]) == ["/groups/0/1", "/groups/2/0", "/groups/2/1"]
    assert fit_warnings({"name": "bagging", "estimator": groups}, []) == [
        f"/estimator/groups/{place}" for place in ("0/1", "2/0", "2/1", "2/2")
    ]
    assert fit_warnings(meta, [formula]) == ["/meta_features/2"]
    assert fit_warnings(meta, []) == ["/meta_features/2", "/meta_features/3"]
    squares = [{"kind": "polynomial", "degree": 2}, formula]
    powers = {"name": "random_subspace", "groups": [["x ** 2", "nobody"]]}
    assert fit_warnings(powers, squares, "none") == ["/groups/0/1"]
    assert fit_warnings(powers, squares) == ["/groups/0/0", "/groups/0/1"], "scaled powers have no names yet"


def test_one_learner_is_fitted_as_several_are(data):
    """There is one way to fit members: a single one draws what the first of several would, and reports no progress."""
    spec = parsed(name="random_forest", n_estimators=3)
    seen, kinds = [], []

    def each(kind, tasks):
        kinds.append(kind)
        return in_turn(kind, tasks)

    one = nested.context(5, lambda *messages, **_: seen.append(messages), each).fit(spec, data)
    assert (kinds, seen) == ([FittedLearner], [])
    (first,) = nested.context(5, lambda *messages, **_: seen.append(messages)).fit_all([NestedFit(spec, lambda: data)])
    assert seen == [(1.0,)]
    np.testing.assert_array_equal(one.predict(data.x), first.predict(data.x))
