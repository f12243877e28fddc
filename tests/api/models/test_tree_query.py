"""The tree of a model over HTTP: nodes, rules of leaves, and members of an ensemble."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

RNG = np.random.default_rng(4)
X = RNG.uniform(0, 20, 90).round(2)
Y = np.where(X < 6, "low", np.where(X < 13, "middle", "high"))


@pytest.fixture(scope="module")
def dataset(client):
    lines = ["size,level", *(f"{x!r},{y}" for x, y in zip(X.tolist(), Y, strict=True))]
    return client.post("/v1/datasets", content="\n".join(lines)).json()["id"]


def tree(client, done, dataset, model, algorithm, **request):
    body = {"model": model, "dataset": dataset, "target": "level", "algorithm": algorithm}
    done("train", body | {"validation": {"test_fraction": 0}})
    return client.post(f"/v1/models/{model}/tree", json=request).json()


def test_the_nodes_of_a_decision_tree_are_those_of_scikit_learn(client, done, dataset):
    found = tree(client, done, dataset, "nodes-of-tree", {"name": "decision_tree", "max_depth": 2}, rules=True)
    peer = DecisionTreeClassifier(max_depth=2).fit(X[:, None], Y).tree_
    splits = sorted(node["threshold"] for node in found["nodes"] if node.get("column"))
    assert splits == pytest.approx(sorted(peer.threshold[peer.feature >= 0]))
    assert {node["column"] for node in found["nodes"] if node.get("column")} == {"size"}
    leaves = [node["rows"] for node in found["nodes"] if not node.get("column")]
    assert sorted(leaves) == sorted(peer.n_node_samples[peer.feature < 0])
    assert len(found["rules"]) == 3


@pytest.mark.parametrize("name", ["adaboost", "boost_majority", "random_forest"])
def test_each_member_has_a_tree_and_no_other_has(client, done, dataset, name):
    model = f"nodes-of-{name.replace('_', '-')}"
    found = tree(client, done, dataset, model, {"name": name}, member=0)
    assert found["members"] >= 1
    assert found["nodes"][0]["depth"] == 0
    refused = client.post(f"/v1/models/{model}/tree", json={"member": found["members"]})
    assert refused.status_code == 422
