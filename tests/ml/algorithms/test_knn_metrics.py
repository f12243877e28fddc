"""Metrics of angles, ranges and covariances, against scipy, scikit-learn and the identities that define them."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import datasets
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from app.ml.algorithms.knn import KNN, explain, fit, predict, without_each
from app.ml.contract.algorithm import Context, Data, Task

LEARNED = ["range_euclidean", "range_manhattan", "seuclidean", "mahalanobis"]
METRICS = ["cosine", *LEARNED]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def learn(params, x, y=None, classes=0, **more):
    task = Task.CLASSIFICATION if classes else Task.REGRESSION
    y = np.arange(len(x)) if y is None else y
    return fit(params, Data.of(task, np.asarray(x, float), y, classes=classes, **more), Context.of(0)).state


def distances(metric, x, queries, **params):
    """(n, m) of the queries to the rows."""
    params = KNN(n_neighbors=len(x), metric=metric, **params)
    found = np.empty((len(queries), len(x)))
    for i, reason in enumerate(explain(params, learn(params, x), np.asarray(queries, float))):
        for near in reason["neighbours"]:
            found[i, near["row"]] = near["distance"]
    return found


def by_scipy(metric, x, queries):
    span = np.ptp(x, axis=0)
    match metric:
        case "range_euclidean":
            return cdist(queries / span, x / span)
        case "range_manhattan":
            return cdist(queries / span, x / span, "cityblock")
        case "seuclidean":
            return cdist(queries, x, metric, V=x.var(axis=0, ddof=1))
        case "mahalanobis":
            return cdist(queries, x, metric, VI=np.linalg.inv(np.cov(x.T)))
    return cdist(queries, x, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_distances_as_scipy(metric):
    x = datasets.load_wine().data
    np.testing.assert_allclose(
        distances(metric, x[::2], x[1::2]), by_scipy(metric, x[::2], x[1::2]), rtol=1e-8, atol=1e-13
    )


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("metric", METRICS)
def test_predictions_as_scikit_learn(metric, weights):
    x, y = datasets.load_diabetes(return_X_y=True)
    rows, queries = x[:300], x[300:]
    span, options = np.ptp(rows, axis=0), {}
    theirs, scale = metric, 1.0
    if metric.startswith("range_"):
        theirs, scale = metric.removeprefix("range_"), span
    if metric == "seuclidean":
        options = {"metric_params": {"V": rows.var(axis=0, ddof=1)}}
    if metric == "mahalanobis":
        options = {"metric_params": {"VI": np.linalg.inv(np.cov(rows.T))}, "algorithm": "brute"}
    how = {"uniform": "uniform", "distance": lambda far: 1 / (far + 0.3)}[weights]
    peer = {"n_neighbors": 7, "metric": theirs, "weights": how, **options}
    params = KNN(n_neighbors=7, metric=metric, weights=weights, d0=0.3)
    expected = KNeighborsRegressor(**peer).fit(rows / scale, y[:300]).predict(queries / scale)
    np.testing.assert_allclose(predict(params, learn(params, rows, y[:300]), queries), expected, rtol=1e-8)
    classes = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    expected = KNeighborsClassifier(**peer).fit(rows / scale, classes[:300]).predict_proba(queries / scale)
    found = predict(params, learn(params, rows, classes[:300], 3), queries)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("columns", [2, 12])
@pytest.mark.parametrize("metric", METRICS)
def test_every_index_gives_the_same_bits(rng, metric, columns):
    x = rng.integers(-2, 3, (80, columns)).astype(float)
    queries = np.vstack([x[:10], rng.normal(size=(20, columns))])
    one, other = (distances(metric, x, queries, index=index) for index in ("kdtree", "brute"))
    np.testing.assert_array_equal(one, other)
    params = [KNN(metric=metric, weights="distance", index=index) for index in ("kdtree", "brute", "auto")]
    predicted = [predict(one, learn(one, x), queries) for one in params]
    np.testing.assert_array_equal(predicted[0], predicted[1])
    np.testing.assert_array_equal(predicted[0], predicted[2])


@pytest.mark.parametrize("metric", METRICS)
def test_a_stored_row_is_at_distance_zero(metric):
    x = np.array([[0.1, 0.7, 3.0], [0.3, 0.2, -1.0], [2.9, 0.1, 0.4], [1.7, 0.4, 5.0]])
    np.testing.assert_array_equal(distances(metric, x, x).diagonal(), 0.0)


def test_the_angle_does_not_depend_on_the_length_of_a_row(rng):
    x, queries = rng.normal(size=(30, 3)), rng.normal(size=(9, 3))
    lengths = rng.uniform(0.1, 9, (30, 1))
    np.testing.assert_allclose(
        distances("cosine", x, queries), distances("cosine", lengths * x, 5 * queries), atol=1e-15
    )
    np.testing.assert_array_equal(distances("cosine", [[1, 2, 3], [3, 6, 9], [7, 14, 21]], [[5, 10, 15]]), 0.0)
    assert distances("euclidean", x, queries).max() < distances("euclidean", lengths * x, 5 * queries).max()


def test_opposite_right_and_equal_angles():
    np.testing.assert_allclose(distances("cosine", [[3, 0], [0, 2], [-5, 0]], [[1, 0]]), [[0, 1, 2]], atol=1e-15)


def test_a_row_of_zeros_is_at_a_right_angle_to_all_but_rows_of_zeros():
    np.testing.assert_allclose(distances("cosine", [[0, 0], [2, 1]], [[0, 0], [-1, 5]])[:, 0], [0, 1], atol=1e-15)
    np.testing.assert_allclose(distances("cosine", [[0, 0], [2, 1]], [[0, 0]])[:, 1], [1], atol=1e-15)


@pytest.mark.parametrize("metric", LEARNED)
def test_units_of_columns_play_no_part(rng, metric):
    x, queries = rng.normal(size=(30, 3)), rng.normal(size=(9, 3))
    unit, zero = [1e-3, 3.0, 4e9], [7.0, -10.0, 0.1]
    np.testing.assert_allclose(
        distances(metric, x, queries), distances(metric, x * unit + zero, queries * unit + zero), rtol=1e-9
    )


def test_mahalanobis_does_not_depend_on_the_axes(rng):
    x, queries, turn = rng.normal(size=(30, 3)), rng.normal(size=(9, 3)), rng.normal(size=(3, 3))
    np.testing.assert_allclose(
        distances("mahalanobis", x, queries), distances("mahalanobis", x @ turn, queries @ turn), rtol=1e-9
    )


@pytest.mark.parametrize("metric", LEARNED)
def test_a_constant_column_plays_no_part(rng, metric):
    x, queries = rng.normal(size=(30, 2)), rng.normal(size=(9, 2))
    wider = [np.column_stack([part, np.full(len(part), 0.1)]) for part in (x, queries)]
    wider[1][:, 2] = np.arange(9)
    np.testing.assert_allclose(distances(metric, *wider), distances(metric, x, queries), rtol=1e-12)


def test_dependent_columns_have_the_pseudo_inverse(rng):
    x = rng.normal(size=(30, 3))
    x = np.column_stack([x, x[:, 0] + 2 * x[:, 1], x[:, 2]])
    x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    queries = rng.normal(size=(9, 5))
    inverse = np.linalg.pinv(np.cov(x.T), rcond=1e-10, hermitian=True)
    gaps = queries[:, None] - x
    expected = np.sqrt(np.einsum("ijk,kl,ijl->ij", gaps, inverse, gaps))
    np.testing.assert_allclose(distances("mahalanobis", x, queries), expected, rtol=1e-8)
    few = rng.normal(size=(4, 9))
    np.testing.assert_allclose(
        distances("mahalanobis", few, few)[~np.eye(4, dtype=bool)], np.sqrt(2 * 3), rtol=1e-9, err_msg="4 rows span 3"
    )


def test_a_row_of_weight_two_counts_twice_in_the_covariance(rng):
    x, weights, queries = rng.normal(size=(20, 3)), rng.uniform(0.5, 2, 20), rng.normal(size=(5, 3))
    params = KNN(n_neighbors=20, metric="mahalanobis")
    inverse = np.linalg.inv(np.cov(x.T, aweights=weights))
    reasons = explain(params, learn(params, x, weights=weights), queries)
    found = [[near["distance"] for near in reason["neighbours"]] for reason in reasons]
    np.testing.assert_allclose(found, np.sort(cdist(queries, x, "mahalanobis", VI=inverse), axis=1), rtol=1e-9)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("index", ["kdtree", "brute"])
def test_degenerate_rows_have_a_defined_prediction(metric, index):
    params = KNN(n_neighbors=2, metric=metric, index=index, weights="distance")
    for x in (
        np.zeros((3, 2)),
        np.ones((1, 2)),
        [[1e308, -1e308], [-1e308, 1e308], [0, 1]],
        [[1e-310, 0], [0, 1e-310]],
    ):
        predicted = predict(params, learn(params, x), np.array([*x, [1e308, 1e-308]]))
        assert np.isfinite(predicted).all()


@pytest.mark.parametrize("metric", METRICS)
def test_leaving_one_out_is_a_fit_of_the_others(rng, metric):
    x, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    params, data = KNN(n_neighbors=3, metric=metric), Data.of(Task.REGRESSION, x, y)
    by_fits = [
        predict(params, fit(params, data.take(np.arange(12) != i), Context.of(0)).state, x[i : i + 1])[0]
        for i in range(12)
    ]
    found = without_each(params, data)
    assert np.isnan(found).all() == (metric in LEARNED), "a fit of the others has another space"
    np.testing.assert_allclose(np.where(np.isnan(found), by_fits, found), by_fits, rtol=1e-12)


def test_prototypes_of_angles_are_directions(rng):
    angles = np.concatenate([rng.normal(0.3, 0.1, 40), rng.normal(1.8, 0.1, 40)])
    x = rng.uniform(1, 90, (80, 1)) * np.column_stack([np.cos(angles), np.sin(angles)])
    params = KNN(n_neighbors=1, metric="cosine", prototypes=2)
    state = learn(params, x, np.repeat([0, 1], 40))
    np.testing.assert_allclose(np.linalg.norm(state.rows, axis=1), 1, rtol=1e-15)
    means = np.sort(np.arctan2(state.rows[:, 1], state.rows[:, 0]))
    np.testing.assert_allclose(means, [angles[:40].mean(), angles[40:].mean()], atol=1e-3)
    np.testing.assert_array_equal(predict(params, state, x), np.repeat([0, 1], 40))
