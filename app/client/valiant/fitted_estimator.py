"""A fitted estimator of scikit-learn as the service imports it: no pickle leaves the machine."""

from pathlib import Path
from typing import Any

from . import fitted_linear, fitted_trees
from .fitted_parts import Fitted, NotImportable


def load(path: Path) -> Any:
    """The estimator in a file of joblib or pickle: it runs the code in it, so open files of your own alone."""
    try:
        import joblib  # noqa: PLC0415  scikit-learn brings it
    except ImportError as error:
        raise NotImportable("Reading this file needs scikit-learn: install the version that fitted it.") from error
    return joblib.load(path)


def fitted(estimator: Any) -> Fitted:
    """Raises NotImportable."""
    kind = type(estimator).__name__
    if kind not in fitted_trees.READERS and kind not in (*fitted_linear.READERS, fitted_linear.PIPELINE):
        able = ", ".join(sorted({*fitted_trees.READERS, *fitted_linear.READERS, fitted_linear.PIPELINE}))
        raise NotImportable(f"{kind} cannot be imported. These can: {able}.")
    if getattr(estimator, "n_outputs_", 1) > 1:
        raise NotImportable(f"{kind} predicts several targets at once: fit one for each.")
    if kind in fitted_trees.READERS:
        return fitted_trees.fitted_trees(estimator)
    return fitted_linear.fitted_linear(estimator)
