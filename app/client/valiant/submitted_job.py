"""Jobs: followed to their end, cancelled, and turned into what they made."""

import time
from collections.abc import Callable
from typing import Any

from .dataset import Dataset
from .event_stream import EventStream
from .failures import BY_STATE, ConnectionLost, JobFailed, Problem, WaitTimedOut
from .model_version import Version
from .operation import M, operation
from .progress_line import ProgressLine
from .record import Record
from .steps import Call, Pause, Steps, send
from .summary_table import SummaryTable

FINISHED = {"succeeded", "failed", "cancelled", "timed_out"}
KEEPALIVE_SECONDS = 40.0
"""Longest silence of a stream of events: a service that lives writes every 15 seconds."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0

Progress = bool | Callable[[float, str], None] | None
"""Draw a line (None: on a terminal only), or what receives the share that is done and the present step."""


class Job(Record[M]):
    """A job as it was when it was read."""

    id: str
    kind: str
    name: str | None
    state: str
    progress: float
    message: str
    attempt: int
    max_attempts: int
    created_at: str
    started_at: str | None
    finished_at: str | None
    queue_position: int | None
    dataset: str | None
    request: dict[str, Any] | None
    model: str | None
    version: int | None
    result: dict[str, Any] | None
    algorithm: str | None
    transitions: list[dict[str, Any]]
    curves: list[dict[str, Any]]
    stages: dict[str, float] | None
    cores: int | None
    warnings: list[str]
    error: dict[str, Any] | None

    def __repr__(self) -> str:
        return f"<Job {self.name or self.id}: {self.kind}, {self.state}, {self.progress:.0%}>"

    def overview(self) -> SummaryTable:
        """The states of the job so far; below, seconds of its stages and its cores, its error or its warnings."""
        rows = [[step["at"][:19], step["state"], step["attempt"], step.get("reason")] for step in self.transitions]
        notes = [*([self.error["detail"]] if self.error else []), *self.warnings]
        if self.stages:
            seconds = ", ".join(f"{stage} {value:.1f} s" for stage, value in self.stages.items())
            notes.insert(0, f"{seconds}; cores: {self.cores}")
        title = f"{self.kind} {self.name or self.id}: {self.state}, {self.progress:.0%} {self.message}".rstrip()
        return SummaryTable(title, ("time", "state", "attempt", "reason"), rows, notes)

    @property
    def finished(self) -> bool:
        return self.state in FINISHED

    @operation
    def refresh(self) -> Steps["Job[M]"]:
        """Read the job again, into this object."""
        self.fields = yield from self._json("GET", "jobs", self.id)
        return self

    @operation
    def cancel(self) -> Steps["Job[M]"]:
        """Stop the job soon; too late, it changes nothing."""
        self.fields = yield from self._json("POST", "jobs", self.id, "cancel")
        return self

    @operation
    def wait(self, timeout: float | None = None, progress: Progress = None) -> Steps["Job[M]"]:
        """Follow the job to its success.

        Raises JobFailed, JobCancelled, JobTimedOut, WaitTimedOut after `timeout` seconds, and ConnectionLost or
        Unavailable once the service is away for longer than the retries of one request last. The job goes on then.
        """
        yield from self._follow(timeout, progress)
        if self.state != "succeeded":
            raise BY_STATE.get(self.state, JobFailed)(self)
        return self

    @operation
    def follow(self, progress: Progress = None) -> Steps["Job[M]"]:
        """Follow the job to its end, whatever that is."""
        yield from self._follow(None, progress)
        return self

    @operation
    def outcome(self) -> Steps[Version[M] | Dataset[M] | dict[str, Any] | None]:
        """The object that the job made: a model version, a dataset, or its result, as the kind of job has it."""
        result = self.result or {}
        if made := result.get("result_dataset"):
            return Dataset(self.driver, (yield from self._json("GET", "datasets", made)))
        if self.model is not None and self.version is not None:
            record = yield from self._json("GET", "models", self.model, "versions", self.version)
            return Version(self.driver, record)
        return self.result

    def _follow(self, timeout: float | None, progress: Progress) -> Steps[None]:
        """Read the job until it is over. Events only shorten the pauses between two readings, and move the line."""
        end = None if timeout is None else time.monotonic() + timeout
        title = f"{self.kind} {self.model or self.name or ''}".strip()
        line = ProgressLine(title, shown=progress if isinstance(progress, bool) else None)
        show = progress if callable(progress) else line.draw

        def receive(name: str, data: Any) -> None:
            if name == "progress":
                show(data["progress"], data["message"])

        events, pause = EventStream(receive), FIRST_PAUSE
        try:
            while True:
                show(self.progress, self.message if self.state == "running" else self.state)
                if self.finished:
                    return
                left = KEEPALIVE_SECONDS if end is None else end - time.monotonic()
                if left <= 0:
                    raise WaitTimedOut(f"The job {self.id} is {self.state} after {timeout} seconds, and goes on.")
                if not (yield from self._listen(events, left)):
                    yield Pause(pause)
                    pause = min(2 * pause, LONGEST_PAUSE, max(left, FIRST_PAUSE))
                yield from Job.refresh.steps(self)
        finally:
            line.end()

    def _listen(self, events: EventStream, seconds: float) -> Steps[bool]:
        """Receive events until the last, for some seconds at most; False if the stream was cut before."""
        end = time.monotonic() + seconds
        events.begin()
        last = {} if events.last_id is None else {"Last-Event-ID": events.last_id}
        call = Call(
            "GET",
            f"/v1/jobs/{self.id}/events",
            headers={"Accept": "text/event-stream", **last},
            sink=lambda: lambda chunk: events.take(chunk) or time.monotonic() > end,
            timeout=min(seconds, KEEPALIVE_SECONDS),
        )
        try:
            yield from send(call, 0)
        except (ConnectionLost, Problem):
            return False
        return events.ended
