"""Trees of an ensemble whose members are trees, or ensembles of trees themselves: counted one after the other."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from app.ml.contract.algorithm import FittedLearner, Labels
from app.ml.numerics.trees.tree_nodes import OneTree, TreeNodes


class MemberTrees(NamedTuple):
    """Trees of all members."""

    parts: tuple["TreeNodes | MemberTrees", ...]
    columns: tuple[Labels, ...] = ()
    """Places in the matrix of the columns that each member sees; none: all see all."""

    @classmethod
    def of(cls, members: Iterable[FittedLearner], columns: Sequence[Labels] = ()) -> Self:
        """Trees of members that offer the query `tree`."""
        return cls(tuple(one.algorithm.queries["tree"](one.params, one.state) for one in members), tuple(columns))

    @property
    def members(self) -> int:
        return sum(part.members for part in self.parts)

    def tree(self, member: int) -> OneTree:
        """One of them, from 0."""
        for place, part in enumerate(self.parts):
            if member < part.members:
                found = part.tree(member)
                return found.seeing(self.columns[place]) if self.columns else found
            member -= part.members
        raise IndexError(member)
