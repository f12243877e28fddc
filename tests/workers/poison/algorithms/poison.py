"""Ends in the way that its parameter names.

Use when: a test asks what becomes of the others.

References: none.
"""

import ctypes
import os
import sys
import time
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Algorithm, Context, Data, Fit, Matrix, Params, Task, Vector

SECRET = "correct horse battery staple"


class Poison(Params):
    how: Literal[
        "segfault", "abort", "os_exit", "sys_exit", "memory_error", "allocate", "exception", "invalid",
        "unstorable", "loop", "loop_holding_the_lock", "chatter", "work",
    ] = Field("work", description="What happens.")  # fmt: skip
    seconds: float = Field(0, ge=0, description="How long it works.")


class State(NamedTuple):
    mean: float


def fit(params: Poison, data: Data, context: Context) -> Fit[State]:
    warnings = globals()[params.how](params, context)
    return Fit(State(float(data.y.mean())), warnings=warnings or [])


def predict(params: Poison, state: State, x: Matrix) -> Vector:
    return np.full(len(x), state.mean)


def segfault(params, context):
    ctypes.string_at(0)


def abort(params, context):
    os.abort()


def os_exit(params, context):
    os._exit(3)


def sys_exit(params, context):
    sys.exit(4)


def memory_error(params, context):
    raise MemoryError


def allocate(params, context):
    kept = []
    while True:
        kept.append(np.ones(1 << 20))


def exception(params, context):
    raise RuntimeError(SECRET)


def invalid(params, context):
    raise InvalidData("These rows will not do.")


def unstorable(params, context):
    return ["A character that no text of Postgres has: \0"]


def loop(params, context):
    while True:
        pass


def loop_holding_the_lock(params, context):
    ctypes.PyDLL(None).sleep(10_000)


def chatter(params, context):
    print("not a frame")  # noqa: T201 - to see where it goes
    os.write(1, b"\xff" * 100_000)
    os.system("echo neither; echo nor this >&2")


def work(params, context):
    begun = time.monotonic()
    while (spent := time.monotonic() - begun) < params.seconds:
        context.progress(spent / params.seconds, loss=1 / (1 + spent))
        time.sleep(0.02)


ALGORITHM = Algorithm(tasks={Task.REGRESSION}, params=Poison, state=State, fit=fit, predict=predict)
