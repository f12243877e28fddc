"""Upload of a large CSV: rate, and growth of the API's memory.

python tests/benchmarks/upload.py [megabytes=1024]

The API runs as a process of its own on an embedded stack; its resident memory is sampled every 50 ms.
"""

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import psutil

from app.base.settings import Settings
from app.embedded.stack import Stack
from migrations.schema_revision import upgrade

API = """
import sys, uvicorn
from app.main import create_app
uvicorn.run(create_app(), port=int(sys.argv[1]), log_level="error")
"""


def rows(megabytes):
    """CSV in chunks: six columns, about 60 bytes a row."""
    rng = np.random.default_rng(0)
    yield b"id,age,income,plan,when,active\n"
    size = number = 0
    while size < megabytes << 20:
        ages, incomes = rng.integers(18, 90, 20_000), rng.normal(4e4, 1e4, 20_000)
        chunk = "".join(
            f"{number + i},{age},{income!r},{('basic', 'pro', 'NA')[i % 3]},2024-01-{1 + i % 28:02d},{i % 2 == 0}\n"
            for i, (age, income) in enumerate(zip(ages.tolist(), incomes.tolist(), strict=True))
        ).encode()
        number, size = number + 20_000, size + len(chunk)
        yield chunk


class Watch:
    """The most resident memory of the API itself, and of its children."""

    def __init__(self, pid):
        self.process, self.most, self.children = psutil.Process(pid), 0, 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.start = self.process.memory_info().rss
        self._thread.start()

    def _run(self):
        while not self._done.wait(0.05):
            self.most = max(self.most, self.process.memory_info().rss)
            for child in self.process.children(recursive=True):
                try:
                    self.children = max(self.children, child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue

    def stop(self):
        self._done.set()
        self._thread.join()


def processor_seconds(pid, folder):
    """Of the API with its children, and of the servers whose files are in the folder."""

    def spent(process):
        try:
            return sum(process.cpu_times()[:4])
        except psutil.Error:
            return 0.0

    api = psutil.Process(pid)
    ours = {api, *api.children(recursive=True)}
    servers = {each for each in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(each.info["cmdline"] or ())}
    return sum(map(spent, ours)), sum(map(spent, servers - ours))


def main(megabytes):
    with tempfile.TemporaryDirectory(prefix="valiant-bench-") as folder, Stack(Settings(data=Path(folder))) as stack:
        s = stack.settings
        upgrade(s.database_url.get_secret_value())
        addresses = {
            name: getattr(s, name.removeprefix("VALIANT_").lower()).get_secret_value()
            for name in ("VALIANT_DATABASE_URL", "VALIANT_BROKER_URL", "VALIANT_CACHE_URL")
        }
        environment = {"PATH": "/usr/bin:/bin", "VALIANT_DATA": folder, **addresses}
        port = 8000 + time.time_ns() % 1000
        api = subprocess.Popen([sys.executable, "-c", API, str(port)], env=environment)
        try:
            measure(f"http://127.0.0.1:{port}", api.pid, megabytes, Path(folder))
        finally:
            api.terminate()
            api.wait()


def measure(base, pid, megabytes, folder):
    file = folder / "large.csv"
    with file.open("wb") as out:
        for chunk in rows(megabytes):
            out.write(chunk)
    with httpx.Client(base_url=base, timeout=3600, transport=httpx.HTTPTransport(retries=100)) as client:
        for _ in range(200):
            try:
                client.post("/v1/datasets", content=b"a\n1\n")
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        begun = time.perf_counter()
        small = client.post("/v1/datasets", content=b"a,b\n" + b"1,x\n" * 150).elapsed.total_seconds()
        before = processor_seconds(pid, folder)
        watch, begun = Watch(pid), time.perf_counter()
        with file.open("rb") as body:
            predicted = client.post("/v1/datasets?name=large", content=body).raise_for_status().json()
        seconds = time.perf_counter() - begun
        watch.stop()
        api, servers = (after - at for after, at in zip(processor_seconds(pid, folder), before, strict=True))
    size = file.stat().st_size / 2**20
    print(f"{size:.0f} MiB, {predicted['rows']} rows: {seconds:.1f} s, {size / seconds:.1f} MiB/s")
    rate = size / (api + servers)
    print(f"{rate:.1f} MiB/s a core: {api:.1f} s of the API and its parser, {servers:.1f} s of its servers")
    grown, child = (watch.most - watch.start) / 2**20, watch.children / 2**20
    print(f"API grew by {grown:.1f} MiB; the parsing child reached {child:.0f} MiB; a small upload took {small:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
