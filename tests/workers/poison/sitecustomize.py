"""On PYTHONPATH, it adds an algorithm to a worker's catalogue that no product has."""

from pathlib import Path

import app.ml.algorithms

app.ml.algorithms.__path__.append(str(Path(__file__).with_name("algorithms")))
