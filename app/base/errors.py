"""Every failure with a name: a stable code, an HTTP status and a sentence.

Nothing here knows HTTP; the status is part of the name, so that the one place that
responds to requests needs no table. `faults` lists every problem of an input with its
place, as a JSON pointer; no fault ever repeats a value the caller sent.
"""

import errno
from collections.abc import Iterable, Mapping
from typing import ClassVar

from app.base.faults import CUT, Fault, first_listed, summary

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers of the system when a file cannot grow: what `StorageFull` reports."""


class ValiantError(Exception):
    """The root of all named failures."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "The service failed"
    remedy: ClassVar[str] = ""

    def __init__(
        self, detail: str = "", *, faults: Iterable[Fault] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        self.faults, self.cut = first_listed(faults)
        self.detail = detail or summary(self.faults, CUT if self.cut else "problems") or self.title
        self.headers = dict(headers or {})
        super().__init__(self.detail)


class InvalidRequest(ValiantError):
    code, status, title = "invalid_request", 422, "The request does not fit its schema"


class MalformedJSON(ValiantError):
    code, status, title = "malformed_json", 400, "The body is not acceptable JSON"


class EmptyBody(MalformedJSON):
    code, title = "empty_body", "There is no body"


class InvalidEncoding(MalformedJSON):
    code, title = "invalid_encoding", "The body is not UTF-8 without a byte order mark"


class LoneSurrogate(MalformedJSON):
    code, title = "lone_surrogate", "A string holds half of a surrogate pair"


class NulCharacter(MalformedJSON):
    code, title = "nul_character", "A text holds the character U+0000"


class NonFiniteNumber(MalformedJSON):
    code, title = "non_finite_number", "NaN and Infinity are not JSON; a missing value is null"


class NumberOutOfRange(MalformedJSON):
    code, title = "number_out_of_range", "A number does not fit 64 bits"


class DuplicateKey(MalformedJSON):
    code, title = "duplicate_key", "An object holds the same key twice"


class TooDeep(MalformedJSON):
    code, title = "too_deep", "The body is nested deeper than this service accepts"


class UnsupportedMediaType(ValiantError):
    code, status, title = "unsupported_media_type", 415, "This kind of body is not understood"


class NotAcceptable(ValiantError):
    code, status, title = "not_acceptable", 406, "The response does not exist in the requested format"


class BodyTooLarge(ValiantError):
    code, status, title = "body_too_large", 413, "The body is larger than this service accepts"


class RequestTimeout(ValiantError):
    code, status, title = "request_timeout", 408, "The request did not arrive in time"


class StorageFull(ValiantError):
    code, status, title = "storage_full", 507, "There is no room left to store this"
    remedy = "Free room on the disk of the service, then send it again. Jobs that were accepted end by themselves."


class InvalidData(ValiantError):
    """The rows themselves are at fault, in an upload, a training job or a prediction."""

    code, status, title = "invalid_data", 422, "The data cannot be used as requested"
    remedy = "Correct the places named in errors and send it again."


class ImportUnsupported(ValiantError):
    """A file of another library that cannot be predicted with exactly as that library does."""

    code, status, title = "import_unsupported", 422, "This model cannot be imported"
    remedy = "Train the model again without what errors names, and save it again; or serve it with its own library."


class ImportMismatch(ValiantError):
    """Predictions differ from those of the library."""

    code, status, title = "import_mismatch", 422, "The imported model does not predict as its library does"
    remedy = "See that the check was made with this very file, and that its columns have the names of the inputs."


class FileNotFound(ValiantError):
    code, status, title = "file_not_found", 404, "No such file"
    remedy = "Send the file to POST /v1/files again: it is kept for a day."


class DatasetNotFound(ValiantError):
    code, status, title = "dataset_not_found", 404, "No such dataset"


class DatasetInUse(ValiantError):
    code, status, title = "dataset_in_use", 409, "An unfinished job still needs this dataset"


class AlgorithmNotFound(ValiantError):
    code, status, title = "algorithm_not_found", 404, "No such algorithm"


class JobNotFound(ValiantError):
    code, status, title = "job_not_found", 404, "No such job"


class ModelNotFound(ValiantError):
    code, status, title = "model_not_found", 404, "No such model"


class VersionNotFound(ValiantError):
    code, status, title = "version_not_found", 404, "This model has no such version"


class PlotNotFound(ValiantError):
    code, status, title = "plot_not_found", 404, "This version has no such plot"
    remedy = "Take a name of the list of plots of the version."


class RenderingFailed(ValiantError):
    code, status, title = "rendering_failed", 422, "The picture cannot be drawn here"
    remedy = "Take the specification as application/json, and draw it with any Vega-Lite viewer."


class ReviewNotFound(ValiantError):
    code, status, title = "review_not_found", 404, "No such review"


class ReviewsChanged(ValiantError):
    code, status, title = "reviews_changed", 409, "A row was labelled while the export ran"
    remedy = "Send the export again."


class PreferenceNotFound(ValiantError):
    code, status, title = "preference_not_found", 404, "No such preferences"


class PreferenceChanged(ValiantError):
    code, status, title = "preference_changed", 409, "The preferences have another revision"
    remedy = "Read the preferences, and send the comparisons with their present revision: those refused were not taken."


class ReviewsFull(ValiantError):
    code, status, title = "reviews_full", 429, "Too many rows wait for a label"
    remedy = "Label or delete reviews, raise VALIANT_MAX_WAITING_REVIEWS, or predict without review."


class AliasNotFound(ValiantError):
    code, status, title = "alias_not_found", 404, "This model has no such alias"


class NotOffered(ValiantError):
    code, status, title = "not_offered", 409, "The model does not offer this query"
    remedy = "Send one of the queries that it offers, or train an algorithm that offers this one."


class NoClusters(ValiantError):
    code, status, title = "no_clusters", 409, "The model version has no clusters"
    remedy = "Name clusters of a version whose task is clustering, and that this release has trained."


class NoExplanation(ValiantError):
    code, status, title = "no_explanation", 409, "The algorithm does not explain single predictions"
    remedy = "Linearise the model at the row, or sweep over its inputs: both work for every model with numbers."


class NoContributions(ValiantError):
    code, status, title = "no_contributions", 409, "The model has no contributions of its columns"
    remedy = (
        "Train a regression or a classification in this release; import trees from a file with the rows of each node."
    )


class NoInterval(ValiantError):
    code, status, title = "no_interval", 409, "The model has no intervals for its predictions"
    remedy = (
        "Train a regression with rows held out, or use linear, bayesian_locally_weighted, gaussian_process, or "
        "random_forest with interval_of set to mean; or refit on resamples with a bootstrap job."
    )


class VersionInUse(ValiantError):
    code, status, title = "version_in_use", 409, "An alias or another version still needs this version"
    remedy = "Move the alias to another version first, delete the whole model, or the versions that stand behind it."


class GoldenMismatch(ValiantError):
    code, status, title = "golden_mismatch", 409, "The model does not reproduce its golden rows"
    remedy = "Train the model again with the present version of the service."


class NotReproducible(ValiantError):
    code, status, title = "not_reproducible", 409, "What the version was made from is gone"
    remedy = "Upload the file of the training again: a dataset with the digest in the receipt takes its place."


class NotReproduced(ValiantError):
    code, status, title = "not_reproduced", 409, "The model made again from the receipt has other bytes"
    remedy = "Run it with the releases of the libraries in the receipt, on a processor of the same class."


class CorruptModel(ValiantError):
    code, status, title = "corrupt_model", 409, "The stored model is not readable"
    remedy = "Train the model again, or restore the database from a backup."


class RetiredFormat(CorruptModel):
    code, status, title = "retired_format", 409, "The model was stored by an earlier release"
    remedy = "Train the model again, with the present names of its parameters."


class PreconditionFailed(ValiantError):
    code, status, title = "precondition_failed", 412, "The resource has changed in the meantime"


class IdempotencyConflict(ValiantError):
    code, status, title = "idempotency_key_reused", 422, "The Idempotency-Key came with another body before"
    remedy = "Use a fresh key for a different request."


class QueueFull(ValiantError):
    code, status, title = "queue_full", 429, "Too many jobs are waiting"
    remedy = "Wait for the time in Retry-After, then submit again."


class RevisionNotReached(ValiantError):
    code, status, title = "revision_not_reached", 412, "The alias has not reached the revision in X-Min-Revision"
    remedy = "Send the revision that a move of this alias returned; it counts the moves of one alias of one model."


class DatabaseUnavailable(ValiantError):
    code, status, title = "database_unavailable", 503, "The database does not respond at present"
    remedy = "Send the request again after the time in Retry-After."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "2"})


class NotReady(ValiantError):
    code, status, title = "not_ready", 503, "The service is not ready"


class Overloaded(ValiantError):
    code, status, title = "overloaded", 503, "Too many predictions are in progress"
    remedy = "Wait for the time in Retry-After, then send the request again."


class DeadlineExceeded(ValiantError):
    code, status, title = "deadline_exceeded", 504, "The prediction could not begin in the time given"
    remedy = "Send the request again, or give it more time in X-Request-Timeout."


class LeaseLost(ValiantError):
    """A worker wrote under a lease that is no longer its own. Never seen by a client."""

    code, status, title = "lease_lost", 409, "Another attempt owns this job now"


class OutOfMemory(ValiantError):
    code, status, title = "out_of_memory", 422, "The job needed more memory than it may have"
    remedy = "Use fewer rows or columns, a smaller model, or raise VALIANT_JOB_MEMORY_BYTES."


class TimedOut(ValiantError):
    code, status, title = "timed_out", 422, "The job reached its time limit"
    remedy = "Raise time_limit_seconds, or choose a smaller model."


class BudgetTooSmall(ValiantError):
    code, status, title = "budget_too_small", 422, "No candidate could be fitted within the budget"
    remedy = "Give it more seconds, or fewer rows or columns, or include cheaper algorithms."


class Cancelled(ValiantError):
    code, status, title = "cancelled", 409, "The job was cancelled"


class WorkerLost(ValiantError):
    code, status, title = "worker_lost", 422, "The worker died on every attempt"
    remedy = "Submit the job again; if it fails again, look at the workers' logs under the job's id."


class TrainerCrashed(ValiantError):
    code, status, title = "trainer_crashed", 422, "The training process died on every attempt"
    remedy = "Look at the workers' logs under the job's id."


class StartFailed(Exception):
    """A command of the console cannot do its work; the sentence states why and what to do. Never seen by a client."""
