"""Categories encoded by the target: the means by their definition, no row's own target in what it is learned by."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from app.base.errors import CorruptModel, InvalidRequest
from app.ml.contract.columns import ColumnKind, InputColumn, TableColumn
from app.ml.models.header import read_header
from app.ml.models.member_view import View, common
from app.ml.models.model import decode, encode
from app.ml.preparation.arrow_columns import Raw, RawColumn
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.request import Preprocessing
from app.ml.preparation.target_encoding import Outcome
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

TARGET = {"categories": "target", "max_levels": 5}


def towns(rows, levels, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    names = np.char.add("town ", rng.integers(0, levels, rows).astype(str)).astype(object)
    names[rng.random(rows) < missing] = None
    return names


def prepared(names, y, classes=(), accepts=(), rows=None, **how):
    raw = Raw.read(pa.table({"town": pa.array(names, pa.string())}), [RawColumn("town", ColumnKind.CATEGORICAL)])
    rows = np.arange(len(names)) if rows is None else rows
    how = Preprocessing(**{**TARGET, "scaling": "none", **how})
    return raw, Preparation.fit(raw, rows, how, accepts, Outcome.of(y[rows], classes))


def shrunken(names, y, expected):
    """The means of a random effect, plainly: of these towns, from these rows."""
    groups = {name: y[names == name] for name in set(names)}
    groups = {name: values for name, values in groups.items() if values.size}
    within = sum(((values - values.mean()) ** 2).sum() for values in groups.values()) / (y.size - len(groups))
    squares = sum(values.size * (values.mean() - y.mean()) ** 2 for values in groups.values())
    spread = y.size - sum(values.size**2 for values in groups.values()) / y.size
    between = max(0.0, (squares - (len(groups) - 1) * within) / spread)

    def mean(name):
        if name not in groups:
            return y.mean()
        share = groups[name].size * between / (groups[name].size * between + within)
        return share * groups[name].mean() + (1 - share) * y.mean()

    return np.array([mean(name) for name in expected])


def noisy(rows=300, levels=20, seed=0, missing=0.1):
    names = towns(rows, levels, seed, missing)
    rng = np.random.default_rng(seed + 1)
    effect = {name: rng.normal() for name in sorted(map(str, set(names)))}
    return names, np.array([effect[str(name)] for name in names]) + rng.normal(size=rows)


@pytest.mark.parametrize("accepts", [(), ("missing", "categories")])
def test_new_rows_get_the_shrunken_means_of_all_training_rows(accepts):
    names, y = noisy()
    _, preparation = prepared(names, y, accepts=accepts)
    new = pa.table({"town": pa.array([*names[:50], "elsewhere", None])})
    x = preparation.matrix(preparation.raw(new))
    assert preparation.layout.names == ("town=(target)",)
    assert_allclose(x[:, 0], shrunken(names, y, [*names[:50], "elsewhere", None]))
    flags, again = preparation.prepared(preparation.raw(new))
    assert [(flag.code, flag.rows.tolist()) for flag in flags] == [("unseen_category", [50])]
    assert_array_equal(again, x)


def test_training_rows_get_means_of_other_rows_only():
    """Another target of one row changes nothing of what it is learned by; and much of what the others are."""
    names, y = noisy()
    raw, preparation = prepared(names, y)
    x = preparation.of(raw, np.arange(300))[:, 0]
    changed = y.copy()
    changed[7] += 100
    other_raw, other = prepared(names, changed)
    again = other.of(other_raw, np.arange(300))[:, 0]
    assert again[7] == pytest.approx(x[7])
    assert (np.abs(again - x) > 1e-9).mean() > 0.5
    served = other.of(raw, np.arange(300))[:, 0]  # of another table: none of its rows was learned from
    assert served[7] != pytest.approx(x[7])


def test_copies_of_a_row_are_not_encoded_by_each_other():
    names, y = noisy(missing=0.0)
    rows = np.repeat(np.arange(100), 3)
    raw, preparation = prepared(names, y, rows=rows)
    changed = np.where(np.arange(300) == 7, y + 100, y)
    other_raw, other = prepared(names, changed, rows=rows)
    assert other.of(other_raw, np.array([7]))[0, 0] == pytest.approx(preparation.of(raw, np.array([7]))[0, 0])


def test_rows_beside_the_training_rows_are_encoded_like_new_ones():
    names, y = noisy()
    raw, preparation = prepared(names, y, rows=np.arange(0, 300, 2))
    others = np.arange(1, 300, 2)
    assert_array_equal(
        preparation.of(raw, others), preparation.matrix(preparation.raw(pa.table({"town": pa.array(names[others])})))
    )


def test_each_of_three_classes_has_a_share():
    names, y = noisy()
    codes = np.searchsorted([-0.5, 0.5], y) * 1.0
    _, preparation = prepared(names, codes, classes=("a", "b", "c"))
    x = preparation.matrix(preparation.raw(pa.table({"town": pa.array(names)})))
    assert preparation.layout.names == ("town=(target a)", "town=(target b)", "town=(target c)")
    for k in range(3):
        assert_allclose(x[:, k], shrunken(names, (codes == k) * 1.0, names))


def test_columns_of_few_categories_keep_their_indicators():
    names, y = noisy(missing=0.0)
    _, preparation = prepared(names, y, max_levels=20)
    assert preparation.layout.width == 20
    assert not preparation.encodings


def fields(rows, levels, noise=1.0, effect=1.0, seed=0):
    rng = np.random.default_rng(seed)
    town, size = rng.integers(0, levels, rows), rng.normal(size=rows)
    price = effect * rng.normal(size=levels)[town] + size + noise * rng.normal(size=rows)
    return pa.table({"town": np.char.add("t", town.astype(str)), "size": size, "price": price})


def trained(table, categories, algorithm="ridge", **more):
    spec = {"algorithm": {"name": algorithm}, "target": "price", "preprocessing": {"categories": categories}, **more}
    columns = [
        TableColumn("town", "categorical", 0, len(table["town"].unique())),
        *(TableColumn(name, "numeric", 0, table.num_rows) for name in ("size", "price")),
    ]
    return train(plan(TrainSpec.model_validate(spec), columns, table.num_rows), table, data_digest="sha256:0")


def r2(trained):
    return next(metric.value for metric in trained.report.test if metric.name == "r2")


@pytest.mark.parametrize("algorithm", ["ridge", "decision_tree", "knn"])
def test_many_categories_are_learned_from_and_served(algorithm):
    """Of 400 towns levels keep 64; half of the variance that is left is between the towns."""
    table = fields(4000, 400, noise=0.5)
    ours = trained(table, "target", algorithm)
    assert r2(ours) > r2(trained(table, "levels", algorithm)) + 0.1
    model = decode(ours.blob)
    assert encode(model) == ours.blob
    new = pa.table({"town": ["t7", "nowhere", None], "size": [0.0, 0.0, 0.0]})
    found = model.predict(new)
    assert np.isfinite(found.values).all()
    assert [flag.rows.tolist() for flag in found.flags if flag.column == "town"] == [[1], [2]]


def test_a_member_of_a_committee_sees_its_own_encoding():
    names, y = noisy()
    _, preparation = prepared(names, y)
    team = common([preparation.inputs, [InputColumn(name="town", kind="categorical", levels=["elsewhere"])]])
    view, arrays = View.of(preparation, "none", team, np.zeros(0, np.intp), 0), {}
    again = View.unpacked(view.packed("member", arrays), arrays)
    table = pa.table({"town": pa.array([*names[:40], "elsewhere", "nowhere", None])})
    expected = preparation.matrix(preparation.raw(table))
    assert_array_equal(again.matrix(team.matrix(team.raw(table))), expected)


def test_towns_that_mean_nothing_teach_nothing():
    """With means that include the row's own target a tree would seem to know it, and fail on new rows."""
    ours = trained(fields(3000, 1000, effect=0.0), "target", "ridge")
    assert r2(ours) > 0.45  # half of the variance is that of the size


def test_a_reader_of_the_format_before_refuses_what_it_would_misread():
    plain, encoded = (trained(fields(300, 100), how).blob for how in ("levels", "target"))
    assert b'\\"format\\":6' in bytes(plain)
    assert b'\\"format\\":7' in bytes(encoded)
    assert read_header(encoded).algorithm == "ridge"


@pytest.mark.parametrize("wrong", ['\\"place\\":9', '\\"place\\":1', '\\"place\\":-1'])
def test_an_encoding_of_another_input_is_refused(wrong):
    blob = bytes(trained(fields(300, 100), "target").blob)
    changed = blob.replace(b'\\"place\\":0', wrong.encode())
    assert changed != blob
    length = int.from_bytes(blob[:8], "little") + len(changed) - len(blob)
    with pytest.raises(CorruptModel):
        decode(length.to_bytes(8, "little") + changed[8:])


def planned(name="ridge", **spec):
    columns = (TableColumn("town", "categorical", 0, 400), TableColumn("price", "numeric", 0, 1000))
    return plan(TrainSpec.model_validate({"algorithm": {"name": name}, **spec}), columns, 1000)


def test_the_warning_of_many_categories_names_what_can_be_set():
    (result,) = planned(target="price").warnings
    for messages in ("'town' has more than 64 categories", "preprocessing.max_levels", "preprocessing.categories"):
        assert messages in result
    (result,) = planned(target="price", preprocessing={"categories": "target"}).warnings
    assert "mean of the target" in result


def test_without_a_target_nothing_is_encoded_by_it():
    with pytest.raises(InvalidRequest) as refusal:
        planned("kmeans", preprocessing={"categories": "target"})
    assert [fault.pointer for fault in refusal.value.faults] == ["/preprocessing/categories"]
