"""What one process that serves predictions takes, measured on a real one."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

MOST = 200e6
"""Bytes in use after a start and a prediction by a model without compiled parts; LLVM alone would take 50e6 more."""


def resident(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells in this way")
def test_a_process_that_predicts_is_small(services, publish, api_factory):
    name = f"l-{uuid4()}"
    publish(services.work, name)
    child, address = api_factory()
    row = {"rows": [{"length": 5.1, "width": 0.2, "size": "small"}]}
    assert httpx.post(f"{address}/v1/models/{name}/predict", json=row, trust_env=False).status_code == 200
    assert httpx.get(f"{address}/readyz", trust_env=False).status_code == 200
    assert resident(child.pid) < MOST


def test_what_serving_does_not_use_is_not_imported():
    program = """
        import sys
        from app.lean import OPTIONAL, without_optional
        without_optional()
        import app.main, app.serve
        import pyarrow as pa, numpy as np
        app.main.create_app()
        pa.array([1.0]).to_numpy()
        heavy = {"alembic", "httpx", "numba", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.sparse"}
        print(sorted((OPTIONAL | heavy) & set(sys.modules)))
    """
    lines = "\n".join(line.strip() for line in program.splitlines())
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
