"""The service most people write: FastAPI, pydantic rows, scikit-learn models from joblib."""

import os
from pathlib import Path

import joblib
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
models = {path.stem: joblib.load(path) for path in Path(os.environ["MODELS"]).glob("*.joblib")}


class Rows(BaseModel):
    data: list[list[float]]


@app.post("/predict/{model}")
def predict(model: str, rows: Rows) -> dict:
    return {
        "predictions": models[model].predict(rows.data).tolist(),
        "probabilities": models[model].predict_proba(rows.data).tolist(),
    }
