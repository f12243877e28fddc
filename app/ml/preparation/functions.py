"""Functions of the inputs as further columns of the raw matrix (LION 3, 4.2, 5.1).

The wide matrix (n, p + f) is the raw one (n, p) with a column per function: the terms of polynomials in the order
of their degree, then of the columns, the values of formulas, the features of pictures, and the parts of dates. A
function of a missing number is missing, and so is one without a value, as the logarithm of 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import comb, prod
from typing import Annotated, Self, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field, model_validator

from app.base.wire import Body
from app.ml.contract.algorithm import Affine, Labels, Matrix
from app.ml.numerics.linear_algebra.solve import near_one
from app.ml.numerics.scaling import Spread
from app.ml.preparation.date_parts import DateParts
from app.ml.preparation.formula import Formula, columns, evaluate, parse, quoted
from app.ml.preparation.images import Pixels
from app.ml.preparation.request import MAX_DEGREE, BasisFunction, Expression, Picture

MOST_COLUMNS = 10_000
"""Functions of one model."""
COARSE = 32
"""A middle is a whole number of this part of its unit, so that subtracting it is exact as a rule."""

Term: TypeAlias = tuple[int, ...]
"""The factors of a product, as ascending numbers of columns: (0, 0, 1) is u₀²u₁."""


class Powers(Body):
    """The terms of degree 2 and more of u = (x − middle)/unit, for some columns x."""

    columns: tuple[str, ...]
    degree: int = Field(ge=2, le=MAX_DEGREE)
    interactions: bool
    middle: tuple[float, ...]
    unit: tuple[Annotated[float, Field(gt=0)], ...]

    @model_validator(mode="after")
    def _sized(self) -> Self:
        if term_count(len(self.columns), self.degree, self.interactions) > MOST_COLUMNS:
            raise ValueError("too many terms")
        if not len(self.columns) == len(self.middle) == len(self.unit) > 0:
            raise ValueError("the parts do not fit together")
        return self

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        count = range(len(self.columns))
        degrees = range(2, self.degree + 1)
        if self.interactions:
            return tuple(term for k in degrees for term in combinations_with_replacement(count, k))
        return tuple((j,) * k for k in degrees for j in count)

    @cached_property
    def names(self) -> list[str]:
        """Names of the terms as formulas of the language."""
        parts = zip(self.columns, self.middle, self.unit, strict=True)
        factors = [
            quoted(name) if (middle, unit) == (0, 1) else f"(({quoted(name)} {_less(middle)}) / {_short(unit)})"
            for name, middle, unit in parts
        ]
        return [_named(term, factors) for term in self.terms]

    @cached_property
    def plain_names(self) -> list[str]:
        """Names of the same terms of x."""
        return [_named(term, [quoted(name) for name in self.columns]) for term in self.terms]

    def values(self, x: Matrix) -> Matrix:
        """(n, f) from the columns (n, m) themselves."""
        levels = [(x - self.middle) / self.unit]
        for parents, factors in self.steps:
            levels.append(levels[-1][:, parents] * levels[0][:, factors])
        return np.concatenate(levels[1:], axis=1)

    @cached_property
    def steps(self) -> list[tuple[Labels, Labels]]:
        """For each degree: which terms of the degree before, and which columns, have its terms as their products."""
        before: dict[Term, int] = {(j,): j for j in range(len(self.columns))}
        steps = []
        for degree in range(2, self.degree + 1):
            level = [term for term in self.terms if len(term) == degree]
            steps.append((np.array([before[t[:-1]] for t in level]), np.array([t[-1] for t in level])))
            before = {term: place for place, term in enumerate(level)}
        return steps

    def expanded(self) -> Iterator[dict[Term, float]]:
        """Each term as a sum of terms of x, () being 1: the binomial theorem for every column."""
        for term in self.terms:
            powers = [(j, term.count(j)) for j in sorted(set(term))]
            parts: dict[Term, float] = {}
            for exponents in product(*(range(k + 1) for _, k in powers)):
                factors = [
                    comb(k, i) * (-self.middle[j]) ** (k - i) / self.unit[j] ** k
                    for (j, k), i in zip(powers, exponents, strict=True)
                ]
                parts[tuple(j for (j, _), i in zip(powers, exponents, strict=True) for _ in range(i))] = prod(factors)
            yield parts


class Formulated(Body):
    """The value of one formula."""

    expression: str

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(columns(self._formula))

    @property
    def names(self) -> list[str]:
        return [self.expression]

    @property
    def plain_names(self) -> list[str]:
        return self.names

    def values(self, x: Matrix) -> Matrix:
        columns_by_name = {name: np.ascontiguousarray(x[:, place]) for place, name in enumerate(self.columns)}
        return evaluate(self._formula, columns_by_name)[:, None]

    @cached_property
    def _formula(self) -> Formula:
        return parse(self.expression)


Function: TypeAlias = Powers | Formulated | Pixels | DateParts


@dataclass(frozen=True)
class Basis:
    inputs: tuple[str, ...]
    functions: tuple[Function, ...] = ()

    @cached_property
    def width(self) -> int:
        """F."""
        return sum(len(function.names) for function in self.functions)

    @cached_property
    def names(self) -> list[str]:
        """Names of the functions, as formulas."""
        return [name for function in self.functions for name in function.names]

    @cached_property
    def plain_names(self) -> list[str]:
        """Names of the wide matrix's columns in the table's own units: powers are those of the values themselves."""
        return [*self.inputs, *(name for function in self.functions for name in function.plain_names)]

    @cached_property
    def partial(self) -> bool:
        """True if a function may have no value where what it reads has one; every date has all its parts."""
        return not all(isinstance(function, DateParts) for function in self.functions)

    def of(self, raw: Matrix) -> Matrix:
        """(n, f) from the raw matrix; NaN where a function has no value."""
        with np.errstate(all="ignore"):
            parts = [function.values(raw[:, self._reads(function)]) for function in self.functions]
        values = np.concatenate(parts, axis=1)
        values[~np.isfinite(values)] = np.nan
        return values

    def wide(self, raw: Matrix) -> Matrix:
        """(n, p + f)."""
        return np.concatenate([raw, self.of(raw)], axis=1) if self.functions else raw

    def undefined(self, raw: Matrix, values: Matrix) -> NDArray[np.bool_]:
        """(n, f): where a function has no value though nothing that it reads is missing. values: `of(raw)`."""
        defined = [~np.isnan(raw[:, self._reads(function)]).any(axis=1) for function in self.functions]
        widths = [len(function.names) for function in self.functions]
        return np.isnan(values) & np.repeat(np.column_stack(defined), widths, axis=1)

    def affine(self) -> Affine:
        """The wide matrix's columns from those of `plain_names`."""
        total = len(self.inputs) + self.width
        rows, places, values, shift = [*range(total)], [*range(total)], [1.0] * total, np.zeros(total)
        start = len(self.inputs)
        for function in self.functions:
            if isinstance(function, Powers):
                home = {term: start + i for i, term in enumerate(function.terms)}
                home |= {(j,): place for j, place in enumerate(self._reads(function).tolist())}
                for row, parts in enumerate(function.expanded(), start):
                    values[row], shift[row] = 0.0, parts.pop((), 0.0)
                    rows += [row] * len(parts)
                    places += [home[term] for term in parts]
                    values += parts.values()
            start += len(function.names)
        return Affine(scipy.sparse.csr_array((values, (rows, places)), shape=(total, total)), shift)

    def _reads(self, function: Function) -> Labels:
        return self._places_of[function.columns]

    @cached_property
    def _places_of(self) -> Mapping[tuple[str, ...], Labels]:
        place = {name: i for i, name in enumerate(self.inputs)}
        return {f.columns: np.array([place[name] for name in f.columns], np.intp) for f in self.functions}


def learned(
    requested: Sequence[BasisFunction], numbers: Sequence[str], spreads: Mapping[str, Spread], *, scaled: bool
) -> tuple[Function, ...]:
    """numbers: the numeric inputs. found: how measured inputs are spread on the training rows."""
    functions: list[Function] = []
    for function in requested:
        if isinstance(function, Expression):
            functions.append(Formulated(expression=function.expression))
            continue
        if isinstance(function, Picture):
            functions.append(Pixels(pixels=tuple(function.columns), width=function.width, strips=function.strips))
            continue
        if function.degree == 1:
            continue  # the columns themselves are there anyway
        names = tuple(function.columns or numbers)
        centres = [_centre(spreads[name]) if scaled else (0.0, 1.0) for name in names]
        middle, unit = zip(*centres, strict=True)
        functions.append(
            Powers(columns=names, degree=function.degree, interactions=function.interactions, middle=middle, unit=unit)
        )
    return tuple(functions)


def term_count(columns: int, degree: int, interactions: bool) -> int:
    """Terms of degree 2 and more: with interactions C(d + p, p) less the constant and the columns themselves.

    >>> term_count(2, 2, True)  # x1², x1x2, x2² of the six quadratic terms
    3
    """
    return comb(columns + degree, degree) - columns - 1 if interactions else columns * (degree - 1)


def _centre(spread: Spread) -> tuple[float, float]:
    """The middle of a range, and a power of two not below half of its length."""
    half = spread.high / 2 - spread.low / 2
    if half == 0:
        return spread.low, 1.0
    unit = 1 / near_one(half)
    return round((spread.low / 2 + spread.high / 2) / unit * COARSE) / COARSE * unit, unit


def _named(term: Term, factors: Sequence[str]) -> str:
    powers = [(factors[j], term.count(j)) for j in sorted(set(term))]
    return " * ".join(factor if k == 1 else f"{factor} ** {k}" for factor, k in powers)


def _less(middle: float) -> str:
    return f"{'-' if middle >= 0 else '+'} {_short(abs(middle))}"


def _short(number: float) -> str:
    return repr(number).removesuffix(".0")
