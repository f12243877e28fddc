"""Avoided words: no file holds one, as an identifier or in a sentence; no docstring opens with half a sentence."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""A part of an identifier, or a word of a sentence."""
AVOIDED = {
    *("told", "asked", "said", "heard", "answer", "answers", "answered", "question", "questions", "lot", "lots"),
    *("piece", "pieces", "taught", "judge", "judges", "judged", "strangers", "voices", "orchard", "grove"),
    *("figure", "figures"),
}
"""Words of a private dialect: the field has a term for each."""
SPOKEN = {
    *("tell", "tells", "telling", "say", "says", "saying", "ask", "asks", "asking", "hear", "hears", "speak", "speaks"),
    *("judging", "judgement", "judgements", "lesson", "lessons", "answering", "company", "teach", "teaches"),
}
"""Verbs of people: programs report, state, request, receive, distinguish and evaluate. Tests may use the words."""
OPENINGS = {"Of", "What", "Whether", "How", "Who", "Where", "As", "If"}
"""Words that begin half a sentence: a docstring is a noun phrase or a sentence that stands alone."""
SHIPPED = "app", "workers", "migrations"
DOCUMENTS = "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"
PROPER = re.compile(r"""figure[ _]\d|first_answer|[/"]answers\b|\.tell\(|`tests/\S+`""")
"""A figure of a book; a column that releases before this one write too; a route of the API; the position in
a file; the name of a test."""
LISTS = {"tests/ml/test_parameters.py", "tests/test_language.py", "tests/test_words.py"}
"""Files that list the words."""


def words(path: str) -> set[str]:
    return {word.lower() for word in WORD.findall(PROPER.sub("", (ROOT / path).read_text()))}


def files() -> list[str]:
    rooms = [path for room in ("app", "workers", "migrations", "tests") for path in (ROOT / room).rglob("*")]
    found = {str(path.relative_to(ROOT)) for path in rooms if path.suffix in {".py", ".md"}}
    return sorted({*found, *DOCUMENTS} - LISTS)


def folder(path: str) -> str:
    """The folder of the file; the file itself where it stands at the top."""
    return path.rpartition("/")[0] or path


@pytest.mark.parametrize("place", sorted({folder(path) for path in files()}))
def test_no_avoided_word(place):
    avoided = AVOIDED | SPOKEN if place.startswith((*SHIPPED, *DOCUMENTS)) else AVOIDED
    held = {path: found for path in files() if folder(path) == place if (found := words(path) & avoided)}
    assert held == {}


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring of a module, a class, a function or an attribute."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Expr(ast.Constant(str() as text)):
                yield node.lineno, text


def test_every_kind_of_docstring_is_found():
    found = [text for _, text in docstrings(ROOT / "tests" / "test_words.py")]
    opened = {" ".join(text.split()[:2]) for text in found}
    assert {"Avoided words:", "A part", "The folder"} <= opened


@pytest.mark.parametrize("room", SHIPPED)
def test_a_docstring_stands_alone(room):
    opened = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in (ROOT / room).rglob("*.py")
        for line, text in docstrings(path)
        if text.split()[0].rstrip(",.:;") in OPENINGS
    }
    assert opened == set()
