"""Would slightly different data give other coefficients? (LION 4.7)

Two measures: how nearly the inputs depend on each other, and fits of inputs that are a little off. Of two inputs
that carry the same information, one coefficient may grow at the cost of the other without any change of the
predictions.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from app.ml.contract.algorithm import Data, LinearForm, Vector, silent
from app.ml.contract.sparse_rows import dense
from app.ml.evaluation.report import Conditioning, Jitter
from app.ml.numerics.linear_algebra.conditioning import conditioning
from app.ml.training.fitting.fit import Fitted
from app.ml.training.rows.training_set import TrainingSet

Linear: TypeAlias = Callable[[Any], LinearForm]
MOST_COLUMNS = 500
"""With more a factorisation costs more than many a fit."""
MOST_CELLS = 200_000
"""Beyond, jittered fits are not made."""
NOISE = 0.01
REFITS = 20
ALARMING = 10.0
"""Relative change of the coefficients over that of the inputs."""


def look(training_set: TrainingSet, fitted: Fitted, seed: int) -> Conditioning | None:
    """Conditioning of a model that is linear in the columns; None for any other, or too many columns."""
    data, algorithm = fitted.data, training_set.algorithm
    if algorithm.linear is None or fitted.preparation.sparse or not 1 <= data.x.shape[1] <= MOST_COLUMNS:
        return None
    result = conditioning(dense(data.x), data.weights, intercept=not algorithm.through_origin(training_set.params))
    jittered = data.task.of_numbers and algorithm.least_squares
    return Conditioning(
        condition_number=_finite(result.condition),
        scaled_condition_number=_finite(result.scaled),
        rank=result.rank,
        variance_inflation=[_finite(value) for value in result.inflation.tolist()],
        jitter=_jitter(training_set, fitted, algorithm.linear, seed) if jittered else None,
    )


def warnings(result: Conditioning | None) -> Iterator[str]:
    if result is None or result.jitter is None or (result.jitter.amplification or 0.0) < ALARMING:
        return
    yield (
        f"Inputs that are off by {NOISE:.0%} of their spread change the coefficients by "
        f"{NOISE * (result.jitter.amplification or 0.0):.0%}: take ridge, or a larger penalty, for coefficients that "
        "small changes of the data leave alone."
    )


def _jitter(training_set: TrainingSet, fitted: Fitted, linear: Linear, seed: int) -> Jitter | None:
    data = fitted.data
    if math.prod(data.x.shape) > MOST_CELLS:
        return None
    rng = np.random.Generator(np.random.PCG64(seed))
    low, high, size = data.x.min(axis=0), data.x.max(axis=0), data.x.std(axis=0)
    graded = ((data.x > low) & (data.x < high)).any(axis=0)
    noisy = [_noisy(data, NOISE * size * graded, rng) for _ in range(REFITS)]
    fits = [training_set.fit(some, seed, silent)[0] for some in noisy]
    coef, *refits = (linear(fit.state).coef[:, 0] for fit in (fitted.fit, *fits))
    size_of_coef = np.linalg.norm(coef * size)
    change = np.sqrt((((np.array(refits) - coef) * size) ** 2).sum(axis=1).mean())
    amplification = _finite(change / (NOISE * size_of_coef)) if size_of_coef > 0 and graded.any() else None
    spread = np.std(np.array(refits) - refits[0], axis=0, ddof=1)  # of equal fits exactly 0
    if not np.isfinite(spread).all():
        return None
    return Jitter(noise=NOISE, refits=REFITS, spread=spread.tolist(), amplification=amplification)


def _noisy(data: Data, noise: Vector, rng: np.random.Generator) -> Data:
    x = data.x + noise * rng.standard_normal(data.x.shape)
    x.setflags(write=False)
    return replace(data, x=x)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
