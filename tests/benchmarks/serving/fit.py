"""The rivals' models, fitted by the interpreter that will serve them: python fit.py FOLDER."""

import sys
from pathlib import Path

import joblib
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

MODELS = {
    "logistic": LogisticRegression(max_iter=10_000),
    "forest": RandomForestClassifier(100, random_state=0),
}
cancer = load_breast_cancer()
for name, model in MODELS.items():
    joblib.dump(model.fit(cancer.data, cancer.target), Path(sys.argv[1]) / f"{name}.joblib")
