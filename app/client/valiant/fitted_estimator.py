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
    _demand_one_target(estimator)
    try:
        return _read(estimator)
    except NotImportable:
        if rows is None and type(estimator).__name__ in READERS:
            raise
    return fitted_graph(estimator, rows)


def write_estimator(estimator: Any, path: str | Path) -> None:
    """Write the trees or weights of an estimator as the JSON file that `valiant serve` and imports read.

    The file has the columns, the class labels and scikit-learn's own predictions of probe rows, by which whoever reads
    it proves itself. Raises NotImportable for what is neither trees nor a linear model.
    """
    _demand_one_target(estimator)
    Path(path).write_bytes(_read(estimator).content)


def _demand_one_target(estimator: Any) -> None:
    kind = type(estimator).__name__
    if not hasattr(estimator, "predict"):
        raise NotImportable(f"{kind} predicts nothing.")
    if getattr(estimator, "n_outputs_", 1) > 1:
        raise NotImportable(f"{kind} predicts several targets at once: fit one for each.")


def _read(estimator: Any) -> Fitted:
    kind = type(estimator).__name__
    if kind not in READERS:
        raise NotImportable(f"{kind} is neither trees nor a linear model: write it as a graph of ONNX, by skl2onnx.")
    return READERS[kind](estimator)
