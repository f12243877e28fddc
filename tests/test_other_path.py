"""The list of routes with a shortcut is that of the API."""

from app.api.fast.route import DirectRoute
from tests.other_path import DIRECT


def test_every_route_with_a_shortcut_is_tested_without_it(client):
    found = {route.name: route.path.rsplit("/", 1)[1] for route in client.app.routes if isinstance(route, DirectRoute)}
    assert found == DIRECT
