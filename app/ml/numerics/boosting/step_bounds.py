"""Bounds of the steps of boosted trees: penalties, the largest step, directions and groups of columns, and draws."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.boosting.compiled.bounded_splits import ANY_GROUP, draw_rows, draw_tree_columns
from app.ml.numerics.boosting.ordered_leaves import prove_order
from app.ml.numerics.trees.forest import Trees

if TYPE_CHECKING:
    from app.ml.numerics.boosting.gradient_trees import Slopes

MAX_COLUMNS = 2**31
NO_DRAWS: NDArray[np.int64] = np.zeros(0, np.int64)


class StepBounds(NamedTuple):
    """Bounds of the values of leaves and of the choice of splits, beside `Limits`."""

    l1: float = 0.0
    """Penalty beside the sum of weighted losses."""
    max_step: float = np.inf
    """Largest value of a leaf before it is shrunk."""
    twofold: bool = False
    """True if slopes have curvatures of their own."""
    offset_column: int | None = None
    """The column that no tree splits, as it is part of the score; None: there is none."""
    directions: tuple[int, ...] = ()
    """(d,) 1 of columns along which values rise, -1 fall, 0 are free; none: all are free."""
    groups: tuple[int, ...] = ()
    """(d,) the groups of each column as bits, 0 of one that stands alone; none: all may interact."""

    min_decrease: float = 0.0
    """Smallest decrease of the mean loss by a split, in units of the gain of a split."""
    max_samples: float = 1.0
    """Share of the rows of each tree."""
    tree_columns: int = MAX_COLUMNS
    node_columns: int = MAX_COLUMNS
    """Columns that a tree, and a node, may split."""
    extra_trees: bool = False
    seed: int = 0
    """Seed of the draws."""

    @property
    def apply(self) -> bool:
        """True if anything is bounded or drawn."""
        return self != NO_BOUNDS

    def bag(self, tree: int, numbers: Labels | None, train_mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(n,) the rows that this tree grows from, of those of `train_mask`; numbers: (n,) names of the rows."""
        if self.max_samples == 1:
            return train_mask
        draws = np.empty(train_mask.size)
        draw_rows(self.seed, tree, np.arange(train_mask.size) if numbers is None else numbers, draws)
        bag: NDArray[np.bool_] = (draws < self.max_samples) & train_mask
        return bag if bag.any() else train_mask

    def arguments(self, slopes: "Slopes", columns: int, tree: int, weight: float) -> tuple[Any, ...]:
        """Penalties, columns, columns of the tree, and draws, as `boost` takes them. weight: of the tree's rows."""
        width = columns if self.apply else 0
        settings, every = np.zeros((2, width), np.int64), np.ones(width, np.bool_)
        settings[0], settings[1] = self.directions or 0, self.groups or ANY_GROUP
        if self.offset_column is not None:
            every[self.offset_column] = False
        if self.tree_columns < columns and self.apply:
            drawn = np.empty(columns)
            draw_tree_columns(self.seed, tree, drawn)
            drawn[~every] = np.inf
            every &= drawn <= np.sort(drawn)[max(self.tree_columns, 1) - 1]
        draws = np.array([self.seed, tree, self.node_columns, self.extra_trees, self.twofold], np.int64)
        least = self.min_decrease * weight / slopes.curvature_unit / slopes.weight
        least = least * slopes.unit * slopes.unit if least else 0.0  # the unit's square may be infinite
        l1, max_step = self._scaled(slopes)
        return (l1, max_step, least), settings, every, draws if self.apply else NO_DRAWS

    def proved(self, trees: Trees) -> NDArray[np.int64] | None:
        """The directions (d,) that these trees have, None without any. Raises InvalidData where one has not."""
        if not any(self.directions):
            return None
        directions = np.array(self.directions, np.int64)
        if any(proved.violations for proved in prove_order(trees, directions)):
            raise InvalidData("A tree is not monotone along a column with a direction.")
        return directions

    def steps(self, gradients: Vector, curvatures: Vector, slopes: "Slopes") -> Vector:
        """(L,) the best values of leaves with these sums of slopes in the units of `slopes`, penalties among them."""
        l1, max_step = self._scaled(slopes)
        soft = np.sign(gradients) * np.maximum(np.abs(gradients) - l1, 0.0)
        values: Vector = np.clip(-soft / curvatures, -max_step, max_step)
        return values * (slopes.curvature_unit / slopes.unit)

    def clipped(self, values: Vector) -> Vector:
        """The values within the largest step."""
        return np.clip(values, -self.max_step, self.max_step)

    def _scaled(self, slopes: "Slopes") -> tuple[float, float]:
        """Penalty and largest step in the units of the slopes."""
        return self.l1 * slopes.unit / slopes.weight, self.max_step * slopes.unit / slopes.curvature_unit


NO_BOUNDS = StepBounds()
