# What is done often. `just` alone lists it.
python := ".venv/bin/python"

_:
    @just --list --unsorted

# A fresh environment with all that development needs.
setup:
    python3 -m venv .venv
    .venv/bin/pip install -e '.[embedded,test,develop]'

# The plain tests.
test *options:
    .venv/bin/pytest {{options}}

# The tests that take long.
slow *options:
    .venv/bin/pip install --quiet -e '.[clients]'
    .venv/bin/pytest -m slow {{options}}

# The tests of one folder, such as `ml/evaluation`.
room folder *options:
    .venv/bin/pytest --numprocesses=2 tests/{{folder}} {{options}}

# Style, and the contracts of imports.
lint:
    .venv/bin/ruff check
    .venv/bin/ruff format --check
    .venv/bin/lint-imports

# Types.
types:
    .venv/bin/mypy

# The examples of the OpenAPI document, by running them.
examples:
    -.venv/bin/pytest -m slow tests/test_examples.py::test_examples_are_current

# The OpenAPI document; its examples come first.
openapi:
    {{python}} -m app.main > app/openapi.json.part
    mv app/openapi.json.part app/openapi.json

# The generated tables of the guide and the README.
guide:
    -.venv/bin/pytest tests/test_readme.py

# What the image installs: every file by its hash, for every platform.
lock:
    .venv/bin/uv pip compile pyproject.toml --extra build --extra import --extra oidc --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --output-file requirements.lock.part
    { sed -n '/^#/p' requirements.lock; cat requirements.lock.part; } > requirements.lock.new
    mv requirements.lock.new requirements.lock
    rm requirements.lock.part

# The guide as HTML files, for any web server.
docs folder="build/guide":
    {{python}} -m app.docs.guide_files {{folder}}

# One of the benchmarks, such as `serving`.
bench name *options:
    {{python}} -m tests.benchmarks.{{name}} {{options}}

# The changes of a release, gathered from `changes/`.
changelog version:
    .venv/bin/towncrier build --yes --version {{version}}
