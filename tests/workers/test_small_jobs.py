"""Many small jobs, one after the other."""

from itertools import pairwise


def test_a_job_that_waits_begins_as_soon_as_a_slot_is_free(fleet):
    """Celery by itself looks once a second whether there is one."""
    fleet.start(worker_concurrency=1)
    jobs = [fleet.ended(job_id) for job_id in [fleet.submit(seconds=0.01) for _ in range(6)]]
    lines = [{line.state: line.at for line in job.transitions} for job in sorted(jobs, key=lambda job: job.started_at)]
    gaps = [(after["running"] - before["succeeded"]).total_seconds() for before, after in pairwise(lines)]
    assert min(gaps) < 0.4
