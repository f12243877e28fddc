"""Predictions from the process's own memory, else from Redis, else from Postgres."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.settings import KiB, MiB, Settings
from app.base.suggestions import no_such
from app.formats.json import as_json
from app.formats.prediction import NO_EXTRAS, Extras, WrittenPrediction
from app.ml.contract.algorithm import Matrix
from app.ml.contract.model_reference import VersionRef
from app.ml.evaluation.rejection import Policy
from app.ml.models.contributions import CONTRIBUTIONS, INTERVENTIONAL, demand_contributions
from app.ml.models.included_outputs import predict_with
from app.ml.models.model import Model, Predicted
from app.ml.tables.rows import Incoming
from app.services.kernels.kernel_loading import Compiling
from app.services.predictions.batching import Batching
from app.services.predictions.model_memory import ModelMemory
from app.services.predictions.pointer_cache import Found
from app.services.predictions.prediction_counts import Level, Tally
from app.services.threads.single_flight import SingleFlight, within
from app.store.models.pointer import ANY, Freshness, Pointer

_UNTIMED = nullcontext()
SMALL_BODY, SMALL_MODEL = 64 * KiB, 8 * MiB
"""A small body for a small model takes less time than the switch to a thread and back may cost, unless it took longer
before."""
SMALL_SECONDS = 1e-3
"""Processor time up to which a small body stays on the event loop, at the pace of those of like size to this version
before. All that arrive in one turn of the loop are processed in it, one after the other, and their responses leave at
its end: with 256 connections a second passes where each takes 4 ms, and threads release the lock of the interpreter."""
QUICK_SECONDS, MEMORY, MAX_PACES = 1e-3, 0.9, 10_000
"""Processor time up to which a larger one of plain numbers stays there too, at the pace of the slowest of late: what
one of them took counts less with each that follows."""
STEP = 1.5
"""Factor by which a measured time moves the pace of small bodies, so that this is about their median: a pause of the
process, or code that is loaded, is no sign of those that follow."""
MEASURED_SHARE = 16
"""One in so many small bodies for small models is measured: measuring costs as much as reading some of them."""
PROBE_SECONDS = 1.0
"""Seconds between checks of the database by a request that waits for a model."""
LOADS = 2
"""Models read at a time, per process: the bound on the reads of cold requests from Postgres."""


class Served(NamedTuple):
    """A version, and its model in memory."""

    pointer: Pointer
    model: Model
    stale_seconds: int | None = None
    """Age of a pointer that could not be renewed; None for a fresh one."""


Offer: TypeAlias = Callable[[Pointer, Model, pa.Table | Matrix, Predicted], None]
"""Takes rows and their predictions for a log, without waiting."""


def offer_nothing(pointer: Pointer, model: Model, table: pa.Table | Matrix, predicted: Predicted) -> None:
    """Log nothing."""


class Pointing(Protocol):
    """Versions that references mean, as `pointer_cache.Pointers` finds them in the database."""

    def at_hand(self, reference: VersionRef, demand: Freshness = ANY) -> Found | None: ...

    async def current(self, reference: VersionRef, demand: Freshness = ANY) -> Found: ...

    async def demand_database(self, reference: VersionRef) -> None: ...


class Predictions:
    def __init__(
        self,
        pointers: Pointing,
        load: Callable[[Pointer], Model],
        settings: Settings,
        tally: Tally,
        *,
        offer: Offer = offer_nothing,
    ) -> None:
        """load: a model that is not in memory, from where it is stored. offer: takes what was predicted, for a log."""
        self._offer = offer
        self.pointers, self._load_stored, self.tally = pointers, load, tally
        self.memory = ModelMemory(settings.model_memory_bytes)
        self._loads: SingleFlight[str, Model] = SingleFlight(LOADS, "models")
        self._batching = Batching(settings)
        self._compiling = Compiling()
        self._paces: dict[tuple[str, int], float] = {}
        """Seconds a byte, by digest and order of magnitude of the body."""
        self._unmeasured = 0

    async def serve(
        self, model: str, version: int | None = None, alias: str | None = None, demand: Freshness = ANY
    ) -> Served:
        """The version that is meant, ready to predict. While another thread reads the database, the event loop is free.

        Raises ModelNotFound, VersionNotFound, AliasNotFound, RevisionNotReached, DatabaseUnavailable, CorruptModel,
        GoldenMismatch.
        """
        return await self.ready(wanted_of(model, version, alias, demand), demand)

    async def ready(self, reference: VersionRef, demand: Freshness = ANY) -> Served:
        """The model as of `serve`."""
        current = await self.pointers.current(reference, demand)
        model = self.memory.get(current.pointer.digest)
        if model is None:
            self.tally.looked_up(Level.MEMORY, is_hit=False)
            return Served(current.pointer, await self._loaded(reference, current), current.stale_seconds)
        self.tally.found_in_memory += 1
        return Served(current.pointer, model, current.stale_seconds)

    def at_hand(
        self, reference: VersionRef, size: int, seconds: float | None, demand: Freshness = ANY, *, plain: bool = False
    ) -> Served | None:
        """The model as of `ready`, if a body of so many bytes can be processed without waiting for anything or anybody.

        seconds: the caller's deadline, if there is one: such a request may wait. plain: whether it is numbers and
        nothing else, so that its size shows how much there is to do.
        """
        self._compiling.came(size)
        current = self.pointers.at_hand(reference, demand) if seconds is None else None
        if current is None:
            return None
        pointer, stale_seconds = current
        model = self.memory.get(pointer.digest)
        if model is None or self._batching.takes(model):
            return None
        served = Served(pointer, model, stale_seconds)
        if (plain or size <= SMALL_BODY) and self.is_quick(served, size):
            self.tally.found_in_memory += 1
            return served
        return None

    def is_quick(self, served: Served, size: int) -> bool:
        """True if a body of so many bytes is best processed on the event loop."""
        pace = self._paces.get((served.pointer.digest, size.bit_length()))
        if pace is None:
            return size <= SMALL_BODY and served.model.nbytes <= SMALL_MODEL
        return size * pace <= (SMALL_SECONDS if size <= SMALL_BODY else QUICK_SECONDS)

    def seconds(self, served: Served, size: int) -> float | None:
        """Time that a small body of so many bytes takes, as others did; None for a large one."""
        if size > SMALL_BODY:
            return None
        pace = self._paces.get((served.pointer.digest, size.bit_length()))
        return SMALL_SECONDS if pace is None else size * pace

    def paced(self, served: Served, size: int, *, plain: bool) -> AbstractContextManager[None]:
        """Around a body of so many bytes, from reading to writing: how long it takes is remembered.

        And forgotten slowly: a version that was slow once, and be it in refusing, is not trusted for some time.
        """
        if size > SMALL_BODY:
            return self._timed(served, size) if plain and served.model.preparation.numbers is not None else _UNTIMED
        if served.model.nbytes <= SMALL_MODEL:
            self._unmeasured = (self._unmeasured + 1) % MEASURED_SHARE
            if self._unmeasured:
                return _UNTIMED
        return self._timed(served, size)

    @contextmanager
    def _timed(self, served: Served, size: int) -> Iterator[None]:
        begun = time.thread_time()
        try:
            yield
        finally:
            if len(self._paces) >= MAX_PACES:
                self._paces.clear()
            key, pace = (served.pointer.digest, size.bit_length()), (time.thread_time() - begun) / max(1, size)
            before = self._paces.get(key)
            if size > SMALL_BODY:
                pace = max(pace, MEMORY * (before or 0.0))
            elif before is not None or served.model.nbytes <= SMALL_MODEL:
                before = before or SMALL_SECONDS / STEP**2 / max(1, size)
                pace = min(max(pace, before / STEP), before * STEP)
            self._paces[key] = pace

    async def _loaded(self, reference: VersionRef, current: Found) -> Model:
        if current.stale_seconds is not None:
            await self.pointers.demand_database(reference)
        flight = self._loads.join(current.pointer.digest, lambda: self._load(current.pointer))
        while not await within(flight, PROBE_SECONDS):
            await self.pointers.demand_database(reference)
        return flight.result()

    def respond(
        self,
        served: Served,
        incoming: Incoming,
        extras: Extras = NO_EXTRAS,
        write: Callable[..., WrittenPrediction] = as_json,
    ) -> WrittenPrediction:
        """`write`: writes the response in its format, as `app.formats.json.as_json` does for JSON."""
        predicted = None
        if incoming.good.size:
            predicted = predict_with(served.model, incoming.table, extras.include, extras.confidence)
            self._offer(served.pointer, served.model, incoming.table, predicted)
        return write(served.pointer, served.model, incoming, predicted, extras)

    async def predict_small(
        self,
        served: Served,
        incoming: Incoming,
        begin: Callable[[], None],
        extras: Extras,
        write: Callable[..., WrittenPrediction],
    ) -> WrittenPrediction:
        """The same bytes as `respond`; `begin` is called as the computation begins."""
        if not incoming.good.size or extras.confidence is not None or extras.include:
            begin()
            return self.respond(served, incoming, extras, write)
        table = incoming.table
        raw = table if isinstance(table, np.ndarray) else served.model.preparation.raw(table)
        predicted = await self.predicted(served, raw, begin)
        return write(served.pointer, served.model, incoming, predicted, extras)

    async def predicted(self, served: Served, raw: Matrix, begin: Callable[[], None]) -> Predicted:
        """For a small raw matrix (n, p): with the rows of other requests where that changes no bit, else alone."""
        if self._batching.takes(served.model):
            result = await self._batching.predict(served.model, raw, begin)
        else:
            begin()
            result = served.model.predict_raw(raw)
        self._offer(served.pointer, served.model, raw, result)
        return result

    def _load(self, pointer: Pointer) -> Model:
        loaded = self.memory.get(pointer.digest)  # landed between the caller's look and now
        if loaded is not None:
            return loaded
        begun = time.perf_counter()
        model = self._load_stored(pointer)
        self.memory.put(pointer.digest, model)
        self.tally.loaded(time.perf_counter() - begun)
        return model


def check_extras(served: Served, extras: Extras) -> None:
    """Raises NoInterval, NoContributions, InvalidRequest if the model cannot do so."""
    if extras.top is not None and not extras.explains:
        raise InvalidRequest(faults=[Fault("/query/top", f"Reasons need include={CONTRIBUTIONS}.")])
    if extras.method is not None:
        demand_contributions(served.model, extras.method)
    if extras.include:
        offered = served.model.algorithm.outputs
        unknown = [name for name in extras.include if name not in (*offered, CONTRIBUTIONS, INTERVENTIONAL)]
        if unknown:
            raise InvalidRequest(faults=[Fault("/query/include", _no_output(name, offered)) for name in unknown])
    if extras.confidence is not None:
        _ = served.model.interval
    if extras.policy is not None:
        check_policy(served, extras.policy)


def _no_output(name: str, offered: Collection[str]) -> str:
    if not offered:
        return "This model has no outputs beside its predictions."
    return f"{no_such('The model has no output', name, offered)} It has {', '.join(sorted(offered))}."


def check_policy(served: Served, policy: Policy) -> None:
    """Raises InvalidRequest if the model cannot decide so."""
    classes = served.model.classes
    if classes is None:
        raise InvalidRequest(faults=[Fault("/query", "Only a classification can be rejected or have costs.")])
    faults = [Fault(f"/query/{rule}", detail) for rule, detail in policy.faults(len(classes))]
    if faults:
        raise InvalidRequest(faults=faults)


def wanted_of(model: str, version: int | None, alias: str | None, demand: Freshness = ANY) -> VersionRef:
    """demand: that of X-Min-Revision and X-Min-Version. Raises InvalidRequest for what excludes each other."""
    faults = []
    if version is not None and alias is not None:
        faults += [Fault("/query/alias", "Give a version or an alias, not both.")]
    if version is not None and demand.revision:
        detail = "A version never moves; send X-Min-Revision with an alias, or without a version."
        faults += [Fault("/header/X-Min-Revision", detail)]
    if demand.version and (version is not None or alias is not None):
        detail = "It is of the newest version; leave it out where a version or an alias is chosen."
        faults += [Fault("/header/X-Min-Version", detail)]
    if faults:
        raise InvalidRequest(faults=faults)
    return VersionRef(model, version, alias)
