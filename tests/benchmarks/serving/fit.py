"""The rivals' model, fitted by the interpreter that will serve it: python fit.py model.joblib."""

import sys

import joblib
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

cancer = load_breast_cancer()
joblib.dump(LogisticRegression(max_iter=10_000).fit(cancer.data, cancer.target), sys.argv[1])
