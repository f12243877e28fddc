"""Losses of gradient boosting beside LightGBM's: held-out deviance, pinball and absolute error on drawn tables.

Both have 31 leaves, a rate of 0.05, at least 20 rows a leaf and no penalty, and as many rounds as are best of 25 to 400
on a third of the training rows. Run: python -m tests.benchmarks.fit_losses
"""

import time

import lightgbm
import numpy as np

from app.ml.algorithms.gradient_boosting import GradientBoosting, fit, predict
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.unit_deviance import unit_deviances

POWERS = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}
RIVALS = {"absolute": "l1", "cross_entropy": "cross_entropy"}
ROUNDS = (25, 50, 100, 200, 400)
ROWS = 12_000


def table(kind, seed):
    """Rows, and the score that makes their targets: smooth, with an interaction, or of steps, noise columns beside."""
    rng = np.random.default_rng([seed, kind])
    x = rng.standard_normal((ROWS, 6 + 4 * kind))
    x[:, 5] = rng.integers(0, 8, ROWS)
    smooth = 0.6 * np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] * (x[:, 2] > 0) + 0.1 * x[:, 5]
    steps = 0.8 * (x[:, 0] > 0.5) - 0.6 * (x[:, 1] * x[:, 3] > 0) + 0.2 * (x[:, 5] % 3)
    return x, (smooth, steps, 0.5 * smooth + 0.5 * steps)[kind], rng


def target(loss, score, x, rng):
    mean = np.exp(score)
    draws = {
        "poisson": lambda: rng.poisson(mean / 2) * 1.0,
        "gamma": lambda: rng.gamma(2, mean / 2),
        "tweedie": lambda: np.array(
            [rng.gamma(2, m / 2, k).sum() for m, k in zip(mean, rng.poisson(0.5, ROWS), strict=True)]
        ),
        "cross_entropy": lambda: np.clip(rng.beta(2 * (p := 1 / (1 + np.exp(-score))), 2 * (1 - p)), 1e-6, 1 - 1e-6),
        "absolute": lambda: score + rng.standard_t(2, ROWS),
    }
    return draws.get(loss, lambda: score + rng.gumbel(size=ROWS) * np.exp(0.4 * x[:, 1]))()


def error(loss, y, p, level):
    if loss in POWERS:
        return unit_deviances(y, p, POWERS[loss]).mean()
    if loss == "cross_entropy":
        return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()
    return np.abs(y - p).mean() if loss == "absolute" else np.maximum(level * (y - p), (level - 1) * (y - p)).mean()


def ours(loss, level, x, y, rounds):
    params = GradientBoosting(loss=loss, quantiles=[level], l2=0, learning_rate=0.05, n_estimators=rounds)
    state = fit(params, Data.of(Task.REGRESSION, x, y), Context.of(0)).state
    return lambda rows: predict(params, state, np.ascontiguousarray(rows))


def rivals(loss, level, x, y, rounds):
    options = {
        "objective": RIVALS.get(loss, loss),
        "alpha": level,
        "learning_rate": 0.05,
        "verbose": -1,
        "num_threads": 1,
    }
    return lightgbm.train(options, lightgbm.Dataset(x, y), rounds).predict


def chosen(make, loss, level, x, y):
    """The fit with the best number of rounds, and the time of all fits."""
    start, third = time.process_time(), len(y) // 3
    scores = [
        error(loss, y[:third], make(loss, level, x[third:], y[third:], rounds)(x[:third]), level) for rounds in ROUNDS
    ]
    return make(loss, level, x, y, ROUNDS[int(np.argmin(scores))]), time.process_time() - start


def main():
    print(f"{'loss':16} {'table':>5} {'ours':>9} {'LightGBM':>9} {'ratio':>7} {'time':>6}")
    for loss, level in [
        *((name, 0.5) for name in (*POWERS, *RIVALS)),
        ("quantile", 0.1),
        ("quantile", 0.5),
        ("quantile", 0.9),
    ]:
        for kind in range(3):
            x, score, rng = table(kind, seed=7)
            y, half = target(loss, score, x, rng), ROWS // 2
            found = []
            for make in (ours, rivals):
                model, seconds = chosen(make, loss, level, x[:half], y[:half])
                found.append((error(loss, y[half:], model(x[half:]), level), seconds))
            (own, mine), (other, its) = found
            name = f"{loss} {level}" if loss == "quantile" else loss
            print(f"{name:16} {kind:5} {own:9.5f} {other:9.5f} {own / other:7.4f} {mine / its:6.2f}", flush=True)


if __name__ == "__main__":
    main()
