"""Parts of the file in which a fitted estimator of scikit-learn is sent, whatever it holds."""

import json
import math
from typing import Any, NamedTuple

from .failures import ValiantError

SKLEARN = "scikit-learn"
"""The format of the file, as requests name it."""


class NotImportable(ValiantError):
    """An estimator that the service could not predict with exactly as scikit-learn does."""


class Check(NamedTuple):
    """Rows with the estimator's own predictions, which the service has to predict alike."""

    content: bytes
    """A CSV file."""
    columns: list[str]
    """Columns of the predictions."""
    labels: str | None = None
    """Column of the predicted classes; None: there are none."""

    def described(self, dataset_id: str) -> dict[str, Any]:
        """The field `check` of a request, once the rows are a dataset."""
        return {"dataset": dataset_id, "prediction_columns": self.columns, "label_column": self.labels}


class Fitted(NamedTuple):
    """The file that is uploaded, and fields of the job that imports it."""

    content: bytes
    request: dict[str, Any]
    check: Check | None = None
    """None: the file has rows and predictions of its own."""


def classes_of(estimator: Any) -> list[Any]:
    """Labels of the classes; empty for a regressor."""
    return [value.item() if hasattr(value, "item") else value for value in getattr(estimator, "classes_", ())]


def columns_of(estimator: Any) -> list[str]:
    """Names of the inputs: those of the table it was fitted on, else f0, f1, …"""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"f{j}" for j in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def named(rows: Any, estimator: Any) -> Any:
    """Rows with the names with which the estimator was fitted, so that it does not warn."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas as pd  # noqa: PLC0415  the names come from a table of it

    return pd.DataFrame(rows, columns=names)


def described(estimator: Any, columns: list[str], rows: Any) -> dict[str, Any]:
    """Statements of the file that do not depend on its model. rows: (n, d) probes."""
    import sklearn  # noqa: PLC0415  it has fitted the estimator

    return {
        "format_version": 1,
        "library": f"scikit-learn {sklearn.__version__}",
        "estimator": type(estimator).__name__,
        "classifies": bool(classes_of(estimator)),
        "classes": classes_of(estimator) or None,
        "columns": columns,
        "rows": [[None if math.isnan(cell) else cell for cell in row] for row in rows.tolist()],
    }


def written(document: dict[str, Any]) -> Fitted:
    """The file, and the request for it."""
    return Fitted(json.dumps(document, allow_nan=False).encode(), {"file_format": SKLEARN})
