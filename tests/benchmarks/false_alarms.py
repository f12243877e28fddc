"""Model-years of monitoring without drift, and planted shifts: alarms a year, and days until a shift is found.

    python -m tests.benchmarks.false_alarms [--years 2000] [--processes 1]

A model-year is a year of windows of one reference: columns of numbers with and without ties and gaps, and of
categories, whose bins are learned from m rows and whose true shares are drawn anew for each model. One false alarm a
year is allowed for all streams together.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy import stats

from app.ml.monitoring.column_bins import level_column, number_column
from app.ml.statistics.e_detector import accumulate, threshold
from app.ml.statistics.population_stability import compare_shares

DAY = 86_400


class Case(NamedTuple):
    rows: int
    """Rows of a window."""
    seconds: int
    columns: int
    reference_rows: int
    share: float
    """Share of all model-years."""


CASES = [
    Case(50, DAY, 5, 1_000, 0.2),
    Case(200, DAY, 5, 10_000, 0.2),
    Case(200, DAY, 50, 2_000, 0.03),
    Case(1_000, DAY, 50, 10_000, 0.05),
    Case(10_000, DAY, 5, 1_000, 0.3),
    Case(10_000, DAY, 50, 10_000, 0.05),
    Case(1_000, 3_600, 5, 10_000, 0.02),
]


def drawn_streams(case, rng):
    """Reference counts and true shares of each stream: values of columns, and shares of missing values."""
    streams = []
    for place in range(case.columns):
        gaps = (0.0, 0.1)[place % 2]
        if place % 3 == 2:
            shares = rng.dirichlet(np.ones(12))
            codes = rng.choice(12, case.reference_rows, p=shares).astype(float)
            codes[rng.random(codes.size) < gaps] = np.nan
            column = level_column(f"c{place}", codes, [str(code) for code in range(12)])
            truth = shares[[int(level) for level in column.levels]]
            truth = np.append(truth, max(0.0, 1 - truth.sum()))
        else:
            values = rng.normal(size=case.reference_rows)
            values = np.round(values) if place % 3 == 1 else values
            values[rng.random(values.size) < gaps] = np.nan
            column = number_column(f"c{place}", values, quantiles=False)
            edges = np.array(column.edges)
            below = stats.norm.cdf(np.floor(edges) + 0.5 if place % 3 == 1 else edges)
            truth = np.diff(np.concatenate([[0.0], below, [1.0]]))
        streams += [
            (np.array(column.counts), truth / truth.sum()),
            (np.array([sum(column.counts), column.missing]), np.array([1 - gaps, gaps])),
        ]
    return streams


def alarms_of(case, streams, windows, rng):
    """Window and stream of each alarm."""
    limit, evidence = threshold(len(streams), case.seconds, 1.0), np.ones(len(streams))
    for window in range(windows):
        for place, (reference, truth) in enumerate(streams):
            counts = rng.multinomial(case.rows, truth).astype(float)
            evidence[place] = accumulate(evidence[place], compare_shares(counts, reference, rng).p)
            if evidence[place] >= limit:
                evidence[place] = 1.0
                yield window, place


def model_year(case, seed):
    """False alarms of a year."""
    rng = np.random.default_rng(seed)
    return len([*alarms_of(case, drawn_streams(case, rng), int(365.25 * DAY / case.seconds), rng)])


def days_until_found(psi, rows, seed, columns=30, reference_rows=10_000):
    """Days until a shift of this index in the first column raises its alarm; 30 where it does not."""
    rng = np.random.default_rng(seed)
    case = Case(rows, DAY, columns, reference_rows, 0)
    (reference, shares), *others = drawn_streams(case, rng)
    direction = np.repeat([1.0, -1.0], [shares.size // 2, shares.size - shares.size // 2])
    low, high = 0.0, 0.999
    for _ in range(60):
        step = (low + high) / 2
        moved = shares * (1 + step * direction)
        moved /= moved.sum()
        low, high = (step, high) if ((moved - shares) * np.log(moved / shares)).sum() < psi else (low, step)
    streams = [(reference, moved), *others]
    return next((window + 1 for window, place in alarms_of(case, streams, 30, rng) if place == 0), 30)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    total = 0
    whole = sum(case.share for case in CASES)
    with ProcessPoolExecutor(options.processes) as pool:
        for psi, rows in ((0.1, 1000), (0.5, 200)):
            days = sorted(pool.map(days_until_found, [psi] * 100, [rows] * 100, range(100), chunksize=5))
            print(f"PSI {psi} at {rows} rows a day: median {days[49]} days, 90 % within {days[89]}", flush=True)
        for case in CASES:
            years = max(1, round(options.years * case.share / whole))
            alarms = sum(pool.map(model_year, [case] * years, range(years), chunksize=4))
            total += alarms
            upper = stats.chi2.ppf(0.975, 2 * alarms + 2) / 2 / years
            print(f"{case}: {alarms} alarms in {years} years, at most {upper:.3f} a year (97.5 %)", flush=True)
    print(f"{total} alarms in {options.years} model-years; {options.years} were allowed")


if __name__ == "__main__":
    main()
