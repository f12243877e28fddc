"""Fields of every response that comes from a model: its version, its task and the flags of its rows."""

from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.task import DESCRIPTION as TASK
from app.ml.models.model import Predicted


class Flag(Wire):
    """Rows whose prediction deserves doubt, and the reason."""

    code: str = Field(
        description="unseen_category, missing_category or missing_number (no training row lacked a value there), "
        "outside_range, imputed, no_known_term (of a text), undefined (of a function of columns), or unknown (the "
        "prediction is null)."
    )
    column: str | None = Field(None, description="Name of the column; null where the flag is about the row as a whole.")
    rows: list[int] = Field(description="Indices of the rows, from 0.")


class ModelResponse(Wire):
    """The version that a response comes from."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    digest: str = Field(description="SHA-256 of the bytes of the model version.")
    task: str = Field(description=TASK)


def flags_of(predicted: Predicted) -> list[Flag]:
    return [Flag(code=flag.code, column=flag.column, rows=flag.rows.tolist()) for flag in predicted.flags]
