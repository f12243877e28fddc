"""The distributions of training rows are stored with a version, and go with it."""

from uuid import uuid4

from sqlalchemy import func, select

from app.ml.monitoring.reference import decode
from app.store.models.pointer import Pointer
from app.store.monitoring.monitoring_tables import VersionReferenceRow


def test_they_come_back_and_go_with_the_version(services, publish, trained):
    name = f"m-{uuid4()}"
    published = publish(services.work, name)
    reference = trained().reference
    with services.work() as w:
        w.version_references.add(name, published.version, reference)
    pointer = Pointer(name, published.version, published.digest, published.size_bytes)
    assert services.models.reference(pointer) == reference
    assert decode(reference).columns
    assert decode(services.models.reference(pointer._replace(version=2))) is None, "a version of an earlier release"
    services.models.delete_version(name, published.version)
    with services.work() as w:
        left = select(func.count()).where(VersionReferenceRow.model == name)
        assert w.session.scalar(left) == 0
