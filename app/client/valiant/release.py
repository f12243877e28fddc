"""The release of the client, and a check that no other is installed beside it."""

import os
import warnings

RELEASE = "0.1.0"


def check_installation() -> None:
    """Two distributions hold these files: `valiant`, and `valiant-client` alone. Of two releases one is in the way."""
    beside = os.listdir(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH208, PTH120  pathlib is slow to import
    distributions = [
        name for name in beside if name.startswith(("valiant-", "valiant_client-")) and name.endswith(".dist-info")
    ]
    if len({name.split("-")[1] for name in distributions}) > 1:
        listed = " and ".join(sorted(name.removesuffix(".dist-info") for name in distributions))
        warnings.warn(f"{listed} are both installed: uninstall one, and install the other again.", stacklevel=3)
