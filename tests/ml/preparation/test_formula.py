"""The language of formulas: Python's values for Python's formulas, a place for every fault, and no way out of it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ml.preparation.formula import MAX_DEPTH, MAX_LENGTH, Misread, columns, evaluate, parse, quoted

X, Y = np.array([0.5, 2.0, -3.0]), np.array([4.0, -1.0, 0.25])
NAMES = {"min": np.minimum, "max": np.maximum, "log": np.log, "exp": np.exp, "abs": np.abs, "tanh": np.tanh}


def value(text, **given):
    return evaluate(parse(text), given or {"x": X, "y": Y})


@pytest.mark.parametrize(
    "text",
    [
        "x + y * 2 - 1",
        "-x ** 2",
        "2 ** -x ** 2",
        "x - y - 1",
        "x / y / 2",
        "(x + y) * (x - y)",
        "+x - -y",
        "x ** 3 + x ** -2 + x ** 0",
        "tanh(x ** 3) + exp(-abs(y))",
        "min(x, y, 1) + max(x, -y)",
        ".5e1 * x + 1. + 2e-3",
    ],
)
def test_means_what_it_means_in_python(text):
    expected = eval(
        text,
        {
            "__builtins__": {},
            "min": lambda *a: np.minimum.reduce(np.broadcast_arrays(*a)),
            "max": lambda *a: np.maximum.reduce(np.broadcast_arrays(*a)),
            "tanh": np.tanh,
            "exp": np.exp,
            "abs": np.abs,
        },
        {"x": X, "y": Y},
    )
    np.testing.assert_allclose(value(text), expected, rtol=1e-15)


@pytest.mark.parametrize("name", ["log", "log10", "exp", "sqrt", "sin", "cos", "tan", "tanh", "abs"])
def test_every_function_is_the_usual_one(name):
    usual = {"abs": abs}.get(name) or getattr(math, name)
    assert value(f"{name}(x)", x=np.array([0.7]))[0] == pytest.approx(usual(0.7), rel=1e-15)


@pytest.mark.parametrize("name", ["horse power", "log", "π", "a`b", "1st", "x**2", "“q”", "größe"])
def test_any_name_can_be_written(name):
    text = f"2 * {quoted(name)} + 1"
    assert columns(parse(text)) == [name]
    np.testing.assert_array_equal(value(text, **{name: X}), 2 * X + 1)


def test_columns_are_reported_once_in_order():
    assert columns(parse("b + a * b + log(`a`)")) == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 1),
        ("x +", 4),
        ("x y", 3),
        ("x ** ", 6),
        ("(x", 3),
        ("log(x", 6),
        ("log()", 5),
        ("log(x, y)", 1),
        ("max(x)", 1),
        ("sinh(x)", 1),
        ("x; y", 2),
        ("x.__class__", 2),
        ("__import__('os')", 12),
        ("x[0]", 2),
        ("lambda: 1", 7),
        ("'x'", 1),
        ("x and y", 3),
        ("x == y", 3),
        ("`x", 1),
        ("``", 1),
        ("1e999", 1),
        ("٣ + x", 1),
        ("x // y", 4),
        ("x, y", 2),
        ("\x00", 1),
    ],
)
def test_every_fault_has_its_place(text, position):
    with pytest.raises(Misread, match=f"^At character {position}:"):
        parse(text)


@pytest.mark.parametrize("text", ["(" * 400 + "x" + ")" * 400, "-" * 999 + "x", "**".join("x" * 300), "log(" * 200])
def test_depth_is_bounded(text):
    with pytest.raises(Misread, match=str(MAX_DEPTH)):
        parse(text)


def test_length_is_bounded_and_long_chains_are_no_depth():
    with pytest.raises(Misread):
        parse("x" * (MAX_LENGTH + 1))
    assert value("x" + "+x" * 499)[0] == 250


@pytest.mark.parametrize("text", ["log(x)", "sqrt(x)", "1 / (x + 1)", "10 ** (400 + x)", "x ** 0.5", "1e308 * 10 * x"])
def test_what_does_not_exist_is_missing(text):
    """Domain faults and overflow alike; nothing is reported on stderr."""
    with np.errstate(all="raise"):
        found = value(text, x=np.array([-1.0, np.nan, 1e-3]))
    assert np.isnan(found[:2]).all()


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=70))
def test_a_row_has_the_same_bits_alone_and_in_company(values):
    x = np.array(values)
    for text in (
        "log(abs(x)) + exp(x / 9) * sin(x)",
        "cos(x) ** 7 + tan(x) - tanh(x)",
        "sqrt(abs(x)) ** 1.5 + 1 / x + log10(x)",
    ):
        together = value(text, x=x)
        alone = np.concatenate([value(text, x=x[i : i + 1].copy()) for i in range(len(x))])
        assert together.tobytes() == alone.tobytes()


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.text("x1 .+-*/(),e`logmax\n", max_size=30) | st.text(max_size=20))
def test_any_text_is_a_formula_or_misread(text):
    try:
        formula = parse(text)
    except Misread:
        return
    assert evaluate(formula, dict.fromkeys(columns(formula), X)).shape in {(), (3,)}
