"""Commands on versions, jobs and datasets: compare, promote, cancel, delete, download."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .automl_command import add_automl_command
from .dataset import BY_SUFFIX, Dataset
from .drift_report import DriftFound, DriftReport
from .model_version import EXPORTS
from .service import ALGORITHM, Client
from .submitted_job import Job
from .summary_table import SummaryTable, interval

Add = Callable[[str, Callable[..., Any], str], argparse.ArgumentParser]
"""Adds a command: its name, what runs it, and its description."""


def add_version_commands(add: Add, table_of: Callable[[Client, str], Dataset[Any]]) -> None:
    """table_of: the dataset of a command's argument, a file or a reference."""

    def search(service: Client, table: str, **options: Any) -> tuple[Job[Any], SummaryTable]:
        return _search(service, table_of(service, table), **options)

    def compare(service: Client, table: str, **options: Any) -> tuple[Job[Any], SummaryTable]:
        return _compare(service, table_of(service, table), **options)

    def drift(service: Client, table: str, reference: str | None, **options: Any) -> DriftReport[Any]:
        reference_table = None if reference is None else table_of(service, reference)
        return _drift(service, table_of(service, table), reference_table, **options)

    command = add("search", search, "compare algorithms on the same folds, and train the best")
    command.add_argument("table", help="a file, or the name or id of a dataset")
    command.add_argument("--target", help="column to predict")
    command.add_argument("--model", help="model that gets the best as a version (none is trained)")
    command.add_argument("--metric", help="metric that ranks (rmse of numbers, log_loss of classes)")
    command.add_argument(
        "--algorithms", nargs="+", default=["ridge", "random_forest", ALGORITHM], metavar="NAME",
        help=f"algorithms with their default parameters (ridge random_forest {ALGORITHM})",
    )  # fmt: skip
    add_automl_command(add, table_of)
    command = add("compare", compare, "compare versions on rows that none of them has seen")
    command.add_argument("table", help="a file, or the name or id of a dataset")
    command.add_argument("versions", nargs="+", type=_version, metavar="MODEL[:VERSION]", help="two or more versions")
    command.add_argument("--metric", help="metric of the differences (rmse of numbers, log_loss of classes)")
    command = add("drift", drift, "compare the rows of a table with those of another, or of a model's training")
    command.add_argument("table", help="a file, or the name or id of a dataset")
    command.add_argument("--reference", help="a file, or the name or id of a dataset (the rows of the training)")
    command.add_argument("--model", type=_version, metavar="MODEL[:VERSION]", help="version whose inputs are compared")
    command.add_argument(
        "--fail-on", choices=["any", "inputs", "predictions"], help="exit with 5 where these have drifted (never)"
    )
    command.add_argument("--tolerance", type=float, help="population stability index that does not matter (0.02)")
    command.add_argument("-o", "--output", type=Path, help="HTML file to write, with the histograms")
    command = add("promote", _promote, "move an alias to a version: a prediction that names none is by the champion")
    command.add_argument("model", help="name of the model")
    command.add_argument("version", nargs="?", type=int, help="number of the version (the newest)")
    command.add_argument("--alias", default="champion", help="alias to move (champion)")
    command = add("cancel", _cancel, "cancel a job")
    command.add_argument("job", help="id or name of the job")
    command = add("delete", _delete, "delete a dataset, a model, or one version of it")
    command.add_argument("kind", choices=["dataset", "model"], help="what it is")
    command.add_argument("name", help="id or name")
    command.add_argument("--version", type=int, help="version of the model (all)")
    command = add("download", _download, "write a dataset, or the bytes of a model's version, to a file")
    command.add_argument("kind", choices=["dataset", "model"], help="what it is")
    command.add_argument("name", help="id or name")
    command.add_argument("--version", type=int, help="version of the model (the newest)")
    text = f"file to write: {', '.join(BY_SUFFIX)} of a dataset, .safetensors of a model"
    command.add_argument("-o", "--output", type=Path, required=True, help=text)
    command = add("export", _export, "write a model's version as a file that other programs predict with")
    command.add_argument("model", help="name of the model")
    command.add_argument("--version", type=int, help="version of the model (the newest)")
    text = "file to write: .onnx for ONNX, .py for a script that needs numpy alone"
    command.add_argument("-o", "--output", type=Path, required=True, help=text)


def _version(text: str) -> tuple[str, int | None]:
    name, colon, number = text.partition(":")
    if colon and not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not MODEL:VERSION")
    return name, int(number) if colon else None


def _search(
    service: Client, dataset: Dataset[Any], target: str | None, algorithms: list[str], **options: Any
) -> tuple[Job[Any], SummaryTable]:
    first, *others = [{"name": name} for name in algorithms]
    chosen = {name: value for name, value in options.items() if value is not None}
    job = _done(service, "search", dataset=dataset, target=target, algorithm=first, alternatives=others, **chosen)
    result = job.result or {}
    ranked = sorted(result["candidates"], key=lambda each: each["rank"] or len(algorithms))
    rows = [[each["rank"], each["algorithm"], *_metric(each["validation"])] for each in ranked]
    trained = [f"{job.model}, version {job.version}, is trained."] if job.version else []
    title = f"{result['metric']}: {result['better']} is better"
    table = SummaryTable(title, ("rank", "algorithm", "value", "interval"), rows, [*job.warnings, *trained])
    return job, table


def _compare(
    service: Client, dataset: Dataset[Any], versions: list[tuple[str, int | None]], metric: str | None
) -> tuple[Job[Any], SummaryTable]:
    numbered = [
        {"model": name, "version": number or service.model(name).version().version} for name, number in versions
    ]
    job = _done(service, "compare", dataset=dataset, versions=numbered, **({"metric": metric} if metric else {}))
    result = job.result or {}
    names = [f"{each['model']}:{each['version']}" for each in result["versions"]]
    rows = []
    for pair in result["pairs"]:
        better = names[pair["better"]] if pair.get("better") is not None else "not distinguished"
        difference = _metric(pair["difference"]) if pair.get("difference") else ("", "")
        rows.append([names[pair["first"]], names[pair["second"]], *difference, better])
    headings = "first", "second", "first less second", "interval", "better"
    return job, SummaryTable(result["evidence"], headings, rows, result["warnings"])


def _drift(
    service: Client, current: Dataset[Any], reference: Dataset[Any] | None, *, model: tuple[str, int | None] | None,
    fail_on: str | None, tolerance: float | None, output: Path | None,
) -> DriftReport[Any]:  # fmt: skip
    """Raises DriftFound where `fail_on` names what has drifted."""
    name, number = model or (None, None)
    named = None if name is None else {"model": name, **({"version": number} if number else {})}
    fields: dict[str, Any] = {} if tolerance is None else {"tolerance_psi": tolerance}
    report = service.drift(current, reference, model=named, **fields)
    if output is not None:
        report.save(output)
    predicted = {"any": (True, False), "predictions": (True,), "inputs": (False,)}.get(fail_on or "", ())
    failing = [each["column"] for each in report.columns_drifted if (each["aspect"] == "prediction") in predicted]
    if failing:
        raise DriftFound(report, list(dict.fromkeys(failing)))
    return report


def _done(service: Client, kind: str, **body: Any) -> Job[Any]:
    """The job, once it has succeeded."""
    job: Job[Any] = service.run(kind, wait=False, **body)
    job.wait()
    return job


def _metric(metric: dict[str, Any] | None) -> tuple[str, str]:
    return ("", "") if metric is None else (metric["display"], interval(metric))


def _promote(service: Client, model: str, version: int | None, alias: str) -> tuple[Any, SummaryTable]:
    named = service.model(model)
    named.alias(alias).move(named.version(version))
    moved = service.model(model)
    return moved, SummaryTable(f"{model}: {moved.as_aliases()}", (), ())


def _cancel(service: Client, job: str) -> Job[Any]:
    return service.job(job).cancel()


def _delete(service: Client, kind: str, name: str, version: int | None) -> None:
    if kind == "dataset":
        service.dataset(name).delete()
    elif version is None:
        service.model(name).delete()
    else:
        service.model(name).version(version).delete()


def _download(service: Client, kind: str, name: str, version: int | None, output: Path) -> None:
    if kind == "dataset":
        service.dataset(name).download(output)
    else:
        service.model(name).version(version).download(output)


def _export(service: Client, model: str, version: int | None, output: Path) -> None:
    if output.suffix not in EXPORTS:
        raise argparse.ArgumentError(None, f"{output.name}: the name of the file ends with {' or '.join(EXPORTS)}.")
    service.model(model).version(version).export(output)
