"""Small matrices: a second thread costs more than it gives, and two test runs on two cores would fight for them."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
