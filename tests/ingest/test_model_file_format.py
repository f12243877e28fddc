"""The format of a model file is recognised by what it holds."""

import json

import numpy as np
import pytest

from app.ingest.model_file_format import recognise_model
from app.ml.models.safetensors_format import write

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
X = np.random.default_rng(0).normal(size=(60, 2))


def boosted(form):
    return bytes(xgboost.train({"max_depth": 2}, xgboost.DMatrix(X, X[:, 0]), 2).save_raw(form))


@pytest.mark.parametrize(
    ("content", "file_format"),
    [
        (lightgbm.train({"verbose": -1}, lightgbm.Dataset(X, X[:, 0]), 2).model_to_string().encode(), "lightgbm"),
        (boosted("json"), "xgboost"),
        (boosted("ubj"), "xgboost"),
        (write({"a": 1}, {"x": X}), "valiant"),
        (json.dumps({"rows": [0] * 1000, "format_name": "valiant-linear"}).encode(), "scikit-learn"),
        (json.dumps({"learner": {"feature_names": ['"format_name": "valiant-trees"']}}).encode(), "xgboost"),
        (b"\x08\x0a\x12\x04", "onnx"),
        (b'{"name": "settings"}', None),
        (b"\x80\x04\x95pickle", None),
        (b"", None),
    ],
)
def test_recognised(content, file_format):
    assert recognise_model(content) == file_format


def test_a_graph_of_onnx():
    onnx = pytest.importorskip("onnx")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Abs", ["x"], ["y"])], "g", [], [])
    assert recognise_model(onnx.helper.make_model(graph).SerializeToString()) == "onnx"
