"""Fits of ours at a given number of threads, for cases."""

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from app.ml.contract.algorithm import Context, Data

from .contest import THREAD_VARIABLES


def module_of(algorithm: str) -> Any:
    return importlib.import_module(f"app.ml.algorithms.{algorithm}")


def context() -> Context:
    """With as many threads for independent tasks as the process was started with."""
    threads = int(os.environ.get(THREAD_VARIABLES[0], "1"))

    def each(_kind: type[Any], tasks: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(lambda task: task(), tasks)

    return Context.of(0) if threads == 1 else replace(Context.of(0), each=each)


def fit(algorithm: str, params: Any, data: Data) -> Any:
    """The state of a fit."""
    module = module_of(algorithm)
    return module.fit(params, data, context()).state
