"""Plots of maps and of mixtures: their numbers beside those of the queries, and which parts are drawn."""

from itertools import combinations

import numpy as np
import pytest

from app.ml.charts.map_tiles import Tiles
from app.ml.numerics.density.normal_ellipsoids import Normals
from app.ml.numerics.density.parting_columns import parting_columns
from app.ml.operations import plot_entries
from app.ml.queries.ellipsoids import EllipsoidsRequest, ellipsoids
from app.ml.queries.planes import PlanesRequest, planes
from tests.ml.plots.test_plots import column, drawn_from, rows, tables


def drawing(of, name):
    return plot_entries()[name].plot.draw(of)


def panels(of):
    return {one["title"]["text"]: one for one in drawing(of, "map_planes").view["concat"]}


def test_planes_have_the_values_and_places_of_the_query():
    of = drawn_from("flowers", "som", "species", grid_height=3, grid_width=4)
    found, drawn = planes(of.subject, PlanesRequest()), panels(of)
    assert list(drawn) == ["length", "width", "petal length", "petal width"]
    for plane in found.planes:
        cells = drawn[plane.column]["data"]["values"]
        assert column(cells, "value").tolist() == plane.values
        assert (column(cells, "x").tolist(), column(cells, "y").tolist()) == (found.x, found.y)


def test_of_many_columns_the_nine_that_vary_most_are_drawn_in_the_order_of_the_table():
    of = drawn_from("patients", "som", grid_height=4, grid_width=4, radius_end=0.7)
    found = planes(of.subject, PlanesRequest())
    spread = {one.column: np.std(one.values) / np.ptp(tables()["patients"][one.column]) for one in found.planes}
    most = sorted(spread, key=spread.get)[-9:]
    assert list(panels(of)) == [name for name in tables()["patients"] if name in most]
    assert "9 of 11 columns, with the largest variation" in drawing(of, "map_planes").subtitle[0]


def test_a_plane_of_categories_has_the_most_probable_ones():
    of = drawn_from("hostile", "som", "<&>", grid_height=2, grid_width=3)
    (found,) = planes(of.subject, PlanesRequest(columns=["a.b"])).planes
    panel = panels(of)["a.b"]
    assert [row["value"] for row in panel["data"]["values"]] == found.values
    assert panel["layer"][0]["encoding"]["color"]["scale"]["domain"] == sorted(set(found.values))


@pytest.mark.parametrize("hexagonal", [True, False])
def test_tiles_cover_the_plane_without_overlap(hexagonal):
    """The area of a tile is that of a cell of the grid, and its path is as long as the size has it."""
    tiles = Tiles.within(480, [0.0, 1.0], [0.0, 0.0], hexagonal=hexagonal)
    corners = tiles.mark["shape"].strip("MZ").split("L")
    x, y = np.array([[float(part) for part in corner.split(",")] for corner in corners]).T
    area = abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    assert area == pytest.approx(np.sqrt(0.75) if hexagonal else 1.0)
    assert np.sqrt(tiles.mark["size"]) / 2 == tiles.side
    assert tiles.view["width"] == 2 * tiles.side


def test_the_u_matrix_has_the_distances_hits_and_names_of_the_query():
    of = drawn_from("flowers", "som", "species", grid_height=3, grid_width=4)
    found, cells = planes(of.subject, PlanesRequest(columns=[])), rows(of, "u_matrix")
    assert column(cells, "value").tolist() == found.u_matrix
    assert column(cells, "count").tolist() == found.hits
    assert [row.get("name") for row in cells] == found.names
    largest = drawing(of, "u_matrix").view["layer"][1]["encoding"]["size"]["scale"]
    assert largest["domain"] == [0, max(found.hits)]


def test_names_beyond_the_colours_are_written_in_the_cells():
    of = drawn_from("letters", "som", "letter", grid_height=4, grid_width=4, radius_end=0.3)
    view = drawing(of, "u_matrix").view
    texts = [one for one in view["layer"] if one["mark"]["type"] == "text"]
    conditions = [one["transform"][0]["filter"] for one in texts]
    assert [one.split(" ")[3] for one in conditions] == ["<=", ">"]
    assert len({row["name"] for row in view["data"]["values"] if "name" in row}) > 7


def test_maps_have_planes_and_projections_have_none():
    entries = plot_entries()
    plain = drawn_from("flowers", "som", "species", grid_height=3, grid_width=4)
    other = drawn_from("flowers", "pca")
    assert [entries[name].plot.applies(plain) for name in ("map_planes", "u_matrix")] == [True, True]
    assert [entries[name].plot.applies(other) for name in ("map_planes", "u_matrix")] == [False, False]


def test_ellipses_lie_at_one_standard_deviation_of_their_components():
    of = drawn_from("flowers", "gmm", features="length,width,petal length")
    view = drawing(of, "component_ellipses").view
    names = [view["encoding"][axis]["title"] for axis in ("x", "y")]
    found = ellipsoids(of.subject, EllipsoidsRequest(columns=names))
    _, lines, means, _ = (layer["data"]["values"] for layer in view["layer"])
    for one, mean in zip(found.components, means, strict=True):
        points = np.array([[row["x"], row["y"]] for row in lines if row["series"] == mean["series"]])
        block = np.array(one.matrix)[:2, :2]
        assert [mean["x"], mean["y"]] == one.centre
        assert np.linalg.norm(np.linalg.solve(block, (points - one.centre).T), axis=0) == pytest.approx(1)
        assert points[0] == pytest.approx(points[-1])


def test_components_are_drawn_in_the_columns_that_part_them_most():
    """Beside the determinants of all pairs, in other units."""
    rng = np.random.default_rng(5)
    means, roots = rng.normal(size=(4, 6)) * 3, rng.normal(size=(4, 6, 6))
    covariances = roots @ roots.transpose(0, 2, 1)
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    gaps = means - shares @ means
    inner = np.einsum("k,kij->ij", shares, covariances)
    whole = inner + (gaps.T * shares) @ gaps
    ratios = {
        pair: np.linalg.det(inner[np.ix_(pair, pair)]) / np.linalg.det(whole[np.ix_(pair, pair)])
        for pair in combinations(range(6), 2)
    }
    expected = min(ratios, key=ratios.get)
    for unit in (np.ones(6), 10.0 ** np.arange(-60, 60, 20)):
        factors = np.linalg.cholesky(covariances) * unit[:, None]
        assert tuple(parting_columns(Normals(shares, means * unit, factors), np.arange(6))) == expected
    allowed = np.setdiff1d(np.arange(6), expected[:1])
    best = min((pair for pair in ratios if expected[0] not in pair), key=ratios.get)
    assert tuple(parting_columns(Normals(shares, means, np.linalg.cholesky(covariances)), allowed)) == best


def test_one_component_has_one_ellipse_in_the_first_columns_and_no_whole():
    of = drawn_from("patients", "gaussian")
    view = drawing(of, "component_ellipses").view
    assert [view["encoding"][axis]["title"] for axis in ("x", "y")] == ["age", "sex"]
    assert len(view["layer"]) == 3
