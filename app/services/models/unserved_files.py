"""Sentences on files that are in no format that is served."""

from pathlib import Path

PICKLES = {".pkl", ".pickle", ".joblib"}
OLD_XGBOOST = {".bst", ".model", ".deb"}
SERVED = (
    "the text of LightGBM, JSON or UBJSON of XGBoost, what `valiant convert` writes of scikit-learn, ONNX, or the "
    "safetensors of Valiant"
)


def explain_unserved(path: Path, content: bytes) -> str:
    """A sentence on its format and on what to do. content: of the file, which `recognise_model` does not recognise."""
    if not content:
        return f"The file {path.name} is empty."
    if content[:1] == b"\x80" or path.suffix in PICKLES:
        return (
            f"{path.name} is a pickle, which can run code when it is read: none is. Where it was made, "
            "`valiant convert model.joblib -o model.json` writes a file that is served."
        )
    if content[:3] == b"CBM" or path.suffix == ".cbm":
        return f"{path.name} is CatBoost's own format: save it with format='onnx'."
    if content[:4] == b"binf" or path.suffix in OLD_XGBOOST:
        return (
            f"{path.name} is neither JSON nor UBJSON of XGBoost, nor the text of LightGBM. What is in the binary "
            "format that XGBoost has retired is written anew by booster.save_model('model.ubj')."
        )
    return f"{path.name} is in no format that is served: {SERVED}."
