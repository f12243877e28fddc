"""A cache of kernel rows of bounded bytes: the row that has not been used for longest makes room."""

import numpy as np

from app.ml.contract.algorithm import Labels
from app.ml.numerics.support_vectors.kernel_rows import MEBIBYTE, KernelRows


class RowCache:
    """Rows of the kernel between the places 0 … m - 1 of an optimisation, one after the other."""

    def __init__(self, rows: KernelRows, count: int, mebibytes: float) -> None:
        """count: n, of rows. mebibytes: most that the values take; two rows are held in any case."""
        numbers = max(2 * count, int(mebibytes * MEBIBYTE / 8))
        self.values = np.empty(min(numbers, count * count + count))
        """Rows of m values in the order of their slots; memory is taken when a slot is first written."""
        self.used = np.zeros(max(count, 1), np.intp)
        self._rows = rows
        self._start(count)
        self.computed = 0
        """Rows computed so far."""

    def _start(self, count: int) -> None:
        self._count = count
        self._capacity = max(1, min(self.values.size // max(count, 1), count))
        self._owners = np.full(self._capacity, -1)
        self._held = 0
        self.used[:] = 0
        self.slots = np.full(count, -1)
        """(m,) the slot of the row of each place; -1: it is not there."""

    def add(self, place: int) -> None:
        """Compute the row of this place."""
        slot = self._held
        if self._held < self._capacity:
            self._held += 1
        else:
            slot = int(self.used[: self._capacity].argmin())
            self.slots[self._owners[slot]] = -1
        start = slot * self._count
        self._rows.fill(place, self.values[start : start + self._count])
        self._owners[slot], self.slots[place] = place, slot
        self.computed += 1

    def narrow(self, rows: KernelRows, places: Labels) -> None:
        """Keep what lies between these places (ascending), which are 0, 1, … afterwards. rows: of these places."""
        old, owners, used, held = self._count, self._owners, self.used.copy(), self._held
        position = np.full(old, -1)
        position[places] = np.arange(places.size)
        kept_slots = [slot for slot in range(held) if position[owners[slot]] >= 0]
        self._rows = rows
        self._start(places.size)
        for target, slot in enumerate(kept_slots):
            part = self.values[slot * old : (slot + 1) * old][places]
            self.values[target * places.size : (target + 1) * places.size] = part
            owner = position[owners[slot]]
            self._owners[target], self.slots[owner], self.used[target] = owner, target, used[slot]
        self._held = len(kept_slots)

    def restart(self, rows: KernelRows, count: int) -> None:
        """Forget all rows. count: of rows from now on."""
        self._rows = rows
        self._start(count)
