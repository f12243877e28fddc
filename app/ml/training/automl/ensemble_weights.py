"""An ensemble of candidates by their predictions of rows that they have not seen, and whether it is surely better.

Weights are numbers of choices: greedily forwards, with replacement, in random halves of the candidates whose choices
are added. Whether the ensemble helps is decided fold by fold: the other folds choose weights and the best candidate,
and this one compares the two.

Reference: Caruana, Niculescu-Mizil, Crew & Ksikes (2004), Ensemble selection from libraries of models, ICML.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Vector
from app.ml.evaluation.row_losses import metric_of, row_losses, worse_by

STEPS, BAGS = 25, 10
MAX_POOL = 16
"""Candidates that weights are chosen among, the best."""
MAX_CELLS = 40_000
"""Numbers of a candidate's predictions that choose."""
GAIN_CONFIDENCE = 0.9


class Pool(NamedTuple):
    """Predictions of some candidates, the best first."""

    metric: str
    predictions: Sequence[Sequence[NDArray[Any]]]
    """(candidates, folds) of arrays (m,) or (m, k), in the units in which a committee averages."""
    truths: Sequence[NDArray[Any]]
    """Numbers or class codes, (m,) for each fold."""
    in_units: Callable[[NDArray[Any]], NDArray[Any]]
    """Maps averages to the target's own units."""

    def losses(self, fold: int, counts: Labels) -> Vector:
        """(m,) of the average with these weights."""
        average = sum(count * self.predictions[member][fold] for member, count in enumerate(counts.tolist()) if count)
        return row_losses(self.metric, self.truths[fold], self.in_units(np.asarray(average) / counts.sum()))

    def weights(self, folds: Sequence[int], max_members: int, seed: int) -> Labels:
        """(candidates,) how often each is chosen by the rows of these folds."""
        rows = np.concatenate([self.truths[fold] for fold in folds])
        width = self.predictions[0][0].shape[1] if self.predictions[0][0].ndim == 2 else 1
        sample = np.linspace(0, rows.size - 1, min(rows.size, MAX_CELLS // width)).astype(np.intp)
        pool = [
            np.concatenate([member_predictions[fold] for fold in folds])[sample]
            for member_predictions in self.predictions[:MAX_POOL]
        ]
        stack, truth = np.stack(pool).astype(np.float64), rows[sample]

        def cost(average: NDArray[np.float64]) -> float:
            return float(row_losses(self.metric, truth, self.in_units(average)).mean())

        rng = np.random.Generator(np.random.PCG64([seed, len(folds)]))
        counts = np.zeros(len(self.predictions), np.intp)
        for _ in range(BAGS):
            half = np.sort(rng.choice(len(stack), max(2, -(-len(stack) // 2)), replace=False))
            counts[half] += _greedy(stack[half], cost)
        fewest = np.argsort(-counts, kind="stable")[max_members:]
        counts[fewest] = 0
        return counts

    def gain(self, max_members: int, seed: int) -> Vector:
        """(folds,) by how much weights of the other folds are better than the candidate that these prefer."""
        folds = range(len(self.truths))
        single = [
            [self.losses(fold, _only(member, len(self.predictions))) for fold in folds] for member in _every(self)
        ]
        gains = []
        for fold in folds:
            others = [other for other in folds if other != fold]
            best = min(
                _every(self), key=lambda member: np.concatenate([single[member][other] for other in others]).mean()
            )
            combined = self.losses(fold, self.weights(others, max_members, seed))
            both = (np.array([metric_of(self.metric, values)]) for values in (single[best][fold], combined))
            gains.append(worse_by(self.metric, *both)[0])
        return np.array(gains)


def _every(pool: Pool) -> range:
    return range(min(MAX_POOL, len(pool.predictions)))


def _only(candidate: int, count: int) -> Labels:
    counts: Labels = (np.arange(count) == candidate).astype(np.intp)
    return counts


def _greedy(stack: NDArray[np.float64], cost: Callable[[NDArray[np.float64]], float]) -> Labels:
    """(m,) choices up to the best average met, which begins with the best alone."""
    counts, total = np.zeros(len(stack), np.intp), np.zeros(stack.shape[1:])
    best, lowest = counts, np.inf
    for size in range(1, STEPS + 1):
        costs = [cost((total + member) / size) for member in stack]
        place = int(np.argmin(costs))
        counts[place] += 1
        total = total + stack[place]
        if costs[place] < lowest * (1 - 1e-9):
            best, lowest = counts.copy(), costs[place]
        elif size - best.sum() >= 5:
            break
    return best
