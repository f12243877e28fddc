"""Features of a small picture, wherever the drawing lies and however large or bright it is (LION 3).

Gray values less the least of them are ink, which is taken for mass: its barycentre is the origin, and the farthest
reach of the black part (what is more than half as dark as the darkest), up or down, left or right, is the unit. The
shares of the ink in equal strips of [-1, 1] along the rows and along the columns describe the drawing; of
the edges between gray values, how many are upright, and how long they all are beside the edge of a square of the same
ink. A pixel is a square of even gray, so that moving a drawing, or doubling its pixels, changes no digit.

Reference: Battiti & Brunato, The LION Way, ch. 3.
"""

from functools import cached_property

import numpy as np
from pydantic import Field, model_validator

from app.base.wire import Body
from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS


class Pixels(Body):
    """Pixels in columns, and the features that are made of them."""

    pixels: tuple[str, ...] = Field(min_length=1)
    width: int = Field(ge=1)
    strips: int = Field(ge=1)

    @model_validator(mode="after")
    def _whole(self) -> "Pixels":
        if len(self.pixels) % self.width:
            raise ValueError("the last row is cut off")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        return self.pixels

    @cached_property
    def names(self) -> list[str]:
        strips = range(1, self.strips + 1)
        parts = *(f"row {i}" for i in strips), *(f"column {i}" for i in strips), "upright edges", "length of edges"
        return [f"picture of {self.pixels[0]}: {part}" for part in parts]

    @property
    def plain_names(self) -> list[str]:
        return self.names

    def values(self, x: Matrix) -> Matrix:
        """(n, f) of gray values (n, pixels); all 0 of an even gray, NaN where a pixel is missing."""
        ink = (x - x.min(axis=1, keepdims=True)).reshape(len(x), -1, self.width)
        darkest = ink.max(axis=(1, 2))
        even = darkest <= EPS * np.abs(x).max(axis=1)
        ink /= np.where(even, 1.0, darkest)[:, None, None]
        ink[even] = 0.0
        sides = [ink.sum(axis=2), ink.sum(axis=1)]
        black = ink > 0.5
        origins = [_barycentre(side) for side in sides]
        unit = np.maximum(*(_reach(black.any(axis=axis), origin) for axis, origin in zip((2, 1), origins, strict=True)))
        shares = [_shares(side, origin, unit, self.strips) for side, origin in zip(sides, origins, strict=True)]
        upright, level = (np.abs(np.diff(_framed(ink), axis=axis)).sum(axis=(1, 2)) for axis in (2, 1))
        edges = upright + level
        result = np.column_stack([upright / edges, edges / (4 * np.sqrt(sides[0].sum(axis=1)))])
        features = np.concatenate([*shares, result], axis=1)
        features[even] = 0.0
        return features


def _framed(ink: Matrix) -> Matrix:
    return np.pad(ink, ((0, 0), (1, 1), (1, 1)))


def _barycentre(ink: Matrix) -> Vector:
    """Barycentre of ink (n, m) in pixels from 0 to m."""
    barycentre: Vector = ink @ (np.arange(ink.shape[1]) + 0.5) / ink.sum(axis=1)
    return barycentre


def _reach(black: Matrix, origin: Vector) -> Vector:
    """Largest distance of the black pixels (n, m) from the origin."""
    first, last = black.argmax(axis=1), black.shape[1] - black[:, ::-1].argmax(axis=1)
    reach: Vector = np.maximum(origin - first, last - origin)
    return reach


def _shares(ink: Matrix, origin: Vector, unit: Vector, strips: int) -> Matrix:
    """Shares of the ink (n, m), in equal strips of one unit to either side of the origin."""
    m = ink.shape[1]
    upto = np.pad(np.cumsum(ink, axis=1), ((0, 0), (1, 0)))
    ends = np.clip(origin[:, None] + unit[:, None] * np.linspace(-1, 1, strips + 1), 0, m)
    ends[np.isnan(ends)] = 0.0  # no ink: no extent
    below = np.minimum(ends.astype(np.intp), m - 1)
    reached = np.take_along_axis(upto, below, axis=1) + (ends - below) * np.take_along_axis(ink, below, axis=1)
    shares: Matrix = np.diff(reached, axis=1) / upto[:, -1:]
    return shares
