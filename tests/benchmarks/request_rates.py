"""python -m tests.benchmarks.request_rates [--seconds 10]

Three processes of the API, and a project that may send 1,000 requests a second: how many a second they let through
together of several times as many, with Redis and after it was stopped, when each lets a third through. Goal: within a
tenth of the limit, once those that may come at once have come.
"""

import argparse
from contextlib import ExitStack

from app.schemas.keys import KeySpec
from app.schemas.projects import Quotas
from app.store.base.project_table import ProjectRow

from .keyed import api, deployed, load, results

PROCESSES, CONNECTIONS, RATE = 3, 4, 1000
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer %s"
wrk.body = '{"rows": [{"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}]}'
local mine
setup = function(thread) mine = thread end
good, refused, other = 0, 0, 0
response = function(status)
  if status == 200 then good = good + 1 elseif status == 429 then refused = refused + 1 else other = other + 1 end
end
done = function()
  io.write(string.format("RESULT %%d %%d %%d\\n", mine:get("good"), mine:get("refused"), mine:get("other")))
end
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10)
    seconds = parser.parse_args().seconds
    with ExitStack() as undo:
        folder, stack, services = deployed(undo)
        key = services.keys.create_first(KeySpec(name="load", role="caller"), "default").secret
        with services.work.across_projects() as w:
            w.session.get(ProjectRow, w.projects.ensure("default").id).quotas = Quotas(
                requests_per_second=RATE
            ).model_dump()
        addresses = [api(undo, stack, "keys")[0] for _ in range(PROCESSES)]
        program = folder / "load.lua"
        program.write_text(SCRIPT % key)
        for name in ("with Redis", "without it"):
            if name == "without it":
                stack.servers["cache"].kill()
            results(load(addresses, program, 2, CONNECTIONS))
            found = results(load(addresses, program, seconds, CONNECTIONS))
            good, refused, other = map(sum, zip(*found, strict=True))
            rate = good / seconds
            print(f"{name:12}{rate:8,.0f} requests/s, {rate / RATE:.3f} of the limit")
            print(f"{refused:20,.0f} refused, {other:.0f} failed")


if __name__ == "__main__":
    main()
