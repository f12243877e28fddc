"""Features of small pictures over HTTP: digits of 8 by 8 pixels, predicted in every form of a body."""

import io
import math

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_digits

ARROW, NPY = "application/vnd.apache.arrow.stream", "application/x-npy"
SIDE, STRIPS, ROWS = 8, 4, 120
PIXELS = [f"p{i}" for i in range(SIDE * SIDE)]
X, Y = load_digits(return_X_y=True)
NEW = X[ROWS : ROWS + 30]


def by_hand(pixels):
    """The features of one picture, pixel by pixel, from their definition."""
    ink = {divmod(place, SIDE): value - min(pixels) for place, value in enumerate(pixels)}
    total, darkest = sum(ink.values()), max(ink.values())
    black = [at for at, value in ink.items() if value > darkest / 2]
    origin = [sum((at[axis] + 0.5) * value for at, value in ink.items()) / total for axis in (0, 1)]
    unit = max(max(abs(at[axis] + end - origin[axis]) for end in (0, 1)) for at in black for axis in (0, 1))
    features = []
    for axis in (0, 1):
        for strip in range(STRIPS):
            low, high = (origin[axis] + unit * (2 * (strip + end) / STRIPS - 1) for end in (0, 1))
            inside = (v * max(0.0, min(high, at[axis] + 1) - max(low, at[axis])) for at, v in ink.items())
            features.append(sum(inside) / total)
    upright, level = 0.0, 0.0
    for i in range(SIDE):
        for j in range(SIDE + 1):
            upright += abs(ink.get((i, j), 0.0) - ink.get((i, j - 1), 0.0))
            level += abs(ink.get((j, i), 0.0) - ink.get((j - 1, i), 0.0))
    edges = (upright + level) / darkest
    return [*features, upright / darkest / edges, edges / (4 * math.sqrt(total / darkest))]


@pytest.fixture(scope="module")
def dataset(client):
    lines = [",".join([*map(str, row), f"digit {digit}"]) for row, digit in zip(X[:ROWS], Y, strict=False)]
    return client.post("/v1/datasets", content="\n".join([",".join([*PIXELS, "digit"]), *lines])).json()["id"]


def body(dataset, **picture):
    picture = {"kind": "picture", "columns": PIXELS, "width": SIDE, "strips": STRIPS} | picture
    return {
        "model": "digits",
        "dataset": dataset,
        "target": "digit",
        "features": PIXELS,
        "algorithm": {"name": "knn", "n_neighbors": 1},
        "preprocessing": {"basis": [picture], "keep_inputs": False, "scaling": "none"},
        "validation": {"test_fraction": 0},
    }


@pytest.fixture(scope="module")
def url(client, done, dataset):
    done("train", body(dataset))
    return "/v1/models/digits"


def arrow(columns):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, columns.schema) as writer:
        writer.write_table(columns)
    return {"content": sink.getvalue().to_pybytes(), "headers": {"Content-Type": ARROW}}


def npy(rows):
    file = io.BytesIO()
    np.save(file, rows)
    return {"content": file.getvalue(), "headers": {"Content-Type": NPY}}


def test_a_model_measures_pictures_as_by_hand_in_every_form(client, url):
    report = client.get(f"{url}/versions/1/report").json()
    assert report["columns"][0] == "picture of p0: row 1"
    known, new = (np.array([by_hand(row) for row in rows.tolist()]) for rows in (X[:ROWS], NEW))
    assert len(report["columns"]) == known.shape[1] == 2 * STRIPS + 2
    distances = np.linalg.norm(new[:, None] - known, axis=2)
    rows = {"columns": PIXELS, "data": NEW.tolist()}
    objects = [dict(zip(PIXELS, row, strict=True)) for row in NEW.tolist()]
    found = client.post(f"{url}/neighbours", json={"rows": objects}).json()["neighbours"]
    np.testing.assert_allclose([one[0]["distance"] for one in found], distances.min(axis=1), rtol=1e-9, atol=1e-12)
    predicted = client.post(f"{url}/predict", json=rows).json()["predictions"]
    assert predicted == [f"digit {digit}" for digit in Y[distances.argmin(axis=1)]]
    lines = "\n".join([",".join(PIXELS), *(",".join(map(str, row)) for row in NEW)])
    for other in (
        {"json": {"rows": objects}},
        {"content": lines, "headers": {"Content-Type": "text/csv"}},
        npy(NEW),
        arrow(pa.table(dict(zip(PIXELS, NEW.T, strict=True)))),
    ):
        headers = {"Accept": "application/json"} | other.pop("headers", {})
        assert client.post(f"{url}/predict", headers=headers, **other).json()["predictions"] == predicted
    brighter = {"columns": PIXELS, "data": (100 + 3 * NEW).tolist()}
    assert client.post(f"{url}/predict", json=brighter).json()["predictions"] == predicted


def test_pictures_of_another_size_and_pixels_that_lack_are_named(client, url, dataset):
    short = {"columns": PIXELS[:-1], "data": NEW[:, :-1].tolist()}
    response = client.post(f"{url}/predict", json=short)
    assert response.status_code == 422
    assert [(fault["code"], "p63" in fault["detail"]) for fault in response.json()["errors"]] == [
        ("missing_columns", True)
    ]
    assert client.post(f"{url}/predict", **npy(NEW[:, :-1])).status_code == 422
    blank = [[None, *NEW[0][1:].tolist()]]
    flags = client.post(f"{url}/predict", json={"columns": PIXELS, "data": blank}).json()["flags"]
    assert [(flag["code"], flag["column"]) for flag in flags] == [("imputed", "p0")]


@pytest.mark.parametrize(
    ("picture", "at", "detail"),
    [
        ({"width": 7}, "", "64 columns are no whole number of rows of 7 pixels: the last row is cut off."),
        ({"columns": [*PIXELS[:-1], "P63"]}, "/columns/63", "The features have no column 'P63'; did you mean 'p63'?"),
        ({"columns": [*PIXELS[:-1], "p0"]}, "/columns/63", "This column is named twice."),
        ({"columns": PIXELS[:3]}, "/columns", "Must have 4 or more items."),
        ({"width": 1}, "/width", "Must be at least 2."),
    ],
)
def test_pictures_of_a_bad_size_are_refused_by_name(client, dataset, picture, at, detail):
    response = client.post("/v1/jobs/train", json=body(dataset, **picture))
    assert response.status_code == 422
    faults = [(fault["pointer"], fault["detail"]) for fault in response.json()["errors"]]
    assert faults == [(f"/preprocessing/basis/0{at}", detail)]
