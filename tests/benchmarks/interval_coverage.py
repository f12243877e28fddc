"""Coverage of the intervals of metrics, by simulation: how often the 95 % interval holds the value of all rows.

    python -m tests.benchmarks.interval_coverage [--samples 300] [--rows 30 100 1000] [--guide]

Each cell of the grid draws samples of rows whose errors, or classes, follow a law, with or without weights and groups
of rows that are alike, and compares the interval of each metric with its value for 400,000 rows of the same law. It
prints one table a kind of metric: shares of samples whose interval holds that value, of those that have an interval,
and the share of samples without one in parentheses, where there are any. --guide writes the tables into the guide.
"""

import argparse
from collections import Counter
from itertools import product

import numpy as np
from scipy import special

from app.ml.evaluation import metrics
from app.ml.statistics.intervals import Resamples
from tests.benchmarks.guide_tables import write_table

WHOLE = 400_000
"""Rows that stand for all."""
GROUP_ROWS = 10
"""Rows of a group."""


def normal(rng, shape, x):
    return rng.normal(size=shape)


def heavy_tailed(rng, shape, x):
    return rng.standard_t(3, shape)


def skewed(rng, shape, x):
    return rng.exponential(size=shape) - 1


def mixed(rng, shape, x):
    """One error in ten is about 3, with a standard deviation of 2."""
    return np.where(rng.random(shape) < 0.1, rng.normal(3, 2, shape), rng.normal(size=shape))


def growing(rng, shape, x):
    """Errors grow with the prediction."""
    return rng.normal(size=shape) * np.exp(0.7 * x)


ERRORS = {"normal": normal, "t3": heavy_tailed, "skewed": skewed, "mixture": mixed, "heteroscedastic": growing}
PRIORS = {
    "2 classes": (0.5, 0.5),
    "3 classes": (1 / 3, 1 / 3, 1 / 3),
    "5 classes": (0.2,) * 5,
    "2 classes, 10 %": (0.9, 0.1),
    "3 classes, 5 % each": (0.9, 0.05, 0.05),
}
ROWS = {"rows": (False, False), "weights": (True, False), "groups": (False, True)}
"""Kinds of rows: with weights, in groups that are alike."""


def effect(rng, shape, grouped):
    """Normal values that rows of one group share, in place of values of their own."""
    if not grouped:
        return np.zeros(shape)
    return np.repeat(rng.normal(size=(*shape[:-1], -(-shape[-1] // GROUP_ROWS))), GROUP_ROWS, axis=-1)[..., : shape[-1]]


def regressions(law, rng, shape, grouped):
    """Targets and predictions: half of the predictable part, and an error of the groups, are shared in them."""
    shared = effect(rng, shape, grouped)
    x = rng.normal(size=shape) * (np.sqrt(0.5) if grouped else 1) + np.sqrt(0.5) * shared
    return 2 * x + ERRORS[law](rng, shape, x) + 0.7 * effect(rng, shape, grouped), 2 * x


def classifications(law, rng, shape, grouped):
    """Class codes and calibrated probabilities. Rows of a group often have the class of the first."""
    priors = np.array(PRIORS[law])
    codes = rng.choice(priors.size, shape, p=priors)
    if grouped:
        firsts = np.repeat(codes[..., ::GROUP_ROWS], GROUP_ROWS, axis=-1)[..., : shape[-1]]
        codes = np.where(rng.random(shape) < 0.5, firsts, codes)
    scores = rng.normal(size=(*shape, priors.size)) + 1.5 * np.eye(priors.size)[codes]
    return codes, special.softmax(1.5 * scores + np.log(priors), axis=-1)


def measured(law, sample, draws, weights=None):
    """Metrics of one sample, by name; of classes those of all classes and of the last."""
    if law in ERRORS:
        result = metrics.regression(*sample, draws, weights)
    else:
        names = [str(code) for code in range(len(PRIORS[law]))]
        result = metrics.classification(*sample, names, draws, weights)
        result = [metric for metric in result if metric.label in {None, names[-1]}]
    return {metric.name + (" of a class" if metric.label else ""): metric for metric in result}


def coverage(law, kind, n, samples, seed=0):
    """By metric: (share of intervals that hold the truth, share of samples without an interval)."""
    weighted, grouped = ROWS[kind]
    rng, make = np.random.default_rng(seed), regressions if law in ERRORS else classifications
    whole = [part[0] for part in make(law, rng, (1, WHOLE), grouped)]
    truths = {name: metric.value for name, metric in measured(law, whole, Resamples.none(WHOLE)).items()}
    held, without = Counter(), Counter()
    parts = make(law, rng, (samples, n), grouped)
    for sample in zip(*parts, strict=True):
        draws = Resamples.of(n, rng, np.arange(n) // GROUP_ROWS if grouped else None)
        result = measured(law, sample, draws, rng.lognormal(size=n) if weighted else None)
        for name, truth in truths.items():
            if name not in result or result[name].lower is None:
                without[name] += 1
            else:
                held[name] += result[name].lower <= truth <= result[name].upper
    return {name: (held[name] / max(1, samples - without[name]), without[name] / samples) for name in truths}


def cell(share, without):
    return f"{share:.2f}" + (f" ({without:.2f})" if without else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--rows", type=int, nargs="+", default=[30, 100, 1000])
    parser.add_argument("--guide", action="store_true", help="write the tables into the guide")
    options = parser.parse_args()
    for name, laws in {"regression": ERRORS, "classification": PRIORS}.items():
        lines = list[str]()
        for law, kind, n in product(laws, ROWS, options.rows):
            shares = coverage(law, kind, n, options.samples)
            if not lines:
                header = ["law", "rows are", "n", *shares]
                lines.append(f"| {' | '.join(header)} |\n|" + "---|" * len(header))
                print(lines[0])
            lines.append(f"| {' | '.join([law, kind, str(n), *(cell(*share) for share in shares.values())])} |")
            print(lines[-1], flush=True)
        print()
        if options.guide:
            write_table("coverage", name, "\n".join(lines))


if __name__ == "__main__":
    main()
