"""Estimated contributions: exact where two columns interact, and their errors hold where more do."""

from itertools import combinations
from math import comb

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import BodyTooLarge, CorruptModel
from app.ml.contract.columns import TableColumn
from app.ml.models import contributions, safetensors_format
from app.ml.models.contributions import contributions_of
from app.ml.models.model import decode, encode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

N = 150
rng = np.random.default_rng(4)
X = rng.normal(size=(N, 4))
TOWN = rng.integers(0, 3, N)
Y = X[:, 0] * X[:, 1] * X[:, 2] + X[:, 3] + TOWN
TABLE = pa.table({
    **{name: X[:, j] for j, name in enumerate("abcd")}, "town": np.array(["u", "v", "w"])[TOWN].tolist(), "y": Y,
    "class": np.where(Y > 1, "high", np.where(Y > 0, "mid", "low")).tolist(),
})  # fmt: skip
KINDS = dict.fromkeys("abcdy", "numeric") | {"town": "categorical", "class": "categorical"}
COLUMNS = [TableColumn(name, KINDS[name], 0, 3) for name in TABLE.column_names]


def blob_of(algorithm, target="y"):
    body = {"target": target, "features": [*"abcd", "town"], "algorithm": algorithm}
    return train(plan(TrainSpec.model_validate(body), COLUMNS, N), TABLE, data_digest="sha256:0").blob


@pytest.fixture(scope="module")
def neighbours():
    return decode(blob_of({"name": "knn"}))


def shapley(model, row):
    """The Shapley values of all subsets, where absent columns are those of the training rows that the model keeps."""
    rows, p = model.background.rows, row.size

    def value(some):
        mixed = rows.copy()
        mixed[:, list(some)] = row[list(some)]
        return model.predict_raw(mixed).values.mean()

    values = {some: value(some) for size in range(p + 1) for some in combinations(range(p), size)}
    found = np.zeros(p)
    for some, before in values.items():
        for j in set(range(p)) - set(some):
            after = values[tuple(sorted((*some, j)))]
            found[j] += (after - before) / (p * comb(p - 1, len(some)))
    return found


def test_the_errors_hold_and_the_parts_add_up(neighbours):
    raw = neighbours.preparation.raw(TABLE.slice(0, 20))
    found = contributions_of(neighbours, raw)
    assert (found.method, found.unit, found.columns) == ("permutations", "target", (*"abcd", "town"))
    np.testing.assert_allclose(found.base + found.values.sum(axis=2), found.raw, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.raw[:, 0], neighbours.predict_raw(raw).values, rtol=1e-12)
    exact = np.array([shapley(neighbours, row) for row in raw])
    ratios = (found.values[:, 0] - exact) / found.standard_errors[:, 0]
    assert np.sqrt((ratios**2).mean()) < 1.2
    assert np.abs(ratios).max() < 4
    assert np.corrcoef(found.values[:, 0].ravel(), exact.ravel())[0, 1] > 0.98


def test_a_row_has_the_same_contributions_among_any_others(neighbours):
    raw = neighbours.preparation.raw(TABLE.slice(0, 5))
    together = contributions_of(neighbours, raw).values
    alone = [contributions_of(neighbours, raw[i : i + 1]).values[0] for i in range(5)]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)


def test_two_columns_that_interact_are_exact():
    """A kernel of degree 2 makes a sum of products of two columns."""
    algorithm = {"name": "svr", "kernel": "poly", "degree": 2}
    body = {"target": "y", "features": list("abcd"), "algorithm": algorithm}
    model = decode(train(plan(TrainSpec.model_validate(body), COLUMNS, N), TABLE, data_digest="sha256:0").blob)
    raw = model.preparation.raw(TABLE.slice(0, 4))
    exact = np.array([shapley(model, row) for row in raw])
    np.testing.assert_allclose(contributions_of(model, raw).values[:, 0], exact, rtol=0, atol=1e-10)


def test_probabilities_of_classes():
    model = decode(blob_of({"name": "knn"}, "class"))
    raw = model.preparation.raw(TABLE.slice(0, 3))
    found = contributions_of(model, raw)
    assert (found.unit, found.scores) == ("probability", ("high", "low", "mid"))
    np.testing.assert_allclose(found.raw, model.predict_raw(raw).probabilities, rtol=1e-12)
    np.testing.assert_allclose(found.values.sum(axis=1), 0, atol=1e-12)  # as probabilities add up to 1


def test_one_request_has_so_many_rows(monkeypatch, neighbours):
    raw = neighbours.preparation.raw(TABLE.slice(0, 5))
    monkeypatch.setattr(contributions, "MAX_EVALUATIONS", 4 * 2 * len(neighbours.background.rows) * 4)
    assert len(contributions_of(neighbours, raw[:4], limited=True).values) == 4
    with pytest.raises(BodyTooLarge, match="at most 4 rows"):
        contributions_of(neighbours, raw, limited=True)


def test_training_rows_are_kept_where_they_are_needed_alone(neighbours):
    assert neighbours.background.rows.shape == (100, 5)
    assert encode(decode(encode(neighbours))) == encode(neighbours)
    assert decode(blob_of({"name": "ridge"})).background.rows is None
    boosted = decode(blob_of({"name": "gradient_boosting"}))
    assert boosted.background.rows.shape == (100, 5)
    assert contributions_of(boosted, boosted.background.rows[:1]).method == "path_dependent"


def test_training_rows_of_other_columns_are_refused(neighbours):
    document, arrays = safetensors_format.read(encode(neighbours))
    for wrong in (np.zeros((100, 4)), np.zeros(5), np.zeros((100, 5), np.float32)):
        with pytest.raises(CorruptModel):
            decode(safetensors_format.write(document, {**arrays, "background.rows": wrong}))
