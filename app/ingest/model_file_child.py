"""A process that parses model files of other libraries, each in a fork of its own under its limits.

What a fork reads may be hostile, and its parsers are C++: whatever becomes of it, the service and the job's process
live on.
"""

import os
import resource
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from app.errors import ImportUnsupported, InvalidData, ValiantError
from app.faults import Fault
from app.ingest import lightgbm_file, onnx_file, sklearn_file, xgboost_file
from app.ingest.forked_parser import fork_for_each_file
from app.ingest.protocol import PARSED, REFUSED, Refusal
from app.ml.models.parsed_model import write
from app.ml.numerics.trees.foreign_trees import damaged
from app.process_memory import limit, without_optional

PARSERS = {
    "lightgbm": lightgbm_file.parse,
    "onnx": onnx_file.parse,
    "scikit-learn": sklearn_file.parse,
    "xgboost": xgboost_file.parse,
}


def main() -> None:
    without_optional()
    with suppress(ImportError):
        import_module("treelite")  # once, not in every fork
    fork_for_each_file(_serve)


def _serve(order: bytes, _: Sequence[int]) -> bytes:
    """order: the format, limits on memory and seconds, and the path."""
    file_format, memory_bytes, seconds, path = order.split(b" ", 3)
    limit(int(memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return _response(file_format.decode(), Path(os.fsdecode(path)))


def _response(file_format: str, path: Path) -> bytes:
    try:
        return PARSED + write(PARSERS[file_format](path))
    except ImportError:
        extra = "onnx" if file_format == "onnx" else "import"
        detail = f"The worker lacks the library that reads these files: install valiant[{extra}] there."
        return _refused(ImportUnsupported(faults=[Fault("/file_format", detail, "not_installed")]))
    except ValiantError as error:
        return _refused(error)
    except Exception as error:  # noqa: BLE001  a file nobody thought of must not look like a fault of the service
        if type(error).__name__ == "TreeliteError":
            return _refused(damaged("The parser refuses the file: " + _reason(str(error))))
        refusal = Refusal(code=InvalidData.code, detail="The file could not be read.", trace=traceback.format_exc())
        return REFUSED + refusal.model_dump_json().encode()


def _reason(message: str) -> str:
    """The message of treelite without the place in its own source."""
    first = message.strip().splitlines()[0] if message.strip() else ""
    return "".join(filter(str.isprintable, first.rpartition("Check failed: ")[2].rpartition(".cc")[2]))[:200]


def _refused(error: ValiantError) -> bytes:
    return REFUSED + Refusal(code=error.code, detail=error.detail, faults=list(error.faults)).model_dump_json().encode()


if __name__ == "__main__":
    main()
