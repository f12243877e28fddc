"""The hashes of training rows are stored with a version, in chunks, and go with it."""

from uuid import uuid4

from sqlalchemy import func, select

from app.store.models.model_tables import TrainingRowChunkRow
from app.store.models.pointer import Pointer


def test_they_come_back_in_order_and_go_with_the_version(services, publish, trained):
    name = f"m-{uuid4()}"
    published = publish(services.work, name)
    seen = trained().seen
    assert len(seen) > 1000
    with services.work() as w:
        w.training_rows.add(name, published.version, seen, chunk_bytes=1000)
    pointer = Pointer(name, published.version, published.digest, published.size_bytes)
    parts = list(services.models.training_rows(pointer))
    assert len(parts) == -(-len(seen) // 1000)
    assert b"".join(parts) == seen
    assert not list(services.models.training_rows(pointer._replace(version=2))), "a version of an earlier release"
    services.models.delete_version(name, published.version)
    with services.work() as w:
        own = select(func.count()).where(TrainingRowChunkRow.model == name)
        assert w.session.scalar(own) == 0
