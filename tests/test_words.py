"""Avoided words: no file holds one, as an identifier or in a sentence; no docstring opens with half a sentence."""

import ast
import re
from collections import Counter
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
ADVENTURES = {"found", "one", "own", "given", "known", "kept", "at", "of", "apart", "rest"}
"""Names that say how a thing came about: a name says what the thing is."""
SUPERLATIVES = {
    *("MOST", "LEAST", "FEWEST", "LARGEST", "SMALLEST", "LONGEST", "SHORTEST", "DEEPEST", "WIDEST", "FURTHEST"),
    *("FARTHEST", "NEAREST", "LONG", "SHORT", "SHOWN", "RARE", "MANY", "FEW", "TINY", "CLOSE", "NEAR", "FAR"),
    *("LATEST", "LIGHTEST", "HEAVIEST", "STEEPEST", "FLATTEST", "WEAKEST", "THINNEST", "LARGE", "SMALL", "WIDE"),
}
"""Constants without a thing: a constant is named `<LIMIT>_<WHAT>`, with its unit."""
CEILINGS: dict[str, int] = {
    "app/api": 5,
    "app/client": 1,
    "app/embedded": 1,
    "app/formats": 1,
    "app/ingest": 4,
    "app/ml": 3,
    "app/ml/algorithms": 4,
    "app/ml/contract": 6,
    "app/ml/decisions": 8,
    "app/ml/evaluation": 12,
    "app/ml/jobs": 117,
    "app/ml/models": 4,
    "app/ml/numerics": 53,
    "app/ml/online": 3,
    "app/ml/preparation": 9,
    "app/ml/queries": 2,
    "app/ml/sessions": 2,
    "app/ml/statistics": 4,
    "app/ml/tables": 4,
    "app/ml/training": 30,
    "app/schemas": 7,
    "app/services": 5,
    "app/store": 10,
    "tests": 53,
    "tests/api": 561,
    "tests/base": 9,
    "tests/benchmarks": 141,
    "tests/client": 24,
    "tests/commands": 20,
    "tests/console": 7,
    "tests/deployment": 8,
    "tests/embedded": 1,
    "tests/formats": 11,
    "tests/ingest": 41,
    "tests/messaging": 1,
    "tests/ml": 1370,
    "tests/processes": 3,
    "tests/services": 33,
    "tests/store": 20,
    "tests/workers": 38,
    "workers": 1,
}
"""Such names of a room that are left, at most; no room without a line here has any. A ceiling is only lowered."""
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


def local_names(path: Path) -> Iterator[str]:
    """Names that are bound in a file: of variables, parameters, functions, classes, imports, fields and constants."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(name, ast.Store()) | ast.arg(name) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(str(name)) | ast.alias(asname=str(name)):
                yield name


def room_of(path: Path) -> str:
    """The first three folders of a module in app/ml, the first two of another."""
    parts = path.relative_to(ROOT).parts[:-1]
    return "/".join(parts[: 3 if parts[:2] == ("app", "ml") else 2])


def adventures_and_superlatives(*rooms: str) -> Counter[str]:
    """Number of such names by room."""
    paths = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    return Counter(room_of(path) for path in paths for name in local_names(path) if name in ADVENTURES | SUPERLATIVES)


def test_names_say_what_the_thing_is():
    counts = adventures_and_superlatives("app", "workers", "migrations", "tests")
    assert {room: count for room, count in counts.items() if count > CEILINGS.get(room, 0)} == {}
