"""Types that a checker and an editor infer from the calls of the client; never run."""

from typing import assert_type

import valiant
from valiant.drivers import Async, Sync


def trained_and_predicted(client: valiant.Client) -> None:
    version = client.train("table.csv", target="y", n_estimators=3)
    assert_type(version, valiant.Version[Sync])
    assert_type(client.train("table.csv", wait=False), valiant.Job[Sync])
    assert_type(version.predict({"x": 1}), valiant.Prediction[Sync])
    assert_type(version.predict([{"x": 1}], confidence=0.9), valiant.Prediction[Sync])
    assert_type(version.report, valiant.Report[Sync])


async def awaited(client: valiant.AsyncClient) -> None:
    version = await client.train("table.csv", target="y")
    assert_type(version, valiant.Version[Async])
    assert_type(await version.predict({"x": 1}), valiant.Prediction[Async])
