"""Predictions: served from memory, on the event loop when that is quick."""

from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import quote

from fastapi import Body, Depends, Query

from app.api.edge.body import Headers
from app.api.edge.middleware import Reply
from app.api.edge.negotiation import ARROW, BINARY, CSV, JSON, NPY, accepted, encoding_of, kind_of
from app.api.edge.openapi import declare
from app.api.edge.router import PREDICT, Router
from app.api.fast.route import Call, DirectRoute, Holds, Respond, by_the_route
from app.api.params.common import CONFIDENCE, ModelPath, RequestTimeout, seconds
from app.api.params.freshness import DESCRIPTION, STALE, MinRevision, MinVersion, stale_header
from app.api.params.rejection_and_costs import (
    CostRows,
    MinMargin,
    MinProbability,
    RejectCost,
    RejectHigh,
    RejectLow,
    Threshold,
    policy_of,
)
from app.base.settings import KiB
from app.formats.arrow import arrow_rows, as_arrow
from app.formats.bytes import Sent
from app.formats.csv import csv_rows
from app.formats.json import as_json, json_rows
from app.formats.npy import as_npy, npy_rows
from app.formats.prediction import Extras, WrittenPrediction
from app.ml.contract.model_reference import VersionRef
from app.ml.models.model import Model
from app.ml.tables.row_forms import PredictRequest
from app.ml.tables.rows import Incoming
from app.schemas.predictions import Prediction
from app.services.predictions.predictions import Served, check_extras, wanted_of
from app.services.predictions.rejected_rows import check_review
from app.store.models.pointer import Freshness


class _MediaTypes(NamedTuple):
    body: str
    response: str
    encoding: str | None
    """Encoding of a CSV body that declares one other than UTF-8."""


class _RowsRoute(DirectRoute):
    @staticmethod
    def demand(sent: Headers) -> Mapping[str, Any]:
        return {"forms": _MediaTypes(kind_of(sent), accepted(sent), encoding_of(sent))}


router = Router(needs=PREDICT, prefix="/v1/models", tags=["predictions"], route_class=_RowsRoute)
LONGEST_HEADER = 4 * KiB
WRITERS = {JSON: as_json, NPY: as_npy, ARROW: as_arrow}
FILED = "X-Filed-Reviews"
HEADERS = declare(
    200,
    {
        "X-Model-Version": "The version that predicted.",
        "X-Ignored-Columns": "Columns the model does not know, if any: percent-encoded, separated by commas.",
        FILED: "Number of rejected rows that wait for a review, or had before; absent without `review`.",
        STALE: DESCRIPTION,
    },
    optional=("X-Ignored-Columns", FILED, STALE),
)
HEADERS[200]["content"] = {ARROW: BINARY, NPY: BINARY}
FORMS = {"requestBody": {"content": {CSV: BINARY, NPY: BINARY, ARROW: BINARY}}}


@router.post("/{model}/predict", response_model=Prediction, responses=HEADERS, openapi_extra=FORMS)
def predict_rows(  # noqa: PLR0917  passed by name
    forms: Annotated[_MediaTypes, Depends(by_the_route)],
    model: ModelPath,
    body: Annotated[bytes, Body(), Holds(PredictRequest)],  # noqa: ARG001  for the OpenAPI document
    version: Annotated[int | None, Query(ge=1, lt=2**31, description="This version.")] = None,
    alias: Annotated[
        str | None, Query(pattern=r"^[a-z0-9_-]{1,100}$", description="The version this alias points at.")
    ] = None,
    on_error: Annotated[
        Literal["fail", "null"],
        Query(
            description="fail: a faulty row refuses the request. null: faulty rows are null, the others are predicted."
        ),
    ] = "fail",
    confidence: Annotated[float | None, CONFIDENCE] = None,
    include: Annotated[
        str | None,
        Query(
            pattern=r"^[a-z0-9_]{1,50}(,[a-z0-9_]{1,50}){0,19}$",
            description="Outputs of the model beside its predictions, separated by commas, such as `distance,anomaly`; "
            "the description of the version names those it has; and `contributions` of the columns to the raw score, "
            "or `interventional_contributions`, where absent columns of trees have the values of training rows.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        Query(
            ge=1,
            le=100,
            description="Reasons of each row in words, at most: the columns whose contributions are largest. Null: "
            "none; with `include=contributions` only.",
        ),
    ] = None,
    min_probability: MinProbability = None,
    min_margin: MinMargin = None,
    reject_low: RejectLow = None,
    reject_high: RejectHigh = None,
    costs: CostRows = None,
    reject_cost: RejectCost = None,
    threshold: Threshold = None,
    review: Annotated[
        bool, Query(description="Stores each row that is rejected in the review queue, where a person labels it.")
    ] = False,
    x_request_timeout: RequestTimeout = None,
    x_min_revision: MinRevision = None,
    x_min_version: MinVersion = None,
) -> Respond:
    """Predict. Without `version` and `alias`: by the alias `champion` if it is set, else by the newest version.

    Numbers may be whole (up to 2^53) or not; a string is never read as a number, nor a number or a boolean as a
    category. Null is a missing value. Dates are ISO 8601 strings; without an offset they are UTC. Columns the model
    does not know are ignored. What is not finite comes back as null.

    Rows may also come as CSV with a header, where an empty cell is null, or as an npy array (n, p) in the order of the
    model's inputs, where NaN is null, or as an Arrow stream without compression: columns by name, or a single column of
    fixed-size lists, each a row in the order of the model's inputs. By Accept the response is JSON, an Arrow stream (a
    table of `prediction`, the probabilities and `flags`), or npy: the probabilities of a classification, else the
    predictions.

    With `confidence` every prediction of a regression has an interval: `intervals` in JSON, where `interval` states
    how they were found, the columns `lower` and `upper` in Arrow, and an npy response has rows of prediction, lower,
    upper.
    An interval bounds a new row's target. `linear` and `bayesian_locally_weighted` compute it from their model of the
    noise; all others from their errors on the rows held out in training (split conformal prediction), which holds with
    this confidence on average over rows, whatever the distribution, if new rows are like those. From 60 rows held out
    on, their width follows the prediction. Where fewer than 19 rows were held out, the fits of the folds of
    cross-validation set the ends (CV+), if the table is small. Intervals do not leave the target's range
    (`preprocessing.target_minimum` and `target_maximum` of the training), though the prediction itself may. A model
    trained with the parameter `interval_of` set to `mean` bounds the expected value instead; `random_forest` then
    gives percentiles of its trees' predictions.

    With `include` the response has further outputs of the model: `outputs` in JSON, a column each in Arrow and npy.

    With `include=contributions` it states by how much each column moves the raw score of a row from the mean over the
    training rows: the base and the contributions add up to the raw score. They are Shapley values, exact for
    `decision_tree`, `random_forest`, `gradient_boosting`, `additive`, linear models and imported trees, and estimated
    with standard errors for other regressions and classifications. With `top` each row has its largest ones as
    sentences.

    A classifier can reject uncertain rows; `decisions` then names them. The report's `rejection` curve shows
    what each threshold leaves. With `review` they are stored in the review queue before the response is sent, each once
    for a version, and `X-Filed-Reviews` is their number. Of two classes `threshold` moves the border between them.
    """
    band, prices = (reject_low, reject_high), (costs, reject_cost)
    demand = Freshness(x_min_revision or 0, x_min_version or 0)
    request = _PredictionRequest(
        wanted_of(model, version, alias, demand),
        demand,
        forms,
        Extras(policy_of(min_probability, min_margin, band, prices, threshold), confidence, _names(include), top),
        on_error == "null",
        seconds(x_request_timeout),
        review,
    )
    return partial(_predict, request)


def _names(include: str | None) -> tuple[str, ...]:
    """Each once."""
    return tuple(dict.fromkeys(include.split(","))) if include else ()


class _PredictionRequest(NamedTuple):
    """Options of a prediction, shared by bodies to one address."""

    reference: VersionRef
    demand: Freshness
    forms: _MediaTypes
    extras: Extras
    let_bad_rows_pass: bool
    within: float | None
    """Seconds."""
    review: bool = False
    """True if rejected rows are filed."""

    @property
    def plain(self) -> bool:
        """True if bodies are numbers and nothing else, and are read at once or not at all."""
        return self.forms.body == NPY and not self.let_bad_rows_pass


def _predict(request: _PredictionRequest, call: Call, body: Sent) -> Reply | Coroutine[Any, Any, Reply]:
    services = call.app.services
    if request.review or request.extras.explains:
        return _in_turn(request, call, body)
    served = services.predictions.at_hand(
        request.reference, len(body), request.within, request.demand, plain=request.plain
    )
    if served is None:
        return _in_turn(request, call, body)
    services.admission.check()
    check_extras(served, request.extras)
    return _reply(request, call, served, _respond(request, call, body, served))


def _respond(request: _PredictionRequest, call: Call, body: Sent, served: Served) -> WrittenPrediction:
    predictions, write = call.app.services.predictions, WRITERS[request.forms.response]
    if request.review:
        write = call.app.services.reviews.filing(write)
    with predictions.paced(served, len(body), plain=request.plain):
        incoming = _read(request, call, body, served.model)
        return predictions.respond(served, incoming, request.extras, write)


async def _in_turn(request: _PredictionRequest, call: Call, body: Sent) -> Reply:
    predictions = call.app.services.predictions
    async with call.app.services.admission.enter(request.within) as place:
        served = await predictions.ready(request.reference, request.demand)
        check_extras(served, request.extras)
        if request.review:
            check_review(served, request.extras)
        if predictions.is_quick(served, len(body)) and not (request.review or request.extras.explains):
            incoming, write = _read(request, call, body, served.model), WRITERS[request.forms.response]
            written = await predictions.predict_small(served, incoming, place.begin, request.extras, write)
        else:
            written = await place.run(
                partial(_respond, request, call, body, served),
                seconds=None if request.extras.explains else predictions.seconds(served, len(body)),
            )
    return _reply(request, call, served, written)


def _reply(request: _PredictionRequest, call: Call, served: Served, written: WrittenPrediction) -> Reply:
    call.app.services.predictions.tally.add(request.reference.model, written.rows)
    headers: tuple[tuple[bytes, bytes], ...] = ((b"x-model-version", b"%d" % written.version),)
    headers += stale_header(served)
    if written.filed is not None:
        headers += ((b"x-filed-reviews", b"%d" % written.filed),)
    if written.ignored:
        headers += ((b"x-ignored-columns", _listed(written.ignored).encode()),)
    return Reply(written.body, request.forms.response.encode(), headers)


def _read(request: _PredictionRequest, call: Call, body: Sent, model: Model) -> Incoming:
    kind, settings, lenient = request.forms.body, call.app.settings, request.let_bad_rows_pass
    most = settings.max_predict_rows
    if kind == JSON:
        depth = settings.max_json_depth
        return json_rows(bytes(body), model, max_rows=most, max_depth=depth, let_bad_rows_pass=lenient)
    if kind == NPY:
        return npy_rows(body, model, max_rows=most, let_bad_rows_pass=lenient)
    if kind == ARROW:
        most_bytes = settings.max_body_bytes
        return arrow_rows(body, model, max_rows=most, max_bytes=most_bytes, let_bad_rows_pass=lenient)
    encoding = request.forms.encoding
    return csv_rows(bytes(body), model, encoding=encoding, max_rows=most, let_bad_rows_pass=lenient)


def _listed(names: Sequence[str]) -> str:
    """Percent-encoded, so that any name fits a header; the list ends with `...` where it would grow too long."""
    listed = ",".join(quote(name, safe="") for name in names)
    return listed if len(listed) <= LONGEST_HEADER else f"{listed[:LONGEST_HEADER].rpartition(',')[0]},..."
