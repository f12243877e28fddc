"""python -m tests.benchmarks.console

What the console costs: how soon a report of 500 metrics is drawn once its data has come, how soon the list of 10,000
models is shown, and the rate of predictions while twenty consoles watch a job. Needs a Chromium and wrk.
"""

import shutil
import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np
import psutil
from playwright.sync_api import sync_playwright

from app.base.settings import Settings
from app.commands.up import running
from app.composition.wiring import build

from .keyed import measured_rate, publish

ROUNDS, MODELS, CLASSES, CONSOLES = 5, 10_000, 165, 20
SECONDS = 4
LONG = {"model": "long", "target": "y", "algorithm": {"name": "gradient_boosting", "n_estimators": 1000}}
DRAWN = """() => new Promise((done) => {
  const wait = () => document.querySelectorAll("section tbody tr").length >= %d
    ? requestAnimationFrame(() => setTimeout(() => done([performance.now(), Math.max(...performance
        .getEntriesByType("resource").filter((one) => one.name.includes("/v1/")).map((one) => one.responseEnd))])))
    : setTimeout(wait, 2);
  wait();
})"""
"""Milliseconds since the page was opened: when so many rows were painted, and when the last response had come."""


def main():
    with ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="console-")))
        settings = Settings(data=folder / "data", port=0, log_level="WARNING")
        service = undo.enter_context(running(settings, workers=1, to_terminal=True))
        client = undo.enter_context(httpx.Client(base_url=service.address, timeout=300))
        dataset = _uploaded(client)
        _trained(client, "many", dataset)
        browser = undo.enter_context(sync_playwright()).chromium
        browser = browser.launch(executable_path=shutil.which("chromium-headless-shell"), args=["--no-sandbox"])
        undo.callback(browser.close)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        metrics = len(client.get("/v1/models/many/versions/1/report").json()["test"])
        drawn = [_drawn(page, f"{service.address}/console/#/models/many/1", metrics) for _ in range(ROUNDS)]
        print(f"report of {metrics} metrics: drawn {_median(drawn, 0)} ms after its data, {_spread(drawn, 0)}")
        services = build(service.settings, role="api")
        undo.callback(services.close)
        publish(services, ["load", *(f"model-{number:05}" for number in range(MODELS - 2))])
        listed = [_drawn(page, f"{service.address}/console/#/models", 20, "main tbody tr") for _ in range(ROUNDS)]
        print(f"{MODELS:,} models: a page shown {_median(listed, 1)} ms after it was opened, {_spread(listed, 1)}")
        _watched(service, client, dataset, folder)


def _uploaded(client):
    """Four numbers and a class of many, which gives a report of many metrics."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(CLASSES), 25)
    rows = rng.normal(size=(len(labels), 4)) + 5 * rng.normal(size=(CLASSES, 4))[labels]
    lines = [
        f"{','.join(f'{value:.4f}' for value in row)},c{label:03}" for row, label in zip(rows, labels, strict=True)
    ]
    table = "\n".join(["a,b,c,d,y", *lines]).encode()
    headers = {"Content-Type": "application/octet-stream"}
    return client.post("/v1/datasets", params={"name": "many"}, content=table, headers=headers).json()["id"]


def _trained(client, model, dataset):
    body = {"model": model, "dataset": dataset, "target": "y", "algorithm": {"name": "knn"}}
    job = client.post("/v1/jobs/train", json=body).raise_for_status().json()
    while job["state"] not in {"succeeded", "failed"}:
        time.sleep(0.1)
        job = client.get(f"/v1/jobs/{job['id']}").json()
    assert job["state"] == "succeeded", job


def _drawn(page, address, rows, selector="section tbody tr"):
    """Milliseconds from the data to the picture, and from the opening to it. The program is in the browser's cache."""
    page.goto("about:blank")
    page.goto(address)
    painted, came = page.evaluate((DRAWN % rows).replace("section tbody tr", selector))
    return painted - came, painted


def _median(measured, place):
    return f"{statistics.median(one[place] for one in measured):.0f}"


def _spread(measured, place):
    return f"{min(one[place] for one in measured):.0f} to {max(one[place] for one in measured):.0f}"


def _watched(service, client, dataset, folder):
    """Rates in turns with and without the streams of so many consoles, all of a job that runs all the time.

    Curl stands for the browsers, which people have on machines of their own: it sends what the page of a job sends.
    """
    api = next(child for child in service.children if child.name == "api")
    server = service.address, psutil.Process(api.process.pid)
    rates = {0: [], CONSOLES: []}
    for _ in range(ROUNDS):
        for consoles, measured in rates.items():
            job = client.post("/v1/jobs/train", json=LONG | {"dataset": dataset}).raise_for_status().json()
            while job["state"] == "queued":
                job = client.get(f"/v1/jobs/{job['id']}").json()
            command = ["curl", "-sN", f"{service.address}/v1/jobs/{job['id']}/events"]
            streams = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(consoles)]
            measured.append(measured_rate(folder, SECONDS, server, "", "")[0])
            assert all(stream.poll() is None for stream in streams)
            client.post(f"/v1/jobs/{job['id']}/cancel")
            for stream in streams:
                stream.wait()
    alone, watched = (statistics.median(measured) for measured in rates.values())
    print(f"predictions: {alone:,.0f} a second, {watched:,.0f} with {CONSOLES} consoles, {watched / alone:.3f}")


if __name__ == "__main__":
    main()
