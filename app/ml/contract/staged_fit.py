"""A fit of rows in stages: each stage starts from the state of the one before."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from app.ml.contract.algorithm import Context, Data, Fit
from app.ml.contract.progress import part_of

S = TypeVar("S")


def fit_in_stages(fit: Callable[[S, Data, Context], Fit[S]], state: S, data: Data, context: Context) -> Fit[S]:
    """`fit` of the rows of each stage from a state, the easiest first; curves one after the other.

    Rows without a curriculum are one stage: the result is that of `fit`.
    """
    if data.curriculum is None:
        return fit(state, data, context)
    stages = data.stages
    fits: list[Fit[S]] = []
    for at, rows in enumerate(stages):
        own = replace(context, progress=part_of(context.progress, at, len(stages)))
        fits.append(fit(fits[-1].state if fits else state, data.take(rows), own))
    curves = {name: [value for one in fits for value in one.curves[name]] for name in fits[-1].curves}
    warnings = dict.fromkeys(warning for one in fits for warning in one.warnings)
    return replace(fits[-1], iterations=sum(one.iterations for one in fits), curves=curves, warnings=tuple(warnings))
