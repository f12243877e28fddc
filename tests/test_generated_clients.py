"""Clients that openapi-generator writes for Go and TypeScript compile and do the whole job; linters find no error.

`pip install -e '.[clients]'` brings the generator, a Java runtime, Go and Node.js; npm must reach its registry. Where a
tool is missing, the tests fail and name it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
DOCUMENT = Path(__file__).parents[1] / "app" / "openapi.json"
IRIS = DOCUMENT.parent / "samples" / "iris.csv"
JOURNEYS = Path(__file__).parent / "clients"
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
MODULE = "valiant.example/client"
PACKAGES = "typescript@7", "@types/node@24", "@redocly/cli@2", "@stoplight/spectral-cli@6"
VALIDATOR = "package validator\n\nfunc Validate(interface{}) error { return nil }\n"
"""Stands for gopkg.in/validator.v2, which generated clients import and only a module proxy serves."""
PREDICTED = '["setosa","virginica"]\n'


def run(command, *arguments, folder):
    """The output of a command that succeeds. Go takes its modules from the folder, not from a network."""
    tool = shutil.which(command, path=PATH)
    assert tool, f"{command} is missing: pip install -e '.[clients]'"
    offline = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local"}
    environment = os.environ | offline | {"PATH": PATH, "REDOCLY_TELEMETRY": "off"}
    done = subprocess.run(
        [tool, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def generate(language, folder, **options):
    chosen = ",".join(f"{name}={value}" for name, value in options.items())
    arguments = ["-i", DOCUMENT, "-g", language, "-o", folder, *(["--additional-properties", chosen] if chosen else [])]
    run("openapi-generator-cli", "generate", *arguments, folder=folder.parent)


@pytest.fixture(scope="module")
def npm(tmp_path_factory):
    """A folder with the tools that npm installs."""
    folder = tmp_path_factory.mktemp("npm")
    (folder / "package.json").write_text("{}")
    run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES, folder=folder)
    return folder


@pytest.fixture(scope="module")
def address(api_address):
    return api_address()


@pytest.mark.usefixtures("worker")
def test_a_go_client_uploads_trains_waits_and_predicts(tmp_path, address):
    client = tmp_path / "client"
    generate("go", client, packageName="valiant")
    shutil.rmtree(client / "test")  # of the generator's own: needs one more module
    (client / "validator").mkdir()
    (client / "validator" / "validator.go").write_text(VALIDATOR)
    (client / "validator" / "go.mod").write_text("module gopkg.in/validator.v2\n")
    module = (client / "go.mod").read_text().splitlines()
    replaced = "replace gopkg.in/validator.v2 => ./validator"
    (client / "go.mod").write_text("\n".join([f"module {MODULE}", *module[1:], replaced]))
    (client / "journey").mkdir()
    shutil.copy(JOURNEYS / "journey.go", client / "journey" / "main.go")
    run("go", "vet", "./...", folder=client)
    assert run("go", "run", "./journey", address, IRIS, folder=client) == PREDICTED


@pytest.mark.usefixtures("worker")
def test_a_typescript_client_uploads_trains_waits_and_predicts(npm, address):
    generate("typescript-fetch", npm / "client")
    for name in ("journey.ts", "tsconfig.json"):
        shutil.copy(JOURNEYS / name, npm)
    run(npm / "node_modules" / ".bin" / "tsc", "--project", npm, folder=npm)
    assert run("node", "out/journey.js", address, IRIS, folder=npm) == PREDICTED


def test_redocly_and_spectral_find_no_error(npm):
    tools = npm / "node_modules" / ".bin"
    run(tools / "redocly", "lint", DOCUMENT, folder=npm)
    (npm / "spectral.yaml").write_text('extends: ["spectral:oas"]\n')
    run(tools / "spectral", "lint", DOCUMENT, "--ruleset", "spectral.yaml", "--fail-severity=warn", folder=npm)
