"""Memory of a process that serves predictions, measured on a real one."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

ROW = {"length": 5.1, "width": 0.2, "size": "small"}
MOST = {"logistic": 200e6, "random_forest": 240e6}
"""Bytes in use after a start and a prediction; compiled parts need what was loaded to compile them."""


def resident(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells in this way")
@pytest.mark.parametrize("algorithm", MOST)
def test_a_process_that_predicts_is_small(services, publish, api_factory, algorithm):
    name = f"l-{uuid4()}"
    publish(services.work, name, algorithm=algorithm)
    child, address = api_factory(warm=False)
    with httpx.Client(base_url=address, timeout=120, trust_env=False) as client:  # compiling takes its time, once
        assert client.post(f"/v1/models/{name}/predict", json={"rows": [ROW]}).status_code == 200
        assert client.get("/readyz").status_code == 200
        assert resident(child.pid) < MOST[algorithm]
        assert client.post(f"/v1/models/{name}/predict", json={"rows": [ROW] * 100}).status_code == 200
        assert resident(child.pid) < MOST[algorithm]


def test_what_serving_does_not_use_is_not_imported():
    program = """
        import sys
        from app.processes.process_memory import OPTIONAL, settle, without_optional
        without_optional()
        import app.main, app.commands.serve
        import pyarrow as pa, numpy as np
        app.main.create_app()
        settle()
        pa.array([1.0]).to_numpy()
        heavy = {"alembic", "httpx", "numba", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.sparse"}
        print(sorted((OPTIONAL | heavy) & set(sys.modules)))
    """
    lines = "\n".join(line.strip() for line in program.splitlines())
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_models_of_a_folder_are_served_without_what_databases_and_jobs_need():
    program = "import sys, app.commands.serve_folder; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    unused = {
        "sqlalchemy",
        "psycopg",
        "redis",
        "celery",
        "numba",
        "app.composition.wiring",
        "app.ml.training",
        "app.ml.jobs",
    }
    assert unused & set(done.stdout.split()) == set()
