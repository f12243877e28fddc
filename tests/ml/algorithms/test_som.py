"""Self-organising maps: limits of the rules, the grid, and errors beside a plain computation."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from app.ml.algorithms.som import ALGORITHM, SOM, fit, named, predict, schedule_of
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.clustering.lloyd import lloyd
from app.ml.numerics.maps.compiled.online import online
from app.ml.numerics.maps.grid import Grid, u_matrix
from app.ml.numerics.maps.self_organising import Rows, batch_step, places

X = np.random.default_rng(0).normal(size=(200, 3)) + 4 * (np.arange(200) % 3)[:, None]
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2, 200)
SHAPES = [(1, 1), (1, 6), (5, 1), (2, 2), (4, 7), (5, 6)]
grids = pytest.mark.parametrize("grid", [Grid(*shape, hexagonal) for shape in SHAPES for hexagonal in (True, False)])


def fitted(x=X, weights=None, seed=0, **params):
    made = SOM(**params)
    return made, fit(made, Data.of(Task.CLUSTERING, x, weights=weights), Context.of(seed))


def output(name, params, state, x):
    return ALGORITHM.outputs[name].compute(params, state, x)


def apart(grid):
    return cdist(grid.positions, grid.positions)


@grids
def test_neighbours_are_at_distance_1_and_sums_over_a_neighbourhood_are_those_of_all_pairs(grid):
    far = apart(grid)
    np.testing.assert_array_equal(grid.pairs, np.argwhere(np.triu(np.abs(far - 1) < 1e-9)))
    values = np.random.default_rng(2).normal(size=(grid.cells, 2))
    for radius in (1e-9, 0.6, 3.0, 1e6):
        expected = np.exp(-np.square(far / radius) / 2) @ values
        np.testing.assert_allclose(grid.spread(values, radius), expected, rtol=1e-10, atol=1e-12)


def test_inner_cells_have_six_neighbours_in_a_hexagonal_grid_and_four_in_a_square_one():
    for hexagonal, count in ((True, 6), (False, 4)):
        grid = Grid(5, 5, hexagonal)
        of_cell = np.bincount(grid.pairs.ravel(), minlength=25).reshape(5, 5)
        assert (of_cell[1:-1, 1:-1] == count).all()


def test_a_batch_step_is_the_mean_of_the_rows_by_the_neighbourhood_of_their_cells():
    grid, rows = Grid(3, 4, True), Rows(X, WEIGHTS)
    prototypes = X[:12]
    labels = cdist(X, prototypes).argmin(axis=1)
    counts = np.exp(-np.square(apart(grid)[:, labels]) / (2 * 1.3**2)) * WEIGHTS
    expected = counts @ X / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(batch_step(rows, grid, prototypes, labels, 1.3), expected, rtol=1e-10)


def test_a_wide_neighbourhood_brings_all_prototypes_to_the_mean_and_a_narrow_one_makes_a_step_of_k_means():
    grid, rows = Grid(2, 3, False), Rows(X, WEIGHTS)
    labels = cdist(X, X[:6]).argmin(axis=1)
    wide = batch_step(rows, grid, X[:6], labels, 1e8)
    np.testing.assert_allclose(wide, np.tile(np.average(X, axis=0, weights=WEIGHTS), (6, 1)), rtol=1e-9)
    narrow = batch_step(rows, grid, X[:6], labels, 1e-3)
    np.testing.assert_allclose(narrow, lloyd(X, WEIGHTS, X[:6].copy(), 1).centres, rtol=1e-9)


def test_a_cell_far_from_all_rows_keeps_its_prototype():
    prototypes = np.array([[0.0], [100.0]])
    step = batch_step(Rows(np.ones((3, 1)), np.ones(3)), Grid(1, 2, False), prototypes, np.zeros(3, np.intp), 1e-3)
    assert step.tolist() == [[1.0], [100.0]]


@pytest.mark.parametrize("seed", range(3))
def test_with_a_radius_near_0_the_inertia_never_rises(seed):
    grid, rows = Grid(3, 3, True), Rows(X, WEIGHTS)
    prototypes, inertia = X[np.random.default_rng(seed).choice(200, 9, replace=False)], []
    for _ in range(15):
        far = np.square(cdist(X, prototypes))
        inertia.append(WEIGHTS @ far.min(axis=1))
        prototypes = batch_step(rows, grid, prototypes, far.argmin(axis=1), 1e-3)
    assert (np.diff(inertia) <= 1e-9 * inertia[0]).all()
    assert inertia[-1] < inertia[0]


@pytest.mark.parametrize("mode", ["batch", "online"])
def test_prototypes_stay_among_the_rows(mode):
    _, result = fitted(mode=mode, grid_height=4, grid_width=4, epochs=5, radius_end=0.3)
    assert (result.state.prototypes >= X.min(axis=0) - 1e-9).all()
    assert (result.state.prototypes <= X.max(axis=0) + 1e-9).all()


def test_one_cell_online_is_the_running_mean_of_the_rows_drawn():
    rows, column = np.random.default_rng(3).integers(0, 200, 500), np.zeros((3, 1))
    online(X, rows, 1 / (1 + np.arange(500.0)), np.ones(500), 1, 0.0, 1.0, column)
    np.testing.assert_allclose(column[:, 0], X[rows].mean(axis=0), rtol=1e-9)


@pytest.mark.parametrize("hexagonal", [True, False])
def test_online_steps_are_those_of_a_plain_loop(hexagonal):
    grid, rng = Grid(3, 4, hexagonal), np.random.default_rng(4)
    rows, steps, radii = rng.integers(0, 200, 60), rng.uniform(0, 1, 60), rng.uniform(0.3, 3, 60)
    expected, columns = X[:12].copy(), np.ascontiguousarray(X[:12].T)
    for row, step, radius in zip(X[rows], steps, radii, strict=True):
        best = np.square(expected - row).sum(axis=1).argmin()
        active = step * np.exp(-np.square(apart(grid)[best] / radius) / 2)
        expected += active[:, None] * (row - expected)
    online(X, rows, steps, radii, grid.width, grid.shift, grid.rise, columns)
    np.testing.assert_allclose(columns.T, expected, rtol=1e-9)


@pytest.mark.parametrize("topology", ["hexagonal", "square"])
def test_errors_and_outputs_are_those_of_all_distances(topology):
    params, result = fitted(weights=WEIGHTS, grid_height=5, grid_width=4, topology=topology, radius_end=0.5)
    far, grid = cdist(X, result.state.prototypes), Grid(5, 4, topology == "hexagonal")
    first, second = np.argsort(far, axis=1, kind="stable")[:, :2].T
    torn = np.abs(apart(grid)[first, second] - 1) > 1e-9
    found = ALGORITHM.summary(params, result.state)
    assert found["quantisation_error"] == pytest.approx(np.average(far.min(axis=1), weights=WEIGHTS))
    assert found["topographic_error"] == pytest.approx(np.average(torn, weights=WEIGHTS))
    np.testing.assert_array_equal(predict(params, result.state, X), first)
    np.testing.assert_array_equal(output("second_cell", params, result.state, X), second)
    np.testing.assert_array_equal(output("torn", params, result.state, X), torn)
    np.testing.assert_array_equal(output("coordinates", params, result.state, X), grid.positions[first])
    np.testing.assert_allclose(output("distance", params, result.state, X), far.min(axis=1))
    assert found["hits"] == np.bincount(first, minlength=20).tolist()


@pytest.mark.parametrize("hexagonal", [True, False])
def test_a_map_laid_out_as_its_grid_has_no_topographic_error(hexagonal):
    grid = Grid(6, 7, hexagonal)
    rows = np.random.default_rng(5).uniform(0.5, 4.5, size=(500, 2))
    found = places(rows, grid.positions)
    assert not found.torn(grid).any()
    np.testing.assert_allclose(u_matrix(grid, grid.positions), 1.0)


def test_a_map_unfolds_over_a_plane_and_shows_the_gap_between_groups():
    plane = np.random.default_rng(6).uniform(size=(800, 2))
    _, result = fitted(plane, grid_height=8, grid_width=8, epochs=30, radius_end=0.7)
    quantisation, topographic = result.state.errors[0]
    assert topographic < 0.1
    assert quantisation < 0.1
    two = np.concatenate([plane[:400], plane[:400] + 20])
    params, parted = fitted(two, grid_height=8, grid_width=8, epochs=30, radius_end=0.7)
    one, other = (set(predict(params, parted.state, part).tolist()) for part in (two[:400], two[400:]))
    assert not one & other
    height = u_matrix(Grid(8, 8, True), parted.state.prototypes)
    assert height.max() > 5 * np.median(height)


def test_the_best_of_several_starts_is_kept_and_all_are_reported():
    params, result = fitted(grid_height=4, grid_width=4, n_init=4, radius_start=0.5, radius_end=0.1)
    found = ALGORITHM.summary(params, result.state)
    assert len(found["starts"]) == 4
    assert found["quantisation_error"] == min(start["quantisation_error"] for start in found["starts"])
    assert len({start["quantisation_error"] for start in found["starts"]}) > 1


def test_cells_are_named_after_the_most_frequent_class_and_nothing_else_changes():
    params, result = fitted(grid_height=3, grid_width=3)
    codes = np.where(np.arange(200) % 5, np.arange(200) % 3, -1)
    data = Data.of(Task.CLUSTERING, X, weights=WEIGHTS)
    state = named(params, result.state, data, codes, ["a", "b", "c"])
    cells = predict(params, result.state, X)
    for cell in range(9):
        of_class = np.bincount(codes[(cells == cell) & (codes >= 0)], WEIGHTS[(cells == cell) & (codes >= 0)], 3)
        assert state.names[cell] == ("abc"[of_class.argmax()] if of_class.any() else "")
        assert state.shares[cell] == pytest.approx(of_class.max() / max(of_class.sum(), 1e-9))
    np.testing.assert_array_equal(state.prototypes, result.state.prototypes)
    assert result.state.names is None


def test_the_radius_of_49_cells_falls_from_7_to_2_and_a_step_from_a_twentieth():
    """M6: 7.0, 4.5 and 2.0 after 0, 50 and 100 of 100 rows; M3: 1/(20 + t)."""
    schedule = schedule_of(SOM(grid_height=7, grid_width=7))
    np.testing.assert_array_equal(schedule.radii(np.array([0, 50, 100]) / 100), [7.0, 4.5, 2.0])
    np.testing.assert_allclose(schedule.steps(np.array([0, 1, 80])), [1 / 20, 1 / 21, 1 / 100])


def test_a_step_is_at_most_1_and_the_course_of_the_radius_may_be_exponential():
    from app.ml.algorithms.som import schedule_of

    schedule = schedule_of(SOM(decay="exponential", radius_start=8.0, radius_end=2.0, step_scale=5.0, step_offset=1.0))
    np.testing.assert_allclose(schedule.radii(np.array([0, 0.5, 1])), [8, 4, 2])
    np.testing.assert_allclose(schedule.steps(np.array([0.0, 4.0, 9.0])), [1, 1, 0.5])
