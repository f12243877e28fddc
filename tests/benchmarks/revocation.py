"""python -m tests.benchmarks.revocation [--seconds 3]

A key is revoked while three processes of the API respond to it as fast as they can: requests a second until then, and
how long after the response to DELETE the last success came. Goal: no success later than 2 s.
"""

import argparse
import json
import time
from contextlib import ExitStack

import httpx

from app.schemas.keys import KeySpec

from .keyed import api, deployed, load, results

PROCESSES, CONNECTIONS, AFTER = 3, 8, 4
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer %s"
wrk.body = '{"rows": [{"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}]}'
local ffi = require("ffi")
ffi.cdef("typedef struct { long seconds, micros; } moment; int gettimeofday(moment *at, void *);")
local at = ffi.new("moment")
local mine
setup = function(thread) mine = thread end
good, refused, last = 0, 0, 0
response = function(status)
  if status == 200 then
    ffi.C.gettimeofday(at, nil)
    good, last = good + 1, tonumber(at.seconds) + tonumber(at.micros) / 1e6
  else
    refused = refused + 1
  end
end
done = function()
  local form = "RESULT %%d %%d %%.6f\\n"
  io.write(string.format(form, mine:get("good"), mine:get("refused"), mine:get("last")))
end
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3)
    seconds = parser.parse_args().seconds
    with ExitStack() as undo:
        folder, stack, services = deployed(undo)
        admin = services.keys.create_first(KeySpec(name="admin", role="admin"), "default")
        addresses = [api(undo, stack, "keys")[0] for _ in range(PROCESSES)]
        headers = {"Authorization": f"Bearer {admin.secret}"}
        key = httpx.post(f"{addresses[0]}/v1/keys", json={"name": "load", "role": "caller"}, headers=headers).json()
        program = folder / "ask.lua"
        program.write_text(SCRIPT % key["secret"])
        loads = load(addresses, program, seconds + AFTER, CONNECTIONS)
        time.sleep(seconds)
        revoked = httpx.delete(f"{addresses[0]}/v1/keys/{key['id']}", headers=headers)
        at = time.time()
        found = results(loads)
    assert revoked.status_code == 204, revoked.text
    good = sum(one for one, _, _ in found)
    late = [last - at for _, _, last in found]
    print(json.dumps({
        "requests_per_second": round(good / (seconds + max(0.0, *late))),
        "refused": round(sum(one for _, one, _ in found)),
        "last_success_seconds_after": [round(one, 2) for one in late],
    }))  # fmt: skip


if __name__ == "__main__":
    main()
