"""Names of clusters on the wire."""

from datetime import datetime

from pydantic import Field

from app.base.wire import Body, Wire

LONGEST_NAME = 100
"""Characters of a name."""
MOST_NAMES = 10_000
"""Names of a request."""
ClusterNumber = Field(description="Number of the cluster, or of the cell of a map, from 0, as predictions give it.")


class ClusterName(Body):
    """A cluster and its name."""

    cluster: int = ClusterNumber
    name: str = Field(
        description=f"Name of the cluster: at most {LONGEST_NAME} printable characters, not only spaces. No two "
        "clusters of a version have the same.",
        json_schema_extra={"minLength": 1, "maxLength": LONGEST_NAME},
    )


class ClusterNamesUpdate(Body):
    """All names that the clusters of a version shall have."""

    names: list[ClusterName] = Field(
        max_length=MOST_NAMES,
        description="Names of clusters; a cluster that is not in the list has no name afterwards.",
    )


class NamedCluster(Wire):
    """A cluster and its name."""

    cluster: int = ClusterNumber
    name: str = Field(description="Name of the cluster.")


class ClusterNames(Wire):
    """Names that the clusters of a version have."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    names: list[NamedCluster] = Field(description="Clusters that have a name, by number.")
    revision: int = Field(description="Number of changes of the names so far.")
    updated_at: datetime | None = Field(None, description="Time of the last change, in UTC; null: there was none.")
    etag: str = Field(description="Send it in If-Match to change the names only if nobody else has.")


class ClusterNamesRecord(Wire):
    """One line of the history of names."""

    at: datetime = Field(description="Time of the change, in UTC.")
    revision: int = Field(description="Number of the change, from 1.")
    names: list[NamedCluster] = Field(description="Clusters that have a name since then, by number.")
    request_id: str | None = Field(None, description="Id of the request that changed the names.")


class ClusterNamesHistory(Wire):
    """Page of changes of the names of a version, newest first."""

    items: list[ClusterNamesRecord] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")
