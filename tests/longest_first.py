"""Files of tests that take longest begin first: no process works on one of them when the others have ended.

pytest-xdist by itself begins with the files of most tests, and a file of one long test comes last.
"""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = (
    "tests/test_quality.py",
    "tests/api/edge/test_contract.py",
    "tests/api/edge/test_hostile_requests.py",
    "tests/ml/test_sixth_file.py",
    "tests/test_guide.py",
    "tests/ingest/test_parser_processes.py",
    "tests/test_cli.py",
    "tests/services/predictions/test_one_reading.py",
    "tests/ml/test_peers.py",
    "tests/workers/test_beyond_memory.py",
    "tests/workers/test_faults.py",
    "tests/commands/test_serve_folder_starts.py",
    "tests/store/test_security.py",
    "tests/ingest/test_model_files.py",
    "tests/commands/test_backup_page.py",
    "tests/ml/evaluation/test_guarantees.py",
    "tests/api/jobs/test_predict_dataset.py",
    "tests/commands/test_restore.py",
    "tests/ml/models/test_cv_plus.py",
    "tests/client/test_sklearn.py",
    "tests/ingest/test_model_file_mutants.py",
    "tests/services/jobs/test_any_order.py",
    "tests/api/models/test_pointers.py",
    "tests/ml/algorithms/test_metric_learning.py",
    "tests/console/test_interactions.py",
    "tests/ml/training/test_train.py",
    "tests/services/kernels/test_warming.py",
    "tests/ml/contract/test_minimum.py",
    "tests/test_examples.py",
    "tests/api/access/test_audit.py",
    "tests/ml/test_memory.py",
    "tests/ml/evaluation/test_auc.py",
    "tests/commands/test_draining.py",
    "tests/console/test_console.py",
    "tests/api/jobs/test_import.py",
    "tests/commands/test_serve_folder.py",
    "tests/test_sdk.py",
    "tests/ml/numerics/test_jit.py",
    "tests/commands/test_demo.py",
    "tests/api/routes/test_jobs.py",
    "tests/processes/test_disk_space.py",
    "tests/workers/test_members.py",
    "tests/ingest/test_fuzz.py",
    "tests/api/routes/test_health.py",
    "tests/processes/test_process_memory.py",
    "tests/embedded/test_embedded.py",
)
"""More than 40 seconds on two cores, of the plain run or the slow one. The first two fit no trees, whose kernels take
longest to compile meanwhile.
"""


def pytest_collection_modifyitems(items):
    files = {item.path: item.path.relative_to(ROOT).as_posix() for item in items}
    sizes = Counter(item.path for item in items)
    places = {path: LONGEST.index(name) if name in LONGEST else len(LONGEST) for path, name in files.items()}
    items.sort(key=lambda item: (places[item.path], -sizes[item.path]))
