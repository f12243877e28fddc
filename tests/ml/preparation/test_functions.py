"""Functions of the inputs as columns: the oracle's polynomials, names that are formulas, the way back to raw terms."""

from math import comb

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Accepts
from app.ml.preparation.formula import columns, evaluate, parse
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.request import Preprocessing
from tests.ml.preparation.test_preparation import TREE, flags, numbers, read, table

VALUES = np.random.default_rng(0).normal([0, 1e3, -3], [1, 25, 0.1], (40, 3))
POLYNOMIAL = {"kind": "polynomial"}


def fit(rows, *basis, accepts=(), **how):
    how = Preprocessing.model_validate({"basis": list(basis), **how})
    return Preparation.fit(read(rows), np.arange(rows.num_rows), how, accepts)


def matrix(preparation, rows):
    return preparation.matrix(preparation.raw(rows))


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("interactions", [True, False])
def test_terms_are_those_of_the_oracle(degree, interactions):
    preparation = fit(numbers(VALUES), {**POLYNOMIAL, "degree": degree, "interactions": interactions}, scaling="none")
    oracle = PolynomialFeatures(degree, include_bias=False)
    expected = oracle.fit_transform(VALUES)
    if interactions:
        assert preparation.layout.width == comb(3 + degree, degree) - 1
    else:
        pure = (oracle.powers_ > 0).sum(axis=1) == 1
        expected = expected[:, pure]
    np.testing.assert_allclose(matrix(preparation, numbers(VALUES)), expected, rtol=1e-13)


def test_two_columns_have_six_quadratic_terms():
    """B4.3: (1, x1, x2, x1², x1x2, x2²), the 1 being the intercept."""
    preparation = fit(numbers(VALUES[:, :2]), POLYNOMIAL)
    assert preparation.layout.plain_names == ("n0", "n1", "n0 ** 2", "n0 * n1", "n1 ** 2")
    assert preparation.layout.width + 1 == comb(2 + 2, 2) == 6


@pytest.mark.parametrize("scaling", ["standard", "minmax", "none"])
def test_names_are_formulas_of_the_columns(scaling):
    rows = numbers(VALUES).rename_columns(["n a`b", "n1", "n 2"])
    preparation = fit(
        rows, {**POLYNOMIAL, "degree": 3}, {"kind": "expression", "expression": "n1 / `n 2`"}, scaling=scaling
    )
    offset, scale = preparation.scaling.units
    given = {name: rows[name].to_numpy() for name in rows.column_names}
    x = matrix(preparation, rows)
    for place, name in enumerate(preparation.layout.names[3:], 3):
        formula = parse(name)
        value = evaluate(formula, {read: given[read] for read in columns(formula)})
        np.testing.assert_allclose(x[:, place] * scale[place] + offset[place], value, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("scaling", ["standard", "minmax", "none"])
def test_the_way_back_to_the_tables_own_units(scaling):
    """x = zA + a, with z the inputs, their raw powers, the formulas and the indicators."""
    rows = numbers(VALUES).append_column("c", [["u", "v"] * 20])
    preparation = fit(
        rows, {**POLYNOMIAL, "degree": 3}, {"kind": "expression", "expression": "exp(n0)"}, scaling=scaling
    )
    z = np.column_stack(
        [
            PolynomialFeatures(3, include_bias=False).fit_transform(VALUES),
            np.exp(VALUES[:, 0]),
            [[1, 0], [0, 1]] * 20,
        ]
    )
    assert len(preparation.layout.plain_names) == preparation.layout.width == z.shape[1]
    units = preparation.scaling.affine()
    rebuilt = z @ units.matrix.T.toarray() + units.shift
    np.testing.assert_allclose(rebuilt, matrix(preparation, rows), rtol=1e-6, atol=1e-6)


def test_centred_powers_are_far_from_dependent():
    x = np.linspace(2000, 2020, 21)[:, None]
    raw, centred = (
        np.linalg.cond(matrix(fit(numbers(x), {**POLYNOMIAL, "degree": 3}, scaling=scaling), numbers(x)) - 0)
        for scaling in ("none", "standard")
    )
    assert raw > 1e9
    assert centred < 20


def test_formulas_can_take_the_place_of_their_inputs():
    rows, formulas = (
        table(n=[1, 2, 3], n2=[4, 5, 6], n3=[1, 3, 2]),
        [
            {"kind": "expression", "expression": "log(n)"},
            {"kind": "expression", "expression": "n * n2"},
        ],
    )
    assert fit(rows, *formulas).layout.names == ("n", "n2", "n3", "log(n)", "n * n2")
    assert fit(rows, *formulas, keep_inputs=False).layout.names == ("n3", "log(n)", "n * n2")
    squares = {**POLYNOMIAL, "columns": ["n"]}
    layout = fit(rows, *formulas, squares, keep_inputs=False).layout
    assert layout.plain_names == ("n", "n3", "log(n)", "n * n2", "n ** 2")


@pytest.mark.parametrize("accepts", [(), TREE, {Accepts.MISSING}])
def test_rows_are_prepared_alike_in_training_and_for_a_client(accepts):
    rows = table(n=[1, None, 3, 4.5], n2=[0.1, 0.2, None, 7], c=["a", "b", None, "a"], b=[True, False, None, True])
    basis = ({**POLYNOMIAL, "degree": 3}, {"kind": "expression", "expression": "log(n2) + b"})
    preparation = fit(rows, *basis, accepts=accepts, keep_inputs=False)
    together = preparation.of(read(rows), np.arange(4))
    alone = [matrix(preparation, rows.slice(i, 1)) for i in range(4)]
    np.testing.assert_array_equal(together, np.concatenate(alone))
    layout = preparation.layout
    assert together.shape[1] == layout.width == len(layout.names) == len(layout.levels)
    assert np.isnan(together).any() == bool(accepts)


def test_a_function_of_a_missing_number_is_missing():
    preparation = fit(table(n=[1, 2, 3]), POLYNOMIAL, scaling="none")
    np.testing.assert_allclose(matrix(preparation, table(n=[None])), [[2, 14 / 3]])
    assert flags(preparation, table(n=[None])) == {("imputed", "n"): [0]}


def test_a_function_without_a_value_is_refused_in_training_and_flagged_later():
    log = {"kind": "expression", "expression": "log(n)"}
    with pytest.raises(InvalidData, match=r"log\(n\): 2"):
        fit(table(n=[1, 0, -1, None, 5]), log)
    preparation = fit(table(n=[1, 0, -1, None, 5]), log, undefined="impute", scaling="none")
    assert matrix(preparation, table(n=[0]))[0, 1] == pytest.approx(np.log(5) / 2)
    assert flags(preparation, table(n=[0, 5, None])) == {("imputed", "n"): [2], ("undefined", "log(n)"): [0]}
    with pytest.raises(InvalidData, match="any training row"):
        fit(table(n=[0, -1]), log, undefined="impute")


def test_constant_and_empty_columns_have_powers():
    rows = table(n_same=[7.5] * 3, n_none=[None] * 3, n=[1e300, -1e300, 0])
    preparation = fit(rows, {**POLYNOMIAL, "columns": ["n_same", "n"]})
    assert np.isfinite(matrix(preparation, rows)).all()
