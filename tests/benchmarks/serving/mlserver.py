"""MLServer with scikit-learn, in an environment of its own: its requirements are not ours."""

import json
import subprocess
import sys
from pathlib import Path

from .process import free_port

CONFIGURATIONS = {
    "MLServer, in-process": ({"parallel_workers": 0}, {}),
    "MLServer, default": ({}, {}),
    "MLServer, adaptive batching": ({"parallel_workers": 0}, {"max_batch_size": 64, "max_batch_time": 0.001}),
}
PACKAGES = ("mlserver", "mlserver-sklearn", "uvloop<0.22")
"""A later uvloop has no event loop before one is set, and the worker process of MLServer 1.7 dies of it."""


def environment(folder, *further):
    """A new one, with further packages; None where they cannot be had."""
    made = folder / "mlserver"
    subprocess.run([sys.executable, "-m", "venv", made], check=True)
    install = [made / "bin" / "pip", "install", "--quiet", *PACKAGES, *further]
    done = subprocess.run(install, check=False, timeout=900, capture_output=True)
    return made if done.returncode == 0 else None


def fitted(venv, folder, models):
    """Models of scikit-learn, of the version that will serve them: class and file of each."""
    subprocess.run([venv / "bin" / "python", Path(__file__).parent / "fit.py", folder], check=True)
    return {model: ("mlserver_sklearn.SKLearnModel", folder / f"{model}.joblib") for model in models}


def command(venv, folder, kind, models):
    """What starts it, and its port. Without metrics and request logs, which would slow it down.

    models: by name the class that serves it, and its file.
    """
    server, how = CONFIGURATIONS[kind]
    port = free_port()
    settings = {
        "host": "127.0.0.1", "http_port": port, "grpc_port": free_port(), "metrics_port": free_port(),
        "metrics_endpoint": None, "debug": False, **server,
    }  # fmt: skip
    (folder / "settings.json").write_text(json.dumps(settings))
    for model, (implementation, path) in models.items():
        described = {"name": model, "implementation": implementation, "parameters": {"uri": str(path)}, **how}
        (folder / model).mkdir()
        (folder / model / "model-settings.json").write_text(json.dumps(described))
    return [str(venv / "bin" / "mlserver"), "start", str(folder)], port


def version(venv):
    listed = subprocess.run([venv / "bin" / "pip", "show", "mlserver"], check=True, capture_output=True, text=True)
    return next(line.split()[1] for line in listed.stdout.splitlines() if line.startswith("Version"))
