"""Two modules of tests may use one name of a model: the second finds neither a version nor a number of the first."""

from uuid import uuid4

from app.schemas.jobs import JobState
from app.store.base.new_ids import uuid7
from app.store.jobs.job_records import NewJob
from tests.emptied_store import empty


def waiting_job(model):
    """Of an algorithm that no worker knows: the one that other tests have started leaves it waiting."""
    return NewJob(
        id=uuid7(), kind="train", request={}, request_hash="", request_id="request", idempotency_key=None,
        dataset_id=uuid4(), model=model, algorithm="of_a_later_release",
        warnings=[], max_attempts=1, time_limit_seconds=60,
    )  # fmt: skip


def test_a_name_is_free_again_and_no_job_takes_it(services, publish):
    job = waiting_job("a-name-of-two-modules")
    with services.work() as w:
        w.jobs.add(job)
    for _ in range(2):
        assert publish(services.work, "a-name-of-two-modules").version == 1
        assert services.models.pointer("a-name-of-two-modules", 1).version == 1
        empty(services.work, [services.models._pointers])
        assert services.models.page(10).items == []
    assert services.jobs.get(job.id).state is JobState.CANCELLED
