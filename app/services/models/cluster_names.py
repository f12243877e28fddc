"""Names that a person gives to the clusters of a model version, beside the version, whose bytes never change."""

from collections import Counter
from collections.abc import Iterator, Sequence

from app.base.errors import InvalidRequest, NoClusters
from app.base.faults import Fault
from app.ml.models.model import Model
from app.schemas.cluster_names import LONGEST_NAME, ClusterName, ClusterNames, ClusterNamesHistory
from app.services.models.preconditions import demand
from app.services.predictions.pointer_cache import Pointers
from app.services.predictions.predictions import Served
from app.store.unit_of_work import WorkFactory


class ClusterNaming:
    def __init__(self, work: WorkFactory, pointers: Pointers) -> None:
        """pointers: those of the predictions of this process, which see each change at once."""
        self._work = work
        self._pointers = pointers

    def current(self, served: Served) -> ClusterNames:
        """Raises NoClusters, VersionNotFound."""
        _n_clusters(served.model)
        with self._work() as w:
            return w.cluster_names.current(served.pointer.model, served.pointer.version)

    def replace(
        self, served: Served, names: Sequence[ClusterName], *, if_match: str | None, request_id: str | None
    ) -> ClusterNames:
        """Give these names and no others.

        Names that are there already stay as they are, so that a repeated request changes nothing.

        Raises NoClusters, InvalidRequest, VersionNotFound, and PreconditionFailed when `if_match` is another state.
        """
        faults = [*_faults(names, _n_clusters(served.model))]
        if faults:
            raise InvalidRequest(faults=faults)
        model, version = served.pointer.model, served.pointer.version
        names_by_cluster = {cluster_name.cluster: cluster_name.name.strip() for cluster_name in names}
        with self._work() as w:
            w.after_commit(lambda: self._pointers.changed(model, version))
            before = w.cluster_names.lock(model, version)
            demand(if_match, before.etag, "The list of names")
            if {cluster_name.cluster: cluster_name.name for cluster_name in before.names} == names_by_cluster:
                return before
            return w.cluster_names.add(before, names_by_cluster, request_id=request_id)

    def history(self, served: Served, limit: int, cursor: str | None = None) -> ClusterNamesHistory:
        """Raises NoClusters, VersionNotFound."""
        _n_clusters(served.model)
        with self._work() as w:
            return w.cluster_names.history(served.pointer.model, served.pointer.version, limit, cursor)


def _n_clusters(model: Model) -> int:
    if model.clusters is None:
        raise NoClusters(f"Its task is {model.task.value}.")
    return model.clusters.n_clusters


def _faults(names: Sequence[ClusterName], n_clusters: int) -> Iterator[Fault]:
    """All of them, by their places."""
    clusters, texts = (
        Counter(cluster_name.cluster for cluster_name in names),
        Counter(cluster_name.name.strip() for cluster_name in names),
    )
    for place, cluster_name in enumerate(names):
        text = cluster_name.name.strip()
        if not 0 <= cluster_name.cluster < n_clusters:
            detail = f"The model has clusters 0 to {n_clusters - 1}."
            yield Fault(f"/names/{place}/cluster", detail, "unknown_cluster")
        elif clusters[cluster_name.cluster] > 1:
            yield Fault(f"/names/{place}/cluster", "The cluster is there more than once.", "duplicate_cluster")
        if not text:
            yield Fault(f"/names/{place}/name", "The name is empty.", "empty_name")
        elif len(text) > LONGEST_NAME:
            detail = f"The name has {len(text)} characters, of which {LONGEST_NAME} are allowed."
            yield Fault(f"/names/{place}/name", detail, "long_name")
        elif not text.isprintable():
            yield Fault(f"/names/{place}/name", "The name has characters that cannot be printed.", "unprintable_name")
        elif texts[text] > 1:
            yield Fault(f"/names/{place}/name", "Another cluster has the same name.", "duplicate_name")
