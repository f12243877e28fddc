"""Garbage is collected seldom in a process of tests: what the import of all tests has made is no garbage."""

import gc

import pytest

ALLOCATIONS = 100_000
"""Between two collections. What pydantic compiles in a test is slow to go through, and there is a lot of it."""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(ALLOCATIONS)
        gc.enable()
