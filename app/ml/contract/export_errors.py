"""Failures of exports."""

from app.base.errors import ValiantError


class ExportUnsupported(ValiantError):
    """A model that no graph of tensor operations predicts as it does."""

    code, status, title = "export_unsupported", 409, "This model version cannot be exported in this format"
    remedy = "Download it as safetensors and serve it with `valiant serve`, or train without what the detail names."


class ExportMismatch(ValiantError):
    """An exported model that does not predict as the version does; it is never handed out."""

    code, status, title = "export_mismatch", 409, "The exported model does not predict as the version does"
    remedy = "Download it as safetensors and serve it with `valiant serve`."


class ExportUnavailable(ValiantError):
    code, status, title = "export_unavailable", 409, "This service cannot write files of this format"
    remedy = "Install valiant[onnx] where the service runs; as=script needs nothing."
