"""Receipt of a training: all that decides the bytes of its model."""

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

from app.ml.contract.algorithm import JSON
from app.ml.numerics.processor import processor
from app.ml.training.planning.plan import Plan
from app.ml.training.planning.train_spec import TrainSpec


def receipt(planned: Plan, data_digest: str, reading: Mapping[str, JSON] | None) -> dict[str, JSON]:
    """The same receipt gives the same bytes. data_digest, reading: of the dataset, as in `Sheet`."""
    spec = planned.spec
    unusual = {"reading": dict(reading)} if reading else {}
    return unusual | {
        "seed": spec.seed,
        "data_digest": data_digest,
        "spec": spec.model_dump(mode="json", include=set(TrainSpec.model_fields)),
        "libraries": libraries(),
        "processor": processor().name,
        **({"batch_rows": planned.batch_rows} if planned.batch_rows else {}),
        **({"projection": planned.projection.receipt} if planned.projection else {}),
        **({"initialised_from": planned.start.receipt} if planned.start else {}),
        **({"relations_digest": planned.related.digest} if planned.related else {}),
    }


@cache
def libraries() -> dict[str, JSON]:
    """The version of all that has a part in the bytes of a model."""
    names = "valiant", "numpy", "scipy", "numba"
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
