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
        return cls(
            tuple(member.algorithm.queries["tree"](member.params, member.state) for member in members), tuple(columns)
        )

    @property
    def members(self) -> int:
        return sum(part.members for part in self.parts)

    def tree(self, member: int) -> OneTree:
        """One of them, from 0."""
        for place, part in enumerate(self.parts):
            if member < part.members:
                tree = part.tree(member)
                return tree.seeing(self.columns[place]) if self.columns else tree
            member -= part.members
        raise IndexError(member)
