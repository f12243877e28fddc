"""Clients of the shared service, with a worker."""

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
