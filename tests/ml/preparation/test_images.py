"""Features of pictures (LION 3): shift, size and brightness play no part, what is drawn does."""

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError
from sklearn.datasets import load_digits

from app.base.errors import InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.models.golden import check_golden
from app.ml.models.model import decode
from app.ml.preparation.images import Pixels, _barycentre
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from tests.ml.preparation.test_functions import fit, matrix
from tests.ml.preparation.test_preparation import numbers
from tests.ml.training.test_train import run


def features(pictures, strips=4):
    pictures = np.asarray(pictures, float)
    names = tuple(map(str, range(pictures[0].size)))
    with np.errstate(invalid="ignore"):  # as whoever asks for functions does
        return Pixels(pixels=names, width=pictures.shape[2], strips=strips).values(pictures.reshape(len(pictures), -1))


def placed(drawing, top, left, size=24):
    canvas = np.zeros((size, size))
    canvas[top : top + drawing.shape[0], left : left + drawing.shape[1]] = drawing
    return canvas


@pytest.fixture(scope="module")
def drawing():
    return np.random.default_rng(0).choice([0.0, 0.4, 0.9, 1.0], (7, 5), p=[0.4, 0.1, 0.2, 0.3])


def test_a_drawing_that_is_moved_has_the_same_features(drawing):
    found = features([placed(drawing, *at) for at in ((0, 0), (3, 9), (17, 19), (8, 2))])
    np.testing.assert_allclose(found[1:], found[[0, 0, 0]], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("times", [2, 3])
def test_so_has_a_larger_one(drawing, times):
    larger = np.kron(drawing, np.ones((times, times)))
    found = features([placed(drawing, 4, 5), placed(larger, 1, 2)])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-15)


def test_and_a_brighter_or_paler_one(drawing):
    plain = placed(drawing, 4, 5)
    found = features([plain, 250 - 30 * (1 - plain), 1e-3 * plain])
    np.testing.assert_allclose(found[1:], found[[0, 0]], rtol=1e-9, atol=1e-12)


def test_the_barycentre_is_the_mean_place_of_the_ink():
    """xb = Σ g·x/Σ g, of pixels whose middles are at ½, 3/2, …"""
    assert _barycentre(np.array([[0.0, 1.0, 3.0]])) == pytest.approx([(1.5 + 3 * 2.5) / 4])


def test_a_square_and_a_bar_by_hand():
    square, bar = placed(np.ones((4, 4)), 3, 3), placed(np.ones((8, 2)), 1, 6)
    found = features([square, bar], strips=2)
    np.testing.assert_allclose(found[0], [0.5, 0.5, 0.5, 0.5, 0.5, 1])
    np.testing.assert_allclose(found[1], [0.5, 0.5, 0.5, 0.5, 0.8, 20 / (4 * 4)])
    third = features([bar], strips=4)[0]
    np.testing.assert_allclose(third[4:8], [0, 0.5, 0.5, 0], err_msg="a quarter of its length wide")


def test_no_ink_and_a_missing_pixel():
    blank, broken = np.full((5, 5), 7.0), np.eye(5)
    broken[0, 0] = np.nan
    found = features([blank, broken])
    assert (found[0] == 0).all()
    assert np.isnan(found[1]).all()


def test_they_tell_digits_apart_and_stay_with_the_model():
    """One neighbour in 18 features, learned on digits in one place, predicting them in another."""
    x, y = load_digits(return_X_y=True)
    large = np.zeros((600, 12, 12))
    large[:300, :8, :8], large[300:, 3:11, 4:12] = x[:300].reshape(-1, 8, 8), x[300:600].reshape(-1, 8, 8)
    rows = large.reshape(600, -1)
    names = [f"n{i}" for i in range(144)]
    picture = {"kind": "picture", "columns": names, "width": 12}
    preparation = fit(numbers(rows[:300]), picture, keep_inputs=False, scaling="none")
    assert preparation.layout.names[0] == "picture of n0: row 1"
    seen, new = matrix(preparation, numbers(rows[:300])), matrix(preparation, numbers(rows[300:]))
    assert seen.shape == (300, 18)

    def right(known, requested):
        return (y[((requested[:, None] - known) ** 2).sum(axis=2).argmin(axis=1)] == y[300:600]).mean()

    assert right(seen, new) > 0.7
    assert right(rows[:300], rows[300:]) < 0.5


def test_a_model_keeps_them():
    x, y = load_digits(return_X_y=True)
    table = pa.table({f"n{i}": x[:80, i] for i in range(64)} | {"digit": y[:80].astype(str)})
    picture = {"kind": "picture", "columns": [f"n{i}" for i in range(64)], "width": 8}
    trained = run(table, "knn", target="digit", preprocessing={"basis": [picture], "keep_inputs": False})
    assert len(trained.report.columns) == 18
    check_golden(decode(trained.blob), trained.golden)


def test_pixels_that_do_not_fit_are_refused():
    columns = [
        TableColumn(name, kind, 0, 9) for name, kind in (("a", "numeric"), ("b", "boolean"), ("c", "categorical"))
    ]

    def ask(**picture):
        request = {"algorithm": {"name": "kmeans"}, "preprocessing": {"basis": [{"kind": "picture"} | picture]}}
        return plan(TrainSpec.model_validate(request), columns, 9)

    with pytest.raises(ValidationError, match="cut off"):
        ask(columns=["a", "b", "a", "b", "a"], width=2)
    with pytest.raises(InvalidRequest) as refused:
        ask(columns=["a", "b", "c", "d"], width=2)
    assert [fault.pointer[-1] for fault in refused.value.faults] == ["2", "3"]
