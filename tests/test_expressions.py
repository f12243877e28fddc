"""Patterns of texts: none is compiled from what a caller sends, and none takes more than linear time."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.ml.tables import csv_dialect, texts
from app.services.access.passes import MAX_MODEL_NAME_LENGTH, is_covered

ROOT = Path(__file__).parent.parent
SOURCES = [path for folder in ("app", "workers", "migrations") for path in sorted((ROOT / folder).rglob("*.py"))]
PATTERN_ARGUMENT = {
    **dict.fromkeys(("fnmatch", "fnmatchcase"), 1),
    **dict.fromkeys(("ilike", "not_like", "not_ilike", "regexp_match", "regexp_replace"), 0),
    **dict.fromkeys(("match_substring_regex", "count_substring_regex", "find_substring_regex", "extract_regex"), 1),
    **dict.fromkeys(("replace_substring_regex", "split_pattern_regex", "match_like"), 1),
}
"""Position of the pattern, by the function of fnmatch, SQLAlchemy or Arrow."""
CALL = re.compile(rf"\bre\.\w+\(|\.like\(|\b(?:{'|'.join(PATTERN_ARGUMENT)})\(")
MADE_OF_CONSTANTS = {
    "app/formats/json_tables.py: _start": "the names of the fields of a request",
    "app/ingest/column_reader.py: _any_matches": "the marks of numbers",
    "app/ingest/compression.py: find_compression": "the first bytes of each format",
    "app/ingest/type_inference.py: _fits": "a pattern for each form",
    "app/ingest/notation_candidates.py: _way": "the signs of notations, of which there are a few",
    "app/ml/contract/dates_and_times.py: compiled": "the orders of dates and the signs of notations",
    "app/ml/contract/notation.py: _written_plainly": "the four separators of thousands",
    "app/ml/tables/csv_dialect.py: module": "two quotes",
    "app/ml/tables/stray_quotes.py: __init__": "an escaped delimiter",
    "app/ml/preparation/text_terms.py: _matching": "two patterns of the same file, matched once with all characters",
}
"""Functions that compile an argument, and the constants of which alone it is made."""


def names_of(node):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def module_constants(tree):
    """Names that the module binds at its top level or imports, and those of functions that are used in patterns."""
    constants = {"map", "re"}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            constants |= {name for target in getattr(node, "targets", [node]) for name in names_of(target)}
        elif isinstance(node, ast.ImportFrom):
            constants |= {alias.asname or alias.name for alias in node.names if alias.name.isupper()}
    return constants


def compiled(text):
    """Function and pattern of each call that compiles a pattern with a name in it that is no constant."""
    tree = ast.parse(text)
    constants = module_constants(tree)
    functions = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions |= {id(inner): node for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)):
            continue
        callee = ast.unparse(node.func)
        position = (
            0
            if re.fullmatch(r"\w+Row\.\w+\.like", callee) or re.fullmatch(r"re\.(?!escape|error)\w+", callee)
            else PATTERN_ARGUMENT.get(callee.split(".")[-1])
        )
        if position is None:
            continue
        function = functions.get(id(node))
        local = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)} if function else set()
        pattern = node.args[position] if len(node.args) > position else node
        if names_of(pattern) - (constants - local):
            yield function.name if function else "module", ast.unparse(pattern)


def test_no_expression_is_compiled_from_the_text_of_a_caller():
    texts = {path.relative_to(ROOT): path.read_text() for path in SOURCES}
    calling = {path: text for path, text in texts.items() if CALL.search(text)}
    made = {f"{path}: {name}": pattern for path, text in calling.items() for name, pattern in compiled(text)}
    assert made.keys() == MADE_OF_CONSTANTS.keys(), made


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return re.compile(x)",
        "def f(x):\n    return re.sub('a' + re.escape(x), '', 'a')",
        "A = 1\ndef f(A):\n    return re.search(A, '')",
        "def f(x):\n    return fnmatch.fnmatch('a', x)",
        "def f(x):\n    return pc.match_substring_regex(values, pattern=x)",
        "def f(x):\n    return Row.name.ilike(x)",
    ],
)
def test_an_expression_made_of_an_argument_is_seen(text):
    assert [name for name, _ in compiled(text)] == ["f"]


@pytest.mark.parametrize(
    ("pattern", "covered", "others"),
    [
        ("fraud-*", ["fraud-", "fraud-eu"], ["fraud", "xfraud-eu", "Fraud-eu"]),
        ("*", ["", "any"], []),
        ("a*a", ["aa", "aba"], ["a", "ab", "aab"]),
        ("*b*c*", ["bc", "abxcx"], ["cb", "b"]),
        ("a*bc*bcd", ["abcbcd", "abcxbcd"], ["abcd"]),
        ("a**b", ["ab", "axb"], ["a", "b"]),
        ("exact", ["exact"], ["exact1", "exac", ""]),
        ("a.c[", ["a.c["], ["abc["]),
    ],
)
def test_a_star_stands_for_any_characters(pattern, covered, others):
    assert [name for name in covered if not is_covered(name, (pattern,))] == []
    assert [name for name in others if is_covered(name, (pattern,))] == []


@pytest.mark.parametrize("length", [MAX_MODEL_NAME_LENGTH, MAX_MODEL_NAME_LENGTH + 1, 1_000_000])
def test_patterns_of_many_stars_are_matched_in_few_steps(length):
    patterns = ("*a" * 20 + "*b", "*" * 100, "*a" * 50)[::2]
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        covered = is_covered("a" * length, patterns)
    finally:
        sys.setprofile(None)
    assert covered is (length <= MAX_MODEL_NAME_LENGTH)
    assert calls <= 4 + sum(len(pattern) for pattern in patterns)


def test_a_long_cell_that_is_no_number_is_refused_in_one_pass():
    """In a child with a time limit: were digits tried again from each of them, it would take 10¹² steps."""
    expressions = [(each.pattern, each.flags) for each in (texts.NUMBER, texts.WHOLE, csv_dialect._NUMBER)]
    program = f"""
import re
digits = "1" * 1_000_000
cells = [digits + "x", "1." + digits + "x", "1e" + digits + "x", " " * 1_000_000 + "x", "1" + " " * 1_000_000 + "x"]
assert not [cell for text, flags in {expressions!r} for cell in cells if re.compile(text, flags).fullmatch(cell)]
"""
    subprocess.run([sys.executable, "-I", "-c", program], check=True, timeout=60)
