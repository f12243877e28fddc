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
    for stage, rows in enumerate(stages):
        stage_context = replace(context, progress=part_of(context.progress, stage, len(stages)))
        fits.append(fit(fits[-1].state if fits else state, data.take(rows), stage_context))
    curves = {name: [value for fit in fits for value in fit.curves[name]] for name in fits[-1].curves}
    warnings = dict.fromkeys(warning for fit in fits for warning in fit.warnings)
    return replace(fits[-1], iterations=sum(fit.iterations for fit in fits), curves=curves, warnings=tuple(warnings))
