"""A script of the client while the API is killed at each of its steps: it ends right, and trains once."""

import subprocess
import sys
import time

import pytest

from app.commands import processes
from app.processes import ports

SCRIPT = """
import sys, valiant
v = valiant.connect(sys.argv[1], timeout=300)
name = "killed"

def step(name):
    print(name, flush=True)

step("upload")
d = v.upload("app/samples/iris.csv", name=name)
step("train")
job = v.train(d, target="species", n_estimators=400, model=name, wait=False)
step("wait")
m = job.wait().outcome()
step("predict")
found = m.predict([{"petal_length_cm": 1.4, "petal_width_cm": 0.2, "sepal_length_cm": 5, "sepal_width_cm": 3}] * 1000)
step("report")
accuracy = m.report.metrics["accuracy"].value
step("alias")
v.model(name).alias("champion").move(m)
print(set(found.predictions), accuracy > 0.8, v.model(name).versions, v.model(name).as_aliases())
"""
STEPS = ("upload", "train", "wait", "predict", "report", "alias")
DOWN_SECONDS = 0.5


@pytest.fixture(scope="module")
def servers(module_stack_factory):
    """Servers of its own, an API that is killed, and a worker: `(api, address)`."""
    stack = module_stack_factory()
    with ports.listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    own = stack.settings.model_copy(update={"port": port})
    api, worker = processes.api(own, stack.folder, to_terminal=False), processes.worker(stack.settings, stack.folder)
    api.start()
    worker.start()
    yield api, ports.address(own)
    worker.stop()
    api.stop()


def killed(child, after):
    """Kill a server some time from now, and start it again: in this thread, since a server ends with its thread."""
    time.sleep(after)
    child.kill()
    time.sleep(DOWN_SECONDS)
    child.start()


@pytest.mark.slow
def test_killed_at_every_step_the_script_ends_right(servers):
    api, address = servers
    script = subprocess.Popen([sys.executable, "-c", SCRIPT, address], stdout=subprocess.PIPE, text=True)
    reached = []
    for line in script.stdout:
        reached.append(line.strip())
        if line.strip() in STEPS:
            killed(api, 0.02 * len(reached))
    assert script.wait() == 0
    assert tuple(reached[:-1]) == STEPS
    assert reached[-1] == "{'setosa'} True [1] champion → 1"
