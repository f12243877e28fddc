"""The same rows in the form each server reads."""

import io

import numpy as np
import orjson
from sklearn.datasets import load_breast_cancer

JSON = {"Content-Type": "application/json"}


def rows(count):
    """(count, 30): the data drawn anew and shaken, so that every number has all its digits."""
    random = np.random.default_rng(0)
    data = load_breast_cancer().data
    return data[random.integers(len(data), size=count)] * (1 + 1e-3 * random.standard_normal((count, 30)))


def named(names):
    return lambda x: (JSON, orjson.dumps({"columns": names, "data": x.tolist()}))


def plain(x):
    return JSON, orjson.dumps({"data": x.tolist()})


def npy(x):
    file = io.BytesIO()
    np.save(file, x)
    return {"Content-Type": "application/x-npy", "Accept": "application/x-npy"}, file.getvalue()


def tensor(x):
    described = {"name": "input-0", "shape": x.shape, "datatype": "FP64", "data": x.ravel().tolist()}
    return JSON, orjson.dumps({"inputs": [described]})


def binary_tensor(x):
    described = {
        "name": "input-0", "shape": x.shape, "datatype": "FP64", "parameters": {"binary_data_size": x.nbytes},
    }  # fmt: skip
    head = orjson.dumps({"inputs": [described], "parameters": {"binary_data_output": True}})
    headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(head))}
    return headers, head + x.tobytes()
