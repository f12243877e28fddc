"""Decoded models of this process, as many as fit."""

from collections import OrderedDict
from threading import Lock

from app.ml.models.model import Model


class ModelMemory:
    """By digest; the least recently used leave first. A model larger than all of the budget is not kept."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._lock = Lock()
        self._models: OrderedDict[str, Model] = OrderedDict()
        self.nbytes = 0
        """Size of all models kept."""

    def get(self, digest: str) -> Model | None:
        model = self._models.get(digest)
        try:  # noqa: SIM105  a context manager takes longer than all of this
            self._models.move_to_end(digest)
        except KeyError:  # not there, or, as nothing is locked, gone in between
            pass
        return model

    def __len__(self) -> int:
        return len(self._models)

    def put(self, digest: str, model: Model) -> None:
        size = model.nbytes  # counted once, outside the lock
        with self._lock:
            if digest in self._models or size > self._budget:
                return
            self._models[digest] = model
            self.nbytes += size
            while self.nbytes > self._budget:
                _, oldest = self._models.popitem(last=False)
                self.nbytes -= oldest.nbytes
