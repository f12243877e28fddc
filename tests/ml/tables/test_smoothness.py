"""B2.8: near rows have like values, or they do not, in data of which it is known."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.tables import smoothness
from app.ml.tables.smoothness import SampledColumn


def of(**columns):
    return smoothness.smoothness({name: SampledColumn.of(pa.array(cells)) for name, cells in columns.items()})


def rng(seed=0):
    return np.random.default_rng(seed)


def test_by_hand():
    """On a line the nearest of 1, 2, 4, 8, … is the one before: mean differences beside those of all pairs."""
    x = 2.0 ** np.arange(12)
    y = rng().permutation(np.arange(12.0))
    near = np.abs(y - np.concatenate((y[1:2], y[:-1])))
    every = np.abs(y[:, None] - y)[~np.eye(12, dtype=bool)]
    result = of(x=x, y=y)["y"]
    assert result.value == pytest.approx(1 - near.mean() / every.mean(), rel=1e-12)
    assert (result.n, result.lower < result.value < result.upper) == (12, True)


def test_leaps_and_none():
    x, z = rng().uniform(-2, 2, (2, 250))
    found = of(x=x, z=z, smooth=np.sin(x) + z, noise=rng(1).normal(size=250))
    assert found["smooth"].value > 0.5
    assert found["noise"].lower < 0 < found["noise"].upper


def test_classes_agree_or_not():
    x = rng().normal(size=200)
    found = of(x=x, side=[str(one > 0) for one in x], coin=rng(2).random(200) > 0.5)
    assert found["side"].value > 0.9
    assert found["coin"].lower < 0 < found["coin"].upper


def test_neither_units_nor_order_nor_missing_cells_matter():
    x, z, noise = rng().normal(size=(3, 120))
    plain = of(x=x, z=z, y=x + 0.3 * noise)["y"].value
    assert of(z=-7 * z, y=1e300 * (x + 0.3 * noise), x=1e-3 * x)["y"].value == pytest.approx(plain, abs=1e-9)
    gappy = [None if i % 9 == 0 else value for i, value in enumerate(x.tolist())]
    assert of(x=gappy, z=z, y=x + 0.3 * noise)["y"].value == pytest.approx(plain, abs=0.2)
    assert of(x=x, z=z, y=[None] * 20 + (x + 0.3 * noise).tolist()[20:])["y"].n == 100


def test_intervals_hold_zero_where_there_is_nothing():
    """As often as they say, about: rows share neighbours, also those that are all equally near."""
    random, held = rng(3), []
    for _ in range(150):
        groups, y = random.integers(0, 4, 100).astype(str), random.normal(size=100)
        for others in ({"x": random.normal(size=100)}, {"group": groups}):
            result = of(**others, y=y)["y"]
            held.append(result.lower <= 0 <= result.upper)
    assert 0.88 <= np.mean(held) <= 0.98


def test_nothing_is_reported_of_nothing():
    assert of(x=np.zeros(50), y=np.arange(50.0)) == {}
    assert of(x=np.arange(9.0), y=np.arange(9.0)) == {}
    assert set(of(x=np.arange(12.0), y=[1.0, 2.0] + [None] * 10, z=np.arange(12.0))) == {"x", "z"}
