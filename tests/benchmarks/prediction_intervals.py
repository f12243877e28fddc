"""Coverage and width of 95 % prediction intervals of default trainings, by simulation.

    python -m tests.benchmarks.prediction_intervals [--tables 20] [--rows 30 60 100 300] [--guide]

Each cell trains on tables of so many rows of four columns, whose target is a bent function of three with errors of
standard deviation 1, everywhere or growing with the target, and predicts 1,000 fresh rows of each. It prints the method
of the intervals, the share of fresh targets within them, that share among the highest fifth of the predictions, and the
mean width as a ratio to that of the shortest intervals which know the function and its errors. --guide writes the table
into the guide.
"""

import argparse
from itertools import product

import numpy as np
import pyarrow as pa
from scipy import stats

from app.ml.contract.columns import TableColumn
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.benchmarks.guide_tables import write_table

FRESH = 1000
ALGORITHMS = ["linear", "ridge", "gaussian_process", "decision_tree", "gradient_boosting"]
SPREADS = {"constant": np.ones_like, "growing": lambda mean: np.exp(0.35 * mean - 0.3)}
COLUMNS = [TableColumn(name, "numeric", 0, FRESH) for name in "abcdy"]


def table(rng, n, errors):
    """Rows, and the standard deviation of the error of each."""
    x = rng.normal(size=(n, 4))
    mean = 2 * x[:, 0] + np.sin(2 * x[:, 1]) - 0.5 * x[:, 2]
    spread = SPREADS[errors](mean)
    return pa.table(dict(zip("abcdy", [*x.T, mean + spread * rng.normal(size=n)], strict=True))), spread


def measured(algorithm, errors, n, tables):
    """(method, coverage, coverage of the highest fifth, relative width; None where intervals have no end)."""
    spec = TrainSpec.model_validate({"target": "y", "algorithm": {"name": algorithm}})
    shares = []
    for seed in range(tables):
        rng = np.random.default_rng([seed, n])
        rows, (fresh, spread) = table(rng, n, errors)[0], table(rng, FRESH, errors)
        model = decode(train(plan(spec, COLUMNS, n), rows, data_digest="sha256:0").blob)
        predicted, truth = model.predict(fresh, 0.95), fresh["y"].to_numpy()
        low, high = predicted.intervals.T
        inside, highest = (low <= truth) & (truth <= high), predicted.values >= np.quantile(predicted.values, 0.8)
        shortest = 2 * stats.norm.ppf(0.975) * spread.mean()
        shares.append([inside.mean(), inside[highest].mean(), (high - low).mean() / shortest])
    means = np.mean(shares, axis=0)
    return model.interval_name, *(means if np.isfinite(means).all() else [None] * 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, nargs="+", default=[30, 60, 100, 300])
    parser.add_argument("--algorithms", nargs="+", default=ALGORITHMS)
    parser.add_argument("--guide", action="store_true", help="write the table into the guide")
    options = parser.parse_args()
    lines = ["| algorithm | errors | rows | interval | coverage | of the highest fifth | width |\n" + "|---" * 7 + "|"]
    print(lines[0])
    for algorithm, errors, n in product(options.algorithms, SPREADS, options.rows):
        name, *values = measured(algorithm, errors, n, options.tables)
        cells = ["none" if value is None else f"{value:.2f}" for value in values]
        lines.append(f"| {' | '.join([algorithm, errors, str(n), name, *cells])} |")
        print(lines[-1], flush=True)
    if options.guide:
        write_table("coverage", "predictions", "\n".join(lines))


if __name__ == "__main__":
    main()
