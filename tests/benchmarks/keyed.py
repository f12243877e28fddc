"""python -m tests.benchmarks.keyed [--seconds 1] [--rounds 7]

Costs of keys on the path of a prediction: the rate of one small prediction with a key, and with a new trace id in every
request, relative to the rate without either. Each variant has its own server; they take turns, so that the machine's
moods reach all, and are started anew for every round: two processes of one kind differ by several percent.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psutil

from app.base.settings import Settings
from app.commands import processes
from app.composition.wiring import build
from app.embedded.stack import Stack
from app.processes import ports
from app.schemas.keys import KeySpec
from migrations.schema_revision import upgrade

from .serving.process import LOAD_CORE, SERVER_CORE, pinned

CONNECTIONS = 16
WRITTEN = """
local count = 0
request = function()
  count = count + 1
  wrk.headers["%s"] = string.format("00-%%032x-%%016x-01", %s, %s)
  return wrk.format()
end
"""
"""A header written anew for each request: the generator works alike whether it is always the same or not."""
ALIKE, TRACED = WRITTEN % ("x-parent123", 1, 1), WRITTEN % ("traceparent", "count", "count")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    requested = parser.parse_args()
    rounds = []
    with ExitStack() as undo:
        folder, stack, services = deployed(undo)
        key = services.keys.create_first(KeySpec(name="load", role="caller"), "default").secret
        for _ in range(requested.rounds):
            with ExitStack() as servers:
                rounds.append(one_round(servers, stack, folder, key, requested.seconds))
    for name in rounds[0]:
        rate = statistics.median(found[name][0] for found in rounds)
        spent = statistics.median(found[name][1] for found in rounds)
        shares = sorted(found["without keys"][1] / found[name][1] for found in rounds)
        print(
            f"{name:24}{rate:10,.0f} requests/s {spent:7.2f} CPU µs each; of the base's requests "
            f"{statistics.median(shares):6.3f} ({shares[0]:.3f} to {shares[-1]:.3f})"
        )


def one_round(undo, stack, folder, key, seconds):
    """Rates by variant: the best of three turns of each, on a server of its own, once all are warm."""
    variants = {
        "without keys": ("none", "", ""),
        "with a key": ("keys", key, ""),
        "a header that is alike": ("none", "", ALIKE),
        "a new trace id in each": ("none", "", TRACED),
        "the same with a key": ("keys", key, TRACED),
    }
    servers = {name: (api(undo, stack, auth), sent, script) for name, (auth, sent, script) in variants.items()}
    turns = [{name: measured_rate(folder, seconds, *one) for name, one in servers.items()} for _ in range(4)]
    return {
        name: (max(turn[name][0] for turn in turns[1:]), min(turn[name][1] for turn in turns[1:])) for name in variants
    }


def deployed(undo):
    """A folder, servers with one model, and services on them, until `undo` closes."""
    folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="keyed-")))
    stack = undo.enter_context(Stack(Settings(data=folder / "data")))
    upgrade(stack.settings.database_url.get_secret_value())
    services = build(stack.settings, role="api")
    undo.callback(services.close)
    publish(services, ["load"])
    return folder, stack, services


def api(undo, stack, auth):
    with ports.listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    own = stack.settings.model_copy(update={"port": port, "auth": auth, "log_level": "WARNING"})
    child = processes.api(own, stack.folder, to_terminal=False)
    with pinned(SERVER_CORE):
        child.start()
    undo.callback(child.stop)
    return ports.address(own), psutil.Process(child.process.pid)


def publish(services, models):
    """A version of the same small classifier under each of these names."""
    import numpy as np
    import pyarrow as pa

    from app.ml.contract.columns import TableColumn
    from app.ml.training.planning.plan import plan
    from app.ml.training.planning.train_spec import TrainSpec
    from app.ml.training.train import train

    names = ["a", "b", "c", "d"]
    values = np.random.default_rng(0).normal(size=(200, 4))
    table = pa.table(
        {**dict(zip(names, values.T, strict=True)), "y": np.where(values[:, 0] > 0, "up", "down").tolist()}
    )
    columns = [*(TableColumn(name, "numeric", 0, 200) for name in names), TableColumn("y", "categorical", 0, 2)]
    spec = TrainSpec.model_validate({"algorithm": {"name": "logistic"}, "target": "y"})
    made = train(plan(spec, columns, table.num_rows), table, data_digest="sha256:" + "0" * 64)
    with services.work() as w:
        for model in models:
            w.models.add_version(
                model=model, job_id=None, dataset_id=None, blob=made.blob, report=made.report, golden=made.golden
            )


def load(addresses, program, seconds, connections):
    """A wrk on each of these servers, started, with the program in Lua."""
    command = [shutil.which("wrk"), "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(program)]
    return [
        subprocess.Popen([*command, f"{address}/v1/models/load/predict"], stdout=subprocess.PIPE, text=True)
        for address in addresses
    ]


def results(loads):
    """The numbers that the program of each has printed behind RESULT."""
    printed = [each.communicate(timeout=120)[0] for each in loads]
    return [tuple(map(float, re.search(r"RESULT (.+)", text)[1].split())) for text in printed]


def measured_rate(folder, seconds, server, key, script):
    """Requests a second by wrk on one thread, each a success, and the server's CPU time of one in microseconds."""
    address, process = server
    before = sum(process.cpu_times()[:2])
    body = json.dumps({"rows": [{"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}]})
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    lines = [f"wrk.headers[{json.dumps(name)}] = {json.dumps(value)}" for name, value in headers.items()]
    program = folder / "ask.lua"
    program.write_text("\n".join(['wrk.method = "POST"', f"wrk.body = [[{body}]]", *lines, script]))
    command = [shutil.which("wrk"), "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(program)]
    with pinned(LOAD_CORE):
        printed = subprocess.run(
            [*command, f"{address}/v1/models/load/predict"], capture_output=True, text=True, check=True
        ).stdout
    if "Non-2xx" in printed:
        raise RuntimeError(printed)
    spent = sum(process.cpu_times()[:2]) - before
    rate = next(line.split()[1] for line in printed.splitlines() if line.startswith("Requests/sec"))
    count = next(line.split()[0] for line in printed.splitlines() if "requests in" in line)
    return float(rate), 1e6 * spent / int(count)


if __name__ == "__main__":
    main()
