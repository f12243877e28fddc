r"""Boosting by majority: small trees with equal votes, provided that each of them is a little better than chance.

Rows weigh the same at first; after every round the rows that its tree got wrong are multiplied by

    α = (1/2 + γ)/(1/2 − γ),

and the answer is the unweighted majority. If every tree is right on at least 1/2 + γ of the weight, whatever the
weights, the majority is wrong on at most n(1 − 4γ²)^{T/2} of n rows after T rounds: on none after T > ln n/(2γ²),
which is how many rounds there are unless told otherwise (odd, so that votes of two classes cannot tie). A tree whose
edge falls short of γ ends it: the round is told, and the answer is that of the rounds before it.

In short: Small trees with equal votes are taught one after the other; rows that were got wrong count more by a fixed
factor. If every tree beats chance by gamma, the majority is provably right on all training rows. If one does not, the
round is told.

Use when: a guarantee is wanted, or to learn how weak a weak learner is. For two classes; with more, trees must be
deep enough to be right on half of the weight. `adaboost` finds each tree's edge itself, and is usually better.

On 30 points of a line, of which 10 to 19 are the others, stumps have an edge of 1/6, so that α = 2: no weighted error
is above 1/3, and after 62 rounds as after 3 nothing is wrong.

>>> line = Data.of(Task.CLASSIFICATION, np.arange(30.0)[:, None], [0] * 10 + [1] * 10 + [0] * 10)
>>> for rounds in 1, 3, 62:
...     found = fit(BoostMajority(gamma=1 / 6, rounds=rounds, max_depth=1), line, Context.of(0))
...     wrong = int((predict(BoostMajority(), found.state, line.x).argmax(axis=1) != line.y).sum())
...     print(wrong, f"{max(found.curves['weighted_error']):.4f}", found.converged)
10 0.3333 True
0 0.3333 True
0 0.3333 True

References: Schapire (1990), Mach. Learn. 5:197; Freund (1995), Inf. Comput. 121:256.
"""

import math
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.ml.contract import JSON, Accepts, Algorithm, Context, Data, Fit, Matrix, Params, Symmetry, Task, Vector
from app.ml.numerics.growth import planted, together
from app.ml.numerics.trees import Trees, stages, total
from app.ml.numerics.weak import Majority, Weak

ROUNDING = 1e-9
"""Of an edge that is γ exactly."""


class BoostMajority(Params):
    gamma: float = Field(0.1, ge=0.02, lt=0.5, description="Edge over 1/2 that every tree must have.")
    rounds: int | None = Field(None, ge=1, le=100_000, description="Trees; absent: as many as the theorem asks for.")
    max_depth: int = Field(2, ge=1, le=20, description="Questions of a tree one after the other; 1 is a stump.")


class State(NamedTuple):
    trees: Trees
    """Leaves answer with 1 for their class, else 0."""
    edges: Vector
    """(rounds,) by how much each tree was right on more than half of the weight."""
    failed: int
    """The round, from 1, whose tree had not the edge; 0 if none."""


def fit(params: BoostMajority, data: Data, context: Context) -> Fit[State]:
    n, k = data.targets.shape
    rounds = params.rounds or _enough(n, params.gamma)
    weak, majority = Weak(data, params.max_depth), Majority(data, np.min_scalar_type(rounds))
    factor = (0.5 + params.gamma) / (0.5 - params.gamma)
    trees: list[Trees] = []
    edges, training, failed = [], [], 0
    for number in range(1, rounds + 1):
        tree, told = weak.taught(majority.weights)
        edge = 0.5 - majority.error(told)
        if edge < params.gamma - ROUNDING:
            failed = number
            if trees:
                break
        trees.append(planted(tree, data.levels, np.eye(k), tree.value.argmax(axis=1)))
        edges.append(edge)
        training.append(majority.add(told, 1))
        context.progress(number / rounds, weighted_error=0.5 - edge, training_error=training[-1])
        if failed:
            break
        majority.stress(told, factor)
    state = State(together(trees), np.array(edges), failed)
    curves = {"weighted_error": [0.5 - edge for edge in edges], "training_error": training}
    return Fit(state, converged=not failed, iterations=len(trees), curves=curves, warnings=_said(failed, edge, params))


def predict(params: BoostMajority, state: State, x: Matrix) -> Matrix:
    """Shares of the votes."""
    return total(state.trees, x) / state.trees.root.size


def explain(params: BoostMajority, state: State, x: Matrix) -> list[JSON]:
    """For each row the class that every tree votes for, and the shares of the votes after it."""
    votes = stages(state.trees, x)
    shares = votes.cumsum(axis=0) / np.arange(1, len(votes) + 1)[:, None, None]
    return [
        {
            "stages": [
                {"class": int(vote.argmax()), "probabilities": now.tolist()}
                for vote, now in zip(votes[:, row], shares[:, row], strict=True)
            ]
        }
        for row in range(len(x))
    ]


def summary(params: BoostMajority, state: State) -> JSON:
    return {
        "rounds": state.edges.size,
        "gamma": params.gamma,
        "realised_edge": float(state.edges.min()),
        "assumption_failed_in_round": state.failed or None,
    }


def _enough(rows: int, gamma: float) -> int:
    """The smallest odd number of rounds above ln n / (2γ²)."""
    return (math.floor(math.log(rows) / (2 * gamma**2)) + 1) | 1


def _said(failed: int, edge: float, params: BoostMajority) -> list[str]:
    if not failed:
        return []
    short = f"the tree's edge was {edge:.3g}, not {params.gamma:.3g}"
    return [f"The weak-learner assumption failed in round {failed}: {short}. Take a smaller gamma or deeper trees."]


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=BoostMajority,
    state=State,
    degrees=lambda _: True,
    fit=fit,
    predict=predict,
    seconds=lambda params, size: (
        (params.rounds or _enough(int(size.rows), params.gamma)) * (2e-4 + 4.5e-9 * size.cells * params.max_depth)
    ),
    explain=explain,
    summary=summary,
    accepts={Accepts.MISSING, Accepts.CATEGORIES},
    breaks={
        Symmetry.COLUMN_ORDER: "of equally good questions that of the first column is asked",
        Symmetry.WEIGHTS: "the rounds that the theorem asks for grow with the rows, whatever they weigh",
    },
)
