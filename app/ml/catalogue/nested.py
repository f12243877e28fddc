"""Learners made of learners: what may stand inside what, and how the inner ones are fitted."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from app.base.faults import Fault
from app.ml.catalogue.algorithm_files import Entry, find
from app.ml.contract.algorithm import (
    Accepts,
    Algorithm,
    Context,
    Each,
    FittedLearner,
    Inputs,
    Learner,
    NestedFit,
    Params,
    Progress,
    Size,
    TargetKind,
    Task,
    in_turn,
    silent,
)
from app.ml.contract.response_metric import ResponseMetric

MAX_NESTING = 4
"""Learners within learners; each level multiplies the fits."""
MEMBER_ROW_BYTES = 64.0
"""Most memory that a fitted member takes for each of its rows, as a tree with a leaf for every row does."""


def context(seed: int, progress: Progress = silent, each: Each = in_turn) -> Context:
    """The context of a fit, learners of the catalogue among it. each: of whoever has processes to spare."""
    return _context(Context.of(seed).rng, progress, each)


def _context(rng: np.random.Generator, progress: Progress = silent, each: Each = in_turn) -> Context:
    """Learners within the outermost do one thing after the other: their neighbours are done at once already."""

    def fit_all(fits: Sequence[NestedFit]) -> Iterator[FittedLearner]:
        generators = rng.spawn(len(fits))
        tasks = [partial(_learned, fit, generator) for fit, generator in zip(fits, generators, strict=True)]
        for place, learned in enumerate(each(FittedLearner, tasks), 1):
            yield learned
            progress(place / len(tasks))

    return Context(rng, progress, fit_all, each)


def _learned(fit: NestedFit, rng: np.random.Generator) -> FittedLearner:
    algorithm, data = entry_of(fit.spec).algorithm, fit.data()
    spec = algorithm.for_task(fit.spec, data.task)
    return FittedLearner(algorithm, spec, algorithm.fit(spec, data, _context(rng)).state)


def entry_of(spec: Learner) -> Entry:
    """The catalogue's entry of it."""
    return find(spec.name)


def accepts(algorithm: Algorithm[Any, Any], params: Params, task: Task) -> frozenset[Accepts]:
    """Inputs that preparation may leave alone, for the algorithm and all within it."""
    own_kinds = frozenset(algorithm.accepts)
    if algorithm.members is None or algorithm.reads:
        return own_kinds
    members = [member for member in algorithm.members(params, task) if not member.above]
    inner = [accepts(entry_of(member.spec).algorithm, member.spec, member.task) for member in members]
    return own_kinds.union(frozenset.intersection(*inner)) if inner else own_kinds


def through_origin(algorithm: Algorithm[Any, Any], params: Params, task: Task) -> bool:
    """True if the algorithm, or a learner within it, has no intercept that could take up a shift of the columns."""
    members = algorithm.members(params, task) if algorithm.members else ()
    within = (
        through_origin(entry_of(member.spec).algorithm, member.spec, member.task)
        for member in members
        if not member.above
    )
    return algorithm.through_origin(params) or any(within)


def degrees(algorithm: Algorithm[Any, Any], params: Params) -> bool:
    """True if shares of classes are degrees instead of probabilities: the algorithm's own, or those averaged."""
    members = algorithm.members(params, Task.of_target(TargetKind.CLASSES)) if algorithm.members else ()
    makers = [member for member in members if member.above] or members
    within = (degrees(entry_of(maker.spec).algorithm, maker.spec) for maker in makers if maker.task.of_classes)
    return algorithm.degrees(params) or any(within)


def classifies(algorithm: Algorithm[Any, Any], params: Params) -> bool:
    """True if the algorithm predicts classes, and every learner within it that has to."""
    task = Task.of_target(TargetKind.CLASSES)
    members = algorithm.members(params, task) if algorithm.members and task in algorithm.tasks else ()
    inner = (classifies(entry_of(member.spec).algorithm, member.spec) for member in members if member.task is task)
    return task in algorithm.tasks and all(inner)


def offers(algorithm: Algorithm[Any, Any], params: Params, task: Task, query: str) -> bool:
    """True if the algorithm, and every learner within it, has a function for this query."""
    members = algorithm.members(params, task) if algorithm.members else ()
    within = (offers(entry_of(member.spec).algorithm, member.spec, member.task, query) for member in members)
    return query in algorithm.queries and all(within)


class Meaning(NamedTuple):
    """The meaning of a model's predictions, so that no metric takes them for something else."""

    degrees: bool = False
    """Shares of classes are not probabilities."""
    through_origin: bool = False
    """Numbers are of a fit without an intercept."""
    metric: ResponseMetric | None = None
    """Metric of the loss that numbers minimise; None: none beside those of all regressions."""


PLAIN = Meaning()


def meaning(algorithm: Algorithm[Any, Any], params: Params, task: Task) -> Meaning:
    if task.of_classes:
        return Meaning(degrees=degrees(algorithm, params))
    return Meaning(through_origin=algorithm.through_origin(params), metric=algorithm.response_metric(params))


def seconds(algorithm: Algorithm[Any, Any], params: Params, task: Task, size: Size) -> float:
    """About how long a fit takes, with all fits of learners within it, one after the other, and as many predictions."""
    total = algorithm.seconds(params, size)
    for member in algorithm.members(params, task) if algorithm.members else ():
        count, each = member.fits(size)
        each = each._replace(rows=max(1.0, each.rows), columns=max(1.0, each.columns))
        total += count * seconds(entry_of(member.spec).algorithm, member.spec, member.task, each)
    return total


def memory(algorithm: Algorithm[Any, Any], params: Params, task: Task, size: Size) -> float:
    """Bytes that a fit takes beyond its rows, with the largest fit of a learner within it and what all of them keep."""
    largest = kept_bytes = 0.0
    for member in algorithm.members(params, task) if algorithm.members else ():
        count, each = member.fits(size)
        each = each._replace(rows=max(1.0, each.rows), columns=max(1.0, each.columns))
        fit_bytes = memory(entry_of(member.spec).algorithm, member.spec, member.task, each)
        largest = max(largest, fit_bytes)
        kept_bytes += count * min(fit_bytes, MEMBER_ROW_BYTES * each.rows)
    return algorithm.memory(params, size) + largest + kept_bytes


def faults(
    algorithm: Algorithm[Any, Any], params: Params, task: Task, pointer: str, inputs: Inputs, *, depth: int = 0
) -> Iterator[Fault]:
    """Members that cannot do what they are wanted for, or not with a table of these inputs, however deep."""
    for fault in algorithm.faults(params, inputs) if algorithm.faults else ():
        yield fault._replace(pointer=f"{pointer}{fault.pointer}")
    for member in algorithm.members(params, task) if algorithm.members else ():
        where, entry = f"{pointer}{member.pointer}", entry_of(member.spec)
        if depth == MAX_NESTING:
            yield Fault(where, f"Learners may stand in learners {MAX_NESTING} deep.", "too_deep")
        elif member.task not in entry.algorithm.tasks:
            yield Fault(f"{where}/name", f"{entry.name} does not do {member.task}, which is needed here.")
        elif not member.task.supervised and not entry.algorithm.target_use(member.task).takes(has_target=False):
            yield Fault(f"{where}/name", f"{entry.name} needs a target, and here it has none.")
        else:
            ends = inputs.target_ends if member.task is task else ()
            within = Inputs({} if member.above else inputs.kinds, member.fits(inputs.size)[1], target_ends=ends)
            yield from faults(entry.algorithm, member.spec, member.task, where, within, depth=depth + 1)
