"""Format of a model file by what it holds: a suffix names it at best, as both boosters write `model.bst`."""

import re

from app.ml.contract.file_formats import FileFormat

LIGHTGBM = re.compile(rb"tree\r?\n")
"""First line of the text of a LightGBM model."""
DOCUMENT = re.compile(rb"\s*\{")
SCIKIT_LEARN = re.compile(rb'"format_name"\s*:\s*"valiant-(?:trees|linear)"')
"""Within a text of JSON a quotation mark is escaped: nothing but this field of the document matches."""
XGBOOST = re.compile(rb'learner"?')
"""A field of the document, as JSON has it and as UBJSON has it."""
IR_VERSION = b"\x08"
"""First byte of a model of ONNX: the number of its first field."""
SAFETENSORS_HEAD = 9


def recognise_model(content: bytes) -> FileFormat | None:
    """Format of the file with these bytes; None: it is none that can be imported. Nothing is parsed."""
    if LIGHTGBM.match(content):
        return "lightgbm"
    if content[SAFETENSORS_HEAD - 1 : SAFETENSORS_HEAD] == b"{" and 0 < _header_size(content) <= len(content):
        return "valiant"
    if DOCUMENT.match(content):
        if SCIKIT_LEARN.search(content):
            return "scikit-learn"
        return "xgboost" if XGBOOST.search(content) else None
    return "onnx" if content.startswith(IR_VERSION) else None


def _header_size(content: bytes) -> int:
    return int.from_bytes(content[: SAFETENSORS_HEAD - 1], "little")
