"""Worked examples of operations in the OpenAPI document, as a real service gave them."""

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

EXAMPLES: Mapping[str, Mapping[str, Any]] = json.loads(
    (resources.files(__package__) / "examples.json").read_text(encoding="utf-8")
)
"""By operation: `request`, where it has a JSON body, and `response`."""
LISTED = 3
"""Entries of a list that an example shows."""


def add_example(operation: dict[str, Any]) -> None:
    """Put the example of an operation beside the schemas of its bodies."""
    example = EXAMPLES.get(operation["operationId"], {})
    if "request" in example:
        operation["requestBody"]["content"]["application/json"]["example"] = example["request"]
    if "response" in example:
        status = min(status for status in operation["responses"] if status.startswith("2"))
        operation["responses"][status]["content"]["application/json"]["example"] = example["response"]
