"""The words of the API: everything is described, in plain sentences that stand alone, without terms to avoid."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCUMENT = json.loads((Path(__file__).parents[1] / "app" / "openapi.json").read_text())
AVOIDED = (
    *("told", "asked", "said", "heard", "lot", "lots", "piece", "pieces", "taught", "judge", "judges", "judged"),
    *("strangers", "voices", "figure", "figures", "question", "questions", "answer", "answers", "answered"),
    *("tell", "tells", "say", "says", "ask", "asks", "hear", "hears", "speak", "speaks", "judgement", "judgements"),
)
"""Words of a private dialect, as `docs` of the field do not use them in these meanings."""
OPENINGS = (
    *("Of", "What", "Who", "As", "Absent", "Whether", "By", "In", "On", "For", "Null", "If"),
    *("How", "Where", "Which", "When", "So"),
)
"""Words that begin half a sentence, whose other half is the name of the field."""
METHODS = {"get", "put", "post", "delete"}


def descriptions() -> Iterator[tuple[str, str | None]]:
    """Place and text of every description of the document; None where it is missing."""
    for name, schema in DOCUMENT["components"]["schemas"].items():
        if schema.get("type") == "object":
            yield name, schema.get("description")
        for field, content in schema.get("properties", {}).items():
            yield f"{name}.{field}", content.get("description")
    for path, methods in DOCUMENT["paths"].items():
        for method in METHODS & methods.keys():
            operation = methods[method]
            yield f"{method} {path}", operation.get("description")
            yield f"{method} {path} summary", operation.get("summary")
            for parameter in operation.get("parameters", []):
                yield f"{method} {path} {parameter['name']}", parameter.get("description")


TEXTS = [(place, text) for place, text in descriptions() if text]


def test_everything_is_described():
    assert [place for place, text in descriptions() if not text] == []
    assert len(TEXTS) > 1000


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_description_stands_alone(opening):
    assert [(place, text) for place, text in TEXTS if re.match(rf"{opening}\b", text)] == []


@pytest.mark.parametrize("word", AVOIDED)
def test_no_word_of_a_private_dialect(word):
    assert [(place, text) for place, text in TEXTS if re.search(rf"\b{word}\b", text, re.IGNORECASE)] == []
