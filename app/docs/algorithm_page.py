"""The page of an algorithm, as Markdown, made of what its own file says."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from app.ml.catalogue import Entry
from app.ml.contract.algorithm import Task

EXAMPLES: Mapping[Task, Mapping[str, Any]] = {
    Task.CLASSIFICATION: {"dataset": "iris", "target": "species"},
    Task.REGRESSION: {"dataset": "diabetes", "target": "progression"},
    Task.CLUSTERING: {"dataset": "iris", "features": ["petal_length_cm", "petal_width_cm"]},
    Task.PROJECTION: {"dataset": "iris", "features": ["petal_length_cm", "petal_width_cm", "sepal_length_cm"]},
}
"""A bundled table for each task, and the columns to use."""


def example(entry: Entry) -> Mapping[str, Any]:
    """A request that trains the algorithm with its defaults on a bundled table."""
    task = next(task for task in EXAMPLES if task in entry.algorithm.tasks)
    return {"model": entry.name, **EXAMPLES[task], "algorithm": {"name": entry.name}}


def algorithm_page(entry: Entry) -> str:
    """The page of one algorithm."""
    return "\n".join(_lines(entry))


def _lines(entry: Entry) -> Iterator[str]:
    yield f"# {entry.name}\n\n{entry.title}\n\n{entry.gist}\n"
    yield f"**Tasks:** {', '.join(sorted(entry.algorithm.tasks))}.\n"
    yield f"**Use it when** {entry.use_when}\n"
    yield "## Example\n\nWith the bundled tables uploaded as in the [quick start](/docs/guide/quick-start):\n\n```sh"
    body = json.dumps(example(entry), ensure_ascii=False)
    yield f"curl -sS http://127.0.0.1:8000/v1/jobs/train -H 'Content-Type: application/json' -d '{body}'\n```\n"
    yield "## Parameters\n"
    yield from _parameters(entry)
    yield f"\n## Method\n\n{_escaped(entry.method)}\n"
    if entry.references:
        yield "## References\n"
        yield from (f"- {_escaped(reference)}" for reference in entry.references)


def _parameters(entry: Entry) -> Iterator[str]:
    schema = entry.algorithm.params.model_json_schema()
    fields = schema.get("properties", {})
    if not fields:
        yield "It has none."
        return
    yield "| parameter | values | default | meaning |\n|---|---|---|---|"
    for name, field in fields.items():
        default = json.dumps(field.get("default"), ensure_ascii=False)
        cells = (f"`{name}`", _values(field), f"`{default}`", field.get("description", ""))
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _values(field: Mapping[str, Any]) -> str:
    """Type, choices and bounds of a parameter."""
    if members := field.get("anyOf") or field.get("oneOf"):
        return " or ".join(dict.fromkeys(map(_values, members)))
    if choices := field.get("enum"):
        return ", ".join(f"`{choice}`" for choice in choices)
    if "const" in field:
        return f"`{field['const']}`"
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if field.get("type") == "array":
        return f"list of {_values(field.get('items', {}))}"
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {field[key]:g}" for key, sign in signs.items() if key in field]
    return " ".join([str(field.get("type", "any")), ", ".join(bounds)]).strip()


def _escaped(text: str) -> str:
    """Prose of a docstring with formulas, in which * and _ and < are no Markdown."""
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")
