"""The OpenAPI document as it is stored: tests/test_openapi.py proves that it is the application's own.

Making it takes seconds, which every process of tests would spend before its first test.
"""

import json
from functools import cache
from pathlib import Path

STORED = Path(__file__).parents[1] / "app" / "openapi.json"


@cache
def openapi_document():
    """Shared: nobody changes it."""
    return json.loads(STORED.read_text())
