"""The model that is served: fitted, evaluated on the test rows, and as bytes that a process can hand over."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.errors import ValiantError
from app.ml.contract.algorithm import in_turn
from app.ml.evaluation.report import Report
from app.ml.kinds.job import Sheet, Trained
from app.ml.training.automl.trial import NUMERICAL_ERRORS
from app.ml.training.planning.plan import Plan
from app.ml.training.train import train


class FinalFit(NamedTuple):
    """A trained model in arrays and texts."""

    blob: NDArray[np.uint8]
    report: str
    golden: str
    seen: NDArray[np.uint8]
    reference: NDArray[np.uint8]
    error: str = ""
    """Reason why there is no model; empty: there is one."""

    @classmethod
    def of(cls, trained: Trained) -> Self:
        parts = trained.blob, trained.seen, trained.reference
        blob, seen, reference = (np.frombuffer(part, np.uint8) for part in parts)
        return cls(blob, trained.report.model_dump_json(), json.dumps(trained.golden), seen, reference)

    @property
    def trained(self) -> Trained:
        report, golden = Report.model_validate_json(self.report), json.loads(self.golden)
        return Trained(self.blob.tobytes(), report, golden, self.seen.tobytes(), self.reference.tobytes())

    @property
    def head(self) -> dict[str, Any]:
        """Report and golden rows as JSON."""
        return {"report": json.loads(self.report), "golden": json.loads(self.golden)}


def final_fit(planned: Plan, table: pa.Table, sheet: Sheet, note: str | None) -> Callable[[], FinalFit]:
    """The task of fitting the plan. note: sentence of the report on how it was chosen."""

    def fit() -> FinalFit:
        try:
            trained = train(
                planned._replace(selected=note),
                table,
                data_digest=sheet.digest,
                reading=sheet.reading,
                each=in_turn,
            )
        except ValiantError as error:
            return _failed(error.detail)
        except NUMERICAL_ERRORS as error:
            return _failed(f"The fit failed: {error}")
        return FinalFit.of(trained)

    return fit


def _failed(error: str) -> FinalFit:
    nothing: NDArray[Any] = np.zeros(0, np.uint8)
    return FinalFit(nothing, "", "", nothing, nothing, error)
