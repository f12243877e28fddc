"""Tasks in forks that are ended when their time is up."""

import math
import os
import time
from typing import NamedTuple

import numpy as np
import psutil
import pytest

from app.processes.processor_cores import Cores
from workers.timed_forks import TimedForks


class Made(NamedTuple):
    process: int
    numbers: np.ndarray


def make(place):
    return lambda: Made(os.getpid(), np.arange(float(place)))


def hang():
    while True:
        time.sleep(60)


def die():
    os._exit(3)


@pytest.fixture(params=[1, 3])
def forks(tmp_path, request):
    cores = Cores(str(tmp_path), request.param)
    with cores.take():
        yield TimedForks(cores, lambda: None)


def children():
    """Processes of this one; servers that other tests began are among them."""
    return set(psutil.Process().children())


def test_results_come_in_their_order_from_other_processes(forks):
    outcomes = list(forks(Made, [make(place) for place in range(7)], lambda _: math.inf))
    assert [outcome.result.numbers.size for outcome in outcomes] == list(range(7))
    assert os.getpid() not in {outcome.result.process for outcome in outcomes}


def test_what_hangs_is_ended_and_what_dies_is_reported(forks):
    limits, before = {1: 0.3, 3: 0.0}, children()
    hung, died = hang, die
    tasks = [make(1), hung, died, make(2), make(4)]
    one, late, dead, unbegun, last = forks(Made, tasks, lambda place: limits.get(place, math.inf))
    assert (one.result.numbers.size, last.result.numbers.size) == (1, 4)
    assert (late.result, late.late, late.begun) == (None, True, True)
    assert (dead.result, dead.late, dead.begun) == (None, False, True)
    assert (unbegun.result, unbegun.begun) == (None, False)
    assert children() <= before


def test_whoever_stops_listening_leaves_no_process(forks):
    before, outcomes = children(), forks(Made, [make(1), hang, hang], lambda _: math.inf)
    next(outcomes)
    outcomes.close()
    assert children() <= before
