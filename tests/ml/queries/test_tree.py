"""A tree that is read node by node predicts what the model predicts."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import BodyTooLarge, InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.kinds.query import Subject
from app.ml.models.model import decode
from app.ml.queries import tree
from app.ml.queries.tree import TreeRequest
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

N = 200
RNG = np.random.default_rng(5)
SIZE, PLACE = RNG.uniform(20, 200, N), RNG.choice(["north", "south", "west"], N)
GAPS = RNG.random(N) < 0.15
PRICE = 10 * SIZE + 300 * (PLACE == "south") + 500 * GAPS + RNG.normal(0, 20, N)
TABLE = pa.table(
    {
        "size": pa.array(SIZE, mask=GAPS),
        "rooms": pa.array(np.ceil(SIZE / 30)),
        "place": pa.array(PLACE),
        "price": pa.array(PRICE),
        "dear": pa.array(np.where(PRICE > 1300, "yes", "no")),
    }
)
COLUMNS = [
    TableColumn("size", "numeric", int(GAPS.sum()), N),
    TableColumn("rooms", "numeric", 0, 7),
    TableColumn("place", "categorical", 0, 3),
    TableColumn("price", "numeric", 0, N),
    TableColumn("dear", "categorical", 0, 2),
]
FEATURES = ["size", "rooms", "place"]


def fitted(target, algorithm, **how):
    fields = {"target": target, "features": FEATURES, "algorithm": algorithm}
    spec = TrainSpec.model_validate(fields | {"preprocessing": {"scaling": "standard"}} | how)
    trained = train(plan(spec, COLUMNS, N), TABLE, data_digest="sha256:0")
    return Subject("m", 1, "sha256:0", decode(trained.blob), 1000)


def read(subject, **request):
    return tree.QUERY.run(subject, TreeRequest(**request))


def compared(node, row):
    """The value that a split compares; None: missing."""
    if node.terms is None:
        return row[node.column]
    parts = [(term.coef, row[term.column]) for term in node.terms]
    return None if any(value is None for _, value in parts) else sum(coef * value for coef, value in parts)


def value(nodes, row, at=0):
    """Prediction of a row by the nodes alone, in the units and categories of the table."""
    node = nodes[at]
    if node.op is None:
        if node.linear is None:
            return np.array(node.value)
        line = node.linear.intercept + sum(term.coef * row[term.column] for term in node.linear.terms)
        return np.clip([line], node.linear.low, node.linear.high)
    given = compared(node, row)
    if given is None:
        if node.missing is not None:
            return value(nodes, row, node.missing)
        return node.left_share * value(nodes, row, node.left) + (1 - node.left_share) * value(nodes, row, node.right)
    goes_left = node.op == "known" or (given in node.categories if node.op == "in" else given <= node.threshold)
    return value(nodes, row, node.left if goes_left else node.right)


def by_hand(nodes):
    return np.array([value(nodes, row) for row in TABLE.select(FEATURES).to_pylist()])


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="plain"),
        pytest.param({"missing": "both"}, id="both branches"),
        pytest.param({"max_leaf_nodes": 6}, id="few leaves"),
        pytest.param({"oblique": 2, "missing": "both"}, id="oblique"),
    ],
)
def test_a_tree_read_node_by_node_is_the_model(options):
    subject = fitted("price", {"name": "decision_tree", **options})
    assert by_hand(read(subject).nodes)[:, 0] == pytest.approx(subject.model.predict(TABLE).values, rel=1e-9)
    classes = fitted("dear", {"name": "decision_tree", **options})
    shares = read(classes)
    assert shares.classes == ["no", "yes"]
    assert by_hand(shares.nodes) == pytest.approx(classes.model.predict(TABLE).probabilities, rel=1e-9)


def test_linear_leaves_are_in_the_units_of_the_table():
    algorithm = {"name": "decision_tree", "leaf_model": "linear", "min_samples_leaf": 30}
    subject = fitted("price", algorithm, features=["rooms", "place"])
    nodes = read(subject).nodes
    assert any(node.linear and node.linear.terms for node in nodes)
    assert by_hand(nodes)[:, 0] == pytest.approx(subject.model.predict(TABLE).values, rel=1e-9)


def test_nodes_have_their_rows_and_their_gain():
    nodes = read(fitted("price", {"name": "decision_tree", "max_depth": 3}, validation={"test_fraction": 0})).nodes
    assert (nodes[0].rows, nodes[0].parent, nodes[0].depth) == (N, None, 0)
    assert nodes[0].impurity == pytest.approx(PRICE.var())
    for node in nodes:
        below = [to for to in (node.left, node.right, node.missing) if to is not None]
        if below:
            assert all(nodes[to].parent == node.node and nodes[to].depth == node.depth + 1 for to in below)
            assert sum(nodes[to].rows for to in below) == pytest.approx(node.rows)
            kept = sum(nodes[to].rows * nodes[to].impurity for to in below)
            assert node.gain == pytest.approx(node.rows * node.impurity - kept)


@pytest.mark.parametrize("name", ["random_forest", "gradient_boosting"])
def test_the_members_add_up_to_the_model(name):
    subject = fitted("price", {"name": name, "n_estimators": 8})
    assert read(subject).members == 8
    total = sum(by_hand(read(subject, member=i).nodes)[:, 0] for i in range(8))
    predicted = subject.model.predict(TABLE).values
    if name == "random_forest":
        assert total / 8 == pytest.approx(predicted, rel=1e-9)
    else:
        assert np.ptp(predicted - total) == pytest.approx(0, abs=1e-6)  # the constant


INNER = [
    pytest.param({"name": "decision_tree"}, 1, id="trees"),
    pytest.param({"name": "decision_tree", "oblique": 2, "missing": "both"}, 1, id="oblique trees"),
    pytest.param({"name": "decision_tree", "leaf_model": "linear", "min_samples_leaf": 30}, 1, id="linear leaves"),
    pytest.param({"name": "random_forest", "n_estimators": 3}, 3, id="forests"),
    pytest.param(
        {"name": "random_subspace", "n_estimators": 2, "max_features": 0.7, "estimator": {"name": "decision_tree"}},
        2,
        id="random subspaces",
    ),
]


@pytest.mark.parametrize("name", ["bagging", "random_subspace"])
@pytest.mark.parametrize(("inner", "count"), INNER)
def test_trees_of_members_make_the_predictions_of_the_model(name, inner, count):
    """Each member is read in the columns, units and categories of the table, whatever columns it sees."""
    features = ["size", "rooms", "place"] if "leaf_model" not in inner else ["rooms", "place"]
    subject = fitted("price", {"name": name, "n_estimators": 3, "estimator": inner}, features=features)
    trees = [read(subject, member=i) for i in range(3 * count)]
    assert {one.members for one in trees} == {3 * count}
    total = sum(by_hand(one.nodes)[:, 0] for one in trees)
    assert total / (3 * count) == pytest.approx(subject.model.predict(TABLE).values, rel=1e-9)


def test_members_that_are_no_trees_offer_no_tree():
    for estimator, offered in (("linear", False), ("decision_tree", True), ("bagging", True)):
        algorithm = {"name": "bagging", "n_estimators": 2, "estimator": {"name": estimator}}
        assert tree.QUERY.offered(fitted("price", algorithm).model) is offered


@pytest.mark.parametrize("name", ["adaboost", "logitboost", "boost_majority"])
def test_members_of_boosting_can_be_read(name):
    subject = fitted("dear", {"name": name})
    got = read(subject, member=read(subject).members - 1)
    assert any(node.op for node in got.nodes)
    assert all(node.value is None for node in got.nodes if node.op)


def test_the_depth_can_be_limited():
    subject = fitted("price", {"name": "decision_tree"})
    whole, top = read(subject).nodes, read(subject, max_depth=2).nodes
    assert max(node.depth for node in top) == 2
    assert [node.value for node in top] == [node.value for node in whole[: len(top)]]
    assert {node.truncated for node in top if node.depth < 2} == {False}
    assert any(node.truncated and node.op and node.left is None for node in top)
    (root,) = read(subject, max_depth=0).nodes
    assert root.truncated


OPS = {
    "<=": lambda given, one: given <= one.threshold,
    ">": lambda given, one: given > one.threshold,
    "in": lambda given, one: given in one.categories,
    "not in": lambda given, one: given not in one.categories,
    "known": lambda *_: True,
    "missing": lambda *_: False,
}


def meets(row, one):
    given = compared(one, row)
    return one.or_missing or one.op == "missing" if given is None else OPS[one.op](given, one)


@pytest.mark.parametrize("name", ["decision_tree", "random_forest"])
def test_one_rule_and_no_other_holds_for_a_row(name):
    subject = fitted("price", {"name": name})
    got = read(subject, rules=True)
    leaves = [node.node for node in got.nodes if node.op is None]
    assert sorted(rule.leaf for rule in got.rules) == leaves
    for row, expected in zip(TABLE.select(FEATURES).to_pylist(), by_hand(got.nodes), strict=True):
        (rule,) = (rule for rule in got.rules if all(meets(row, one) for one in rule.conditions))
        assert rule.value == pytest.approx(expected)
    assert read(subject).rules is None


def test_rules_that_do_not_fit_into_a_response_are_refused(monkeypatch):
    subject = fitted("price", {"name": "decision_tree"})
    monkeypatch.setattr(tree, "MOST_NUMBERS", 3 * len(read(subject).nodes))
    with pytest.raises(BodyTooLarge, match="leave out rules"):
        read(subject, rules=True)
    assert len(read(subject, rules=True, max_depth=1).rules) in {2, 3}


def test_a_tree_that_does_not_fit_into_a_response_is_refused(monkeypatch):
    subject = fitted("price", {"name": "decision_tree"})
    monkeypatch.setattr(tree, "MOST_NODES", 5)
    with pytest.raises(BodyTooLarge, match="holds 5: lower max_depth"):
        read(subject)
    assert len(read(subject, max_depth=1).nodes) <= 4


def test_a_member_that_is_not_there_is_named():
    with pytest.raises(InvalidRequest) as refused:
        read(fitted("price", {"name": "decision_tree"}), member=1)
    assert [fault.pointer for fault in refused.value.faults] == ["/member"]


def given(rule, classes):
    """The rule in the words of the algorithm `rules`; once more for each value that may be missing too."""
    paths = [[]]
    for one in rule.conditions:
        test = {"column": one.column, "op": one.op}
        if one.threshold is not None:
            test["value"] = one.threshold
        if one.categories is not None:
            test["values"] = one.categories
        gap = [[{"column": one.column, "op": "missing"}]] if one.or_missing else []
        paths = [[*path, *tests] for path in paths for tests in ([test], *gap)]
    return [{"tests": path, "then": classes[int(np.argmax(rule.value))]} for path in paths]


@pytest.mark.parametrize("name", ["decision_tree", "random_forest"])
def test_rules_of_a_tree_are_given_rules_that_predict_as_the_tree(name):
    """A client reads them off a version, changes what it likes, and trains the algorithm `rules` with them."""
    options = {} if name == "decision_tree" else {"n_estimators": 1, "missing": "side"}
    subject = fitted("dear", {"name": name, **options})
    read_off = read(subject, rules=True)
    rules = [one for rule in read_off.rules for one in given(rule, read_off.classes)]
    again = fitted("dear", {"name": "rules", "given": rules})
    assert again.model.predict(TABLE).labels == subject.model.predict(TABLE).labels
