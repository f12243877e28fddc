"""Fixtures on real servers: nothing here imitates Postgres, Redis or Celery.

Everything is imported where it is used, so that tests of the pure core start nothing and import little.
"""

import logging
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

import hypothesis
import pytest

from app.base import logs

# Hundreds of processes import the same files: each would compile them anew where bytecode is not kept.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Small matrices: a second thread costs more than it gives. Set before numpy is imported, since the BLAS of
# `scipy.linalg` is loaded with its first use, after any limit that a fixture sets on libraries that are there.
os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

# Of whatever profile the environment chose, only the clock is left out: no test evaluates the speed of the machine.
hypothesis.settings.register_profile("timeless", hypothesis.settings.default, deadline=None)
hypothesis.settings.load_profile("timeless")

pytest_plugins = [
    "tests.compiling",
    "tests.cpu_seconds",
    "tests.garbage_collection",
    "tests.longest_first",
    "tests.other_path",
]

SHARED_STORE, SHARED_POINTERS = pytest.StashKey(), pytest.StashKey()
"""Unit of work of the shared servers, once they run, and the caches of processes of tests that read from them."""
HOSTS = "testserver,here"
"""Under which starlette's client, and tests over raw sockets, address the API."""


@contextmanager
def _folder():
    """A data folder with a short name and no company: pytest's own are long."""
    path = Path(tempfile.mkdtemp(prefix="valiant-test-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def _migrated_stack(**settings):
    from app.base.settings import Settings
    from app.embedded.stack import Stack
    from migrations.schema_revision import upgrade

    with _folder() as data, Stack(Settings(data=data, hosts=HOSTS, **{"warm": False} | settings)) as stack:
        upgrade(stack.settings.database_url.get_secret_value())
        yield stack


@pytest.fixture
def data_folder():
    with _folder() as path:
        yield path


@pytest.fixture(scope="session", autouse=True)
def _only_our_settings():
    """Settings of whoever runs the tests must not steer them."""
    for name in [name for name in os.environ if name.startswith("VALIANT_")]:
        del os.environ[name]


@pytest.fixture(scope="session")
def stack(pytestconfig):
    """The servers that most tests share. Do not stop them: `stack_factory` is for that."""
    from app.store.engine import make_engine
    from app.store.unit_of_work import WorkFactory

    with _migrated_stack(fast_path=pytestconfig.getoption("--fast-path") == "on") as running:
        work = WorkFactory(make_engine(running.settings, role="test"))
        pytestconfig.stash[SHARED_STORE], pytestconfig.stash[SHARED_POINTERS] = work, []
        yield running
        del pytestconfig.stash[SHARED_STORE]
        work.engine.dispose()


@pytest.fixture(autouse=True)
def _commands_of_this_test():
    """What a command sets up in this process ends with its test: logs, whose stream is closed, and absent libraries."""
    handlers, handler = logging.root.handlers[:], logs._own[0]
    yield
    logging.root.handlers, logs._own[0] = handlers, handler
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "_Absent"]


@pytest.fixture(scope="module", autouse=True)
def _models_of_one_module(pytestconfig):
    """The next module finds no model on the shared servers, and no job that could still make one."""
    yield
    if SHARED_STORE in pytestconfig.stash:
        from tests.emptied_store import empty

        empty(pytestconfig.stash[SHARED_STORE], pytestconfig.stash[SHARED_POINTERS])


@pytest.fixture(scope="session")
def settings(stack):
    """Of a running, migrated, embedded stack."""
    return stack.settings


@pytest.fixture(scope="session")
def services(settings, pytestconfig):
    from app.composition.wiring import build

    built = build(settings, role="api")
    pytestconfig.stash[SHARED_POINTERS].append(built.models._pointers)
    yield built
    built.close()


@pytest.fixture(scope="session")
def client(settings, pytestconfig):
    from starlette.testclient import TestClient

    from app.main import create_app

    with TestClient(create_app(settings)) as connected:
        pytestconfig.stash[SHARED_POINTERS].append(connected.app.services.models._pointers)
        yield connected


@pytest.fixture(scope="session")
def worker(stack):
    """A real `valiant worker` on the shared servers: a `Child`."""
    from app.commands import processes

    child = processes.worker(stack.settings, stack.folder)
    child.start()
    yield child
    child.stop()


@pytest.fixture(scope="session")
def api_factory(stack):
    """`api_factory(**settings)`: a real `valiant api` on the shared servers, and its address."""
    from app.commands import processes
    from app.processes import ports

    def start(**settings):
        with ports.listen("127.0.0.1", 0) as free:
            port = free.getsockname()[1]
        own = stack.settings.model_copy(update={"port": port, **settings})
        child = processes.api(own, stack.folder, to_terminal=False)
        child.start()
        undo.callback(child.stop)
        return child, ports.address(own)

    with ExitStack() as undo:
        yield start


@pytest.fixture(scope="session")
def api_address(api_factory):
    """`api_address(**settings)`: of the one `valiant api` with these settings that tests share. Do not stop it."""
    from functools import cache

    # Models of the module before are forgotten by the time that another has trained its own.
    return cache(lambda **settings: api_factory(pointer_seconds=0.1, stale_seconds=0, **settings)[1])


@pytest.fixture
def stack_factory():
    """`stack_factory(**settings)`: servers of your own, to kill (`stack.servers["broker"].kill()`, then `.start()`)."""
    with ExitStack() as undo:
        yield lambda **settings: undo.enter_context(_migrated_stack(**settings))


@pytest.fixture(scope="module")
def module_stack_factory():
    """As `stack_factory`, but the servers last as long as the module."""
    with ExitStack() as undo:
        yield lambda **settings: undo.enter_context(_migrated_stack(**settings))


@pytest.fixture(scope="session")
def trained():
    """`trained(algorithm, target=, seed=)`: a model of iris with a category and gaps, as the trainer hands it over."""
    from functools import cache

    import numpy as np
    import pyarrow as pa
    from sklearn.datasets import load_iris

    from app.ml.contract.columns import TableColumn
    from app.ml.training.planning.plan import plan
    from app.ml.training.planning.train_spec import TrainSpec
    from app.ml.training.train import train

    iris = load_iris()
    length, width = iris.data[:, 0], iris.data[:, 3]
    gaps = np.arange(150) % 25 == 0
    table = pa.table(
        {
            "length": pa.array(length, mask=gaps),
            "width": pa.array(width),
            "size": pa.array(np.where(width > 1, "large", "small")),
            "species": pa.array(iris.target_names[iris.target].astype(str)),
        }
    )
    columns = [
        TableColumn("length", "numeric", int(gaps.sum()), 35),
        TableColumn("width", "numeric", 0, 22),
        TableColumn("size", "categorical", 0, 2),
        TableColumn("species", "categorical", 0, 3),
    ]

    @cache
    def make(algorithm="logistic", target="species", seed=0):
        requested = {"algorithm": {"name": algorithm}, "target": target, "seed": seed}
        spec = TrainSpec.model_validate({key: value for key, value in requested.items() if value is not None})
        return train(plan(spec, columns, table.num_rows), table, data_digest="sha256:" + "0" * 64)

    return make


@pytest.fixture(scope="session")
def publish(trained):
    """`publish(work, name, …)`: a new version of a model in the registry, as a job leaves it behind."""
    from uuid import uuid4

    def add(work, name, chunk_bytes=1000, **how):
        made = trained(**how)
        with work() as w:
            return w.models.add_version(
                model=name,
                job_id=uuid4(),
                dataset_id=uuid4(),
                blob=made.blob,
                report=made.report,
                golden=made.golden,
                chunk_bytes=chunk_bytes,
            )

    return add


@pytest.fixture(scope="session")
def database_factory(settings):
    """`database_factory()`: settings of a database of your own on the shared server, where no worker looks."""
    from uuid import uuid4

    import psycopg
    from pydantic import SecretStr
    from sqlalchemy import make_url

    from migrations.schema_revision import upgrade

    def make(*, migrated=True, **changes):
        url, name = make_url(settings.database_url.get_secret_value()), f"test_{uuid4().hex}"
        plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(f"create database {name}")
        own = url.set(database=name).render_as_string(hide_password=False)
        if migrated:
            upgrade(own)
        return settings.model_copy(update={"database_url": SecretStr(own), **changes})

    return make


@pytest.fixture(scope="session")
def add_table():
    """`add_table(work, table, times=1)`: the id of a dataset stored as an upload stores it, its rows so many times."""
    import pyarrow as pa

    from app.schemas.datasets import Column
    from app.store.base.new_ids import uuid7

    def add(work, table, times=1):
        rows, made = table.num_rows, uuid7()
        columns = [
            Column(
                name=name,
                kind="categorical" if cells.type == pa.string() else "numeric",
                count=times * rows,
                missing=times * cells.null_count,
                distinct=len(cells.unique()),
            )
            for name, cells in zip(table.column_names, table.columns, strict=True)
        ]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
        with work() as w:
            w.datasets.add(
                made, name="table", file_format="csv", size_bytes=1, rows=times * rows, digest="sha256:0",
                columns=columns, warnings=[],
            )  # fmt: skip
            for seq in range(times):
                payload = sink.getvalue().to_pybytes()
                w.datasets.add_chunk(made, seq, first_row=seq * rows, rows=rows, payload=payload)
        return made

    return add


@pytest.fixture(scope="session")
def add_iris(add_table):
    """`add_iris(work)`: the id of iris as a dataset."""
    import pyarrow as pa
    from sklearn.datasets import load_iris

    iris = load_iris()
    names = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    numbers = {name: iris.data[:, place] for place, name in enumerate(names)}
    table = pa.table(numbers | {"species": iris.target_names[iris.target].astype(str)})
    return lambda work: add_table(work, table)


def pytest_xdist_auto_num_workers():
    """One process more than cores: many tests wait for servers more than they compute."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Files of a certificate for 127.0.0.1 and of its key."""
    import datetime as dt
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, *plain))
    return folder / "cert.pem", folder / "key.pem"
