"""CPU seconds and errors of self-organising maps beside MiniSom, on one thread.

Needs the package minisom. Run `python tests/benchmarks/fit_som.py`; a ratio is ours over theirs. The goal is at most
0.2 for ten epochs of the batch mode. The grid and the first radius are the same; MiniSom has another course of the
radius and of the steps, so the errors, mean distances to the nearest prototype, only show that both learn.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import numpy as np
from minisom import MiniSom
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler

from app.ml.algorithms import som
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.maps.self_organising import places

ROWS, COLUMNS, SIDE = 20_000, 10, 20
EPOCHS = {"batch": 10, "online": 1}
RADII = {"radius_start": 3.0, "radius_end": 0.6}
TIMES = 3


def best(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of the fastest run, and its prototypes."""
    spent = []
    for _ in range(TIMES):
        begun = time.process_time()
        prototypes = run()
        spent.append(time.process_time() - begun)
    return min(spent), prototypes


def ours(x: Any, mode: Any) -> Any:
    params = som.SOM(grid_height=SIDE, grid_width=SIDE, topology="square", mode=mode, epochs=EPOCHS[mode], **RADII)
    return som.fit(params, Data.of(Task.CLUSTERING, x), Context.of(0)).state.prototypes


def theirs(x: Any, mode: str) -> Any:
    rival = MiniSom(SIDE, SIDE, COLUMNS, sigma=RADII["radius_start"], learning_rate=0.5, random_seed=0)
    rival.random_weights_init(x)
    if mode == "batch":
        rival.train_batch_offline(x, EPOCHS[mode])
    else:
        rival.train(x, EPOCHS[mode] * len(x))
    return rival.get_weights().reshape(-1, COLUMNS)


if __name__ == "__main__":
    x = StandardScaler().fit_transform(make_blobs(ROWS, COLUMNS, centers=10, random_state=19)[0])
    shown = f"{ROWS} x {COLUMNS}, {SIDE} x {SIDE} cells"
    sys.stdout.write(f"numpy {np.__version__}, minisom {version('minisom')}, {shown}\n")
    for mode, epochs in EPOCHS.items():
        ours(x[:50], mode)  # what is compiled at the first call is not counted
        spent, errors = [], []
        for run in (partial(ours, x, mode), partial(theirs, x, mode)):
            seconds, prototypes = best(run)
            spent.append(seconds)
            errors.append(places(x, np.ascontiguousarray(prototypes)).distance.mean())
        line = f"ours {spent[0]:7.3f} s, error {errors[0]:.4f}; theirs {spent[1]:7.3f} s, error {errors[1]:.4f}"
        sys.stdout.write(f"{mode:7} epochs {epochs:3}: {line}; ratio {spent[0] / spent[1]:.3f}\n")
