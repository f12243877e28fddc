"""Cards of clusters over HTTP, and outputs by the densities of clusters, for every clustering."""

import numpy as np
import pytest
from scipy import stats

RNG = np.random.default_rng(4)
KIND = RNG.integers(0, 3, 90)
ROWS = RNG.normal(size=(90, 2)) + np.array([[0, 0], [12, 0], [0, 12]])[KIND]
COLOURS = np.array(["red", "green", "blue"])[np.where(RNG.random(90) < 0.9, KIND, 0)]
ALGORITHMS = {
    "kmeans": {},
    "soft_kmeans": {},
    "bisecting_kmeans": {},
    "kmedoids": {},
    "kmedian": {},
    "agglomerative": {},
    "pck_means": {},
    "som": {"grid_height": 1, "grid_width": 3},
    "gmm": {"n_components": 3, "n_init": 1},
}


@pytest.fixture(scope="module", autouse=True)
def models(client, done):
    lines = [
        f"row {i},{x!r},{y!r},{colour}" for i, ((x, y), colour) in enumerate(zip(ROWS.tolist(), COLOURS, strict=True))
    ]
    dataset = client.post("/v1/datasets", content="\n".join(["which,east,north,colour", *lines])).json()["id"]
    for name, parameters in ALGORITHMS.items():
        own = parameters or {"n_clusters": 3}
        request = {"model": f"card-{name}", "dataset": dataset, "algorithm": {"name": name, **own}, "item": "which"}
        done("train", request | {"task": "clustering", "features": ["east", "north"]})
    done(
        "train",
        {"model": "card-mixed", "dataset": dataset, "algorithm": {"name": "kmeans", "n_clusters": 3}}
        | {"features": ["east", "north", "colour"]},
    )
    done(
        "train",
        {"model": "card-line", "dataset": dataset, "algorithm": {"name": "ridge"}, "target": "east"}
        | {"features": ["north"]},
    )


def cards_of(client, model, **body):
    return client.post(f"/v1/models/card-{model}/clusters", json=body)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_clustering_has_cards_in_the_units_of_the_table(client, name):
    found = cards_of(client, name).json()
    rows = {"columns": ["east", "north"], "data": ROWS.tolist()}
    labels = np.array(client.post(f"/v1/models/card-{name}/predict", json=rows).json()["predictions"])
    for card in found["clusters"]:
        inside = labels == card["cluster"]
        assert card["size"] == inside.sum()
        assert card["share"] == pytest.approx(inside.mean())
        for one in card["distinctive"]:
            own = ROWS[:, ["east", "north"].index(one["column"])]
            test = stats.mannwhitneyu(own[inside], own[~inside], method="asymptotic")
            assert one["p_value"] == pytest.approx(min(1, test.pvalue * found["tests"]), rel=1e-6)
            assert (one["inside"], one["outside"]) == pytest.approx((own[inside].mean(), own[~inside].mean()))
        sizes = [abs(one["effect_size"]) for one in card["distinctive"]]
        assert sizes == sorted(sizes, reverse=True)
        prototype = np.array(list(card["prototype"]["values"].values()))
        order = np.argsort((((ROWS - prototype) / ROWS.std(axis=0)) ** 2).sum(axis=1) + np.where(inside, 0, np.inf))
        assert [(one["row"], one["item"]) for one in card["nearest"]] == [(i, f"row {i}") for i in order[:5].tolist()]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_clustering_has_memberships_and_knows_a_row_beyond_all_others(client, name):
    rows = {"columns": ["east", "north"], "data": [*ROWS.tolist(), [500.0, 500.0]]}
    params = {"include": "memberships,tail_probability,anomaly"}
    found = client.post(f"/v1/models/card-{name}/predict", params=params, json=rows).json()["outputs"]
    np.testing.assert_allclose(np.sum(found["memberships"], axis=1), 1)
    assert found["anomaly"][-1]
    assert found["tail_probability"][-1] == 0
    if name != "gmm":  # of it, a share of the training rows are anomalies
        assert not any(found["anomaly"][:-1])
    listed = client.get(f"/v1/models/card-{name}/versions/1").json()["outputs"]
    assert {"memberships", "tail_probability", "anomaly"} <= {one["name"] for one in listed}


def test_tail_probabilities_are_those_of_chi_squared(client):
    rows = {"columns": ["east", "north"], "data": ROWS.tolist()}
    response = client.post("/v1/models/card-kmeans/predict", params={"include": "tail_probability"}, json=rows).json()
    labels = np.array(response["predictions"])
    for j in range(3):
        own = ROWS[labels == j]
        centred = own - own.mean(axis=0)
        squares = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(np.cov(own.T, bias=True)), centred)
        found = np.array(response["outputs"]["tail_probability"])[labels == j]
        np.testing.assert_allclose(found, stats.chi2(2).sf(squares), rtol=1e-6)


def test_categories_are_compared_by_chi_squared(client):
    found = cards_of(client, "mixed", columns=10).json()
    for card in found["clusters"]:
        (one,) = (one for one in card["distinctive"] if one["column"] == "colour")
        assert (one["test"], one["p_value"] < 1e-3) == ("chi-squared", True)
        assert one["category"] == card["prototype"]["values"]["colour"]
        assert one["inside"] > one["outside"]


def test_cards_of_some_clusters_and_what_is_refused(client):
    found = cards_of(client, "kmeans", clusters=[2, 0, 2], columns=1).json()["clusters"]
    assert [(card["cluster"], len(card["distinctive"])) for card in found] == [(2, 1), (0, 1)]
    refused = cards_of(client, "kmeans", clusters=[3, 0, -1])
    assert refused.status_code == 422
    assert [one["pointer"] for one in refused.json()["errors"]] == ["/clusters/0", "/clusters/2"]
    for body in ({"clusters": []}, {"columns": 11}, {"clusters": ["a"]}):
        assert cards_of(client, "kmeans", **body).status_code == 422, body
    other = cards_of(client, "line")
    assert (other.status_code, other.json()["code"]) == (409, "not_offered")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_stability_has_an_interval_for_every_clustering(client, name):
    stability = client.get(f"/v1/models/card-{name}/versions/1/report").json()["stability"]
    assert 0 <= stability["lower"] <= stability["value"] <= stability["upper"] <= 1
    assert stability["value"] > 0.5
