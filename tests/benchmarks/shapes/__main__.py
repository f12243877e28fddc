"""Algorithms beside the fastest rival over shapes of tables: time, memory, and that both did the same work.

    python -m tests.benchmarks.shapes [algorithm …] [--quick] [--threads 2] [--kind dense …] [--rows 1000 …]

Each side is a process of its own; they take turns. Seconds are the median of the turns, of processor time with one
thread and of the clock with more; memory is the peak of what is resident above the drawn table. The ratio is ours
over that of the fastest rival whose result is as good: below 1 ours is faster. Every line has the measures of both,
and the run fails where ours is worse than that of a rival by more than the case allows; a rival whose result is worse
than ours by more than that did less, and is left out of the ratio. The last lines count what is above 1 without a
reason. `--quick` has the shapes of at most 2 million numbers.
"""

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Iterator

from . import families
from .case import Case
from .contest import TURNS, TURNS_OF_QUICK, Outcome, compare, serve
from .tables import KINDS, draw


def family_names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(families.__path__))


def cases_of(family: str) -> list[Case]:
    return list(importlib.import_module(f"{families.__name__}.{family}").cases())


def chosen(given: argparse.Namespace) -> Iterator[tuple[str, Case]]:
    """Family and case of all that were chosen."""
    for family in family_names():
        for case in cases_of(family):
            wanted = (
                (given.algorithms, case.algorithm),
                (given.kind, case.shape.kind),
                (given.rows, case.shape.rows),
                (given.columns, case.shape.columns),
            )
            if all(not values or value in values for values, value in wanted) and (case.shape.quick or not given.quick):
                yield family, case


def faults(case: Case, ours: Outcome, rival: Outcome) -> list[str]:
    """Measures by which ours is worse."""
    return [key for key, measure in case.measures.items() if not measure.accepts(ours.work[key], rival.work[key])]


def show(case: Case, threads: int, outcomes: dict[str, Outcome]) -> tuple[bool, bool]:
    """Whether the result of ours is worse than one of a rival; whether its ratio is above 1 without a reason."""
    ours = outcomes.pop("ours")
    worse = {name: faults(case, ours, rival) for name, rival in outcomes.items()}
    equal = {name: rival for name, rival in outcomes.items() if not faults(case, rival, ours)}
    fastest = min(equal.values(), key=lambda rival: rival.seconds, default=None)
    for name, rival in outcomes.items():
        measures = "  ".join(f"{key} {ours.work[key]:.6g} {rival.work[key]:.6g}" for key in ours.work)
        note = f"  WORSE by {', '.join(worse[name])}" if worse[name] else "" if name in equal else "  rival did less"
        sys.stdout.write(
            f"{case.name:56}{name:24}{threads:2}{ours.seconds:10.4f}{rival.seconds:10.4f}"
            f"{ours.seconds / rival.seconds:8.2f}{ours.peak / 2**20:8.0f}{rival.peak / 2**20:8.0f}  {measures}{note}\n"
        )
    over = fastest is not None and ours.seconds > fastest.seconds
    if over:
        sys.stdout.write(f"{case.name:56}above 1: {case.exception or 'no reason stated'}\n")
    sys.stdout.flush()
    return any(worse.values()), over and not case.exception


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.shapes", description=__doc__.split("\n")[0])
    parser.add_argument("algorithms", nargs="*", metavar="algorithm")
    parser.add_argument("--quick", action="store_true", help="only shapes of at most 2 million numbers")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=[])
    parser.add_argument("--rows", type=int, nargs="+", default=[])
    parser.add_argument("--columns", type=int, nargs="+", default=[])
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    for name in ("--side", "--family", "--case"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        serve(next(case for case in cases_of(given.family) if case.name == given.case), given.side, draw)
        return 0
    cases = list(chosen(given))
    if unknown := set(given.algorithms) - {case.algorithm for _, case in cases}:
        parser.error(f"no cases of {', '.join(sorted(unknown))}")
    if given.list:
        sys.stdout.writelines(f"{case.name}: {', '.join(case.rivals)}\n" for _, case in cases)
        return 0
    sys.stdout.write(
        f"{'case':56}{'rival':24}{'t':>2}{'ours s':>10}{'rival s':>10}{'ratio':>8}{'MiB':>8}{'MiB':>8}  measures\n"
    )
    results = []
    for family, case in cases:
        outcomes = dict(compare(family, case, given.threads, TURNS_OF_QUICK if given.quick else TURNS))
        results.append(show(case, given.threads, outcomes))
    worse, over = (sum(column) for column in zip(*results, strict=True))
    sys.stdout.write(f"{len(results)} cases: {worse} with a worse result, {over} above 1 without a reason\n")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
