"""Preparation: learned from training rows alone, the same for a row of training as for the same row from a client."""

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Accepts
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.numerics.row_blocks import BLOCK
from app.ml.numerics.scaling import MAX_MULTIPLIABLE
from app.ml.preparation import flags as flagging
from app.ml.preparation import preparation as preparing
from app.ml.preparation.arrow_columns import Raw, RawColumn
from app.ml.preparation.compiled.columns import grouped, outside, standardise
from app.ml.preparation.flags import RowFlags
from app.ml.preparation.preparation import Preparation, Preprocessing

TYPES = {
    ColumnKind.NUMERIC: pa.float64(),
    ColumnKind.BOOLEAN: pa.bool_(),
    ColumnKind.CATEGORICAL: pa.string(),
    ColumnKind.DATETIME: pa.timestamp("us", "UTC"),
}
TREE = {Accepts.MISSING, Accepts.CATEGORIES}


def table(**columns):
    """Kinds by the first letter of the name: n, b, c, d."""
    kinds = {kind.value[0]: kind for kind in TYPES}
    return pa.table({name: pa.array(values, TYPES[kinds[name[0]]]) for name, values in columns.items()})


def read(rows):
    kinds = {kind.value[0]: kind for kind in TYPES}
    return Raw.read(rows, [RawColumn(name, kinds[name[0]]) for name in rows.column_names])


def fit(rows, train=None, accepts=(), **how):
    return Preparation.fit(
        read(rows), np.arange(rows.num_rows) if train is None else np.array(train), Preprocessing(**how), accepts
    )


def flags(preparation, rows):
    return {(flag.code, flag.column): flag.rows.tolist() for flag in preparation.prepared(preparation.raw(rows))[0]}


NUMBERS = np.random.default_rng(0).normal([0, 1e6, -3], [1, 250, 1e-6], (40, 3))


def numbers(values):
    return table(**{f"n{j}": pa.array(column, from_pandas=True) for j, column in enumerate(values.T)})


@pytest.mark.parametrize(("scaling", "oracle"), [("standard", StandardScaler()), ("minmax", MinMaxScaler())])
def test_scaling_is_that_of_the_oracle(scaling, oracle):
    rows = numbers(NUMBERS)
    preparation = fit(rows, range(30), scaling=scaling)
    expected = oracle.fit(NUMBERS[:30]).transform(NUMBERS)
    np.testing.assert_allclose(preparation.matrix(preparation.raw(rows)), expected, rtol=1e-8, atol=1e-9)


def test_without_scaling_numbers_stay():
    preparation = fit(numbers(NUMBERS), scaling="none")
    np.testing.assert_array_equal(preparation.matrix(preparation.raw(numbers(NUMBERS))), NUMBERS)


@pytest.mark.parametrize("strategy", ["mean", "median"])
def test_imputation_is_that_of_the_oracle(strategy):
    holes = NUMBERS.copy()
    holes[np.random.default_rng(1).random(holes.shape) < 0.3] = np.nan
    preparation = fit(numbers(holes), imputation=strategy, scaling="none")
    expected = SimpleImputer(strategy=strategy).fit_transform(holes)
    np.testing.assert_allclose(preparation.matrix(preparation.raw(numbers(holes))), expected, rtol=1e-14)


def test_units_do_not_matter_after_scaling():
    """B4.11: kilometres or millimetres."""
    km, mm = (fit(numbers(NUMBERS * unit)) for unit in (1, 2.0**20))
    np.testing.assert_allclose(
        km.matrix(km.raw(numbers(NUMBERS))), mm.matrix(mm.raw(numbers(NUMBERS * 2.0**20))), rtol=1e-12
    )


def test_levels_are_one_hot_as_the_oracle_has_them():
    words = ["b", "a", "c", "a", "b"]
    preparation = fit(table(c=words))
    later = [*words, "never"]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit([[w] for w in words])
    x = preparation.matrix(preparation.raw(table(c=later)))
    np.testing.assert_array_equal(x, encoder.transform([[w] for w in later]))
    assert preparation.layout.names == ("c=a", "c=b", "c=c")
    assert preparation.inputs[0].levels == ["a", "b", "c"]


def test_different_categories_are_as_far_apart_as_two_rows_in_a_standardised_number():
    """Their squared distance 2 is the mean of those of all pairs of rows, (a − b)² = 2 of variance 1."""
    rows = table(n=np.random.default_rng(1).normal(size=400), c=["red", "blue"] * 200)
    preparation = fit(rows)
    x = preparation.matrix(preparation.raw(rows))
    squares = (x[:, None] - x) ** 2
    assert squares[:, :, 0].mean() == pytest.approx(2)
    assert set(np.unique(squares[:, :, 1:].sum(axis=2))) == {0.0, 2.0}
    assert set(np.unique(np.sqrt(squares[:, :, 1:]).sum(axis=2))) == {0.0, 2.0}


def test_rare_levels_become_one_as_the_oracle_has_them():
    words = ["a"] * 5 + ["b"] * 4 + ["c", "d"]
    preparation = fit(table(c=words), max_levels=3)
    encoder = OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist", sparse_output=False)
    later = ["a", "b", "c", "d", "never"]
    expected = encoder.fit([[w] for w in words]).transform([[w] for w in later])
    np.testing.assert_array_equal(preparation.matrix(preparation.raw(table(c=later))), expected)
    assert preparation.layout.names == ("c=a", "c=b", "c=(other)")
    assert flags(preparation, table(c=later)) == {("unseen_category", "c"): [2, 3, 4]}


def test_equally_frequent_levels_are_kept_in_code_point_order():
    assert fit(table(c=["é", "z", "a", "B"]), max_levels=3).inputs[0].levels == ["B", "a"]


def test_missing_categories_have_a_level_of_their_own():
    preparation = fit(table(c=["a", None, "b"]))
    x = preparation.matrix(preparation.raw(table(c=[None, "a", "never"])))
    np.testing.assert_array_equal(x, [[0, 0, 1], [1, 0, 0], [0, 0, 0]])
    assert preparation.layout.names == ("c=a", "c=b", "c=(missing)")
    assert flags(preparation, table(c=[None, "a", "never"])) == {("unseen_category", "c"): [2]}


def test_a_category_missing_for_the_first_time_is_flagged():
    preparation = fit(table(c=["a", "b"]))
    assert not preparation.matrix(preparation.raw(table(c=[None]))).any()
    assert flags(preparation, table(c=[None, "a", "c"])) == {
        ("missing_category", "c"): [0],
        ("unseen_category", "c"): [2],
    }


def test_booleans_are_numbers():
    preparation = fit(table(b=[True, False, None, True]), scaling="none")
    np.testing.assert_allclose(preparation.matrix(preparation.raw(table(b=[False, None, True])))[:, 0], [0, 2 / 3, 1])
    assert preparation.inputs[0].minimum is None


def test_datetimes_are_seconds_in_utc():
    moment = datetime(2001, 9, 9, 1, 46, 40, 500_000, tzinfo=UTC)
    preparation = fit(table(d=[moment, None]), scaling="none")
    assert preparation.raw(table(d=[moment])).item() == 1e9 + 0.5
    assert preparation.inputs[0].maximum == 1e9 + 0.5


def test_constant_columns_become_zero():
    rows = table(n_same=[7.5] * 3, n_none=[None] * 3, c_none=[None] * 3, n=[1, 2, 3])
    for scaling in ("standard", "minmax"):
        preparation = fit(rows, scaling=scaling)
        x = preparation.matrix(preparation.raw(rows))
        assert np.isfinite(x).all()
        np.testing.assert_array_equal(x[:, :2], 0)


def test_a_value_beyond_training_is_flagged():
    preparation = fit(table(n=[1, 2, 3]))
    assert flags(preparation, table(n=[0.5, 1, 3, 3.5, None])) == {
        ("outside_range", "n"): [0, 3],
        ("imputed", "n"): [4],
    }


def test_only_training_rows_teach():
    rows = table(n=[1, 2, 3, 1e9, None], c=["a", "a", "b", "c", None])
    assert fit(rows, [0, 1, 2]).inputs == fit(rows.slice(0, 3)).inputs
    preparation = fit(rows, [0, 1, 2])
    assert preparation.layout.names == ("n", "c=a", "c=b")
    assert flags(preparation, rows) == {
        ("outside_range", "n"): [3],
        ("imputed", "n"): [4],
        ("unseen_category", "c"): [3],
        ("missing_category", "c"): [4],
    }


def test_what_takes_categories_and_holes_gets_the_raw_matrix():
    rows = table(n=[1, None, 3], c=["a", "b", None])
    preparation = fit(rows, accepts=TREE)
    x = preparation.matrix(preparation.raw(table(n=[5, None], c=["never", "b"])))
    np.testing.assert_array_equal(x, [[5, np.nan], [np.nan, 1]])
    assert preparation.layout.levels.tolist() == [0, 2]
    assert flags(preparation, table(n=[5, None], c=["never", "b"])) == {
        ("unseen_category", "c"): [0],
        ("outside_range", "n"): [0],
    }


def test_what_takes_holes_alone_gets_them_beside_indicators():
    rows = table(n=[1, None, 3], c=["a", "b", None])
    preparation = fit(rows, accepts={Accepts.MISSING}, scaling="none")
    np.testing.assert_array_equal(
        preparation.matrix(preparation.raw(rows)), [[1, 1, 0, 0], [np.nan, 0, 1, 0], [3, 0, 0, 1]]
    )


def test_infinities_are_refused_by_their_place():
    with pytest.raises(InvalidData) as refusal:
        read(table(**{"n/x": [1, np.inf, 2, -np.inf]}))
    assert [fault.pointer for fault in refusal.value.faults] == ["/rows/1/n~1x", "/rows/3/n~1x"]


def test_categories_in_several_chunks_are_one_column():
    rows = pa.concat_tables([table(c=["b", None]), table(c=["a", "b"])])
    preparation = fit(rows)
    np.testing.assert_array_equal(
        preparation.matrix(preparation.raw(rows)), [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
    )


CELLS = st.tuples(
    st.none() | st.floats(-1e6, 1e6), st.none() | st.booleans(), st.none() | st.sampled_from("abcdefg"),
)  # fmt: skip


@pytest.mark.parametrize("accepts", [(), TREE, {Accepts.MISSING}])
@given(st.lists(CELLS, min_size=2, max_size=25), st.integers(2, 5), st.data())
def test_a_row_is_prepared_alike_in_training_and_for_a_client(accepts, cells, limit, data):
    rows = table(n=[c[0] for c in cells], b=[c[1] for c in cells], c=[c[2] for c in cells])
    picked = data.draw(st.lists(st.integers(0, len(cells) - 1), min_size=1, unique=True))
    raw = read(rows)
    preparation = Preparation.fit(raw, np.array(picked), Preprocessing(max_levels=limit), accepts)
    together = preparation.of(raw, np.arange(len(cells)))
    alone = [preparation.matrix(preparation.raw(rows.slice(i, 1))) for i in range(len(cells))]
    np.testing.assert_array_equal(together, np.concatenate(alone))
    assert together.shape[1] == preparation.layout.width == len(preparation.layout.names)
    assert len(preparation.layout.levels) == preparation.layout.width


EDGES = [-0.5, -0.0, 0.0, 5e-324, 1.5, 3.0, np.nextafter(3.0, 4.0), -5e-324, 1e308, np.nan]
PAIRS = numbers(np.array([[0.0, 0.0], [3.0, 3.0]]))


@contextmanager
def compiled(*, ready):
    """Whether there is compiled code at hand, which is used then."""
    with pytest.MonkeyPatch.context() as patched:
        for module, kernel in ((flagging, outside), (flagging, grouped), (preparing, standardise)):
            patched.setattr(module, kernel.__name__, SimpleNamespace(ready=ready, lean=kernel.compiled))
        yield


@pytest.mark.parametrize("ready", [False, True])
def test_a_number_missing_for_the_first_time_is_flagged_where_nothing_is_imputed(ready):
    complete, holed = fit(table(n=[1, 2], b=[True, False]), accepts=TREE), fit(table(n=[1, None]), accepts=TREE)
    later = table(n=[None, 1, 9], b=[True, None, True])
    unknown = replace(complete, inputs=tuple(one.model_copy(update={"complete": None}) for one in complete.inputs))
    with compiled(ready=ready):
        assert flags(complete, later) == {
            ("outside_range", "n"): [2],
            ("missing_number", "n"): [0],
            ("missing_number", "b"): [1],
        }
        for preparation in (holed, unknown):
            assert flags(preparation, later) == {("outside_range", "n"): [2]}


@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("accepts", [(), TREE, {Accepts.MISSING}])
@given(values=st.lists(st.tuples(*[st.sampled_from(EDGES)] * 2), min_size=1, max_size=5))
def test_rows_are_prepared_alike_alone_and_beside_a_doubtful_one(ready, accepts, values):
    """Rows of no doubt take a shorter way, and one that is shorter still with compiled code."""
    preparation = fit(PAIRS, accepts=accepts)
    raw = np.array(values)
    with compiled(ready=ready):
        found, x = preparation.prepared(raw)
    doubtful, among = preparation.prepared(np.vstack([raw, [np.nan, np.nan], [9.0, 9.0]]))
    inner = {(flag.code, flag.column, row) for flag in doubtful for row in flag.rows.tolist() if row < len(raw)}
    assert {(flag.code, flag.column, row) for flag in found for row in flag.rows.tolist()} == inner
    assert x.tobytes() == among[: len(raw)].tobytes() == preparation.matrix(raw).tobytes()
    assert x.flags.c_contiguous


@pytest.mark.parametrize("ready", [False, True])
@given(values=st.lists(st.tuples(*[st.sampled_from(EDGES)] * 2), min_size=1, max_size=5))
def test_what_lies_outside_the_range_is_flagged(ready, values):
    """To the last bit, cell by cell, whether or not there is compiled code to ask."""
    expected = {}
    for column in range(2):
        for row, cells in enumerate(values):
            if np.isnan(cells[column]):
                expected.setdefault(("imputed", f"n{column}"), []).append(row)
            elif not 0 <= cells[column] <= 3:
                expected.setdefault(("outside_range", f"n{column}"), []).append(row)
    with compiled(ready=ready):
        assert flags(fit(PAIRS), numbers(np.array(values))) == expected


@given(st.lists(st.tuples(*[st.sampled_from(EDGES)] * 3), max_size=5), st.integers(1, 3))
def test_the_kernels_of_columns_are_what_they_say(values, together):
    """So many rows are taken together, and the last of them may be fewer."""
    values = np.array(values).reshape(-1, 3)
    first, last = np.array([0.0, -np.inf, -0.0]), np.array([3.0, np.inf, 0.0])
    offset, scale = np.array([1.0, -1e-300, 0.1]), np.array([3.0, 1e-10, 0.7])
    ends, units = ([np.tile(each, together) for each in pair] for pair in ((first, last), (offset, scale)))
    expected = (first <= values) & (values <= last)
    for call in (outside, outside.python):
        inside = np.empty(values.shape, np.bool_)
        assert call(values, *ends, inside) == (~expected).sum()
        np.testing.assert_array_equal(inside, expected)
        inside[...] = False
        x = np.empty(values.shape)
        with np.errstate(over="ignore"):
            whole = standardise if call is outside else standardise.python
            assert whole(values, *ends, inside, *units, x) == (~expected).sum()
            assert x.tobytes() == ((values - offset) / scale).tobytes()
        np.testing.assert_array_equal(inside, expected)


FIRST, SECOND = st.sampled_from([-1.0, 0.0, 7.0, np.nan]), st.sampled_from([0.0, 5.0, np.nan])
CODED = st.tuples(FIRST, SECOND, st.booleans(), st.booleans())


@given(st.lists(CODED, min_size=1, max_size=4), st.integers(0, 5), st.data())
def test_doubts_are_grouped_alike_with_and_without_compiled_code(columns, rows, data):
    """The first of a column is the code of what is no level, of none for numbers; then what stands in it."""
    absent, missing, fills = (np.array([c[i] for c in columns]) for i in (0, 2, 3))
    values = np.array([[data.draw(st.sampled_from([a, b, np.nan])) for a, b, *_ in columns] for _ in range(rows)])
    values = values.reshape(rows, len(columns))
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=values.size, max_size=values.size)), np.bool_)
    inside = inside.reshape(values.shape)
    inputs = [InputColumn(name=f"c{i}", kind="numeric", nullable=True) for i in range(len(columns))]
    result = []
    for ready in (False, True):
        with compiled(ready=ready):
            found = RowFlags.about(inputs, absent, missing, fills).of(values, inside, int((~inside).sum()))
        result.append([(flag.code, flag.column, flag.rows.tolist()) for flag in found])
    assert result[0] == result[1]
    cells = {(column, row) for _, column, own in result[0] for row in own}
    assert len(cells) == sum(len(own) for *_, own in result[0]) <= (~inside).sum()


def test_a_raw_matrix_of_other_inputs_is_refused():
    with pytest.raises(ValueError, match="each input"):
        fit(PAIRS).prepared(np.zeros((4, 3)))


def test_without_a_range_no_number_is_outside():
    preparation = fit(PAIRS)
    inputs = [column.model_copy(update={"minimum": None, "maximum": None}) for column in preparation.inputs]
    preparation = replace(preparation, inputs=tuple(inputs))
    found, _ = preparation.prepared(np.array([[-1e300, np.inf], [1.0, np.nan]]))
    assert [(flag.code, flag.column, flag.rows.tolist()) for flag in found] == [("imputed", "n1", [1])]


@pytest.mark.parametrize("accepts", [(), TREE])
def test_the_order_of_the_numbers_in_memory_plays_no_part(accepts):
    preparation = fit(numbers(NUMBERS), accepts=accepts)
    for raw in (np.asfortranarray(NUMBERS), np.repeat(NUMBERS, 2, axis=1)[:, ::2]):
        found, x = preparation.prepared(raw)
        assert (found, x.tobytes()) == ((), preparation.matrix(NUMBERS).tobytes())
        assert x.flags.c_contiguous


def test_rows_beyond_a_block_are_prepared_as_those_within():
    preparation = fit(numbers(NUMBERS))
    many = np.tile(NUMBERS, (400, 1))
    assert many.size > BLOCK
    assert preparation.prepared(many)[1].tobytes() == np.tile(preparation.prepared(NUMBERS)[1], (400, 1)).tobytes()


@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("more", [{}, {"c": ["a", "b", "a"]}])
def test_a_number_beyond_all_proportion_stays_a_number(ready, more):
    preparation = fit(table(n=[0.0, 1e-300, 2e-300], **more), scaling="minmax")
    rows = table(n=[1e308, -1e308, None], **more)
    with compiled(ready=ready):
        _, x = preparation.prepared(preparation.raw(rows))
        _, alone = preparation.prepared(preparation.raw(rows.slice(0, 1)))
    assert x[:, 0].tolist() == [MAX_MULTIPLIABLE, -MAX_MULTIPLIABLE, 0.5]
    assert alone[0, 0] == MAX_MULTIPLIABLE


@pytest.mark.parametrize(("values", "how", "advice"), [
    ([1e200, 0.0], {"scaling": "none"}, "preprocessing.scaling"),
    ([1.7e308, -1.7e308, -1.7e308], {"scaling": "standard"}, "divide"),
    ([1.7e308, -1.7e308, 0.0], {"scaling": "minmax"}, "divide"),
])  # fmt: skip
def test_numbers_too_large_to_learn_from_are_refused(values, how, advice):
    rows = table(n=values)
    with pytest.raises(InvalidData, match=f"'n'.*{advice}"):
        fit(rows, **how)
    assert fit(rows, accepts=TREE, **how).matrix(np.array([values]).T).ravel().tolist() == values
