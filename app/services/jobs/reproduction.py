"""Requests that make a stored version again."""

from uuid import UUID

from app.base.errors import NotReproducible
from app.ml.contract.model_reference import VersionRef
from app.ml.jobs.reproduce import ReproduceRequest
from app.ml.operations import kind_records
from app.store.unit_of_work import Work, WorkFactory


class Reproduction:
    def __init__(self, work: WorkFactory) -> None:
        self._work = work

    def request(self, model: str, version: int) -> ReproduceRequest:
        """The job that made this version, once more. Raises NotReproducible, ModelNotFound, VersionNotFound."""
        with self._work() as w:
            record = w.models.version(model, version)
            if record.job is None:
                raise NotReproducible("The version was published from an online session, not made by a job.")
            made = w.jobs.accepted(record.job)
            if made is None or made.kind not in kind_records():
                raise NotReproducible("The record of the job that made the version is gone.")
            if made.pinned.files:
                raise NotReproducible("The version was imported from a file, which is not kept: import it again.")
            datasets = _datasets(w, made.pinned.datasets, record.dataset_digest)
        return ReproduceRequest(
            model=model,
            version=version,
            made_by=made.kind,
            request=made.request,
            datasets=datasets,
            models=[VersionRef(*reference) for reference in made.pinned.models],
            time_limit_seconds=made.request["time_limit_seconds"],
        )


def _datasets(w: Work, pinned: tuple[UUID, ...], digest: str) -> list[UUID]:
    """The same datasets; another of the same digest in place of the first one, if that was deleted."""
    dataset_ids = []
    for place, dataset_id in enumerate(pinned):
        there = w.datasets.find(dataset_id) is not None
        again = dataset_id if there else w.datasets.of_digest(digest) if not place else None
        if again is None:
            detail = f"The dataset of its training, {digest}," if not place else "A dataset of its training"
            raise NotReproducible(f"{detail} was deleted.")
        dataset_ids.append(again)
    return dataset_ids
