"""The page of an algorithm, as Markdown, made from its own file."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.ml.catalogue.algorithm_files import Entry
from app.ml.contract.algorithm import TargetKind
from app.ml.models.cluster_description import offered_outputs

EXAMPLES: Mapping[TargetKind | None, Mapping[str, Any]] = {
    TargetKind.CLASSES: {"dataset": "iris", "target": "species"},
    TargetKind.NUMBERS: {"dataset": "diabetes", "target": "progression"},
    None: {"dataset": "iris", "features": ["petal_length_cm", "petal_width_cm", "sepal_length_cm"]},
}
"""A bundled table for tasks of each kind of target, and the columns to use."""
ROWS: Mapping[str, Mapping[str, float]] = {
    "iris": {"sepal_length_cm": 5.9, "sepal_width_cm": 3.0, "petal_length_cm": 4.2, "petal_width_cm": 1.5},
    "diabetes": {
        "age": 59,
        "sex": 2,
        "bmi": 32.1,
        "blood_pressure": 101,
        "total_cholesterol": 157,
        "ldl": 93.2,
        "hdl": 38,
        "cholesterol_ratio": 4,
        "log_triglycerides": 4.86,
        "glucose": 87,
    },
}
"""A row of each of these tables."""
JSON_BODY = "-H 'Content-Type: application/json' -d"
ADDRESS = "http://127.0.0.1:8000/v1"


def example(entry: Entry) -> Mapping[str, Any]:
    """A request that trains the algorithm with its defaults on a bundled table."""
    of_kind = {task.record.target: task for task in sorted(entry.algorithm.tasks, reverse=True)}
    kind = next(kind for kind in EXAMPLES if kind in of_kind)
    target = {"target": "species"} if of_kind[kind] in entry.algorithm.targets else {}
    return {"name": entry.name, "model": entry.name, **EXAMPLES[kind], **target, "algorithm": {"name": entry.name}}


def commands(entry: Entry) -> str:
    """Commands that train the algorithm, wait for the job and predict a row."""
    training = example(entry)
    rows = {"rows": [ROWS[training["dataset"]]]}
    return (
        f"curl -sS {ADDRESS}/jobs/train {JSON_BODY} '{json.dumps(training)}'\n"
        f"curl -sS {ADDRESS}/jobs/{entry.name}/events\n"
        f"curl -sS {ADDRESS}/models/{entry.name}/predict {JSON_BODY} '{json.dumps(rows)}'\n"
    )


def algorithm_page(entry: Entry) -> str:
    """The page of one algorithm."""
    return "\n".join(_lines(entry))


def _lines(entry: Entry) -> Iterator[str]:
    yield f"# {entry.name}\n\n{_escaped(entry.title)}\n\n{_escaped(entry.gist)}\n"
    yield f"**Tasks:** {', '.join(sorted(entry.algorithm.tasks))}.\n"
    yield f"**Use it when** {_escaped(entry.use_when)}\n"
    yield "## Example\n\nWith the tables that the [quick start](/docs/guide/quick-start) uploads:\n"
    yield f"```sh\n{commands(entry)}```\n"
    yield "## Parameters\n"
    yield from _parameters(entry)
    if outputs := offered_outputs(entry.algorithm):
        yield "\n## Outputs\n\nValues that `include` of a prediction adds:\n"
        yield "| output | shape for n rows | meaning |\n|---|---|---|"
        yield from (
            f"| `{name}` | {output.shape} | {_escaped(output.description)} |" for name, output in outputs.items()
        )
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
        cells = (f"`{name}`", _values(field), f"`{default}`", _escaped(field.get("description", "")))
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
    return f"{field.get('type', 'any')}{_bounds(field)}"


def _bounds(field: Mapping[str, Any]) -> str:
    """Bounds of a number, as `, 1 to 10,000` or ` > 0, ≤ 1e+100`."""
    if "minimum" in field and "maximum" in field:
        return f", {_number(field['minimum'])} to {_number(field['maximum'])}"
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {_number(field[key])}" for key, sign in signs.items() if key in field]
    return f" {', '.join(limits)}" if limits else ""


def _number(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) and abs(bound) < 10**9 else f"{bound:g}"


def _escaped(text: str) -> str:
    """Prose of a docstring with formulas, in which *, _, [ and < are no Markdown; names in backticks stay code."""
    prose = re.compile(r"(`[^`]*`)|([\\*_<\[\]#~])")
    return prose.sub(lambda match: match[1] or f"\\{match[2]}", text)
