"""Learners made of learners: what may stand inside what, and how the inner ones are fitted."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from app.errors import Fault
from app.ml.catalogue import Entry, find
from app.ml.contract import Accepts, Algorithm, Context, Data, Learned, Learner, Params, Progress, Task, silent

DEEPEST = 4
"""Learners within learners; each level multiplies the fits."""


def context(seed: int, progress: Progress = silent) -> Context:
    """What a fit may use, learners of the catalogue among it."""
    return _context(Context.of(seed).rng, progress)


def _context(rng: np.random.Generator, progress: Progress) -> Context:
    def fit(spec: Learner, data: Data) -> Learned:
        algorithm = entry_of(spec).algorithm
        (own,) = rng.spawn(1)
        return Learned(algorithm, spec, algorithm.fit(spec, data, _context(own, silent)).state)

    return Context(rng, progress, fit)


def entry_of(spec: Learner) -> Entry:
    """The catalogue's entry of it."""
    return find(spec.name)


def accepts(algorithm: Algorithm[Any, Any], params: Params, task: Task) -> frozenset[Accepts]:
    """What preparation may leave alone, for the algorithm and all within it."""
    if algorithm.members is None:
        return frozenset(algorithm.accepts)
    inner = [accepts(entry_of(one.spec).algorithm, one.spec, one.task) for one in algorithm.members(params, task)]
    return frozenset.intersection(*inner) if inner else frozenset()


def faults(
    algorithm: Algorithm[Any, Any], params: Params, task: Task, at: str, kinds: Mapping[str, str], *, depth: int = 0
) -> Iterator[Fault]:
    """Members that cannot do what they are wanted for, or not with inputs of these kinds, however deep."""
    for fault in algorithm.faults(params, kinds) if algorithm.faults else ():
        yield fault._replace(pointer=f"{at}{fault.pointer}")
    for member in algorithm.members(params, task) if algorithm.members else ():
        where, entry = f"{at}{member.pointer}", entry_of(member.spec)
        if depth == DEEPEST:
            yield Fault(where, f"Learners may stand in learners {DEEPEST} deep.", "too_deep")
        elif member.task not in entry.algorithm.tasks:
            yield Fault(f"{where}/name", f"{entry.name} does not do {member.task}, which is needed here.")
        else:
            yield from faults(entry.algorithm, member.spec, member.task, where, kinds, depth=depth + 1)
