"""POST /v1/distances: the catalogue beside scipy, its invariances, and refusals that name every fault."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

URL = "/v1/distances"
RNG = np.random.default_rng(4)
ROWS = RNG.normal(size=(30, 4)) @ RNG.normal(size=(4, 4)) + [5, 0, -3, 9]
NEW = RNG.normal(size=(3, 4))
FORM = np.cov(ROWS.T)


def measured(client, **body):
    response = client.post(URL, json={"rows": ROWS.tolist(), **body})
    assert response.status_code == 200, response.text
    return response.json()


def distances(client, **body):
    return np.array(measured(client, **body)["distances"])


def faults(client, status=422, **body):
    response = client.post(URL, json={"rows": ROWS.tolist(), **body})
    assert response.status_code == status, response.text
    return {(error["pointer"], error["code"]) for error in response.json().get("errors", [])}


RANGES = np.ptp(ROWS, axis=0)
VARIANCE = {"mahalanobis": {"VI": np.linalg.inv(FORM)}, "seuclidean": {"V": ROWS.var(axis=0, ddof=1)}}
ORACLES = {
    "euclidean": lambda x: cdist(x, ROWS),
    "manhattan": lambda x: cdist(x, ROWS, "cityblock"),
    "chebyshev": lambda x: cdist(x, ROWS, "chebyshev"),
    "minkowski": lambda x: cdist(x, ROWS, "minkowski", p=3),
    "cosine": lambda x: cdist(x, ROWS, "cosine"),
    "range_euclidean": lambda x: cdist(x / RANGES, ROWS / RANGES),
    "range_manhattan": lambda x: cdist(x / RANGES, ROWS / RANGES, "cityblock"),
    "seuclidean": lambda x: cdist(x, ROWS, "seuclidean", **VARIANCE["seuclidean"]),
    "mahalanobis": lambda x: cdist(x, ROWS, "mahalanobis", **VARIANCE["mahalanobis"]),
    "quadratic": lambda x: cdist(x, ROWS, "mahalanobis", VI=FORM),
}


@pytest.mark.parametrize("metric", ORACLES)
def test_the_catalogue_is_that_of_scipy(client, metric):
    more = {"matrix": FORM.tolist()} if metric == "quadratic" else {}
    body = {"metric": metric, "ddof": 1, "rows": NEW.tolist(), "others": ROWS.tolist(), "reference": ROWS.tolist()}
    np.testing.assert_allclose(distances(client, **body, **more), ORACLES[metric](NEW), rtol=1e-9, atol=1e-12)


def test_mean_squared_mahalanobis_distance_is_the_number_of_columns(client):
    found = measured(client, metric="mahalanobis", to_mean=True)
    assert np.shape(found["distances"]) == (30, 1)
    assert np.square(found["distances"]).mean() == pytest.approx(4, rel=1e-13)
    assert (found["rank"], found["singular"], found["constant_columns"]) == (4, False, [])


def test_a_singular_covariance_has_its_pseudo_inverse_and_is_flagged(client):
    rows = np.column_stack([ROWS, ROWS @ [1, 1, 0, 0], np.full(30, 7.0)])
    found = measured(client, rows=rows.tolist(), metric="mahalanobis", to_mean=True)
    assert (found["rank"], found["singular"], found["constant_columns"]) == (4, True, [5])
    plain = distances(client, metric="mahalanobis", to_mean=True)
    np.testing.assert_allclose(found["distances"], plain, rtol=1e-8)
    one = measured(client, rows=[[1.0, 2.0]], metric="mahalanobis")
    assert (one["distances"], one["rank"], one["singular"]) == ([[0.0]], 0, True)


def test_unit_covariance_gives_euclid_and_a_diagonal_one_normalised_euclid(client):
    cross = np.vstack([np.eye(3), -np.eye(3)])
    unit, wide = cross * np.sqrt(3), cross * [1, 20, 300]
    body = {"metric": "mahalanobis", "rows": unit.tolist()}
    np.testing.assert_allclose(distances(client, **body), cdist(unit, unit), atol=1e-12)
    body = {"rows": wide.tolist()}
    np.testing.assert_allclose(
        distances(client, metric="mahalanobis", **body), distances(client, metric="seuclidean", **body), atol=1e-12
    )


def test_what_each_metric_does_not_depend_on(client):
    turn = RNG.normal(size=(4, 4))
    moved, units = (ROWS @ turn + 3).tolist(), (ROWS * [1, 50, 0.1, 8] - 4).tolist()
    for metric, rows in (("mahalanobis", moved), ("range_euclidean", units), ("seuclidean", units)):
        one, other = distances(client, metric=metric), distances(client, metric=metric, rows=rows)
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    longer = (ROWS * np.linspace(1, 9, 30)[:, None]).tolist()
    np.testing.assert_allclose(distances(client, metric="cosine", rows=longer), distances(client, metric="cosine"))
    assert not np.allclose(distances(client, rows=longer), distances(client))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "mahalanobis"])
def test_the_triangle_inequality_holds(client, metric):
    found = distances(client, metric=metric)
    assert (found[:, None] <= found[:, :, None] + found[None] + 1e-9).all()
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(found.diagonal(), 0)


def test_constant_columns_play_no_part(client):
    rows = [[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]
    for metric in ("range_euclidean", "seuclidean"):
        found = measured(client, rows=rows, metric=metric)
        assert found["constant_columns"] == [1]
        assert np.isfinite(found["distances"]).all()
    assert measured(client, rows=rows, metric="range_euclidean")["distances"][0] == [0.0, 1.0, 0.5]


def test_the_inverse_cosine_has_a_policy_for_obtuse_pairs(client):
    rows = [[1.0, 0.0], [2.0, 2.0], [0.0, 3.0], [0.0, 0.0]]
    body = {"rows": rows, "metric": "inverse_cosine", "eps": 0.0}
    assert faults(client, **body) == {(f"/rows/{i}", "invalid") for i in (0, 2, 3, 1)}
    found = measured(client, **body, obtuse="null")["distances"]
    assert found[0] == [pytest.approx(1), pytest.approx(np.sqrt(2)), None, None]
    assert found[3] == [None] * 4
    eased = measured(client, **body | {"eps": 0.5, "rows": rows[:2]})["distances"]
    assert eased[1][0] == pytest.approx(np.sqrt(8) / 2.5)


def test_every_fault_is_named(client):
    assert faults(client, rows=[[1, 2], [1]], others=[[1, 2, 3]], metric="quadratic") == {
        ("/rows/1", "wrong_length"),
        ("/others/0", "wrong_length"),
        ("/matrix", "missing"),
    }
    two = {"rows": [[1, 2], [3, 4]], "metric": "quadratic"}
    assert faults(client, **two, matrix=[[1, 2]]) == {("/matrix", "wrong_length")}
    assert faults(client, **two, matrix=[[1, 2], [3]]) == {("/matrix/1", "wrong_length")}
    assert faults(client, **two, matrix=[[1, 2], [3, 4]]) == {("/matrix/0/1", "invalid"), ("/matrix/1/0", "invalid")}
    for indefinite in ([[1, 2], [2, 1]], [[0, 0], [0, 0]], [[1, 1], [1, 1]]):
        assert faults(client, **two, matrix=indefinite) == {("/matrix", "invalid")}
    assert faults(client, matrix=[[1]]) == {("/matrix", "invalid")}
    assert faults(client, rows=[[1.0]], metric="mahalanobis", ddof=1) == {("/ddof", "invalid")}
    assert faults(client, others=ROWS.tolist(), to_mean=True) == {("/others", "invalid")}
    assert faults(client, rows=[]) == {("/rows", "too_short")}
    faults(client, status=413, rows=[[0.0]] * 1001)


@pytest.mark.parametrize("metric", [*ORACLES, "inverse_cosine"])
def test_extreme_numbers_have_distances_or_null(client, metric):
    rows = [[1e150, -1e150], [-1e150, 1e-300], [0, 0], [5e-324, 1e150]]
    more = {"matrix": [[1e150, 0], [0, 1e-140]]} if metric == "quadratic" else {}
    response = client.post(URL, json={"rows": rows, "metric": metric, "obtuse": "null", **more})
    assert response.status_code in {200, 422}


def test_a_model_measures_in_its_prepared_columns(client, done):
    """Scaling by the training rows, and categories as indicators."""
    text = "a,kind,y\n" + "".join(f"{i},{'uv'[i % 2]},{i % 3}\n" for i in range(12))
    dataset = client.post("/v1/datasets", content=text.encode()).json()["id"]
    body = {"model": "distances-in-units", "dataset": dataset, "target": "y", "algorithm": {"name": "ridge"}}
    done("train", body | {"preprocessing": {"scaling": "minmax"}, "task": "regression"})
    url = "/v1/models/distances-in-units/prepared_distances"
    rows = [{"a": 0, "kind": "u"}, {"a": 5.5, "kind": "u"}, {"a": 0, "kind": "v"}]
    found = client.post(url, json={"rows": rows, "metric": "manhattan"}).json()
    assert found["columns"] == ["a", "kind=u", "kind=v"]
    near = found["distances"][0]
    assert near[0] == 0
    assert 0 < near[1] < near[2]
    other = client.post(url, json={"rows": rows[:1], "others": rows[1:], "metric": "manhattan"}).json()
    assert other["distances"] == [near[1:]]
    body |= {"model": "distances-of-trees", "algorithm": {"name": "decision_tree"}, "task": "regression"}
    done("train", body)
    refused = client.post("/v1/models/distances-of-trees/prepared_distances", json={"rows": rows})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_offered")
    wrong = client.post(url, json={"rows": [{"a": "x", "kind": "u"}, {}]})
    assert wrong.status_code == 422
    assert {error["code"] for error in wrong.json()["errors"]} >= {"not_a_number"}
