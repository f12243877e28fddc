"""What an operation does not know in an address is refused by its name, and nothing is done."""

import re
from uuid import uuid4

import pytest

from tests.api.access.inhabited_project import OPERATIONS


def refused(response):
    assert response.status_code == 422, response.text
    return {fault["pointer"]: fault["detail"] for fault in response.json()["errors"]}


def requested(client, operation, **query):
    method, path = OPERATIONS[operation]
    path = re.sub(r"{(\w+)}", lambda part: str(uuid4() if part[1].endswith("_id") else 1), path)
    options = {} if method in {"get", "delete"} else {"json": {}}
    if operation == "upload_dataset":
        options = {"files": {"file": ("iris.csv", b"a\n1\n")}}
    return client.request(method, path, params=query, **options)


@pytest.fixture(scope="module")
def guarded(client):
    """Names of the operations that not everyone may call."""
    routes = [route for route in client.app.routes if getattr(route, "include_in_schema", False)]
    names = [route.name for route in routes if route.needs]
    assert len(names) > 80
    return names


def test_every_operation_refuses_a_parameter_that_it_does_not_have(client, guarded):
    for operation in guarded:
        faults = refused(requested(client, operation, dry_run="true"))
        assert faults["/query/dry_run"].startswith("The operation has no parameter 'dry_run'"), operation


def test_nothing_is_done(client):
    before = client.get("/v1/datasets").json()
    assert requested(client, "upload_dataset", dry_run="true").status_code == 422
    assert client.post("/v1/datasets", params={"nmae": "x"}, content=b"a\n1\n").status_code == 422
    assert client.get("/v1/datasets").json() == before


def test_each_is_named_with_the_one_that_was_meant(client):
    response = client.get("/v1/jobs", params={"limitt": 3, "a/b": 1, "limit": 3})
    faults = refused(response)
    assert list(faults) == ["/query/limitt", "/query/a~1b"]
    assert "did you mean 'limit'?" in faults["/query/limitt"]
    assert "It has cursor, " in faults["/query/a~1b"]
    crowd = refused(client.get("/v1/jobs", params={f"x{number}": 1 for number in range(1000)}))
    assert len(crowd) == 20


def test_probes_and_pages_ignore_what_they_do_not_know(client):
    assert client.get("/livez?now=1").is_success
