"""VC and Littlestone dimensions: their certificates, brute force, the numbers in print, and refusals."""

from itertools import permutations, product
from math import comb

import numpy as np
import pytest
from pydantic import TypeAdapter
from sklearn.svm import SVC

from app.base.errors import InvalidRequest
from app.ml.numerics.learning_theory.shattering import (
    CLASSES,
    by_halfspace,
    labellings,
    refused,
    sine_frequency,
)
from app.ml.theory import littlestone_dimension, vc_dimension


def of(module, **request):
    result = module.calculate(TypeAdapter(module.QUERY.request).validate_python(request))
    return result, {one.name: one.value for one in result.values}


@pytest.mark.parametrize(
    ("name", "d", "k", "dimension"),
    [
        ("thresholds", 1, 1, 1),
        ("intervals", 1, 1, 2),
        ("intervals", 1, 3, 6),
        ("rectangles", 1, 1, 2),
        ("rectangles", 2, 1, 4),
        ("rectangles", 3, 1, 6),
        ("halfspaces", 1, 1, 2),
        ("halfspaces", 2, 1, 3),
        ("halfspaces", 4, 1, 5),
    ],
)
def test_a_dimension_has_its_certificates(name, d, k, dimension):
    """R5: 4 for rectangles, by the diamond; d + 1 for halfspaces. One point more is not shattered."""
    result, found = of(vc_dimension, function_class=name, dimensions=d, intervals=k)
    assert found["vc_dimension"] == len(result.shattered) == dimension
    of_class, points = CLASSES[name], np.array(result.shattered)
    assert sum(1 for _ in labellings(of_class, points, k)) == 2**dimension
    more, labels = np.array(result.refusal.points), np.array(result.refusal.labels)
    assert len(more) == dimension + 1
    assert not of_class.labels(more, labels, k)


@pytest.mark.parametrize("name", ["thresholds", "intervals", "rectangles", "halfspaces"])
def test_no_points_beyond_the_dimension_are_shattered(name):
    """R5: drawn sets of one point more are not, whatever they are."""
    of_class, rng = CLASSES[name], np.random.default_rng(5)
    d = of_class.columns or 2
    for _ in range(20):
        points = rng.normal(size=(int(of_class.dimension(d, 1)) + 1, d))
        assert refused(of_class, points, 1) is not None


def test_convex_polygons_shatter_a_circle():
    result, found = of(vc_dimension, function_class="convex_polygons", rows=10)
    assert found["vc_dimension"] is None
    assert found["labellings"] == 1024
    points = np.array(result.shattered)[:5]
    assert refused(CLASSES["convex_polygons"], points, 1) is None


@pytest.mark.parametrize(
    ("name", "n", "number"),
    [("thresholds", 7, 8), ("intervals", 7, 29), ("halfspaces", 7, 44)],
)
def test_labellings_in_print_are_those_of_brute_force(name, n, number):
    """R3: n + 1, n (n + 1) / 2 + 1, and n (n − 1) + 2 in the plane."""
    points = np.random.default_rng(n).normal(size=(n, CLASSES[name].columns or 2)).tolist()
    found = of(vc_dimension, function_class=name, rows=n, points=points)[1]
    assert found["labellings"] == found["labellings_of_points"] == number
    assert np.log(number) <= found["log_labellings_bound"]


def rectangles_of(order):
    """Labellings of points (place, order) by rectangles: boxes around points with a leftmost and a rightmost one."""
    count = 1
    for left, first in enumerate(order):
        for right in range(left, len(order)):
            low, high = sorted((first, order[right]))
            inner = order[left + 1 : right]
            count += (1 + sum(y < low for y in inner)) * (1 + sum(y > high for y in inner))
    return count


def test_boxes_are_counted_like_labellings():
    order = (3, 0, 4, 1, 2)
    points = np.column_stack([range(5), order]).astype(float)
    assert rectangles_of(order) == sum(1 for _ in labellings(CLASSES["rectangles"], points, 1))


@pytest.mark.parametrize("n", [*range(1, 8), pytest.param(8, marks=pytest.mark.slow)])
def test_labellings_by_rectangles_are_the_most_of_every_order(n):
    """R3: points with equal coordinates have no more than after a small move."""
    found = of(vc_dimension, function_class="rectangles", rows=n)[1]
    assert found["labellings"] == max(map(rectangles_of, permutations(range(n))))
    assert found["labellings"] <= found["labellings_bound"]
    assert found["labellings_bound"] == sum(comb(n, i) for i in range(5))


def test_labellings_by_rectangles_are_unknown_of_many_rows():
    assert of(vc_dimension, function_class="rectangles", rows=11)[1]["labellings"] == 352
    assert of(vc_dimension, function_class="rectangles", rows=12)[1]["labellings"] is None
    assert of(vc_dimension, function_class="rectangles", dimensions=3, rows=6)[1]["labellings"] == 64
    assert of(vc_dimension, function_class="rectangles", dimensions=3, rows=7)[1]["labellings"] is None
    assert of(vc_dimension, function_class="rectangles", dimensions=1, rows=7)[1]["labellings"] == 29


def test_sines_shatter_halves():
    """One parameter, and no limit: each labelling has its frequency."""
    result, found = of(vc_dimension, function_class="sines", rows=30)
    assert (found["vc_dimension"], found["labellings"], result.refusal) == (None, 2.0**30, None)
    points = np.array(result.shattered)[:, 0]
    assert len(points) == 8
    for labels in product((False, True), repeat=8):
        signs = np.sin(sine_frequency(np.array(labels)) * points)
        assert np.array_equal(signs > 0, labels)
        assert np.abs(signs).min() > 1e-3


def test_halfspaces_are_those_of_a_vector_machine():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(6, 2)) * [1e6, 1e-6]
    scaled = points / np.abs(points).max(axis=0)
    for labels in product((False, True), repeat=6):
        labelling = np.array(labels)
        if labelling.all() or not labelling.any():
            continue
        machine = SVC(kernel="linear", C=1e6, max_iter=100_000).fit(scaled, labelling)
        assert by_halfspace(points, labelling, 1) == bool(machine.score(scaled, labelling) == 1), labels


def test_points_that_coincide_have_one_label():
    found = of(vc_dimension, function_class="intervals", points=[[1.0], [1.0], [2.0]])[1]
    assert found["labellings_of_points"] == 4
    found = of(vc_dimension, function_class="halfspaces", dimensions=1, points=[[0.0], [0.0]])[1]
    assert found["labellings_of_points"] == 2


THRESHOLDS = [[n >= t for n in range(7)] for t in range(8)]
TABLE = {"function_class": "table"}
SINGLETONS = [[n == t for n in range(7)] for t in range(8)]


def test_dimensions_of_tables():
    """Thresholds have VC dimension 1 and Littlestone dimension ⌊log2 of their number⌋; singletons have 1 and 1."""
    for table, vc, littlestone in [(THRESHOLDS, 1, 3), (SINGLETONS, 1, 1), ([[True, False]], 0, 0)]:
        assert of(vc_dimension, function_class="table", table=table)[1]["vc_dimension"] == vc
        assert of(littlestone_dimension, table=table)[1]["littlestone_dimension"] == littlestone
    every = [list(labels) for labels in product((False, True), repeat=4)]
    result, found = of(vc_dimension, function_class="table", table=every)
    assert (found["vc_dimension"], result.shattered) == (4, [[0.0], [1.0], [2.0], [3.0]])
    assert of(littlestone_dimension, table=every)[1]["littlestone_dimension"] == 4


def test_every_path_of_the_tree_is_that_of_a_hypothesis():
    rng = np.random.default_rng(0)
    for table in [THRESHOLDS, (rng.random((40, 12)) < 0.5).tolist()]:
        result, found = of(littlestone_dimension, table=table)
        depth = int(found["littlestone_dimension"])
        assert len(result.tree) == 2**depth - 1
        for labels in product((False, True), repeat=depth):
            place, path = 0, []
            for label in labels:
                path.append((result.tree[place], label))
                place = 2 * place + 1 + label
            assert any(all(row[n] == label for n, label in path) for row in table), labels


@pytest.mark.parametrize(
    ("module", "request_", "pointers"),
    [
        (vc_dimension, {"points": [[1.0], [1.0, 2.0]]}, ["/points/0"]),
        (vc_dimension, {"function_class": "sines", "points": [[1.0]]}, ["/points"]),
        (vc_dimension, TABLE, ["/table"]),
        (vc_dimension, TABLE | {"table": [[True], [True, False]], "points": [[1.0]]}, ["/table", "/points"]),
        (vc_dimension, {"table": [[True]]}, ["/table"]),
        (littlestone_dimension, {"table": [[True], [True, False]]}, ["/table/1"]),
        (littlestone_dimension, {"table": [[]]}, ["/table/0"]),
    ],
)  # fmt: skip
def test_every_fault_is_named(module, request_, pointers):
    with pytest.raises(InvalidRequest) as refusal:
        of(module, **request_)
    assert [fault.pointer for fault in refusal.value.faults] == pointers
