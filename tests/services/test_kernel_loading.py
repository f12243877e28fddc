"""Compiled kernels are loaded when there is something to predict, once."""

import threading

from app.ml.numerics.decoding.json_numbers import scan_small
from app.ml.preparation.compiled.columns import standardise
from app.services import kernel_loading as compiling
from app.services.kernel_loading import PATIENCE, Compiling


def test_it_is_fetched_once_as_soon_as_bodies_are_many(monkeypatch):
    fetched, real = [], compiling._fetch

    def fetch():
        real()
        fetched.append(threading.current_thread())

    monkeypatch.setattr(compiling, "_fetch", fetch)
    one = Compiling()
    one.came(PATIENCE - 1)
    assert not fetched
    for _ in range(3):
        one.came(1)
        for thread in threading.enumerate():
            if thread.name == "compiler":
                thread.join()
    assert len(fetched) == 1
    assert fetched[0] is not threading.main_thread()
    assert scan_small.ready
    assert standardise.ready
