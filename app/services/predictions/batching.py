"""Small predictions that arrive together are computed together, and no caller notices.

Only for algorithms that predict a row with the same bits among any other rows (`Algorithm.rowwise`). What is read,
refused, written, timed and returned is each caller's own: a batch is rows, nothing else.
"""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from app.base.settings import Settings
from app.ml.contract.algorithm import Matrix
from app.ml.models.model import Model, Predicted


class _Waiting(NamedTuple):
    raw: Matrix
    begin: Callable[[], None]
    found: "asyncio.Future[Predicted]"


class _Batch:
    """Rows for one model, and who waits for them."""

    timer: asyncio.Handle

    def __init__(self, model: Model) -> None:
        self.model = model
        self.waiting: list[_Waiting] = []
        self.rows = 0


class Batching:
    """Batches of one event loop: at most one open for each model in memory.

    A batch is closed when it is full or its time is up, and computed at once. Without time to wait, it holds what one
    turn of the event loop has read from all connections, and nobody waits for anybody who is still sending.
    """

    def __init__(self, settings: Settings) -> None:
        self._most = settings.batch_rows
        self._seconds = settings.batch_wait_seconds
        self._open: dict[int, _Batch] = {}

    def takes(self, model: Model) -> bool:
        """True if `predict` may be called."""
        return self._most > 0 and model.algorithm.rowwise and not model.preparation.sparse

    async def predict(self, model: Model, raw: Matrix, begin: Callable[[], None]) -> Predicted:
        """The result of `model.predict_raw(raw)`, to the bit. `begin` is called when it is computed, if it ever is."""
        if len(raw) >= self._most:
            begin()
            return model.predict_raw(raw)
        batch = self._open.get(id(model))
        if batch is not None and batch.rows + len(raw) > self._most:
            self._close(batch)
            batch = None
        if batch is None:
            batch = self._opened(model)
        request = _Waiting(raw, begin, asyncio.get_running_loop().create_future())
        batch.waiting.append(request)
        batch.rows += len(raw)
        if batch.rows >= self._most:
            self._close(batch)
        return await request.found

    def _opened(self, model: Model) -> _Batch:
        loop, batch = asyncio.get_running_loop(), _Batch(model)
        self._open[id(model)] = batch
        if self._seconds:
            batch.timer = loop.call_later(self._seconds, self._close, batch)
        else:
            batch.timer = loop.call_soon(self._close, batch)
        return batch

    def _close(self, batch: _Batch) -> None:
        batch.timer.cancel()
        del self._open[id(batch.model)]
        present = [request for request in batch.waiting if not request.found.done()]  # whoever left is not computed for
        for request in present:
            request.begin()
        try:
            _compute(batch.model, present)
        except Exception:  # noqa: BLE001  whatever it is, it may be one caller's fault: each gets an outcome of its own
            for request in present:
                _compute_alone(batch.model, request)


def _compute(model: Model, present: list[_Waiting]) -> None:
    if not present:
        return
    predicted = model.predict_raw(np.concatenate([request.raw for request in present]))
    edges = np.cumsum([0, *(len(request.raw) for request in present)]).tolist()
    parts = [predicted.part(start, stop) for start, stop in pairwise(edges)]
    for request, part in zip(present, parts, strict=True):
        request.found.set_result(part)


def _compute_alone(model: Model, request: _Waiting) -> None:
    try:
        request.found.set_result(model.predict_raw(request.raw))
    except Exception as error:  # noqa: BLE001  it is raised where the caller waits
        request.found.set_exception(error)
