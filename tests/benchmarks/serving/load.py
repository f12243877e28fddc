"""One load generator for every server: wrk where there is one, else a slower one in Python."""

import asyncio
import json
import shutil
import statistics
import subprocess
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import psutil

SCRIPT = """
wrk.method = "POST"
%s
local file = io.open("%s", "rb")
wrk.body = file:read("*a")
file:close()
done = function(summary, latency, requests)
  local form = '{"requests": %%d, "failed": %%d, "broken": %%d, "seconds": %%f, "p50": %%f, "p99": %%f}'
  io.write(string.format('\\nRESULT ' .. form .. '\\n',
    summary.requests, summary.errors.status,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


class Ask(NamedTuple):
    """One request, sent again and again."""

    url: str
    headers: dict[str, str]
    body: bytes


class Metric(NamedTuple):
    """Served requests a second, milliseconds, CPU microseconds of the server a request, and what went wrong."""

    rate: float
    p50: float
    p99: float
    cpu: float
    failed: int


def best(rounds):
    """The round with the highest rate, with the least CPU time that any took."""
    quickest = max(rounds, key=lambda metric: metric.rate)
    return quickest._replace(cpu=min(metric.cpu for metric in rounds), failed=sum(metric.failed for metric in rounds))


def generator():
    return "wrk" if shutil.which("wrk") else "Python"


def drive(ask, connections, seconds, pid, folder):
    before = _cpu(pid)
    tool = _wrk if generator() == "wrk" else _python
    got = tool(ask, connections, seconds, folder)
    spent = _cpu(pid) - before
    failed = got["failed"] + got["broken"]
    good = got["requests"] - got["failed"]
    return Metric(good / got["seconds"], got["p50"], got["p99"], 1e6 * spent / max(got["requests"], 1), failed)


def _cpu(pid):
    """Seconds of a server and of all its processes."""
    server = psutil.Process(pid)
    times = [process.cpu_times() for process in [server, *server.children(recursive=True)]]
    return sum(time.user + time.system for time in times)


def _wrk(ask, connections, seconds, folder):
    body, script = Path(folder) / "body", Path(folder) / "ask.lua"
    body.write_bytes(ask.body)
    headers = "\n".join(f'wrk.headers["{name}"] = "{value}"' for name, value in ask.headers.items())
    script.write_text(SCRIPT % (headers, body))
    command = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{max(1, round(seconds))}s",
        "--timeout",
        "20s",
        "-s",
        str(script),
        ask.url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 60)
    return json.loads(done.stdout.partition("RESULT ")[2].splitlines()[0])


def _python(ask, connections, seconds, folder):
    return asyncio.run(_hammer(ask, connections, seconds))


async def _hammer(ask, connections, seconds):
    url = urlsplit(ask.url)
    headers = {"Host": url.netloc, **ask.headers, "Content-Length": len(ask.body)}
    lines = [f"POST {url.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    request = "\r\n".join(lines).encode() + ask.body
    taken, failed = [], 0
    begun = time.perf_counter()

    async def one():
        nonlocal failed
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        while (start := time.perf_counter()) < begun + seconds:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]))
            taken.append(1e3 * (time.perf_counter() - start))
            failed += not head.startswith(b"HTTP/1.1 200")
        writer.close()

    await asyncio.wait_for(asyncio.gather(*(one() for _ in range(connections))), seconds + 60)
    cut = statistics.quantiles(taken, n=100) if len(taken) > 1 else taken * 99
    spent = time.perf_counter() - begun
    return {"requests": len(taken), "failed": failed, "broken": 0, "seconds": spent, "p50": cut[49], "p99": cut[98]}
