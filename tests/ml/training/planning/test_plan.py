"""The plan of a request, and every fault of one at once."""

import pytest

from app.base.errors import InvalidRequest
from app.ml.contract.algorithm import Task
from app.ml.contract.columns import TableColumn
from app.ml.training.planning.column_faults import MAX_CLASSES
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec

COLUMNS = (
    TableColumn("age", "numeric", 0, 40),
    TableColumn("plan", "categorical", 2, 3),
    TableColumn("since", "datetime", 0, 90),
    TableColumn("note", "text", 0, None),
    TableColumn("key", "numeric", 0, 100, True),
    TableColumn("empty", "numeric", 100, 0),
    TableColumn("same", "numeric", 0, 1),
    TableColumn("churned", "boolean", 10, 2),
    TableColumn("price", "numeric", 0, 100),
    TableColumn("weight", "numeric", 0, 3),
    TableColumn("towns", "categorical", 0, MAX_CLASSES + 1),
)


def planned(rows=100, columns=COLUMNS, algorithm="ridge", **spec):
    return plan(TrainSpec.model_validate({"algorithm": {"name": algorithm}} | spec), columns, rows)


def faults(**spec):
    with pytest.raises(InvalidRequest) as refusal:
        planned(**spec)
    return [fault.pointer for fault in refusal.value.faults]


def test_the_task_follows_from_the_target():
    assert planned(target="price").task is Task.REGRESSION
    assert planned(target="plan").task is Task.CLASSIFICATION
    assert planned(target="churned").task is Task.CLASSIFICATION
    assert planned(target="weight", task="classification").task is Task.CLASSIFICATION
    assert planned(algorithm="kmeans").task is Task.CLUSTERING


def test_features_are_all_that_describes():
    found = planned(target="churned", weights="weight")
    assert found.features == ("age", "plan", "since", "same", "price", "towns")
    assert found.rows == 90
    result = " ".join(found.warnings)
    for messages in (
        "'note' is free text",
        "'key' looks like an identifier",
        "'empty' has no values",
        "10 rows without",
    ):
        assert messages in result
    assert "'towns' has more than 64 categories" in result


def test_features_requested_keep_their_order():
    found = planned(target="price", features=["key", "age"])
    assert found.features == ("key", "age")
    assert any("'key' looks like an identifier" in warning for warning in found.warnings)


FAULTS = {
    "no such target": ({"target": "x"}, ["/target"]),
    "no target": ({}, ["/target"]),
    "a target for projection": ({"algorithm": "pca", "target": "price"}, ["/target"]),
    "classes of a clustering that do not exist": ({"algorithm": "kmeans", "target": "x"}, ["/target"]),
    "too many classes of a clustering": ({"algorithm": "kmeans", "target": "towns"}, ["/target"]),
    "a target of a clustering as a feature": (
        {"algorithm": "kmeans", "target": "plan", "features": ["plan"]},
        ["/features/0"],
    ),
    "a target that is never there": ({"target": "empty"}, ["/target"]),
    "a target that never changes": ({"target": "same"}, ["/target"]),
    "points in time as classes": ({"target": "since"}, ["/target"]),
    "regression on words": ({"target": "plan", "task": "regression"}, ["/target"]),
    "too many classes": ({"target": "towns"}, ["/target"]),
    "as many classes as texts": ({"target": "note"}, ["/target"]),
    "a task that takes no target": ({"target": "plan", "task": "clustering"}, ["/task"]),
    "a task without its target": ({"algorithm": "kmeans", "task": "regression"}, ["/task"]),
    "a task the algorithm does not do": ({"algorithm": "logistic", "target": "price"}, ["/algorithm/name"]),
    "no such feature": ({"target": "price", "features": ["x", "age"]}, ["/features/0"]),
    "a feature twice": ({"target": "price", "features": ["age", "age", "age"]}, ["/features/1"]),
    "the target as a feature": ({"target": "price", "features": ["age", "price"]}, ["/features/1"]),
    "text as a feature": ({"target": "price", "features": ["note"]}, ["/features/0"]),
    "a feature without values": ({"target": "price", "features": ["empty"]}, ["/features/0"]),
    "weights that are no numbers": ({"target": "price", "weights": "plan"}, ["/weights"]),
    "no such weights": ({"target": "price", "weights": "x"}, ["/weights"]),
    "the target as weights": ({"target": "price", "weights": "price"}, ["/weights"]),
    "weights as a feature": ({"target": "price", "weights": "weight", "features": ["weight"]}, ["/features/0"]),
}


@pytest.mark.parametrize(("spec", "places"), FAULTS.values(), ids=FAULTS.keys())
def test_every_fault_has_its_place(spec, places):
    assert faults(**spec) == places


def test_all_faults_at_once():
    assert faults(target="x", weights="plan", features=["y", "age", "age", "note"]) == [
        "/target", "/weights", "/features/0", "/features/2", "/features/3",
    ]  # fmt: skip


def test_too_few_rows():
    columns = [TableColumn("a", "numeric", 0, 1), TableColumn("b", "numeric", 0, 1)]
    assert faults(rows=1, columns=columns, target="b") == ["/target"]
    assert faults(rows=1, columns=columns, algorithm="kmeans") == ["/dataset"]
    columns = [TableColumn("a", "numeric", 0, 1), TableColumn("b", "numeric", 2, 1)]
    assert faults(rows=3, columns=columns, target="b") == ["/target"]


def test_nothing_left_to_learn_from_names_every_column_and_its_reason():
    columns = [
        TableColumn("note", "text", 0, 9),
        TableColumn("key", "categorical", 0, 9, True),
        TableColumn("empty", "numeric", 9, 0),
        TableColumn("w", "numeric", 0, 3),
        TableColumn("month", "numeric", 0, 3),
        TableColumn("b", "numeric", 0, 9),
    ]
    with pytest.raises(InvalidRequest) as refusal:
        planned(rows=9, columns=columns, target="b", weights="w", validation={"group": "month"})
    (fault,) = refusal.value.faults
    assert fault.pointer == "/features"
    for reason in (
        "'b' is the target.",
        "'w' is the row weights.",
        "'month' is the group",
        "'note' is free text and was left out; to learn from it, name it in preprocessing.text.",
        "'key' looks like an identifier and was left out; to learn from it, name it in features.",
        "'empty' has no values",
    ):
        assert f"Column {reason}" in fault.detail
    with pytest.raises(InvalidRequest) as refusal:
        planned(rows=9, columns=columns[-1:], target="b")
    assert "needs a further column" in refusal.value.faults[0].detail


def test_a_thousand_columns_without_a_use_are_counted():
    columns = [*(TableColumn(f"note{n}", "text", 0, 9) for n in range(999)), TableColumn("b", "numeric", 0, 9)]
    with pytest.raises(InvalidRequest) as refusal:
        planned(rows=9, columns=columns, target="b")
    (fault,) = refusal.value.faults
    assert "950 more columns" in fault.detail
    assert len(fault.detail) < 8_000


def test_numbers_as_classes_are_offered():
    with pytest.raises(InvalidRequest) as refusal:
        planned(algorithm="logistic", target="price")
    assert "set task to classification" in refusal.value.faults[0].detail


def test_more_costs_more():
    small = planned(target="price", features=["age"])
    large = planned(target="price", features=["age", "since", "plan"], rows=10_000_000)
    folds = planned(target="price", features=["age", "since", "plan"], rows=10_000_000, validation={"method": "kfold"})
    assert small.memory_bytes < large.memory_bytes
    assert small.seconds < large.seconds < folds.seconds


def of_numbers(distinct, low, high, algorithm="decision_tree", **spec):
    """Task of a numeric target with so many different values, and the remarks about it."""
    columns = (TableColumn("age", "numeric", 0, 40), TableColumn("won", "numeric", 0, distinct, False, low, high))
    found = planned(columns=columns, target="won", algorithm=algorithm, **spec)
    return found.task, [message for message in found.warnings if "'won'" in message]


def test_zero_and_one_are_classes_with_the_way_to_numbers():
    task, (remark,) = of_numbers(2, 0.0, 1.0)
    assert task is Task.CLASSIFICATION
    assert "predicted as classes" in remark
    assert "set task to regression" in remark
    assert of_numbers(2, 0.0, 1.0, "logistic")[0] is Task.CLASSIFICATION
    assert of_numbers(2, 0.0, 1.0, task="regression") == (Task.REGRESSION, [])
    assert of_numbers(2, 0.0, 1.0, task="classification") == (Task.CLASSIFICATION, [])
    assert of_numbers(2, 0.0, 1.0, kinds={"won": "numeric"}) == (Task.REGRESSION, [])
    assert of_numbers(2, 0.0, 1.0, preprocessing={"target": "sqrt"})[0] is Task.REGRESSION
    assert of_numbers(2, 0.0, 1.0, "ridge", class_weight="balanced")[0] is Task.CLASSIFICATION


@pytest.mark.parametrize("algorithm", ["ridge", "linear", "lasso", "svr", "gaussian_process"])
def test_an_algorithm_of_regression_takes_zero_and_one_as_numbers_with_the_way_to_classes(algorithm):
    task, (remark,) = of_numbers(2, 0.0, 1.0, algorithm)
    assert task is Task.REGRESSION
    assert "set task to classification" in remark
    assert ("has none" in remark) == (algorithm not in {"ridge", "linear"})


def test_learners_within_decide_too():
    columns = (TableColumn("age", "numeric", 0, 40), TableColumn("won", "numeric", 0, 2, False, 0.0, 1.0))

    def task_of(estimator):
        spec = TrainSpec.model_validate(
            {"target": "won", "algorithm": {"name": "bagging", "estimator": {"name": estimator}}}
        )
        return plan(spec, columns, 100).task

    assert task_of("decision_tree") is Task.CLASSIFICATION
    assert task_of("lasso") is Task.REGRESSION


@pytest.mark.parametrize(("distinct", "low", "high"), [(2, 1.0, 2.0), (3, 0.0, 2.0), (10, 1.0, 10.0)])
def test_a_few_whole_numbers_are_a_regression_with_the_way_to_classes(distinct, low, high):
    task, (remark,) = of_numbers(distinct, low, high)
    assert task is Task.REGRESSION
    assert "a regression is fitted" in remark
    assert "set task to classification" in remark


@pytest.mark.parametrize(("distinct", "low", "high"), [(11, 0.0, 10.0), (4, 0.25, 3.0), (None, 0.0, 9.0)])
def test_other_numbers_are_a_regression_without_a_remark(distinct, low, high):
    assert of_numbers(distinct, low, high) == (Task.REGRESSION, [])


def test_alternatives_and_reasons_beside_the_request_decide_in_doubt():
    columns = (TableColumn("age", "numeric", 0, 40), TableColumn("won", "numeric", 0, 2, False, 0.0, 1.0))
    spec, lasso = (
        TrainSpec.model_validate({"target": "won", "algorithm": {"name": name}}) for name in ("decision_tree", "lasso")
    )
    assert plan(spec, columns, 100, alternatives=[lasso.algorithm]).task is Task.REGRESSION
    assert plan(spec, columns, 100, in_doubt=Task.REGRESSION).task is Task.REGRESSION
    assert plan(spec, columns, 100, in_doubt=Task.CLUSTERING).task is Task.CLASSIFICATION
    assert plan(spec, COLUMNS[:1] + columns[1:], 100, in_doubt=Task.CLASSIFICATION).task is Task.CLASSIFICATION


def test_a_target_of_texts_most_of_which_are_numbers_is_refused():
    sentence = "499 of 500 values are numbers; line 319 is not: the column was read as text."
    columns = (*COLUMNS, TableColumn("cost", "categorical", 0, 90, mostly_numbers=sentence))
    with pytest.raises(InvalidRequest) as refusal:
        planned(columns=columns, target="cost", algorithm="decision_tree")
    (fault,) = refusal.value.faults
    assert (fault.pointer, fault.code) == ("/target", "mostly_numbers")
    assert fault.detail.startswith(sentence)
    assert 'kinds: {"cost": "numeric"}' in fault.detail
    requested = {"columns": columns, "target": "cost", "algorithm": "decision_tree"}
    assert planned(**requested, kinds={"cost": "numeric"}).task is Task.REGRESSION
    assert planned(**requested, task="classification").task is Task.CLASSIFICATION


MEASURES = tuple(TableColumn(name, "numeric", 0, 30) for name in ("length", "width", "depth"))
KIND_OF = TableColumn("kind", "categorical", 0, 3)
LABEL = TableColumn("Species", "categorical", 0, 3)


@pytest.mark.parametrize(
    ("columns", "left_out"),
    [
        ((*MEASURES, KIND_OF), "kind"),  # the only category, at an end of a table of numbers
        ((KIND_OF, *MEASURES), "kind"),
        ((*MEASURES, LABEL, KIND_OF), "Species"),  # a name that classes have
        ((MEASURES[0], KIND_OF, *MEASURES[1:]), None),
        ((*MEASURES, KIND_OF._replace(distinct=200)), None),
        ((MEASURES[0], LABEL), None),  # nothing to learn from would be left
        (MEASURES, None),
    ],
)
def test_a_clustering_leaves_out_what_looks_like_a_class(columns, left_out):
    found = planned(algorithm="kmeans", columns=columns)
    assert found.features == tuple(column.name for column in columns if column.name != left_out)
    named = [warning for warning in found.warnings if "looks like a class" in warning]
    assert named == ([] if left_out is None else [next(w for w in named if repr(left_out) in w)])
    assert len(named) == (left_out is not None)


def test_a_class_is_learned_from_where_it_is_named_or_something_is_predicted():
    columns = (*MEASURES, KIND_OF)
    names = [column.name for column in columns]
    assert planned(algorithm="kmeans", columns=columns, features=names).features == tuple(names)
    assert "kind" in planned(columns=columns, target="depth").features
    assert planned(algorithm="kmeans", columns=columns, target="kind").features == tuple(names[:-1])
