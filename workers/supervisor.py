"""One attempt, watched from outside: heartbeat, deadline, cancel, memory limit, and what became of it.

The trainer may hold its interpreter's lock, loop in C or die; the heart beats here.
"""

import contextvars
import json
import os
import selectors
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy.exc import DataError, SQLAlchemyError

from app.base.errors import Cancelled, InvalidData, LeaseLost, OutOfMemory, StorageFull, TrainerCrashed, ValiantError
from app.composition.wiring import Services
from app.processes.disk_space import crowded
from app.processes.liveness import LOOK_SECONDS, describe_end
from app.processes.processor_cores import Cores
from app.schemas.datasets import Dataset
from app.schemas.files import StoredFile
from app.schemas.jobs import JobState
from app.schemas.problems import Problem
from app.services.jobs.submission import sheet
from app.store.jobs.job_records import Claim, Effort
from app.store.models.pointer import Pointer
from workers import trainer_frames as frames
from workers.journal_frames import write_unit
from workers.stored_frames import STORED, store_part
from workers.trainer_messages import Bytes, Order, read_outcome
from workers.trainers import Trainer
from workers.verdict import Verdict

log = structlog.get_logger(__name__)

PIPE_CHUNK = 1 << 20
LAST_WORDS = 100
"""Chunks of a trainer's output that are kept for the log."""
READS_FILES = {"import"}
"""Kinds of jobs whose trainer reads what a client sent as it came."""
FAULTS_OF_CODE = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
"""Signals that end a process for what it did itself, not for what was done to it."""


class Attempt:
    """One claim and the trainer that works on it."""

    def __init__(self, services: Services, claim: Claim, trainer: Trainer, cores: Cores) -> None:
        """cores: one of them is held for the trainer, and it takes more while nobody else needs them."""
        self._services = services
        self._claim = claim
        self._trainer = trainer
        self._cores = cores
        self._deadline = time.monotonic() + claim.time_limit_seconds
        self._is_fed = False
        """True while the trainer has all that was requested of us, so that it waits for nobody."""
        self._over = threading.Event()
        self._verdict: Verdict | None = None
        self._unfed: ValiantError | None = None
        """Why an input is not to be had, if that will not change."""
        self._progress: dict[str, Any] = {"fraction": 0.0, "message": "", "curves": {}, "stages": {}, "cores": 1}
        self._received: dict[bytes, list[bytes]] = {}
        self._words: deque[bytes] = deque(maxlen=LAST_WORDS)

    def run(self) -> None:
        """From the first frame to the end written down. The trainer is gone afterwards, whatever happens."""
        threads = [_thread(self._beat), _thread(self._feed), _thread(self._hold_core)]
        try:
            self._listen()
            self._conclude(self._trainer.close())
        finally:
            self._over.set()
            self._trainer.close()
            for thread in threads:
                thread.join()

    def end(self, verdict: Verdict) -> None:
        """End the trainer; the first reason counts."""
        if self._verdict is None:
            self._verdict = verdict
            log.info("attempt_ended", verdict=verdict.name.lower())
        self._trainer.kill()

    # threads beside the listener

    def _beat(self) -> None:
        """Renew the lease until the end is written down. A database that blinks costs a beat, not the attempt."""
        while not self._over.wait(self._services.settings.beat_seconds):
            try:
                state = self._report()
            except LeaseLost:
                self.end(Verdict.LEASE_LOST)
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, the next beat may be better
                log.warning("beat_missed", reason=type(error).__name__)
                continue
            if state is JobState.CANCELLING and self._verdict is None:
                _thread(partial(self.end, Verdict.CANCELLED))  # which may wait for the template: the heart beats on

    def _report(self) -> JobState:
        result = self._progress
        return self._services.attempts.beat(
            self._claim,
            progress=result["fraction"],
            message=result["message"],
            curves=result["curves"],
            effort=self._effort,
        )

    @property
    def _effort(self) -> Effort:
        return Effort({"queued": self._claim.queued_seconds, **self._progress["stages"]}, self._progress["cores"])

    def _hold_core(self) -> None:
        """A core for the trainer, until it is gone: who uses it for another job gives it up."""
        with self._cores.held(self._over):
            self._over.wait()

    def _feed(self) -> None:
        """The order, then every input chunk by chunk: never more than one of them is in memory here."""
        services, needed = self._services, self._claim.pinned
        try:
            datasets = [services.datasets.get(dataset_id) for dataset_id in needed.datasets]
            pointers = [services.models.pointer(*model) for model in needed.models]
            files = [services.files.get(file_id) for file_id in needed.files]
            stored = services.attempts.count_kept(self._claim)
            self._write(frames.REQUEST, self._order(datasets, pointers, files, stored).written())
            for pointer in pointers:
                self._write_all(frames.BLOB, services.models.artifact(pointer))
                self._write_all(frames.SEEN, services.models.training_rows(pointer))
                self._write_all(frames.REFERENCE, iter([services.models.reference(pointer)]))
            for file in files:
                self._write_all(frames.BLOB, services.files.payloads(file.id))
            self._write_all(frames.UNIT, map(write_unit, services.attempts.stored_units(self._claim)))
            if stored:
                self._write_all(frames.CHUNK, services.attempts.kept(self._claim, stored))
            for dataset in datasets:
                self._write_all(frames.CHUNK, services.datasets.payloads(dataset.id))
            self._is_fed = True
        except (OSError, ValueError):  # the pipe broke, or was closed: the listener knows why
            return
        except ValiantError as error:  # deleted in the meantime
            self._unfed = error
            self.end(Verdict.NOT_FED)
        except Exception:
            log.exception("inputs_not_read")
            self.end(Verdict.NOT_FED)

    def _write_all(self, kind: bytes, payloads: Iterator[bytes]) -> None:
        for payload in payloads:
            self._write(kind, payload)
        self._write(frames.END)

    def _write(self, kind: bytes, payload: bytes = b"") -> None:
        self._is_fed = True
        frames.write(self._trainer.inlet, kind, payload)
        self._is_fed = False

    def _order(
        self, datasets: Sequence[Dataset], pointers: Sequence[Pointer], files: Sequence[StoredFile], stored: int
    ) -> Order:
        return Order(
            kind=self._claim.kind,
            request=self._claim.request,
            request_id=self._claim.request_id,
            datasets=[sheet(dataset) for dataset in datasets],
            models=[Bytes(pointer.model, pointer.version, pointer.digest) for pointer in pointers],
            memory_bytes=self._services.settings.job_memory_bytes,
            cores=self._cores,
            stored=stored,
            files=[file.digest for file in files],
            spent_seconds=self._claim.spent_seconds,
        )

    # the listener

    def _listen(self) -> None:
        """Until the trainer has closed its pipes, which at the deadline it is made to do."""
        assembler, patience = frames.Assembler(), self._trainer.patience()
        with selectors.DefaultSelector() as selector:
            selector.register(self._trainer.outlet, selectors.EVENT_READ)
            selector.register(self._trainer.prints, selectors.EVENT_READ)
            while selector.get_map():
                left = self._deadline - time.monotonic()
                if left <= 0:
                    self.end(Verdict.TIMED_OUT)
                ready = selector.select(min(left, LOOK_SECONDS) if left > 0 else LOOK_SECONDS)
                if ready:
                    patience.renew()
                elif not self._trainer.alive:
                    return  # somebody it started holds its pipes
                elif (end := patience.look(is_expected=self._is_fed)) is not None:
                    log.warning("trainer_unresponsive", reason=str(end))
                    self.end(Verdict.FROZEN)
                for key, _ in ready:
                    chunk = os.read(key.fd, PIPE_CHUNK)
                    if not chunk:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is self._trainer.prints:
                        self._words.append(chunk)
                    else:
                        for frame in assembler.feed(chunk):
                            self._take(frame)

    def _take(self, frame: frames.Frame) -> None:
        if frame.kind == frames.PROGRESS:
            self._progress = json.loads(frame.payload)
        elif frame.kind in STORED:
            self._keep(partial(store_part, self._services.attempts, self._claim, frame))
        else:
            self._received.setdefault(frame.kind, []).append(frame.payload)

    def _keep(self, store: Callable[[], None]) -> None:
        """Store a part of what the trainer makes; it waits meanwhile."""
        try:
            store()
        except LeaseLost:  # or a cancel came: the next beat reports which
            return
        except SQLAlchemyError:
            log.exception("rows_not_stored")
            self.end(Verdict.NOT_KEPT)

    # what became of it

    def _conclude(self, status: int) -> None:
        if frames.END in self._received:
            self._succeed()
            return
        with suppress(LeaseLost, SQLAlchemyError):  # what follows meets it too
            self._report()
        if frames.FAILURE in self._received:
            self._fail(Problem.model_validate_json(self._received[frames.FAILURE][0]))
        elif self._verdict is None:
            self._crashed(status)
        else:
            self._verdict_received(self._verdict)

    def _succeed(self) -> None:
        outcome = read_outcome(self._claim.kind, self._received)
        try:
            self._services.attempts.succeed(self._claim, outcome, curves=self._progress["curves"], effort=self._effort)
            log.info("job_succeeded")
        except (Cancelled, LeaseLost):
            raise
        except ValiantError as error:
            self._fail(self._problem(error))
        except DataError:  # such as a name with a character that no text of Postgres has: it comes again
            log.exception("result_not_storable")
            self._fail(self._problem(InvalidData("The result holds a value that cannot be stored.")))
        except Exception:
            log.exception("result_not_stored")
            problem = self._problem(ValiantError("The result could not be stored."))
            self._services.attempts.fail(self._claim, problem, retry=True)

    def _fail(self, problem: Problem) -> None:
        log.warning("job_failed", code=problem.code, output=self._last_words())
        if problem.code == StorageFull.code and crowded(Path(tempfile.gettempdir())):
            # Others than this trainer, which is gone, fill the disk.
            self._services.attempts.postpone(self._claim, problem)
        else:
            self._services.attempts.fail(self._claim, problem)

    def _crashed(self, status: int) -> None:
        """It died without a word. Out of memory is certain to come again, and so is a file that crashes its reader;
        anything else gets another attempt.
        """
        words = self._last_words()
        if "bad_alloc" in words or "Memory allocation still failed" in words:
            self._fail(self._problem(OutOfMemory()))
            return
        how = describe_end(status)
        log.warning("trainer_crashed", how=how, output=words)
        if self._claim.kind in READS_FILES and -status in FAULTS_OF_CODE:
            self._fail(self._problem(InvalidData(f"The file is damaged, or no model. Its reader ended {how}.")))
            return
        error = TrainerCrashed(f"The last attempt ended {how}.")
        self._services.attempts.fail(self._claim, self._problem(error), retry=True)

    def _verdict_received(self, verdict: Verdict) -> None:
        attempts = self._services.attempts
        match verdict:
            case Verdict.CANCELLED:
                attempts.stop(self._claim)
            case Verdict.TIMED_OUT:
                attempts.time_out(self._claim)
            case Verdict.FROZEN:
                attempts.fail(self._claim, self._problem(TrainerCrashed("The last attempt was frozen.")), retry=True)
            case Verdict.STOPPED:
                attempts.release(self._claim)
            case Verdict.NOT_FED:
                error = self._unfed or ValiantError("What the job needs could not be read.")
                attempts.fail(self._claim, self._problem(error), retry=self._unfed is None)
            case Verdict.NOT_KEPT:
                error = ValiantError("The rows of the result could not be stored.")
                attempts.fail(self._claim, self._problem(error), retry=True)
            case Verdict.LEASE_LOST:
                raise LeaseLost

    def _problem(self, error: ValiantError) -> Problem:
        return Problem.of(error, request_id=self._claim.request_id)

    def _last_words(self) -> str:
        return b"".join(self._words).decode(errors="replace")[-4000:]


def _thread(target: Any) -> threading.Thread:
    """Started, with the log's bound ids."""
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(target,), daemon=True)
    thread.start()
    return thread
