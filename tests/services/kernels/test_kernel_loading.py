"""Compiled kernels are loaded once: before a process is ready, or when there is something to predict."""

import socket
import threading
import time
from uuid import uuid4

import pytest
from starlette.testclient import TestClient

import app.commands.serve_folder
from app.base.settings import Settings
from app.commands.serve import _Draining, configured
from app.commands.serve_folder import FolderOptions, serve_folder
from app.main import create_app
from app.ml.numerics import jit
from app.ml.numerics.compiled_kernels import SERVING
from app.ml.numerics.decoding.json_numbers import scan_small
from app.ml.preparation.compiled.columns import standardise
from app.processes import ports
from app.services.kernels import kernel_loading as compiling
from app.services.kernels.kernel_loading import PATIENCE, Compiling

ALGORITHMS = ["gradient_boosting", "knn", "mlp", "svm"]
"""Their predictions share no module of kernels but those of preparation."""
ROW = [5.1, 0.2, "small"]
MANY_ROWS = 300
"""Rows that are predicted side by side."""


@pytest.fixture
def unload(monkeypatch):
    """`unload()`: kernels are as they are in a process that begins."""

    def forget():
        for kernel in jit.kernels():
            monkeypatch.setattr(kernel, "_compiled", None)
            monkeypatch.setattr(kernel, "lean", kernel._first)

    return forget


def loaded_by_predictions(client, names):
    """Names of kernels that first predictions read from disk or compiled, by algorithm and number of rows."""
    loaded = {}
    for algorithm, name in names.items():
        for rows in (1, MANY_ROWS):
            before = {kernel for kernel in jit.kernels() if kernel.ready}
            body = {"columns": ["length", "width", "size"], "data": [ROW] * rows}
            assert client.post(f"/v1/models/{name}/predict", json=body).status_code == 200
            added = [kernel.__name__ for kernel in jit.kernels() if kernel.ready and kernel not in before]
            loaded |= {(algorithm, rows): added} if added else {}
    assert {kernel.__module__ for kernel in jit.kernels() if kernel.ready} <= set(SERVING)
    assert not jit.compilations()
    return loaded


def test_the_api_is_ready_once_its_first_predictions_load_nothing(settings, services, publish, unload, monkeypatch):
    monkeypatch.setattr(compiling, "WARM_SECONDS", 120.0)  # on a busy machine, too
    names = {algorithm: f"w-{uuid4()}" for algorithm in ALGORITHMS}
    for algorithm, name in names.items():
        publish(services.work, name, algorithm=algorithm)
        services.aliases.move(name, "champion", 1, if_match=None, request_id="r")
    unload()
    with TestClient(create_app(settings.model_copy(update={"warm": True}))) as client:
        with jit._lock:  # nothing can be loaded
            waiting = client.get("/readyz")
            assert not jit.made()
        until = time.monotonic() + 120
        while not client.get("/readyz").is_success:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert jit.made()
        assert loaded_by_predictions(client, names) == {}
    assert waiting.status_code == 503
    assert waiting.json()["errors"] == [
        {"pointer": "", "detail": "Kernels and models are being loaded.", "code": "kernels"}
    ]


def test_a_replica_refuses_connections_until_it_is_warm(settings, publish, services, unload):
    """A proxy goes on to another at once; a connection that waits to be accepted would wait for seconds."""
    name = f"w-{uuid4()}"
    publish(services.work, name, algorithm="gradient_boosting")
    services.aliases.move(name, "champion", 1, if_match=None, request_id="r")
    unload()
    app = create_app(settings.model_copy(update={"warm": True}))
    app.state.listens_when_warm = True
    with ports.bind("127.0.0.1", 0) as bound:
        server = _Draining(configured(app), app, 0)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        with jit._lock:  # nothing can be loaded
            thread.start()
            while not hasattr(app, "services"):
                time.sleep(0.01)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(bound.getsockname())
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        assert jit.made()
        socket.create_connection(bound.getsockname()).close()
        server.should_exit = True
        thread.join()


def test_serve_listens_once_its_first_predictions_load_nothing(tmp_path, trained, unload, monkeypatch):
    for algorithm in ALGORITHMS:
        (tmp_path / f"{algorithm}.safetensors").write_bytes(bytes(trained(algorithm).blob))
    unload()
    loaded = []

    def predict_at_once(application, _settings):
        assert jit.made()
        client = TestClient(application)
        loaded.append(loaded_by_predictions(client, {name: name for name in ALGORITHMS}))

    monkeypatch.setattr(app.commands.serve_folder, "serve", predict_at_once)
    settings = Settings(data=tmp_path / "data", hosts="testserver")
    serve_folder(settings, tmp_path, FolderOptions(0, False, False, None))
    assert loaded == [{}]


def test_it_is_fetched_once_as_soon_as_bodies_are_many(monkeypatch):
    fetched, real = [], compiling._fetch

    def fetch():
        real()
        fetched.append(threading.current_thread())

    monkeypatch.setattr(compiling, "_fetch", fetch)
    one = Compiling()
    one.came(PATIENCE - 1)
    assert not fetched
    for _ in range(3):
        one.came(1)
        for thread in threading.enumerate():
            if thread.name == "compiler":
                thread.join()
    assert len(fetched) == 1
    assert fetched[0] is not threading.main_thread()
    assert scan_small.ready
    assert standardise.ready
