"""A fitted estimator of scikit-learn as the service imports it: no pickle leaves the machine."""

from pathlib import Path
from typing import Any

from . import fitted_linear, fitted_trees
from .fitted_graph import fitted_graph
from .fitted_parts import Fitted, NotImportable


def load(path: Path) -> Any:
    """The estimator in a file of joblib or pickle: it runs the code in it, so open files of your own alone."""
    try:
        import joblib  # noqa: PLC0415  scikit-learn brings it
    except ImportError as error:
        raise NotImportable("Reading this file needs scikit-learn: install the version that fitted it.") from error
    return joblib.load(path)


def read_rows(path: Path) -> Any:
    """The rows of a CSV, by pandas."""
    try:
        import pandas as pd  # noqa: PLC0415
    except ImportError as error:
        raise NotImportable("Reading these rows needs pandas.") from error
    return pd.read_csv(path)


READERS = dict.fromkeys(fitted_trees.READERS, fitted_trees.fitted_trees) | dict.fromkeys(
    (*fitted_linear.LINKS, fitted_linear.PIPELINE), fitted_linear.fitted_linear
)
"""By the name of the estimator's class."""


def fitted(estimator: Any, rows: Any = None) -> Fitted:
    """rows: to check what is translated to ONNX, as all but trees and linear models is. Raises NotImportable."""
    kind = type(estimator).__name__
    if not hasattr(estimator, "predict"):
        raise NotImportable(f"{kind} predicts nothing.")
    if getattr(estimator, "n_outputs_", 1) > 1:
        raise NotImportable(f"{kind} predicts several targets at once: fit one for each.")
    if kind in READERS:
        try:
            return READERS[kind](estimator)
        except NotImportable:
            if rows is None:
                raise
    return fitted_graph(estimator, rows)
