"""The service most people write: FastAPI, pydantic rows, a scikit-learn model from joblib."""

import os

import joblib
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
model = joblib.load(os.environ["MODEL"])


class Rows(BaseModel):
    data: list[list[float]]


@app.post("/predict")
def predict(rows: Rows) -> dict:
    return {
        "predictions": model.predict(rows.data).tolist(),
        "probabilities": model.predict_proba(rows.data).tolist(),
    }
