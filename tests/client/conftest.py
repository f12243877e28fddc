"""Clients of the shared service, with a worker."""

import httpx
import pytest


@pytest.fixture(scope="module")
def address(api_address, worker):
    return api_address()


@pytest.fixture(scope="module")
def service(address):
    import valiant

    with valiant.connect(address) as connected:
        yield connected


@pytest.fixture(scope="module")
def iris(service):
    return service.upload("app/samples/iris.csv")


@pytest.fixture
def allow(address):
    """`allow(*formats)`: what the project may import, whatever other tests have allowed it."""

    def change(*formats):
        changed = httpx.patch(f"{address}/v1/projects/default", json={"file_formats": list(formats)})
        assert changed.json()["file_formats"] == list(formats)

    yield change
    change()
