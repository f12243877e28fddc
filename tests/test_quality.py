"""The tools that read the code, run as tests."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = {
    "ruff": ["ruff", "check", "--no-cache"],
    "format": ["ruff", "format", "--check", "--no-cache"],
    "types": ["mypy"],  # a minute of both cores where nothing is cached
    "imports": ["lint-imports", "--no-cache"],
}


@pytest.mark.parametrize(
    "tool", [pytest.param(tool, marks=pytest.mark.slow) if tool == "types" else tool for tool in TOOLS]
)
def test_is_content(tool):
    name, *arguments = TOOLS[tool]
    done = subprocess.run(
        [str(Path(sys.executable).parent / name), *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
