"""A fit of batches that come one after the other, of which one is held."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from app.ml.contract.algorithm import Algorithm, Context, Data, Fit, Params, silent

Batches: TypeAlias = Callable[[int], Iterator[Data]]
"""All batches, in the order of this pass, counted from 0."""


First: TypeAlias = Callable[[Data, Context], Fit[Any]]
"""A fit of the first batch."""


def fit_batches(
    algorithm: Algorithm[Any, Any], params: Params, batches: Batches, context: Context, first: First | None = None
) -> Fit[Any]:
    """`first`, or `fit`, with the first batch, `update` with the others, pass after pass until one changes nothing.

    Curves: a value per pass, the mean over rows of the last value of each batch.
    """
    first = first or partial(algorithm.fit, params)
    quiet, passes = replace(context, progress=silent), algorithm.passes(params)
    fit: Fit[Any] | None = None
    curves: dict[str, list[float]] = defaultdict(list)
    unfinished, turn, warned = True, 0, dict[str, None]()
    while unfinished and turn < passes:
        unfinished, result, rows, warned = False, defaultdict(list), [], {}
        for data in batches(turn):
            fit = first(data, quiet) if fit is None else _updated(algorithm, params, fit, data, quiet)
            unfinished |= not fit.converged
            rows.append(len(data.x))
            warned |= dict.fromkeys(fit.warnings)
            for name, values in fit.curves.items():
                result[name].append(values[-1] if len(values) else np.nan)
            context.progress((turn + 1 - 1 / (1 + len(rows))) / passes)
        turn += 1
        for name, values in result.items():
            curves[name].append(float(np.average(values, weights=rows[: len(values)])))
        context.progress(turn / passes, **{name: values[-1] for name, values in curves.items()})
    assert fit is not None  # noqa: S101 - there are rows, so there is a batch
    return Fit(fit.state, not unfinished, turn, curves, tuple(warned))


def _updated(
    algorithm: Algorithm[Any, Any], params: Params, before: Fit[Any], data: Data, context: Context
) -> Fit[Any]:
    assert algorithm.update is not None  # noqa: S101 - the plan has looked
    return algorithm.update(params, before.state, data, context)
