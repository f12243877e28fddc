"""Class weights over HTTP: balanced classifiers predict as those of scikit-learn do, and bad weights are refused."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

NAMES = ["a", "b"]
PEERS = {
    "logistic": ({"l2": 1e-12}, LogisticRegression(C=np.inf, class_weight="balanced", tol=1e-10, max_iter=1000)),
    "decision_tree": (
        {"max_leaf_nodes": 6, "min_samples_leaf": 1e-9, "prior_weight": 0},
        DecisionTreeClassifier(max_leaf_nodes=6, class_weight="balanced", random_state=0),
    ),
}


@pytest.fixture(scope="module")
def rare():
    """One row in ten is of the second class, which overlaps the first."""
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.1).astype(int)
    return rng.normal(size=(400, 2)) + y[:, None] * [1.0, 0.5], y


@pytest.fixture(scope="module")
def dataset(client, rare):
    lines = [f"{a},{b},{'yes' if code else 'no'}" for (a, b), code in zip(*rare, strict=True)]
    return client.post("/v1/datasets", content="\n".join(["a,b,ill", *lines])).json()["id"]


def body(dataset, name, **more):
    requested = {"model": f"balanced-{name.replace('_', '-')}", "dataset": dataset, "algorithm": {"name": name}}
    plain = {"preprocessing": {"scaling": "none"}, "validation": {"test_fraction": 0}}
    return requested | plain | {"target": "ill", "class_weight": "balanced"} | more


@pytest.mark.parametrize("name", PEERS)
def test_a_balanced_classifier_is_scikit_learns(client, done, dataset, rare, name):
    params, peer = PEERS[name]
    x, y = rare
    request = body(dataset, name, algorithm={"name": name, **params})
    done("train", request)
    rows = {"columns": NAMES, "data": x.tolist()}
    found = client.post(f"/v1/models/{request['model']}/predict", json=rows).json()
    expected = peer.fit(x, y).predict_proba(x)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-6, atol=1e-9)
    assert np.mean(np.array(found["predictions"]) == "yes") > 0.2, "the rare class is predicted more often than it is"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            {"target": "a", "algorithm": {"name": "ridge"}},
            ("/class_weight", "Only classes have weights; this is regression. Leave it out."),
        ),
        ({"class_weight": {"yes": 0}}, ("/class_weight/yes", "Must be greater than 0.")),
        ({"sigma": "b", "class_weight": None, "features": ["a"]}, (
            "/sigma", "Only a numeric target has known errors; this is classification. Weigh its rows by weights."
        )),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(client, dataset, change, fault):
    response = client.post("/v1/jobs/train:validate", json=body(dataset, "logistic") | change)
    assert response.status_code == 422
    assert fault in [(error["pointer"], error["detail"]) for error in response.json()["errors"]]
