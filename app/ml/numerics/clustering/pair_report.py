"""Pairs of rows that must be together or cannot, and those of them that a clustering violates."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, Data, Labels
from app.ml.contract.relations import Edges
from app.ml.numerics.clustering.seeding import numbers_of

MOST_VIOLATED = 1000
"""Violated pairs that are kept."""


class PairReport(NamedTuple):
    """Counts of pairs, and the violated ones by their rows."""

    counts: Labels
    """(2,) pairs that must be together, and that cannot."""
    violated: Labels
    """(2,) of these, the violated ones."""
    examples: Labels
    """(v, 2) numbers in the dataset of the rows of violated pairs, else among the training rows; the first ones."""
    must: NDArray[np.bool_]
    """(v,) of these: true where they must be together."""
    items: NDArray[np.str_] | None = None
    """(2 v,) names of these rows, those of a pair side by side; None: they have none."""

    @classmethod
    def of(cls, data: Data, edges: Edges, labels: Labels) -> Self:
        """edges: the pairs, below 0 those that cannot be together. labels: (n,) clusters of the rows."""
        must, same = edges.values > 0, labels[edges.first] == labels[edges.second]
        bad = np.where(must, ~same, same)
        rows = np.stack([edges.first, edges.second], axis=1)[bad]
        numbers = numbers_of(data)
        order = np.lexsort(np.sort(numbers[rows], axis=1).T[::-1])[:MOST_VIOLATED]
        shown = rows[order]
        return cls(
            counts=np.array([must.sum(), (~must).sum()], np.intp),
            violated=np.array([(bad & must).sum(), (bad & ~must).sum()], np.intp),
            examples=numbers[shown],
            must=must[bad][order],
            items=None if data.items is None else data.items[shown.ravel()],
        )

    @property
    def warnings(self) -> list[str]:
        count, pairs = int(self.violated.sum()), int(self.counts.sum())
        return [f"{count} of {pairs} pairs are violated: the summary lists them."] if count else []

    @property
    def summary(self) -> dict[str, JSON]:
        violated = [
            {"rows": rows, "kind": "must" if must else "cannot"}
            for rows, must in zip(self.examples.tolist(), self.must.tolist(), strict=True)
        ]
        if self.items is not None:
            for pair, items in zip(violated, self.items.reshape(-1, 2).tolist(), strict=True):
                pair["items"] = items
        return {
            "must_link_pairs": int(self.counts[0]),
            "must_link_violated": int(self.violated[0]),
            "cannot_link_pairs": int(self.counts[1]),
            "cannot_link_violated": int(self.violated[1]),
            "violated_pairs": violated,
        }
