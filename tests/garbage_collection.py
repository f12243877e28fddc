"""Garbage is collected seldom in a process of tests: what the import of all tests has made is no garbage."""

import gc

import pytest

ALLOCATIONS = 20_000
"""Between two collections, as in a process that serves."""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(ALLOCATIONS)
        gc.enable()
