"""Cells of a map as tiles that cover the plane: squares or hexagons, at the places where the grid has them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from app.ml.charts.specification import Specification
from app.ml.contract.algorithm import JSON

MAX_TILE_PIXELS = 56.0
"""Longest distance of two adjacent cells in pixels."""
SEAM = 0.04
"""Width of the line between two tiles, as a share of their distance; at most one pixel."""
CORNER = 1 / math.sqrt(3)
"""Distance of a corner of a hexagon from its centre, where adjacent cells are 1 apart."""
SQUARE = ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
HEXAGON = ((0, -CORNER), (0.5, -CORNER / 2), (0.5, CORNER / 2), (0, CORNER), (-0.5, CORNER / 2), (-0.5, -CORNER / 2))


class Tiles(NamedTuple):
    """The tiles of a map, as large as its view allows."""

    hexagonal: bool
    right: float
    """Largest x of a cell; the smallest is 0."""
    bottom: float
    """Largest y of a cell; the smallest is 0."""
    side: float
    """Pixels between two adjacent cells."""

    @classmethod
    def within(cls, room: float, x: Sequence[float], y: Sequence[float], *, hexagonal: bool) -> "Tiles":
        """Tiles of the cells at x and y in a square view with `room` pixels to a side."""
        right, bottom = max(x), max(y)
        longest = max(right + 1, bottom + 2 * _reach(hexagonal))
        return cls(hexagonal, right, bottom, min(MAX_TILE_PIXELS, room / longest))

    @property
    def view(self) -> Specification:
        """Size of a view and its positions, from the fields x and y; y grows downwards."""
        reach = _reach(self.hexagonal)
        ends = {"x": [-0.5, self.right + 0.5], "y": [self.bottom + reach, -reach]}
        return {
            "width": (self.right + 1) * self.side,
            "height": (self.bottom + 2 * reach) * self.side,
            "encoding": {axis: _position(axis, domain) for axis, domain in ends.items()},
        }

    @property
    def mark(self) -> Specification:
        """A tile. A path of length 1 is as long as half the root of the size."""
        corners = HEXAGON if self.hexagonal else SQUARE
        shape = f"M{'L'.join(f'{x},{y}' for x, y in corners)}Z"
        seam = min(1.0, SEAM * self.side)
        return {"type": "point", "style": "tile", "shape": shape, "size": (2 * self.side) ** 2, "strokeWidth": seam}


def _reach(hexagonal: bool) -> float:
    """Distance of the top of a tile from its centre."""
    return CORNER if hexagonal else 0.5


def _position(axis: str, domain: JSON) -> Specification:
    return {"field": axis, "type": "quantitative", "axis": None, "scale": {"domain": domain, "nice": False}}
