"""Every setting that a search tries: products of lists, random draws, other algorithms, in the order they were given.

A setting is named by its JSON pointer into the request: "/algorithm/l2", "/alternatives/0/n_neighbors",
"/preprocessing/scaling". Settings of one algorithm are tried with that algorithm alone, those of preprocessing with
all of them.
"""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import Field, ValidationError, model_validator

from app.base.errors import InvalidRequest
from app.base.faults import Fault, steps
from app.base.validation import sentence
from app.base.wire import Body
from app.ml.training.planning.counts import unscaled
from app.ml.training.planning.train_spec import AlgorithmSpec, TrainSpec

MOST = 1000
"""Candidates of one search."""
Pointer = Field(
    pattern=r"^/(algorithm|preprocessing|alternatives/\d{1,2})(/[^/]{1,100}){1,10}$",
    description="JSON pointer to the setting within this request, such as /algorithm/l2.",
)


class Grid(Body):
    """A setting and the values to try, in all combinations with the other grids."""

    pointer: str = Pointer
    values: list[Any] = Field(min_length=1, max_length=MOST, description="The simplest first: the first wins a tie.")


class Draw(Body):
    """A setting whose values are drawn at random, together with the other draws."""

    pointer: str = Pointer
    low: float = Field(description="Smallest value that is drawn.")
    high: float = Field(description="Largest value that is drawn.")
    spacing: Literal["linear", "log"] = Field(
        "linear", description="Scale on which values are drawn evenly: linear or logarithmic."
    )
    whole: bool = Field(False, description="Round to whole numbers.")

    @model_validator(mode="after")
    def _upwards(self) -> "Draw":
        if not self.low < self.high:
            raise ValueError("low lies below high.")
        if self.spacing == "log" and self.low <= 0:
            raise ValueError("Logarithms need a low above zero.")
        return self

    def at(self, share: float) -> float:
        """The value that has this share of the range below it."""
        if self.spacing == "log":
            value = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + share * (self.high - self.low)
        return round(value) if self.whole else value


class SearchSpec(TrainSpec):
    """A training request with what to try in it."""

    alternatives: list[AlgorithmSpec] = Field([], max_length=50, description="Algorithms to compare with `algorithm`.")
    grid: list[Grid] = Field([], max_length=10, description="Settings with lists of values, all combined.")
    draws: list[Draw] = Field([], max_length=20, description="Settings that are drawn at random.")
    draw_count: int = Field(20, ge=1, le=MOST, description="Number of draws for each combination of the grids.")


class Candidate(NamedTuple):
    settings: Mapping[str, Any]
    """Value by pointer."""
    spec: TrainSpec
    root: str
    """Pointer to its algorithm in the request."""


A = TypeVar("A", Grid, Draw)


def candidates(spec: SearchSpec) -> list[Candidate]:
    """Raises InvalidRequest with every value that the setting cannot take, and for too many candidates."""
    faults = [*_twice(spec), *_unfit(spec)]
    if not faults:
        tried = list(_tried(spec))
        if len(tried) <= MOST:
            return tried
        faults = [Fault("/grid", f"These are {len(tried)} candidates; one search tries {MOST}.", "too_large")]
    raise InvalidRequest(faults=faults)


def _tried(spec: SearchSpec) -> Iterator[Candidate]:
    rng = np.random.Generator(np.random.PCG64(spec.seed)).spawn(1)[0]
    for place in range(1 + len(spec.alternatives)):
        grids, draws = _concerned(spec.grid, place), _concerned(spec.draws, place)
        for values in product(*(grid.values for grid in grids)):
            varied = {grid.pointer: value for grid, value in zip(grids, values, strict=True)}
            for shares in rng.random((spec.draw_count if draws else 1, len(draws))):
                drawn = {draw.pointer: draw.at(share) for draw, share in zip(draws, shares.tolist(), strict=True)}
                settings = varied | drawn
                try:
                    yield Candidate(settings, _set(spec, place, settings), _root(place)[:-1])
                except ValidationError as error:  # each is fine, but not together
                    raise InvalidRequest(faults=[Fault("/grid", _message(error))]) from None


def _concerned(axes: Sequence[A], place: int) -> list[A]:
    """The axes that vary the algorithm at this place: 0 is `algorithm`, then the alternatives."""
    roots = "/preprocessing/", _root(place)
    return [axis for axis in axes if axis.pointer.startswith(roots)]


def _root(place: int) -> str:
    return f"/alternatives/{place - 1}/" if place else "/algorithm/"


def _place(pointer: str) -> int:
    return 1 + int(pointer.split("/")[2]) if pointer.startswith("/alternatives/") else 0


def _set(spec: SearchSpec, place: int, settings: Mapping[str, Any]) -> TrainSpec:
    """The training that is meant. Raises pydantic's ValidationError."""
    body = spec.model_dump(mode="json", include=set(TrainSpec.model_fields))
    body["algorithm"] = [spec.algorithm, *spec.alternatives][place].model_dump(mode="json")
    body["validation"] = spec.validation.model_dump(include={"test_fraction", "group", "time"})
    for pointer, value in settings.items():
        parts = steps(pointer.replace(_root(place), "/algorithm/", 1))
        inner: Any = body
        for part in parts[:-1]:
            if isinstance(inner, dict) and inner.get(part) is None:
                inner[part] = {}
            inner = inner[_key(inner, part)]
        inner[_key(inner, parts[-1])] = copy.deepcopy(value)
    return unscaled(TrainSpec.model_validate(body))


def _key(inner: Any, part: str) -> str | int:
    return int(part) if isinstance(inner, list) else part


def _twice(spec: SearchSpec) -> Iterator[Fault]:
    seen: set[str] = set()
    for pointer, axis in _axes(spec):
        if axis.pointer in seen:
            yield Fault(f"{pointer}/pointer", "This setting is varied twice.", "duplicate")
        seen.add(axis.pointer)


def _stray(spec: SearchSpec, axis: Grid | Draw) -> str:
    """Why there can be no such axis."""
    if _place(axis.pointer) > len(spec.alternatives):
        return "There is no such alternative."
    if axis.pointer == f"{_root(_place(axis.pointer))}name":
        return "Other algorithms are named in alternatives."
    if axis.pointer.startswith("/preprocessing/projection"):
        return "All candidates learn from the coordinates of one projection: search once for each."
    return ""


def _unfit(spec: SearchSpec) -> Iterator[Fault]:
    """Values that the setting cannot take, one by one."""
    for pointer, axis in _axes(spec):
        if stray := _stray(spec, axis):
            yield Fault(f"{pointer}/pointer", stray)
            continue
        tried = [("low", axis.at(0.0)), ("high", axis.at(1.0))] if isinstance(axis, Draw) else None
        named = tried or [(f"values/{i}", value) for i, value in enumerate(axis.values)]  # type: ignore[union-attr]  # a Grid
        for where, value in named:
            try:
                _set(spec, _place(axis.pointer), {axis.pointer: value})
            except ValidationError as error:
                yield Fault(f"{pointer}/{where}", _message(error))
            except (KeyError, IndexError, ValueError, TypeError, AttributeError):
                yield Fault(f"{pointer}/pointer", "The request has no such setting.")
                break


def _axes(spec: SearchSpec) -> Iterator[tuple[str, Grid | Draw]]:
    for i, grid in enumerate(spec.grid):
        yield f"/grid/{i}", grid
    for i, draw in enumerate(spec.draws):
        yield f"/draws/{i}", draw


def _message(error: ValidationError) -> str:
    """In words, without the value."""
    return " ".join(dict.fromkeys(sentence(error) for error in error.errors(include_url=False)))
