"""The API past its shortcut: `--fast-path=off` runs those tests whose requests take another way then.

Only routes that are called most have a shortcut. A file of tests that names none of them does the same in both
positions; of the contract, which draws requests for every operation, those of these routes are run.
"""

import re
from functools import cache

DIRECT = {
    "infer_model": "infer",
    "infer_version": "infer",
    "predict_rows": "predict",
}
"""Operation → the end of its path."""
PATHS = re.compile("|".join(rf"/{end}\b" for end in set(DIRECT.values())))
OPERATIONS = re.compile("|".join(rf"\b{name}\b" for name in DIRECT))


def pytest_addoption(parser):
    parser.addoption(
        "--fast-path", choices=["on", "off"], default="on", help="position of VALIANT_FAST_PATH for the shared stack"
    )


def pytest_collection_modifyitems(config, items):
    if config.getoption("--fast-path") == "on":
        return
    kept, left_out = [], []
    for item in items:
        (kept if OPERATIONS.search(item.name) or takes_another_way(item.path) else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@cache
def takes_another_way(path):
    return PATHS.search(path.read_text()) is not None
