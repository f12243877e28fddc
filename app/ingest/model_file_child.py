"""A process that parses model files of other libraries, each in a fork of its own under its limits.

What a fork reads may be hostile, and its parsers are C++: whatever becomes of it, the service and the job's process
live on.
"""

import json
import os
import resource
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from pydantic import ValidationError

from app.base.errors import ImportUnsupported, InvalidData, ValiantError
from app.base.faults import Fault
from app.ingest import lightgbm_file, onnx_file, sklearn_file, xgboost_file
from app.ingest.forked_parser import fork_for_each_file
from app.ingest.protocol import PARSED, REFUSED, Refusal
from app.ml.contract.model_file_options import ALL, ModelFileOptions
from app.ml.models.parsed_model import ParsedModel, write
from app.ml.models.parsed_model_checks import demand_storable
from app.ml.numerics.trees.foreign_trees import damaged
from app.processes.process_memory import limit, without_optional

PARSERS: dict[str, Callable[[Path, ModelFileOptions], ParsedModel]] = {
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
    """order: the format, limits on memory and seconds, the options as JSON, and the path."""
    file_format, memory_bytes, seconds, options, path = order.split(b" ", 4)
    limit(int(memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return _response(file_format.decode(), Path(os.fsdecode(path)), ModelFileOptions(*json.loads(options)))


def read_model(file_format: str, path: Path, options: ModelFileOptions = ALL) -> ParsedModel:
    """Raises ImportUnsupported and InvalidData, whose sentences are of this service: never a parser's own."""
    try:
        parsed = PARSERS[file_format](path, options)
        demand_storable(parsed)
    except ImportError:
        extra = "onnx" if file_format == "onnx" else "import"
        detail = f"The worker lacks the library that reads these files: install valiant[{extra}] there."
        raise ImportUnsupported(faults=[Fault("/file_format", detail, "not_installed")]) from None
    except MemoryError:
        raise damaged("Reading it takes more memory than a file of its size may take.") from None
    except ValidationError:
        raise damaged("A parameter of its objective is out of range.") from None
    except Exception as error:
        if type(error).__name__ == "TreeliteError":
            if "bad_alloc" in str(error):
                raise damaged("Reading it takes more memory than a file of its size may take.") from error
            raise damaged("Its objective or its trees are not those of a version of the library known here.") from error
        raise
    return parsed


def _response(file_format: str, path: Path, options: ModelFileOptions) -> bytes:
    try:
        return PARSED + write(read_model(file_format, path, options))
    except ValiantError as error:
        return _refused(Refusal(code=error.code, detail=error.detail, faults=list(error.faults)))
    except MemoryError:
        large = damaged("Reading it takes more memory than a file of its size may take.")
        return _refused(Refusal(code=large.code, detail=large.detail, faults=list(large.faults)))
    except Exception:  # noqa: BLE001  a file nobody thought of must not look like a fault of the service
        return _refused(
            Refusal(code=InvalidData.code, detail="The file could not be read.", trace=traceback.format_exc())
        )


def _refused(refusal: Refusal) -> bytes:
    return REFUSED + refusal.model_dump_json().encode()


if __name__ == "__main__":
    main()
