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


READERS = dict.fromkeys(fitted_trees.READERS, fitted_trees.fitted_trees) | dict.fromkeys(
    (*fitted_linear.LINKS, fitted_linear.PIPELINE), fitted_linear.fitted_linear
)
"""By the name of the estimator's class."""


def fitted(estimator: Any) -> Fitted:
    """Raises NotImportable."""
    kind = type(estimator).__name__
    read = READERS.get(kind)
    if read is None:
        raise NotImportable(f"{kind} cannot be imported. These can: {', '.join(sorted(READERS))}.")
    if getattr(estimator, "n_outputs_", 1) > 1:
        raise NotImportable(f"{kind} predicts several targets at once: fit one for each.")
    return read(estimator)
