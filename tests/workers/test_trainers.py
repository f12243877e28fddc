"""Trainers, and the template that they are forked from."""

import json
import os
import re
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from app.ml.contract.columns import TableColumn
from app.ml.kinds.job import Sheet
from app.ml.numerics.processor import highest_class
from app.processes import liveness
from app.processes.liveness import Activity
from app.processes.processor_cores import Cores
from app.store.base.new_ids import uuid7
from app.store.jobs.job_records import NewJob
from workers import trainer_frames as frames
from workers.supervisor import Attempt
from workers.template import NICENESS
from workers.trainer_messages import Order
from workers.trainers import Trainers


@pytest.fixture(scope="module")
def trainers():
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("VALIANT_DATABASE_URL", "postgresql://user:password@host/db")  # as in a worker
        environ.setenv("VALIANT_PROCESSOR", highest_class())
        made = Trainers(check_seconds=0.05)
        yield made
        made.close()


@pytest.fixture
def trainer(trainers):
    started = trainers.start()
    yield started
    started.close()


def table():
    return pa.table({"x": [float(n) for n in range(40)], "y": [2.0 * n for n in range(40)]})


def ordered(trainer, *, target="y", memory_bytes=1 << 30, algorithm="ridge"):
    """Give it a small job of which no part is done yet, without its rows."""
    columns = tuple(TableColumn(name, "numeric", 0, 40) for name in ("x", "y"))
    request = {"model": "m", "dataset": "0" * 32, "target": target, "algorithm": {"name": algorithm}}
    order = Order("train", request, "abc", [Sheet("sha256:0", 40, columns)], [], memory_bytes)
    frames.write(trainer.inlet, frames.REQUEST, order.written())
    with suppress(BrokenPipeError):
        frames.write(trainer.inlet, frames.END)  # of the units of earlier attempts


def fed(trainer, **order):
    """Give it a small job; all its frames."""
    ordered(trainer, **order)
    with suppress(BrokenPipeError):  # who has found a fault waits for no rows
        for part in (table()[:15], table()[15:]):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.schema) as writer:
                writer.write_table(part)
            frames.write(trainer.inlet, frames.CHUNK, sink.getvalue().to_pybytes())
        frames.write(trainer.inlet, frames.END)
    return list(frames.Assembler().feed(trainer.outlet.readall()))


def test_it_trains_what_comes_in_chunks(trainer):
    from app.ml.models.model import decode

    responses = fed(trainer)
    kinds = [frame.kind for frame in responses if frame.kind != frames.PROGRESS]
    assert kinds[0] == frames.RESULT
    assert set(kinds[1:-1]) == {frames.BLOB, frames.SEEN, frames.REFERENCE}
    assert kinds[-1] == frames.END
    report = json.loads(next(frame.payload for frame in responses if frame.kind == frames.RESULT))["trained"]["report"]
    assert report["rows_train"] + report["rows_test"] == 40
    blob = b"".join(frame.payload for frame in responses if frame.kind == frames.BLOB)
    assert decode(blob).name == "ridge"
    assert trainer.prints.read() == b""
    assert trainer.close() == 0


def test_a_failure_is_reported_as_a_problem(trainer):
    failure = fed(trainer, target="nobody")[-1]
    assert failure.kind == frames.FAILURE
    problem = json.loads(failure.payload)
    assert (problem["code"], problem["request_id"]) == ("invalid_request", "abc")


def environment(trainer):
    return Path(f"/proc/{trainer.pid}/environ").read_bytes().decode().split("\0")


def test_it_knows_no_addresses_and_no_passwords(trainer):
    assert any(line.startswith("PATH=") for line in environment(trainer))
    ours = [line for line in environment(trainer) if "VALIANT" in line or "password" in line]
    assert ours == [f"VALIANT_PROCESSOR={highest_class()}"]


def test_it_uses_one_thread_for_linear_algebra(trainer):
    assert {"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1"} <= set(environment(trainer))


@pytest.mark.slow
def test_a_job_says_that_it_compiles(tmp_path, monkeypatch):
    """And names what other processes compile next."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    trainers = Trainers(check_seconds=0.05)
    try:
        started = trainers.start()
        responses = fed(started, algorithm="lasso")
        assert started.close() == 0
    finally:
        trainers.close()
    assert responses[-1].kind == frames.END
    messages = [json.loads(frame.payload)["message"] for frame in responses if frame.kind == frames.PROGRESS]
    pattern = r"compiling \(once on this machine\) \d+/\d+ linear_models, about \d+ s"
    assert any(re.fullmatch(pattern, message) for message in messages)
    assert not re.fullmatch(pattern, messages[-1])
    (folder,) = tmp_path.iterdir()
    assert (folder / "linear_models.wanted").exists()


def template_of(trainer):
    return psutil.Process(trainer.pid).parent()


def test_the_template_has_one_thread_and_no_connection(trainers, trainer):
    """A fork takes one thread along: locks of others would stay locked for ever."""
    template = template_of(trainer)
    trainer.close()
    while not any("llvmlite" in one.path for one in template.memory_maps()):
        time.sleep(0.05)  # kernels are loaded while nothing runs
    assert template.num_threads() == 1
    assert not template.net_connections("inet")
    assert [one.laddr for one in template.net_connections("unix")] == [""]


def test_trainers_start_side_by_side_in_groups_of_their_own(trainers):
    first, second = trainers.start(), trainers.start()
    assert first.alive
    assert second.alive
    assert len({os.getpgid(one.pid) for one in (first, second)} - {os.getpgid(0)}) == 2
    assert first.close() == -signal.SIGKILL
    assert second.alive
    assert second.close() == -signal.SIGKILL
    assert not second.alive


def test_the_limit_of_memory_is_that_of_the_order(trainers):
    """Beside what the template has loaded: some 100 MB. The template has none, nor has the next trainer."""
    for memory_bytes in (1 << 29, 1 << 30):
        trainer = trainers.start()
        process = psutil.Process(trainer.pid)
        assert process.rlimit(psutil.RLIMIT_DATA)[0] == psutil.RLIM_INFINITY
        ordered(trainer, memory_bytes=memory_bytes)
        while (limit := process.rlimit(psutil.RLIMIT_DATA)[0]) == psutil.RLIM_INFINITY:
            time.sleep(0.001)
        assert memory_bytes <= limit < memory_bytes + (1 << 28)
        assert int(Path(f"/proc/{trainer.pid}/oom_score_adj").read_text()) == 1000
        trainer.close()


def test_its_pipes_are_closed_with_it(trainer):
    """The template keeps no end of them: whoever reads hears of the end."""
    trainer.kill()
    assert trainer.outlet.readall() == trainer.prints.readall() == b""


def test_a_dead_template_is_replaced_and_its_trainers_are_dead(trainers, trainer):
    template = template_of(trainer)
    template.kill()
    assert trainer.outlet.readall() == b""
    assert trainer.close() == -signal.SIGKILL
    after = trainers.start()
    assert after.alive
    assert template_of(after).pid != template.pid
    assert fed(after)[-1].kind == frames.END
    after.close()


def test_a_frozen_template_is_replaced(trainers, trainer):
    trainers._template.patience_seconds = 0.2
    template_of(trainer).suspend()
    assert not trainer.alive
    assert trainer.close() == -signal.SIGKILL
    after = trainers.start()
    assert after.alive
    after.close()


def test_a_starved_template_is_waited_for(trainers, trainer, monkeypatch):
    """It does not respond for longer than a frozen one may, and waits for a processor."""
    template = template_of(trainer)
    starved = Activity(1.0, frozenset("R"))
    monkeypatch.setattr(liveness, "read_activity", lambda _: starved)
    trainers._template.patience_seconds = 0.2
    template.suspend()
    resumed = threading.Timer(1.5, template.resume)
    resumed.start()
    assert trainer.alive
    assert template.is_running()
    trainers._template.patience_seconds = 60.0


def test_trainers_are_nicer_than_their_worker(trainer):
    niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, 19)
    while psutil.Process(trainer.pid).nice() != niceness:
        assert trainer.alive  # it has just been forked


def test_killing_twice_and_after_the_end_is_harmless(trainers):
    trainer = trainers.start()
    trainer.kill()
    trainer.kill()
    assert trainer.close() == -signal.SIGKILL
    trainer.kill()
    assert trainer.close() == -signal.SIGKILL


def test_one_that_gets_no_order_ends_with_its_pipe(trainers):
    trainer = trainers.start()
    trainer.inlet.close()
    assert trainer.outlet.readall() == b""
    while trainer.alive:
        time.sleep(0.001)
    assert trainer.close() == 0


@pytest.mark.parametrize(
    ("kind", "end", "code"),
    [
        ("import", signal.SIGSEGV, "invalid_data"),
        ("import", signal.SIGABRT, "invalid_data"),
        ("import", signal.SIGKILL, None),
        ("train", signal.SIGSEGV, None),
    ],
)
def test_a_file_that_crashes_its_reader_fails_at_once(fleet, trainer, kind, end, code):
    """It would crash the next one as well; what another process or another kind of job ended is tried again."""
    request = {"model": "m", "file": "0" * 32, "file_format": "xgboost"}
    new = NewJob(
        id=uuid7(), kind=kind, request=request, request_hash="", request_id="r", idempotency_key=None, dataset_id=None,
        model="m", algorithm=None, warnings=[], max_attempts=2, time_limit_seconds=60,
    )  # fmt: skip
    with fleet.services.work() as w:
        w.jobs.add(new)
    claim = fleet.services.attempts.claim(new.id)
    os.kill(trainer.pid, end)
    Attempt(fleet.services, claim, trainer, Cores.of_machine()).run()
    job = fleet.job(new.id)
    if code is None:
        assert (job.state, job.attempt, job.error) == ("queued", 1, None)
    else:
        assert (job.state, job.attempt, job.error.code) == ("failed", 1, code)
        assert f"ended by signal {end.name}" in job.error.detail
