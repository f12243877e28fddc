"""Garbage is collected seldom in a process of tests: what the import of all tests has made is no garbage."""

import gc

import pytest

ALLOCATIONS = 100_000
"""Between two collections. The schemas that pydantic compiles in tests are many, and slow to go through."""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(ALLOCATIONS)
        gc.enable()
