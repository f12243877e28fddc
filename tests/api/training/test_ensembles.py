"""Trees, ensembles and committees over HTTP: what their parts say, stage by stage, and what they leave to others."""

from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.datasets import load_iris

from app.ml.contract.columns import TableColumn
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

RIDGE, KNN, TREE = {"name": "ridge"}, {"name": "knn", "n_neighbors": 3}, {"name": "decision_tree", "max_depth": 2}
TEAM = {"name": "committee", "estimators": [RIDGE, KNN, TREE], "voting": "hard"}


def flowers():
    """Two noisy measurements, a place with gaps among them, and the species."""
    iris, rng = load_iris(), np.random.default_rng(0)
    noisy = iris.data[:, [0, 3]] + 0.4 * rng.normal(size=(150, 2))
    return {
        "length": np.exp(noisy[:, 0] / 3),
        "width": noisy[:, 1],
        "place": np.where((iris.target == 1) & (rng.random(150) < 0.6), "hill", rng.choice(["dale", "moor"], 150)),
        "species": iris.target_names[iris.target].astype(str),
    }


@pytest.fixture(scope="module")
def call(client, services):
    """`call(verb, algorithm, target="species", **spec)`: the response of a model of these flowers to all of them.

    The verb `report` asks for nothing of rows.
    """
    names = {}
    table = pa.table(flowers())
    sheet = [
        TableColumn(name, "categorical" if cells.type == pa.string() else "numeric", 0, 3)
        for name, cells in zip(table.column_names, table.columns, strict=True)
    ]

    def ask(verb, algorithm, *, target="species", rows=None, **spec):
        key = repr((algorithm, target, spec))
        if key not in names:
            names[key] = f"e-{uuid4()}"
            expected = TrainSpec.model_validate({"target": target, "algorithm": algorithm, **spec})
            made = train(plan(expected, sheet, table.num_rows), table, data_digest="sha256:0")
            where = {"model": names[key], "job_id": uuid4(), "dataset_id": uuid4(), "chunk_bytes": 1 << 20}
            with services.work() as w:
                w.models.add_version(blob=made.blob, report=made.report, golden=made.golden, **where)
        if verb == "report":
            return client.get(f"/v1/models/{names[key]}/versions/1/report").json()
        body = {"rows": table.drop_columns([target]).to_pylist() if rows is None else rows}
        response = client.post(f"/v1/models/{names[key]}/{verb}", json=body)
        assert response.status_code == 200, response.text
        return response.json()

    return ask


STAGED = [
    {"name": "adaboost", "n_estimators": 4, "max_depth": 2},
    {"name": "boost_majority", "edge": 0.05, "n_estimators": 5, "max_depth": 2},
    {"name": "logitboost", "n_estimators": 3},
    {"name": "gradient_boosting", "n_estimators": 3},
]


@pytest.mark.parametrize("algorithm", STAGED, ids=lambda spec: spec["name"])
def test_the_last_stage_is_the_prediction(call, algorithm):
    result, response = call("explain", algorithm), call("predict", algorithm)
    assert result["classes"] == response["classes"]
    stages = [one["stages"] for one in result["explanations"]]
    assert {len(one) for one in stages} == {algorithm["n_estimators"]}
    shares = np.array([[stage["probabilities"] for stage in one] for one in stages])
    np.testing.assert_allclose(shares[:, -1], response["probabilities"], rtol=1e-9, atol=1e-15)
    assert (shares[:, 0] != shares[:, -1]).any()
    for one in stages:
        assert all(stage["class"] in result["classes"] for stage in one if "class" in stage)


def test_equal_votes_are_counted_as_they_come(call):
    result = call("explain", STAGED[1])
    for one in result["explanations"][::10]:
        votes = [result["classes"].index(stage["class"]) for stage in one["stages"]]
        shares = [stage["probabilities"] for stage in one["stages"]]
        by_hand = np.cumsum(np.eye(3)[votes], axis=0) / np.arange(1, 6)[:, None]
        np.testing.assert_allclose(shares, by_hand, rtol=1e-12)


AVERAGED = [
    ({"name": "bagging", "n_estimators": 4}, "members"),
    ({"name": "random_subspace", "n_estimators": 4}, "members"),
    ({"name": "committee", "estimators": [RIDGE, KNN, TREE]}, "members"),
    ({"name": "random_forest", "n_estimators": 7, "voting": "soft"}, "trees"),
    ({"name": "random_forest", "n_estimators": 7}, "trees"),
]


@pytest.mark.parametrize("target", ["species", "length"])
@pytest.mark.parametrize(("algorithm", "parts"), AVERAGED)
def test_the_mean_of_the_parts_is_the_prediction(call, algorithm, parts, target):
    result, response = (call(verb, algorithm, target=target) for verb in ("explain", "predict"))
    messages = [
        [part["prediction"] if parts == "members" else part for part in one[parts]] for one in result["explanations"]
    ]
    expected = response["probabilities" if target == "species" else "predictions"]
    np.testing.assert_allclose(np.mean(messages, axis=1), expected, rtol=1e-9, atol=1e-15)
    assert np.ptp(messages, axis=1).any()


def test_votes_are_reported_whatever_they_are_taken_for(call):
    algorithm = {"name": "random_forest", "n_estimators": 9, "probability": "calibrated"}
    result, response = call("explain", algorithm), call("predict", algorithm)
    votes = np.array([one["trees"] for one in result["explanations"]])
    assert set(np.unique(votes)) == {0, 1}
    assert np.abs(votes.mean(axis=1) - response["probabilities"]).max() > 0.01


def test_bits_and_what_the_word_misses(call):
    algorithm = {"name": "ecoc", "estimator": RIDGE, "decode": "hamming"}
    result, response = call("explain", algorithm), call("predict", algorithm)
    for one, shares in zip(result["explanations"], response["probabilities"], strict=True):
        assert len(one["bits"]) == 3  # the exhaustive code of three classes
        far = np.array(one["distances"])
        np.testing.assert_allclose(shares, (far == far.min()) / (far == far.min()).sum())


def test_stacked_members_and_columns_that_add_up(call):
    for name in "stacking", "feature_weighted_stacking":
        (first, *_) = call("explain", {"name": name, "estimators": [RIDGE, KNN]}, target="length")["explanations"]
        assert [member["algorithm"] for member in first["members"]] == ["ridge", "knn"]
    result = call("explain", {"name": "additive"}, target="length")
    assert {part["column"] for part in result["explanations"][0]["adds"]} == set(result["columns"])
    sums = [one["mean"] + sum(part["value"] for part in one["adds"]) for one in result["explanations"]]
    np.testing.assert_allclose(sums, result["predictions"], rtol=1e-9)
    assert "target_function" not in result
    result = call("explain", {"name": "additive", "fit": "stagewise", "learning_rate": 0.5}, target="length")
    sums = [one["mean"] + sum(part["value"] for part in one["adds"]) for one in result["explanations"]]
    np.testing.assert_allclose(sums, result["predictions"], rtol=1e-9)


def test_explanations_say_of_which_function_of_the_target_they_are(call):
    result = call("explain", TREE, target="length", preprocessing={"target": "log"})
    assert result["target_function"] == "log"
    leaves = [one["leaf"]["prediction"] for one in result["explanations"]]
    np.testing.assert_allclose(np.exp(leaves), result["predictions"], rtol=1e-9)


def test_a_split_names_categories_behind_columns_that_are_not_kept(call):
    formula = [{"kind": "expression", "expression": "log(length)"}]
    how = {"basis": formula, "keep_inputs": False}
    result = call("explain", TREE, preprocessing=how)
    assert "length" not in result["columns"]
    named = {
        name
        for one in result["explanations"]
        for request_of in one["path"]
        for name in request_of.get("categories", ())
    }
    assert named
    assert named <= {"dale", "hill", "moor"}


def test_rules_name_the_class(call):
    result = call("explain", {"name": "rules"})
    assert {one["then"] for one in result["explanations"] if one["rule"] is not None} <= set(result["classes"])


def test_a_report_names_what_rules_and_trees_are_about(call):
    report = call("report", {"name": "rules"})
    assert report["summary"]["rules"]
    for rule in report["summary"]["rules"]:
        assert rule["then"] in {"setosa", "versicolor", "virginica"}
        for test in rule["if"]:
            assert test["column"] in report["columns"]
            assert {*test.get("categories", [])} <= {"dale", "hill", "moor"}
    for name in "decision_tree", "random_forest", "gradient_boosting":
        result = call("report", {"name": name})["summary"]["importances"]
        assert {one["column"] for one in result} <= {"length", "width", "place"}


REPORTED = [
    (
        {
            "name": "gradient_boosting",
            "n_estimators": 60,
            "learning_rate": 0.5,
            "early_stopping": True,
            "n_iter_no_change": 3,
        },
        {"loss", "held_out_loss"},
        {"importances"},
    ),
    ({"name": "random_forest", "n_estimators": 20}, {"out_of_bag"}, {"out_of_bag", "importances", "calibration"}),
    ({"name": "bagging", "n_estimators": 3}, {"out_of_bag"}, {"out_of_bag"}),
    ({"name": "adaboost", "n_estimators": 4}, {"weighted_error", "training_error"}, {"votes", "weighted_errors"}),
    ({"name": "logitboost", "n_estimators": 3}, {"loss"}, {"trees"}),
    (
        {"name": "boost_majority", "edge": 0.14, "max_depth": 1},
        {"weighted_error", "training_error"},
        {"realised_edge", "assumption_failed_in_round"},
    ),
    ({"name": "ecoc", "estimator": RIDGE}, set(), {"code", "min_distance", "corrects"}),
]


@pytest.mark.parametrize(("algorithm", "curves", "facts"), REPORTED)
def test_a_report_has_the_curves_and_the_facts(call, algorithm, curves, facts):
    report = call("report", algorithm)
    drawn = {one["name"]: one for one in report["curves"]}
    assert curves <= drawn.keys()
    assert facts <= report["summary"].keys()
    if "early_stopping" in algorithm:
        held = drawn["held_out_loss"]["y"]
        assert report["iterations"] == np.argmin(held) + 1 == len(held) - 3 < 57
    if "edge" in algorithm:
        failed = report["summary"]["assumption_failed_in_round"]
        assert not report["converged"]
        assert any(f"round {failed}" in warning for warning in report["warnings"])


def test_weights_of_stacked_members_are_reported(call):
    result = call("report", {"name": "stacking", "estimators": [RIDGE, KNN, TREE]})["summary"]
    assert [one["algorithm"] for one in result] == ["ridge", "knn", "decision_tree"]
    assert min(one["weight"] for one in result) >= 0


def test_final_estimator_is_shown_in_report_and_explanation_and_members_then_have_no_weight(call):
    stack = {"name": "stacking", "estimators": [RIDGE, KNN], "final_estimator": {"name": "logistic"}}
    *members, final = call("report", stack)["summary"]
    assert [(one["role"], one["weight"]) for one in members] == [("member", None)] * 2
    assert (final["role"], final["algorithm"]) == ("final_estimator", "logistic")
    inputs = [(one["column"]["algorithm"], one["column"]["class"]) for one in final["coefficients"]]
    kinds = ("setosa", "versicolor", "virginica")
    assert inputs == [(member, kind) for kind in kinds for member in ("ridge", "knn")]
    np.testing.assert_allclose(
        np.transpose([one["coefficient"] for one in final["coefficients"]]), final["summary"]["coefficients"]
    )
    explained = call("explain", stack)
    combined = explained["explanations"][0]["final_estimator"]
    scores = combined["intercept"] + np.sum([one["contribution"] for one in combined["contributions"]], axis=0)
    assert explained["classes"][int(scores.argmax())] == explained["predictions"][0]


def test_tree_as_final_estimator_names_members_in_its_rules_and_path(call):
    stack = {"name": "stacking", "estimators": [RIDGE, KNN], "final_estimator": TREE}
    final = call("report", stack, target="length")["summary"][-1]
    names = [{"member": 0, "algorithm": "ridge", "class": None}, {"member": 1, "algorithm": "knn", "class": None}]
    assert all(condition["column"] in names for rule in final["rules"] for condition in rule["conditions"])
    assert {rule["value"][0] for rule in final["rules"]} >= set(call("predict", stack, target="length")["predictions"])
    explained = call("explain", stack, target="length")
    combined = explained["explanations"][0]["final_estimator"]["explanation"]
    assert all(split["column"] in names for split in combined["path"])
    assert combined["leaf"]["prediction"] == explained["predictions"][0]


def test_learner_behind_a_representation_names_coordinates(call):
    steps = {"name": "two_step", "representation": {"name": "pca", "n_components": 2}, "estimator": TREE}
    report = call("report", steps)["summary"]
    splits = {one["column"] for one in report["estimator"]["summary"]["importances"]}
    assert splits <= {"coordinate 1", "coordinate 2"}
    assert splits
    explained = call("explain", steps)["explanations"][0]
    assert all(split["column"] in {"coordinate 1", "coordinate 2"} for split in explained["explanation"]["path"])


def test_rules_that_contradict_each_other_are_reported_and_the_first_decides(call):
    """B6.1, over HTTP."""
    hill = {"tests": [{"column": "place", "op": "==", "value": "hill"}], "then": "versicolor"}
    wide = {"tests": [{"column": "width", "op": ">", "value": 1.2}], "then": "virginica"}
    columns = flowers()
    both = (columns["place"] == "hill") & (columns["width"] > 1.2)
    for first, second in ((hill, wide), (wide, hill)):
        algorithm = {"name": "rules", "given": [first, second], "otherwise": "setosa"}
        report, result = (call(verb, algorithm, validation={"test_fraction": 0}) for verb in ("report", "explain"))
        assert [rule["then"] for rule in report["summary"]["rules"]] == [first["then"], second["then"]]
        assert report["summary"]["conflicts"] == [{"rules": [0, 1], "rows": both.sum()}]
        contradicted = [one["contradicted_by"] == [1] for one in result["explanations"]]
        assert contradicted == both.tolist()
        assert {result["predictions"][row] for row in np.flatnonzero(both)} == {first["then"]}
        left = ~((columns["place"] == "hill") | (columns["width"] > 1.2))
        assert {result["predictions"][row] for row in np.flatnonzero(left)} == {"setosa"}


def test_where_the_path_ends_for_want_of_a_value_the_column_is_named(call):
    rows = [{"length": None, "width": None, "place": None}]
    (result,) = call("explain", {"name": "decision_tree"}, rows=rows)["explanations"]
    assert result["path"] == []
    assert result["leaf"]["column"] in {"length", "width", "place"}
    assert "both branches" in result["leaf"]["stopped"]


def votes(call):
    result = call("explain", TEAM)["explanations"]
    return np.array([[np.argmax(member["prediction"]) for member in one["members"]] for one in result])


def test_a_committee_leaves_rows_without_a_prediction(call):
    """E18: unanimity, and a qualified majority of two in three."""
    messages = votes(call)
    most = np.array([np.bincount(row, minlength=3).max() for row in messages])
    assert set(most) >= {2, 3}
    for share, needed in ((1.0, 3), (2 / 3, 2)):
        response = call("predict", {**TEAM, "min_probability": share})
        assert [one is not None for one in response["predictions"]] == (most >= needed).tolist()
        unknown = [flag["rows"] for flag in response["flags"] if flag["code"] == "unknown"]
        assert unknown == ([np.flatnonzero(most < needed).tolist()] if (most < needed).any() else [])


def test_mean_probability_and_lead_decide(call):
    """E18: (c) a threshold for the averaged probability, (d) two: its size, and its lead over the second."""
    plain = call("predict", {**TEAM, "voting": "soft"})
    p = np.sort(plain["probabilities"], axis=1)
    for share, gap in ((0.6, 0.0), (0.5, 0.3)):
        response = call("predict", {**TEAM, "voting": "soft", "min_probability": share, "min_margin": gap})
        sure = (p[:, -1] >= share) & (p[:, -1] - p[:, -2] >= gap)
        assert 0 < sure.sum() < 150
        assert [one is not None for one in response["predictions"]] == sure.tolist()


def test_what_is_rejected_is_predicted_by_the_fallback(call):
    messages = votes(call)
    agreed = (messages == messages[:, :1]).all(axis=1)
    response = call("predict", {**TEAM, "min_probability": 1.0, "fallback_estimator": {"name": "generative_bayes"}})
    assert None not in response["predictions"]
    top = np.max(response["probabilities"], axis=1)
    assert set(top[agreed]) == {1.0}
    assert (top[~agreed] < 1).all()


def test_a_portfolio_asks_some(call):
    """E18 (e): a member that is hardly ever active has hardly any weight."""
    alone = call("predict", {"name": "committee", "estimators": [RIDGE]}, target="length")["predictions"]
    few = {"name": "committee", "estimators": [RIDGE, KNN], "activations": [1.0, 0.1]}
    result = call("predict", few, target="length")["predictions"]
    changed = ~np.isclose(result, alone, rtol=1e-9)
    assert 0.02 < changed.mean() < 0.25


def test_the_report_says_how_many_rows_are_accepted_and_how_well(call):
    """E18: of the rows held out, with exact bars; where every row is accepted there is nothing to report."""
    team = {**TEAM, "min_probability": 1.0}
    held = {"validation": {"test_fraction": 0.5}}
    report, result = call("report", team, **held), call("predict", team, **held)
    metrics = {one["name"]: one for one in report["test"] if "label" not in one}
    share, accuracy = metrics["coverage"], metrics["selective_accuracy"]
    assert (share["n"], accuracy["n"]) == (75, round(75 * share["value"]))
    assert 0.5 < share["value"] < 1
    assert accuracy["value"] > metrics["accuracy"]["value"]
    for one in share, accuracy:
        hits = round(one["value"] * one["n"])
        bars = stats.binomtest(hits, one["n"]).proportion_ci(0.95, method="exact")
        assert [one["lower"], one["upper"]] == pytest.approx([*bars])
    done = sum(one is not None for one in result["predictions"])
    seen = {one["name"]: one["value"] for one in report["train"]}
    assert 75 * (seen["coverage"] + share["value"]) == pytest.approx(done)
    assert "coverage" not in {one["name"] for one in call("report", TEAM)["test"]}


def test_members_that_read_a_column_by_different_kinds_are_refused(client, done):
    """The text 1,234 is 1234 for one and 1.234 for the other: one table cannot be read for both."""
    lines = ["code;target", *(f"{i % 9},{i % 7}{i % 3}5;{i % 9 + i / 100}" for i in range(40))]
    dataset = client.post("/v1/datasets", content="\n".join(lines)).json()["id"]
    body = {"dataset": dataset, "target": "target", "features": ["code"], "algorithm": {"name": "ridge"}}
    for kind in ("numeric", "numeric:comma"):
        model = f"combined-{kind.replace(':', '-')}"
        done("train", body | {"model": model, "kinds": {"code": kind}})
    members = [{"model": "combined-numeric"}, {"model": "combined-numeric-comma"}]
    request = {"model": "combined-none", "dataset": dataset, "members": members}
    refused = client.post("/v1/jobs/combine", json=request)
    assert refused.status_code == 422
    assert [(e["pointer"], e["code"]) for e in refused.json()["errors"]] == [("/members/1/model", "wrong_kind")]
    assert client.post("/v1/jobs/combine:validate", json=request | {"members": members[1:] * 2}).status_code == 200
