"""SMACOF: configurations come back from their distances, the stress never rises, scikit-learn finds no lower one."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.manifold import smacof as peer

from app.base.errors import InvalidData
from app.ml.algorithms.smacof import Smacof, fit, predict, summary
from app.ml.contract.algorithm import Context, Data, Meaning, Task
from app.ml.contract.relations import Edges, Relations
from app.ml.numerics.maps.compiled.stress_pulls import pull

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(50, 6)) + 3 * (np.arange(50) % 3)[:, None]
PLANE = RNG.normal(size=(60, 2)) * [3, 1]


def mapped(data, seed=0, **params):
    return fit(Smacof(**params), data, Context.of(seed))


def rows(x, **more):
    return Data.of(Task.PROJECTION, x, **more)


def square(given):
    relations = Relations(Meaning.DISSIMILARITY, square=given)
    return rows(np.nan_to_num(given), relations=relations)


def places(state):
    return state.places * state.known.scale


def with_gaps(given, share, seed):
    hidden = np.triu(np.random.default_rng(seed).random(given.shape) < share, 1)
    return np.where(hidden | hidden.T, np.nan, given)


def stress(given, found, weights=None):
    pairs = np.ones(len(found)) if weights is None else weights
    left = np.nan_to_num(np.square(given - cdist(found, found)))
    return pairs @ left @ pairs / 2


@pytest.mark.parametrize("seed", range(3))
def test_a_configuration_comes_back_from_two_thirds_of_its_distances(seed):
    given = with_gaps(cdist(PLANE, PLANE), 1 / 3, seed)
    made = mapped(square(given), tol=1e-12, max_iter=5000)
    assert made.converged
    assert procrustes(PLANE, places(made.state))[2] < 1e-12  # a sum of squares, of which the root is the 1e-6
    np.testing.assert_allclose(pdist(places(made.state)), pdist(PLANE), atol=1e-6)
    assert made.state.known_pairs == np.isfinite(given[np.triu_indices(60, 1)]).sum()


def test_a_configuration_comes_back_from_a_few_edges_of_each_row():
    far = cdist(PLANE, PLANE)
    near = np.argsort(far, axis=1)[:, 1:16]
    low, high = np.unique(np.sort([np.repeat(np.arange(60), 15), near.ravel()], axis=0), axis=1)
    relations = Relations(Meaning.DISSIMILARITY, edges=Edges(low, high, far[low, high]), by_item=True)
    made = mapped(rows(np.arange(60.0)[:, None], relations=relations), tol=1e-12, max_iter=20_000)
    np.testing.assert_allclose(pdist(places(made.state)), pdist(PLANE), atol=1e-6)
    found = predict(Smacof(), made.state, np.array([[3.0], [59.0]]))
    np.testing.assert_array_equal(found, places(made.state)[[3, 59]])


@pytest.mark.parametrize("gaps", [0.0, 0.4])
@pytest.mark.parametrize("init", ["classical", "random"])
def test_no_step_raises_the_stress_and_the_summary_holds_it(gaps, init):
    given = with_gaps(cdist(ROWS, ROWS, "cityblock"), gaps, 1)
    made = mapped(square(given), init=init, n_init=2)
    curve = np.array(made.curves["normalised_stress"])
    assert (np.diff(curve) <= 0).all()
    assert len(curve) == made.iterations + 1 > 10
    report = summary(Smacof(), made.state)
    found = places(made.state)
    assert report["stress"] == pytest.approx(stress(given, found))
    assert report["normalised_stress"] == pytest.approx(curve[-1])
    known = np.isfinite(given)
    assert curve[-1] == pytest.approx(stress(given, found) / (np.square(given[known]).sum() / 2))
    lengths = np.square(cdist(found, found)[known]).sum() / 2
    assert report["stress_1"] == pytest.approx(np.sqrt(stress(given, found) / lengths))
    assert min(report["starts"]) == report["normalised_stress"]


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "chebyshev"])
def test_scikit_learn_finds_no_lower_stress(metric):
    made = mapped(rows(ROWS, weights=np.ones(50)), metric=metric, n_init=12, tol=1e-9, max_iter=3000)
    given = cdist(ROWS, ROWS, metric)
    own = made.state.places * made.state.known.scale
    assert made.state.stress == pytest.approx(stress(given, own), rel=1e-9)
    _, theirs = peer(given, n_init=4, max_iter=3000, eps=1e-9, random_state=0, normalized_stress=False, init=None)
    assert made.state.stress <= theirs * 1.001


def test_from_the_same_places_scikit_learn_ends_with_the_same_stress():
    given, start = cdist(ROWS, ROWS), places(mapped(rows(ROWS), max_iter=4, n_init=1).state)
    found, theirs = peer(given, n_init=1, init=start, max_iter=20_000, eps=1e-13, normalized_stress=False)
    made = mapped(rows(ROWS), n_init=1, tol=1e-12, max_iter=20_000).state
    assert made.stress == pytest.approx(theirs, rel=1e-7)
    assert procrustes(found, places(made))[2] < 1e-6


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_weights_count_rows(gaps):
    """The gradient of the weighted stress is zero, which with weights left out it is not."""
    weights = np.linspace(0.2, 3, 50)
    given = with_gaps(cdist(ROWS, ROWS), gaps, 2)
    data = Data.of(
        Task.PROJECTION, np.nan_to_num(given), weights=weights, relations=Relations(Meaning.DISSIMILARITY, given)
    )
    made = mapped(data, n_init=1, tol=1e-14, max_iter=20_000).state
    found = places(made)
    assert made.stress == pytest.approx(stress(given, found, weights))
    away = found[:, None] - found
    far = cdist(found, found)
    pulls = np.nan_to_num(np.divide(given, far, out=np.ones_like(far), where=far > 0) - 1)
    sizes = [np.abs(((w[:, None] * w * pulls)[:, :, None] * away).sum(axis=1)).max() for w in (weights, np.ones(50))]
    assert sizes[0] < 1e-5 * sizes[1]


def test_training_rows_stay_and_new_ones_are_placed_where_nothing_is_lower():
    made = mapped(rows(ROWS)).state
    found = predict(Smacof(), made, ROWS)
    np.testing.assert_array_equal(found, places(made))
    new = RNG.normal(size=(8, 6)) + 2
    for place, wanted in zip(predict(Smacof(), made, new), cdist(new, ROWS), strict=True):

        def loss(y, wanted=wanted):
            return np.square(wanted - np.linalg.norm(y - found, axis=1)).sum()

        ends = [minimize(loss, start, method="BFGS").fun for start in found[::10]]
        assert loss(place) <= min(ends) * (1 + 1e-9)


def test_an_item_of_known_dissimilarities_has_the_place_that_they_leave():
    made = mapped(square(cdist(PLANE, PLANE)), tol=1e-12).state
    point = np.array([[0.5, -0.25]])
    wanted = cdist(point, PLANE)
    wanted[0, ::2] = np.nan
    found = predict(Smacof(), made, np.vstack([wanted, np.full((1, 60), np.nan)]))
    np.testing.assert_allclose(cdist(found[:1], places(made)), cdist(point, PLANE), atol=1e-6)
    np.testing.assert_allclose(found[1], 0, atol=1e-9)


def test_equal_rows_have_one_place_and_groups_without_a_pair_between_them_are_refused():
    made = mapped(rows(np.vstack([ROWS, ROWS[:5]]))).state
    np.testing.assert_array_equal(made.places[:5], made.places[50:])
    given = np.full((6, 6), np.nan)
    given[:3, :3] = given[3:, 3:] = squareform(pdist(ROWS[:3]))
    with pytest.raises(InvalidData, match="2 groups"):
        mapped(square(given))


def test_points_on_a_line_leave_it_where_the_plane_fits_better():
    """Classical scaling of two eigenvalues, one of them negative, has one axis; the stress wants two."""
    given = np.array([[0.0, 1, 3, 1], [1, 0, 1, 3], [3, 1, 0, 1], [1, 3, 1, 0]])
    made = mapped(square(given), n_init=1).state
    assert np.ptp(made.places, axis=0).min() > 0.1


def of_edges(given, pairs, weights=None):
    """Items of edges with weights: of every pair that has both."""
    first, second = np.nonzero(np.triu(np.isfinite(given) & (pairs > 0), 1))
    edges = Edges(first, second, given[first, second], pairs[first, second])
    relations = Relations(Meaning.DISSIMILARITY, edges=edges, by_item=True)
    return rows(np.arange(float(len(given)))[:, None], relations=relations, weights=weights)


def majorised(given, weights, start, steps):
    """Weighted stress majorisation as it is written: X ← V⁺B(X)X with a pseudoinverse."""
    weights = np.where(np.isnan(given), 0, weights)
    np.fill_diagonal(weights, 0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    for _ in range(steps):
        far = cdist(start, start)
        pulls = np.divide(weights * np.nan_to_num(given), far, out=np.zeros_like(far), where=far > 0)
        start = inverse @ ((np.diag(pulls.sum(axis=1)) - pulls) @ start)
    return start, np.nansum(weights * np.square(given - cdist(start, start))) / 2


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_pairs_count_by_their_weights(gaps):
    """A plain majorisation with a pseudoinverse stays where it is, and ends there from a place nearby."""
    given = with_gaps(cdist(ROWS[:20], ROWS[:20]), gaps, 2)
    drawn, rows_count = RNG.gamma(0.5, size=given.shape), np.linspace(0.5, 2, 20)
    pairs = drawn + drawn.T + 0.01
    made = mapped(of_edges(given, pairs, rows_count), n_init=2, tol=1e-14, max_iter=50_000).state
    weights, found = np.outer(rows_count, rows_count) * pairs, places(made)
    kept, left = majorised(given, weights, found, 1)
    np.testing.assert_allclose(pdist(kept), pdist(found), rtol=1e-6)
    assert made.stress == pytest.approx(left, rel=1e-9)
    nearby, theirs = majorised(given, weights, found + RNG.normal(size=found.shape) / 100, 5000)
    assert made.stress <= theirs * (1 + 1e-9)
    assert procrustes(nearby, found)[2] < 1e-8
    alike = mapped(of_edges(given, np.ones_like(pairs), rows_count), n_init=2, tol=1e-14, max_iter=50_000).state
    assert procrustes(places(alike), found)[2] > 1e-3


def test_weights_of_pairs_that_are_all_alike_only_scale_the_stress():
    given = cdist(ROWS[:15], ROWS[:15])
    plain, heavy, huge = (
        mapped(of_edges(given, np.full_like(given, each)), n_init=1, tol=1e-13, max_iter=20_000).state
        for each in (1.0, 7.0, 1e200)
    )
    assert heavy.stress == pytest.approx(7 * plain.stress)
    assert huge.stress == pytest.approx(1e200 * plain.stress)
    assert (heavy.normalised_stress, heavy.stress_1) == pytest.approx((plain.normalised_stress, plain.stress_1))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_kernel_is_its_python(weighted):
    pairs = squareform(pdist(ROWS[:9, :2])) if weighted else np.empty((0, 0))
    given = with_gaps(cdist(ROWS[:9], ROWS[:9]), 0.2, 3)
    found = [np.empty(9), np.empty(9), np.empty((3, 9))], [np.empty(9), np.empty(9), np.empty((3, 9))]
    where = np.ascontiguousarray(ROWS[:9, :3].T)
    for run, arrays in zip((pull, pull.python), found, strict=True):
        run(given, where, np.arange(1.0, 10), pairs, *arrays)
    for one, other in zip(*(arrays[1:] for arrays in found), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
