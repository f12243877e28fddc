"""Suggestions of next experiments beside scikit-optimize, on six test functions with known minima.

Run `python tests/benchmarks/next_experiments.py [seeds]`: 11 seeds by default. Both begin with the same 20 rows (Sobol
sequence) and minimise by expected improvement, one suggestion after the other, 40 of them: 60 rows in all. An optimum
counts as found where the best value is above the minimum by at most 1 % of the median of the function over its box. The
numbers are medians over the seeds: suggestions until then, and the gap left after 40, as a share of that median.
The folder of an installation of scikit-optimize may stand in RIVAL; without it only ours runs.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import numpy as np
import pyarrow as pa
import scipy

from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import unheard
from app.ml.jobs import suggest
from app.ml.kinds.job import Inputs, Sheet, Source

FIRST, MORE, NEAR = 20, 40, 0.01
NOWHERE = "00000000-0000-7000-8000-000000000000"
HARTMANN = (
    np.array([1.0, 1.2, 3.0, 3.2]),
    np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]]),
    1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]),
)


class Function(NamedTuple):
    """A function (n, d) → (n,), its box and its minimum there."""

    of: Callable[[np.ndarray], np.ndarray]
    box: list[tuple[float, float]]
    minimum: float


def branin(x):
    a, b = x.T
    return (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10


def hartmann3(x):
    alpha, weights, centres = HARTMANN
    return -np.exp(-((x[:, None] - centres) ** 2 * weights).sum(axis=2)) @ alpha


def camel(x):
    a, b = x.T
    return (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2


def goldstein_price(x):
    a, b = x.T
    first = 1 + (a + b + 1) ** 2 * (19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2)
    return first * (30 + (2 * a - 3 * b) ** 2 * (18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2))


def ackley(x):
    far = np.sqrt(np.mean(x**2, axis=1))
    return -20 * np.exp(-0.2 * far) - np.exp(np.mean(np.cos(2 * np.pi * x), axis=1)) + 20 + np.e


def rosenbrock(x):
    a, b = x.T
    return 100 * (b - a**2) ** 2 + (1 - a) ** 2


FUNCTIONS = {
    "Branin": Function(branin, [(-5, 10), (0, 15)], 0.397887),
    "Hartmann-3": Function(hartmann3, [(0, 1)] * 3, -3.862780),
    "six-hump camel": Function(camel, [(-3, 3), (-2, 2)], -1.031628),
    "Goldstein-Price": Function(goldstein_price, [(-2, 2)] * 2, 3.0),
    "Ackley": Function(ackley, [(-5, 5)] * 2, 0.0),
    "Rosenbrock": Function(rosenbrock, [(-2.048, 2.048)] * 2, 0.0),
}


def first_rows(function, seed):
    low, high = np.array(function.box).T
    return low + scipy.stats.qmc.Sobol(len(low), rng=np.random.default_rng(seed)).random_base2(5)[:FIRST] * (high - low)


def ours(function, x, seed):
    """The rows with one more, as the job suggests it."""
    names = [f"x{j}" for j in range(x.shape[1])]
    table = pa.table({**dict(zip(names, x.T, strict=True)), "y": function.of(x)})
    columns = tuple(TableColumn(name, "numeric", 0, len(x)) for name in table.column_names)
    limits = [{"column": name, "minimum": a, "maximum": b} for name, (a, b) in zip(names, function.box, strict=True)]
    request = suggest.SuggestRequest.model_validate(
        {"dataset": NOWHERE, "target": "y", "goal": "minimise", "noise": 0, "variables": limits, "seed": seed}
    )
    source = Source(Sheet("sha256:0", len(x), columns), iter([table]))
    (found,) = suggest.KIND.run(request, Inputs((source,)), unheard).result.suggestions
    return np.vstack([x, [[found.row[name] for name in names]]])


def run_ours(function, seed):
    x = first_rows(function, seed)
    for step in range(MORE):
        x = ours(function, x, seed + step)
    return function.of(x)


def run_rival(function, seed):
    from skopt import gp_minimize

    x = first_rows(function, seed)
    values = function.of(x)
    found = gp_minimize(
        lambda point: float(function.of(np.array([point]))[0]),
        [(float(a), float(b)) for a, b in function.box],
        n_calls=MORE, n_initial_points=0, x0=x.tolist(), y0=values.tolist(), acq_func="EI", noise=1e-10,
        random_state=seed,
    )  # fmt: skip
    return np.array(found.func_vals)


def spread(function):
    low, high = np.array(function.box).T
    points = low + np.random.default_rng(0).random((100_000, len(low))) * (high - low)
    return float(np.median(function.of(points)) - function.minimum)


def until(values, function, unit):
    """Suggestions until the minimum is found; infinite if it is not."""
    near = np.flatnonzero(values <= function.minimum + NEAR * unit)
    return max(0, int(near[0]) + 1 - FIRST) if near.size else np.inf


def race(name, seeds, contestants):
    function = FUNCTIONS[name]
    unit, line = spread(function), f"{name:16}"
    for who, run in contestants.items():
        start = time.process_time()
        runs = [run(function, seed) for seed in range(seeds)]
        seconds = (time.process_time() - start) / seeds / MORE
        steps = np.median([until(values, function, unit) for values in runs])
        gap = np.median([(values.min() - function.minimum) / unit for values in runs])
        line += f"  {who}: {steps:4.0f} suggestions, gap {gap:.1e}, {seconds:.2f} s each;"
    return line


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "RIVAL" in os.environ:
        sys.path.append(os.environ["RIVAL"])
    contestants = {"ours": run_ours} | ({"theirs": run_rival} if "RIVAL" in os.environ else {})
    for wanted in FUNCTIONS:
        sys.stdout.write(f"{race(wanted, int((sys.argv[1:] or ['11'])[0]), contestants)}\n")
        sys.stdout.flush()
