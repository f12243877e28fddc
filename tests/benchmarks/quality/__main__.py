"""Every supervised algorithm with its defaults beside its peer, on the rows of the same tables.

    python -m tests.benchmarks.quality [algorithm or table] …
    python -m tests.benchmarks.quality --public [algorithm or table] …

Both learn from five splits of each table: folds of the bundled ones, new rows of the drawn ones (1,000 to train on, of
`wide` 120 and of `tiny` 40, and 2,000 to test on). Each line has the mean loss of ours and of the peer and their paired
difference with its standard error; beyond two of these it is better or worse. Ours goes the way of a job, from a
pyarrow table and its data sheet to a stored model; the peer has the preparation that its users would give it. The last
table has all tables of an algorithm together: the deviates of its differences (t with 4 degrees of freedom, made
normal) added and divided by the root of their number. Beyond two it loses steadily.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.benchmarks.paired import together

from .contest import Line, contests
from .peers import CLASSES, NUMBERS
from .public import PUBLIC
from .tables import TABLES

ALGORITHMS = sorted({*CLASSES, *NUMBERS})
LOSING = 2.0
"""Standard errors, all tables together."""
STEADY_TABLES, STEADY_SHARE = 3, 0.005
"""Public tables on which an algorithm that loses steadily is worse by a standard error and this share of the loss."""


def main(chosen: Iterable[str] = (), *, public: bool = False) -> list[Line]:
    offered = PUBLIC if public else TABLES
    tables = [name for name in offered if name in chosen] or list(offered)
    algorithms = frozenset(name for name in ALGORITHMS if name in chosen)
    print(f"{'table':21}{'algorithm':27}{'peer':27}{'measure':9}{'ours':>9}{'peer':>9}  ours less peer")
    lines, begun = [], time.monotonic()
    with ProcessPoolExecutor(min(len(tables), os.cpu_count() or 1)) as pool:
        for found in pool.map(partial(contests, algorithms=algorithms), tables):
            for line in found:
                print(shown(line), flush=True)
            lines += found
    print(f"\n{time.monotonic() - begun:.0f} s\n")
    for text in summary(lines):
        print(text)
    return lines


def shown(line: Line) -> str:
    paired = line.paired
    names = f"{line.table:21}{line.algorithm:27}{line.peer:27}{line.measure:9}"
    ending = f"  not converged: {line.unfinished} of {paired.splits}" if line.unfinished else ""
    losses = f"{line.ours:9.4f}{line.theirs:9.4f}{paired.difference:+10.4f} ± {paired.error:.4f}{paired.t:+7.1f}"
    return f"{names}{losses}  {line.verdict}{ending}"


def summary(lines: list[Line]) -> Iterable[str]:
    yield f"{'algorithm':27}{'measure':14}{'better':>7}{'equal':>7}{'worse':>7}{'together':>10}"
    for algorithm, measure in sorted({(line.algorithm, line.measure) for line in lines}):
        own = [line for line in lines if (line.algorithm, line.measure) == (algorithm, measure)]
        verdicts = [line.verdict for line in own]
        counts = "".join(f"{verdicts.count(verdict):7}" for verdict in ("better", "equal", "worse"))
        all_tables = together([line.paired.z if line.matters else 0.0 for line in own])
        steady = sum(one.paired.t > 1 and one.ours > (1 + STEADY_SHARE) * one.theirs for one in own)
        loses = steady >= STEADY_TABLES if own[0].table in PUBLIC else all_tables > LOSING
        mark = "  LOSES" if loses else ""
        yield f"{algorithm:27}{measure:14}{counts}{all_tables:+10.1f}{mark}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.quality", description=__doc__.split("\n")[0])
    parser.add_argument("chosen", nargs="*", choices=[*ALGORITHMS, *TABLES, *PUBLIC, []], metavar="algorithm or table")
    parser.add_argument("--public", action="store_true", help="fifteen public tables, not the bundled and drawn ones")
    arguments = parser.parse_args()
    main(arguments.chosen, public=arguments.public)
