"""The OpenAPI document of the application, made once in a process of tests: it takes a second."""

from functools import cache

from app.main import create_app
from app.settings import Settings


@cache
def openapi_document():
    """Shared: nobody changes it."""
    return create_app(Settings()).openapi()
