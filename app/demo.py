"""`valiant demo`: a table becomes a model that answers, over HTTP and before your eyes."""

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

from app.errors import StartFailed
from app.settings import Settings
from app.up import Running, running, stopping_on_signals

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
    """Start everything, show two models, then serve until told to stop, or end if `once`."""
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
        self._figures(self._call("GET", f"{version}/report"))
        inputs = [column["name"] for column in self._call("GET", version)["inputs"]]
        rows = self._some_rows(dataset)
        question = {"columns": inputs, "data": [[row[name] for name in inputs] for row in rows]}
        predict = f"/v1/models/{example.model}/predict"
        truth = [row[example.target] for row in rows]
        self._predictions(self._call("POST", predict, json=question), example.target, truth)
        self.console.print("\nThe same with curl:", style="bold")
        self._curl(upload, f"--data-binary {quote('@' + str(path))} -H {quote('Content-Type: ' + BYTES)}")
        self._curl("/v1/jobs/train", _body(train))
        self._curl(f"/v1/jobs/{job['id']}")
        self._curl(predict, _body(question))

    def _call(self, method: str, address: str, **content: Any) -> Any:
        answer = self.client.request(method, address, **content)
        if answer.is_error:
            problem = answer.json()
            raise StartFailed(f"{method} {address}: {problem['detail']} {problem.get('errors', '')}")
        return answer.json()

    def _some_rows(self, dataset: Mapping[str, Any]) -> list[dict[str, Any]]:
        """A few rows from all over the table."""
        places = [number * dataset["rows"] // SHOWN_ROWS for number in range(SHOWN_ROWS)]
        windows = (self._call("GET", f"/v1/datasets/{dataset['id']}/rows?offset={at}&limit=1") for at in places)
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

    def _figures(self, report: Mapping[str, Any]) -> None:
        ways = ", ".join(sorted({figure["interval"] for figure in report["test"] if "interval" in figure}))
        table = Table(title=report["rests_on"], caption=f"Intervals: {ways}.", title_justify="left")
        table.add_column("on unseen rows", no_wrap=True)
        for heading in ("value", "95 % interval", "n"):
            table.add_column(heading)
        for figure in report["test"]:
            name = f"{figure['name']} of {figure['label']}" if "label" in figure else figure["name"]
            bounds = f"{figure['lower']:.4g} … {figure['upper']:.4g}" if "lower" in figure else ""
            table.add_row(name, figure["display"], bounds, str(figure["n"]))
        self.console.print(table)

    def _predictions(self, answer: Mapping[str, Any], target: str, truth: Sequence[Any]) -> None:
        classes = answer.get("classes", [])
        table = Table(title="Some predictions", title_justify="left")
        for heading in (f"true {target}", "predicted", *(f"P({each})" for each in classes)):
            table.add_column(heading)
        chances = answer.get("probabilities", [[] for _ in truth])
        for known, predicted, shares in zip(truth, answer["predictions"], chances, strict=True):
            shown = predicted if isinstance(predicted, str) else f"{predicted:.4g}"
            table.add_row(str(known), shown, *(f"{share:.3f}" for share in shares))
        self.console.print(table)

    def _curl(self, address: str, options: str = "") -> None:
        """Print a command that runs as it stands: no wrapping, no markup."""
        line = f"curl -sS {quote(self.service.address + address)} {options}".rstrip()
        self.console.print(line, soft_wrap=True, markup=False)


BYTES = "application/octet-stream"


def _body(content: Mapping[str, Any]) -> str:
    return f"-H 'Content-Type: application/json' -d {quote(json.dumps(content, ensure_ascii=False))}"
