"""Cards of the clusters of a model: prototype in the units of the table, size, spread, distinctive columns, rows.

Every column is compared between a cluster and all other rows: numbers by the rank test of Mann and Whitney, categories
by chi-squared. Probabilities are multiplied by the number of tests (Bonferroni). The clusters were made from these
columns: small probabilities describe them, and do not prove that they are there. With `names` that a person has given.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from app.base.errors import BodyTooLarge, InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body, Wire
from app.ml.kinds.query import Query, Subject
from app.ml.models.decoding import MOST_VALUES
from app.ml.models.model import Model
from app.ml.models.model_response import ModelResponse
from app.ml.preparation.restoring import RestoredRow, restore, written
from app.ml.training.reporting.reporting import finite

if TYPE_CHECKING:
    from app.ml.models.cluster_description import ClusterCards, ClusterDescription


class ClustersRequest(Body):
    """The clusters whose cards are returned."""

    clusters: list[int] | None = Field(
        None, min_length=1, max_length=10_000, description="Numbers of the clusters, from 0; null: all of them."
    )
    columns: int = Field(
        5, ge=0, le=10, description="Number of columns on each card, those with the largest effect sizes."
    )


class DistinctiveColumn(Wire):
    """A column by which a cluster differs from all other rows."""

    column: str = Field(description="Name of the input.")
    test: str = Field(description="Test of the difference: mann-whitney of numbers, chi-squared of categories.")
    effect_size: float = Field(
        description="Rank-biserial correlation, from -1 (all rows of the cluster are below all others) to 1; of "
        "categories Cramér's V, from 0 to 1."
    )
    p_value: float = Field(
        description="Probability of a difference as large without any, multiplied by the number of tests, at most 1."
    )
    category: str | None = Field(
        None, description="Category that is over-represented in the cluster; null: the input is no category."
    )
    inside: Any = Field(
        description="Mean in the cluster in the unit of the table, or the share of the category, from 0 to 1."
    )
    outside: Any = Field(description="Mean of all other rows, or the share of the category among them, from 0 to 1.")


class NearestRow(Wire):
    """A training row near the prototype of its cluster."""

    row: int = Field(description="Number of the row in the dataset, from 0.")
    item: str | None = Field(
        None, description="Name of the row, by the column `item` of the training; null: it named none."
    )


class ClusterCard(Wire):
    """One cluster."""

    cluster: int = Field(description="Number of the cluster, from 0, as predictions give it.")
    name: str | None = Field(None, description="Name that a person has given to it; null: none has.")
    size: int = Field(description="Number of its training rows.")
    share: float = Field(description="Share of all training rows, from 0 to 1.")
    spread: float | None = Field(
        description="Root mean square distance of its rows to the prototype, in prepared (scaled) columns; null: it "
        "has no rows, or there are no distances."
    )
    prototype: RestoredRow | None = Field(
        None,
        description="Centre of the cluster in the units and categories of the table; null: the model learned from a "
        "projection or from dissimilarities.",
    )
    distinctive: list[DistinctiveColumn] = Field(description="Most distinctive columns, the largest effect size first.")
    nearest: list[NearestRow] = Field(description="Rows nearest to the prototype, the nearest first.")
    shrunk: bool | None = Field(
        None,
        description="True where the covariance of the cluster was singular and is shrunk to one variance; null: it has "
        "none.",
    )


class Clusters(ModelResponse):
    """Cards of clusters."""

    covariance: str | None = Field(
        None,
        description="Form of the covariances behind memberships, tail probabilities and anomalies of new rows: full, "
        "or spherical where there are very many columns and clusters. Null: there are none.",
    )
    correction: str = Field(description="Correction of the probabilities for many tests: bonferroni.")
    tests: int = Field(description="Number of tests, of all columns in all clusters.")
    rows_compared: int = Field(description="Number of training rows that were compared, evenly spaced ones of many.")
    clusters: list[ClusterCard] = Field(description="Cards, in the order of the request.")


def clusters(subject: Subject, request: ClustersRequest) -> Clusters:
    """Raises InvalidRequest for clusters that there are not; BodyTooLarge for more than a response holds."""
    model, description = subject.model, _description(subject.model)
    numbers = _numbers(description.n_clusters, request)
    if len(numbers) * (len(model.inputs) + 10) > MOST_VALUES:
        raise BodyTooLarge(f"{len(numbers)} cards are more than a response holds: name fewer clusters.")
    prototypes, normals = _prototypes(model, description, numbers), description.normals
    return Clusters(
        **subject.fields,
        covariance=None if normals is None else normals.covariance,
        correction="bonferroni",
        tests=description.cards.tests,
        rows_compared=description.cards.compared,
        clusters=[
            ClusterCard(
                cluster=j,
                name=subject.names.get(j),
                size=int(description.cards.sizes[j]),
                share=float(description.cards.sizes[j] / max(description.cards.sizes.sum(), 1)),
                spread=finite(description.cards.spreads[j]),
                prototype=prototype,
                distinctive=[*_distinctive(model, description.cards, j, request.columns)],
                nearest=[*_nearest(description.cards, j)],
                shrunk=None if normals is None else bool(normals.shrunk[j]),
            )
            for j, prototype in zip(numbers, prototypes, strict=True)
        ],
    )


def _description(model: Model) -> "ClusterDescription":
    assert model.clusters is not None  # noqa: S101 - it is offered by these models only
    return model.clusters


def _numbers(count: int, request: ClustersRequest) -> list[int]:
    if request.clusters is None:
        return list(range(count))
    faults = [
        Fault(f"/clusters/{place}", f"The model has clusters 0 to {count - 1}.", "unknown_cluster")
        for place, number in enumerate(request.clusters)
        if not 0 <= number < count
    ]
    if faults:
        raise InvalidRequest(faults=faults)
    return list(dict.fromkeys(request.clusters))


def _prototypes(
    model: Model, description: "ClusterDescription", numbers: Sequence[int]
) -> Sequence[RestoredRow | None]:
    if description.normals is None or not model.preparation.restorable:
        return [None] * len(numbers)
    declared = model.algorithm.prototypes
    centres = None if declared is None else declared(model.params, model.state)
    return restore(model.preparation, (description.normals.means if centres is None else centres)[numbers])


def _distinctive(model: Model, cards: "ClusterCards", j: int, most: int) -> Iterator[DistinctiveColumn]:
    inputs = {column.name: place for place, column in enumerate(model.inputs)}
    for t, place in enumerate(cards.places[j, :most].tolist()):
        if place >= 0:
            yield DistinctiveColumn(**_tested(model, cards, (j, t), str(cards.columns[place]), inputs))


def _tested(
    model: Model, cards: "ClusterCards", cell: tuple[int, int], name: str, inputs: Mapping[str, int]
) -> dict[str, Any]:
    code, inside, outside = int(cards.codes[cell]), float(cards.inside[cell]), float(cards.outside[cell])
    p = float(np.minimum(cards.p_values[cell] * cards.tests, 1.0))
    result = {"column": name, "effect_size": float(cards.effects[cell]), "p_value": p}
    if code >= 0:
        category = model.preparation.codes.names(inputs[name])[code]
        return result | {"test": "chi-squared", "category": category, "inside": inside, "outside": outside}
    column = model.inputs[inputs[name]] if name in inputs else None
    ends = [finite(value) if column is None else written(column, value) for value in (inside, outside)]
    return result | {"test": "mann-whitney", "inside": ends[0], "outside": ends[1]}


def _nearest(cards: "ClusterCards", j: int) -> Iterator[NearestRow]:
    items = None if cards.items is None else cards.items.reshape(cards.nearest.shape)
    for place, row in enumerate(cards.nearest[j].tolist()):
        if row >= 0:
            yield NearestRow(row=row, item=None if items is None else str(items[j, place]))


QUERY = Query(
    operation="describe_clusters",
    request=ClustersRequest,
    response=Clusters,
    run=clusters,
    offered=lambda model: model.clusters is not None,
)
