"""Files of tests that take longest begin first: no process works on one of them when the others have ended.

pytest-xdist by itself begins with the files of most tests, and a file of one long test comes last.
"""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = (
    "tests/test_quality.py",
    "tests/api/test_contract.py",
    "tests/ingest/test_fuzz.py",
    "tests/test_embedded.py",
    "tests/services/jobs/test_any_order.py",
    "tests/ml/test_sixth_file.py",
    "tests/test_process_memory.py",
    "tests/test_guide.py",
    "tests/ml/training/test_train.py",
    "tests/ml/contract/test_minimum.py",
    "tests/api/test_predict_dataset.py",
    "tests/workers/test_faults.py",
    "tests/test_cli.py",
    "tests/api/routes/test_jobs.py",
    "tests/api/routes/test_health.py",
    "tests/test_demo.py",
)
"""More than 15 seconds on two cores. The first few fit no trees, whose kernels take longest to compile meanwhile."""


def pytest_collection_modifyitems(items):
    files = {item.path: item.path.relative_to(ROOT).as_posix() for item in items}
    sizes = Counter(item.path for item in items)
    places = {path: LONGEST.index(name) if name in LONGEST else len(LONGEST) for path, name in files.items()}
    items.sort(key=lambda item: (places[item.path], -sizes[item.path]))
