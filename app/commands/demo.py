"""`valiant demo`: train a model of a sample table and predict with it over HTTP, with every call shown."""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import resources
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import httpx
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from app.base.errors import StartFailed
from app.base.settings import Settings
from app.commands.up import Running, running, stopping_on_signals

POLL_SECONDS = 0.1
FINISHED = {"succeeded", "failed", "cancelled", "timed_out"}
SHOWN_ROWS = 4


class Example(NamedTuple):
    """One of our sample tables, and what to learn from it."""

    sample: str
    target: str
    algorithm: Mapping[str, Any]

    @property
    def model(self) -> str:
        return f"{self.sample}-{self.algorithm['name'].replace('_', '-')}"


EXAMPLES = (
    Example("iris", "species", {"name": "logistic"}),
    Example("diabetes", "progression", {"name": "ridge"}),
)


def demo(settings: Settings, *, workers: int, once: bool) -> None:
    """Start everything, show two models, then serve until a signal to stop, or end if `once`."""
    console = Console(highlight=False)
    with stopping_on_signals(), ExitStack() as undo:
        with console.status("Starting Postgres, Redis, the API and a worker…"):
            service = undo.enter_context(running(settings, workers=workers, to_terminal=False))
        client = undo.enter_context(httpx.Client(base_url=service.address, timeout=30, trust_env=False))
        for example in EXAMPLES:
            _Show(service, client, console).run(example)
        console.print(f"\nThe API's documentation: [bold]{service.address}/docs[/]")
        if not once:
            console.print("Serving. Ctrl-C stops everything.")
            service.keep()


class _Show(NamedTuple):
    service: Running
    client: httpx.Client
    console: Console

    def run(self, example: Example) -> None:
        self.console.rule(f"[bold]{example.model}")
        path = Path(str(resources.files("app") / "samples" / f"{example.sample}.csv"))
        upload = f"/v1/datasets?name={example.sample}&file_format=csv"
        dataset = self._call("POST", upload, content=path.read_bytes(), headers={"Content-Type": BYTES})
        train = {
            "model": example.model,
            "dataset": dataset["id"],
            "target": example.target,
            "algorithm": example.algorithm,
        }
        job = self._finished(self._call("POST", "/v1/jobs/train", json=train))
        version = f"/v1/models/{example.model}/versions/{job['version']}"
        self._metrics(self._call("GET", f"{version}/report"))
        inputs = [column["name"] for column in self._call("GET", version)["inputs"]]
        rows = self._some_rows(dataset)
        request = {"columns": inputs, "data": [[row[name] for name in inputs] for row in rows]}
        predict = f"/v1/models/{example.model}/predict"
        truth = [row[example.target] for row in rows]
        self._predictions(self._call("POST", predict, json=request), example.target, truth)
        self.console.print("\nThe same with curl:", style="bold")
        self._curl(upload, f"--data-binary {quote('@' + str(path))} -H {quote('Content-Type: ' + BYTES)}")
        self._curl("/v1/jobs/train", _body(train))
        self._curl(f"/v1/jobs/{job['id']}")
        self._curl(predict, _body(request))

    def _call(self, method: str, address: str, **content: Any) -> Any:
        response = self.client.request(method, address, **content)
        if response.is_error:
            problem = response.json()
            raise StartFailed(f"{method} {address}: {problem['detail']} {problem.get('errors', '')}")
        return response.json()

    def _some_rows(self, dataset: Mapping[str, Any]) -> list[dict[str, Any]]:
        """A few rows from all over the table."""
        places = [number * dataset["rows"] // SHOWN_ROWS for number in range(SHOWN_ROWS)]
        windows = (self._call("GET", f"/v1/datasets/{dataset['id']}/rows?offset={offset}&limit=1") for offset in places)
        return [dict(zip(window["columns"], window["data"][0], strict=True)) for window in windows]

    def _finished(self, job: dict[str, Any]) -> dict[str, Any]:
        """Follow a job to its end on a progress bar."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        with Progress(*columns, TimeElapsedColumn(), console=self.console) as progress:
            bar = progress.add_task("training", total=1.0)
            while job["state"] not in FINISHED:
                time.sleep(POLL_SECONDS)
                for child in self.service.children:
                    child.check()
                job = self._call("GET", f"/v1/jobs/{job['id']}")
                progress.update(bar, completed=job["progress"], description=job["message"] or job["state"])
            if job["state"] == "succeeded":
                progress.update(bar, completed=1.0, description="trained")
                return job
        raise StartFailed(f"The job ended as {job['state']}: {job.get('error', {}).get('detail', '')}")

    def _metrics(self, report: Mapping[str, Any]) -> None:
        methods = ", ".join(sorted({metric["interval"] for metric in report["test"] if "interval" in metric}))
        table = Table(title=report["evidence"], caption=f"Intervals: {methods}.", title_justify="left")
        table.add_column("on unseen rows", no_wrap=True)
        for heading in ("value", "95 % interval", "n"):
            table.add_column(heading)
        for metric in report["test"]:
            name = f"{metric['name']} of {metric['label']}" if "label" in metric else metric["name"]
            bounds = f"{metric['lower']:.4g} … {metric['upper']:.4g}" if "lower" in metric else ""
            table.add_row(name, metric["display"], bounds, str(metric["n"]))
        self.console.print(table)

    def _predictions(self, response: Mapping[str, Any], target: str, truth: Sequence[Any]) -> None:
        classes = response.get("classes", [])
        table = Table(title="Some predictions", title_justify="left")
        for heading in (f"true {target}", "predicted", *(f"P({each})" for each in classes)):
            table.add_column(heading)
        chances = response.get("probabilities", [[] for _ in truth])
        for actual, predicted, shares in zip(truth, response["predictions"], chances, strict=True):
            shown = predicted if isinstance(predicted, str) else f"{predicted:.4g}"
            table.add_row(str(actual), shown, *(f"{share:.3f}" for share in shares))
        self.console.print(table)

    def _curl(self, address: str, options: str = "") -> None:
        """Print a command that runs as it stands: no wrapping, no markup."""
        line = f"curl -sS {quote(self.service.address + address)} {options}".rstrip()
        self.console.print(line, soft_wrap=True, markup=False)


BYTES = "application/octet-stream"


def _body(content: Mapping[str, Any]) -> str:
    return f"-H 'Content-Type: application/json' -d {quote(json.dumps(content, ensure_ascii=False))}"
