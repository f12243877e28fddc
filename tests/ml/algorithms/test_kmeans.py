"""k-means: published counterexamples, identities at the optimum, scikit-learn as the rival."""

from itertools import pairwise, product

import numpy as np
import pytest
from sklearn import cluster, datasets, metrics, preprocessing

from app.ml.algorithms import kmeans
from app.ml.algorithms.kmeans import KMeans, State, fit, objective, predict, summary
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.clustering.lloyd import lloyd
from app.ml.numerics.clustering.voronoi import neighbours, walls

SETS = {"iris": 3, "wine": 3, "breast_cancer": 2, "digits": 10}


def rows_of(name):
    return getattr(datasets, f"load_{name}")().data.astype(float)


def of(x, **more):
    return Data.of(Task.CLUSTERING, x, **more)


def run(x, first, weights=None):
    x = np.asarray(x, float)
    return lloyd(x, np.ones(len(x)) if weights is None else weights, np.asarray(first, float), max_iter=100)


def blobs(seed=0, rows=90):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 2)) + 5 * rng.integers(0, 2, size=(rows, 2))


def test_a_tie_can_end_above_the_optimum():
    """C6: {1, 2, 3, 4} from 2 and 4; 3 goes to 2, cost 2, though 1 is possible."""
    end = run([[1], [2], [3], [4]], [[2], [4]])
    assert end.labels.tolist() == [0, 0, 0, 1]
    assert end.inertia[-1] == 2.0
    assert end.converged


@pytest.mark.parametrize("t", [2.0, 50.0])
def test_the_gap_to_the_optimum_has_no_bound(t):
    """C6: rectangle (0,0) (0,2) (2t,0) (2t,2) from (t,0) (t,2): cost 4t² instead of 4."""
    rectangle = [[0, 0], [0, 2], [2 * t, 0], [2 * t, 2]]
    assert run(rectangle, [[t, 0], [t, 2]]).inertia[-1] == 4 * t**2
    assert fit(KMeans(n_clusters=2), of(rectangle), Context.of(0)).curves["inertia"][-1] == 4.0


def test_two_long_rows_of_points_are_cut_across():
    """C2: of 2 rows of 40 points, 1 apart, the best of 20 starts takes the left and the right half."""
    line = np.arange(40) * 0.256
    x = np.concatenate([np.column_stack([line, np.full(40, y)]) for y in (0.0, 1.0)])
    params = KMeans(n_clusters=2, n_init=20)
    labels = predict(params, fit(params, of(x), Context.of(0)).state, x)
    left = np.tile(np.arange(40) < 20, 2)
    assert set(labels[left]).isdisjoint(labels[~left])


@pytest.mark.parametrize("name", SETS)
def test_no_worse_than_scikit_learn(name):
    x, k = rows_of(name), SETS[name]
    ours = fit(KMeans(n_clusters=k), of(x), Context.of(0))
    theirs = cluster.KMeans(k, n_init=10, random_state=0, tol=0).fit(x)
    assert objective(KMeans(n_clusters=k), ours.state, of(x)) <= theirs.inertia_ * (1 + 1e-4)  # optima lie that close
    assert ours.converged


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", [0, 1])
def test_as_scikit_learn_from_the_same_centres(name, seed):
    x = rows_of(name)
    x += 1e-4 * np.random.default_rng(9).normal(size=x.shape)  # whole numbers tie, and rounding there is nobody's
    first = x[np.random.default_rng(seed).permutation(len(x))[: SETS[name] + 2]]
    ours = run(x, first)
    theirs = cluster.KMeans(len(first), init=first, n_init=1, tol=0, algorithm="lloyd").fit(x)
    assert ours.inertia[-1] == pytest.approx(theirs.inertia_, rel=1e-8)
    np.testing.assert_allclose(ours.centres, theirs.cluster_centers_, rtol=1e-7, atol=1e-9 * np.abs(x).max())


INITS = ["greedy-k-means++", "k-means++", "random", "random-partition", "split"]


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("seed", range(5))
def test_the_end_is_a_fixed_point_that_was_reached_downhill(init, seed):
    x, weights = blobs(seed), np.random.default_rng(seed).uniform(0.5, 2, 90)
    params, data = KMeans(n_clusters=6, init=init, n_init=2), of(x, weights=weights)
    found = fit(params, data, Context.of(seed))
    curve = found.curves["inertia"]
    assert all(after <= before for before, after in pairwise(curve))
    labels = predict(params, found.state, x)
    squares = ((x[:, None] - found.state.centres) ** 2).sum(axis=2)
    np.testing.assert_array_equal(squares.min(axis=1), squares[np.arange(90), labels])
    for j, centre in enumerate(found.state.centres):
        np.testing.assert_allclose(centre, np.average(x[labels == j], axis=0, weights=weights[labels == j]))
    assert objective(params, found.state, data) == pytest.approx(weights @ squares.min(axis=1))
    np.testing.assert_array_equal(found.state.sizes, np.bincount(labels, minlength=6))


def test_centres_of_many_rows_settle_among_a_part_of_them_first_and_then_among_all(monkeypatch):
    monkeypatch.setattr(kmeans, "MANY_ROWS", 2000)
    x = np.random.default_rng(3).normal(size=(4000, 3))
    params, data = KMeans(n_clusters=6, n_init=1), Data.of(Task.CLUSTERING, x)
    found = fit(params, data, Context.of(0))
    monkeypatch.setattr(kmeans, "MANY_ROWS", 10**9)
    alone = fit(params, data, Context.of(0))
    assert found.converged
    assert found.iterations < alone.iterations
    assert found.curves["inertia"][-1] < 1.02 * alone.curves["inertia"][-1]
    labels = predict(params, found.state, x)
    means = [x[labels == label].mean(axis=0) for label in range(6)]
    np.testing.assert_allclose(found.state.centres, means, rtol=1e-12)


def test_pairwise_distances_are_twice_the_size_times_the_spread():
    """K3: Σ over ordered pairs ‖x − y‖² = 2 |C| Σ ‖x − mean‖²."""
    x = blobs()
    state = fit(KMeans(n_clusters=3), of(x), Context.of(0)).state
    labels = predict(KMeans(n_clusters=3), state, x)
    for j in range(3):
        members = x[labels == j]
        pairs = ((members[:, None] - members) ** 2).sum()
        assert pairs == pytest.approx(2 * state.sizes[j] * state.inertias[j])


def test_fewer_distinct_rows_than_clusters():
    x = np.repeat([[1.0, 1.0], [2.0, 2.0], [9.0, 0.0]], [4, 1, 3], axis=0)
    for init, shift in product(INITS, (False, True)):
        found = fit(KMeans(n_clusters=7, init=init, shift=shift), of(x), Context.of(0))
        assert sorted(map(tuple, found.state.centres)) == [(1, 1), (2, 2), (9, 0)]
        assert found.state.inertias.sum() == 0
        assert len(found.warnings) == 1


def test_a_centre_without_rows_takes_the_farthest():
    """The second centre is nearer to no row; it moves to 10, the costliest."""
    end = run([[0], [1], [10]], [[1], [100]])
    assert sorted(end.centres.ravel()) == [0.5, 10]
    same = run([[0], [1], [10]], [[1], [1]])
    assert same.inertia[-1] == 0.5


def test_coinciding_centres_are_dropped_when_nothing_is_left_for_them():
    end = run([[0], [0], [3]], [[0], [0], [3]])
    assert end.centres.ravel().tolist() == [0, 3]
    assert end.labels.tolist() == [0, 0, 1]


def test_weights_repeat_rows():
    x, times = blobs(3, 40), np.random.default_rng(3).integers(1, 4, 40)
    weighed = fit(KMeans(n_clusters=4), of(x, weights=times), Context.of(0)).state
    repeated = fit(KMeans(n_clusters=4), of(np.repeat(x, times, axis=0)), Context.of(0)).state
    np.testing.assert_allclose(weighed.centres, repeated.centres)
    np.testing.assert_allclose(weighed.inertias, repeated.inertias)


def test_row_order_changes_nothing():
    x, order = blobs(4), np.random.default_rng(4).permutation(90)
    one, other = (fit(KMeans(n_clusters=5), of(rows), Context.of(0)).state for rows in (x, x[order]))
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


def test_progress_reports_the_best_so_far():
    seen = []
    context = Context.of(0, lambda fraction, **measures: seen.append((fraction, measures["inertia"])))
    found = fit(KMeans(n_clusters=5, n_init=8, init="random"), of(blobs()), context)
    fractions, inertias = zip(*seen, strict=True)
    assert fractions == tuple(np.arange(1, 9) / 8)
    assert list(inertias) == sorted(inertias, reverse=True)
    assert found.curves["inertia"][-1] <= inertias[-1]


def test_summary_tells_sizes_inertia_and_cells():
    x = blobs()
    state = fit(KMeans(n_clusters=4), of(x), Context.of(0)).state
    result = summary(KMeans(n_clusters=4), state)
    assert sum(part["size"] for part in result["clusters"]) == 90
    assert result["inertia"] == pytest.approx(sum(part["inertia"] for part in result["clusters"]))
    assert result["mean_inertia"] == pytest.approx(result["inertia"] / 90)
    assert {tuple(wall["cells"]) for wall in result["voronoi"]} >= set(map(tuple, result["neighbours"]))
    assert "voronoi" not in summary(KMeans(n_clusters=2), State(np.eye(3)[:2], np.ones(2, int), *np.ones((4, 2))))


@pytest.mark.parametrize("k", [3, 4, 7, 20])
def test_walls_are_equally_far_from_their_cells_and_from_no_other_nearer(k):
    """K7: a node is equidistant to three centres or more, to 1e-9."""
    centres = np.random.default_rng(k).normal(size=(k, 2))
    drawn = walls(centres)
    for wall in drawn:
        i, j = wall.cells
        points = [np.array(point) for point in wall.points]
        along = points[0] + 0.3 * np.array(wall.direction) if wall.direction else points[0]
        end = along if wall.direction else points[1]
        for share in (0.0, 0.5, 1.0):
            point = points[0] + share * (end - points[0])
            far = np.linalg.norm(centres - point, axis=1)
            assert far[i] == pytest.approx(far[j], rel=1e-9)
            assert far.min() >= far[i] * (1 - 1e-9)
        ends = points if not wall.direction else points[:1]
        for node in ends:
            far = np.linalg.norm(centres - node, axis=1)
            assert (far <= far.min() * (1 + 1e-9)).sum() >= 3
    cells = {wall.cells for wall in drawn}
    assert {tuple(pair) for pair in neighbours(centres).tolist()} <= cells
    assert {cell for pair in cells for cell in pair} == set(range(k))


@pytest.mark.parametrize("centres", [[[0, 0], [2, 0], [1, 0]], [[1, 1], [3, 5]], [[1, 1]]])
def test_centres_on_a_line_have_parallel_walls(centres):
    centres = np.array(centres, float)
    drawn = walls(centres)
    assert len(drawn) == 2 * (len(centres) - 1)
    for wall in drawn:
        i, j = wall.cells
        point = np.array(wall.points[0]) + 7 * np.array(wall.direction)
        assert np.linalg.norm(point - centres[i]) == pytest.approx(np.linalg.norm(point - centres[j]))


def test_neighbours_share_the_middle():
    assert neighbours(np.array([[0.0, 0], [1, 0.1], [2, 0]])).tolist() == [[0, 1], [1, 2]]
    centres = np.random.default_rng(0).normal(size=(9, 4))
    for i, j in neighbours(centres):
        far = np.linalg.norm(centres - (centres[i] + centres[j]) / 2, axis=1)
        assert far.min() == pytest.approx(min(far[i], far[j]))


def chosen(rows):
    fitted = fit(KMeans(), of(np.ascontiguousarray(rows, dtype=np.float64)), Context.of(0))
    return len(fitted.state.centres), fitted


def test_the_number_of_clusters_has_the_largest_calinski_harabasz_index():
    """Against scikit-learn's index of the fits of every number."""
    x = preprocessing.StandardScaler().fit_transform(rows_of("iris"))
    indices = {}
    for k in range(2, 11):
        params = KMeans(n_clusters=k)
        labels = predict(params, fit(params, of(x), Context.of(0)).state, x)
        indices[k] = metrics.calinski_harabasz_score(x, labels)
    count, fitted = chosen(x)
    assert count == max(indices, key=indices.get)
    assert fitted.warnings[0].startswith(f"n_clusters was not given and {count} was chosen: of 2 to 10 it has")


@pytest.mark.parametrize("groups", [2, 3, 5, 8])
def test_clear_groups_are_counted(groups):
    rng = np.random.default_rng(groups)
    centres = 20 * rng.permutation(groups)[:, None] * np.array([1.0, -0.5])
    rows = centres[rng.integers(groups, size=60 * groups)] + rng.normal(size=(60 * groups, 2))
    assert chosen(rows)[0] == groups


@pytest.mark.parametrize(("rows", "count"), [(np.ones((5, 2)), 1), ([[0.0], [1.0]] * 4, 2), ([[0.0], [1.0], [5.0]], 2)])
def test_few_different_rows_have_no_more_clusters(rows, count):
    assert chosen(np.array(rows))[0] == count


def test_a_given_number_is_kept():
    assert len(fit(KMeans(n_clusters=4), of(rows_of("iris")), Context.of(0)).state.centres) == 4
