"""Models that a process begins with: those that aliases name."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from uuid import UUID

from app.base.project_context import PROJECT, in_project
from app.ml.contract.model_reference import VersionRef
from app.services.predictions.predictions import Predictions
from app.store.models.pointer import CHAMPION
from app.store.unit_of_work import WorkFactory

MAX_ALIASES = 100
"""Aliases of a project whose models are loaded: those that were moved last."""


class ServedModels:
    def __init__(self, work: WorkFactory, predictions: Predictions) -> None:
        self._work, self._predictions = work, predictions

    def loads(self) -> Iterator[Callable[[], object]]:
        """A function for each alias, which loads its model into the memory of this process."""
        with self._work() as w:
            projects = w.projects.ids()
        for project in projects:
            with in_project(project), self._work() as w:
                references = w.aliases.latest(MAX_ALIASES)
            yield from (partial(self._load, project, reference) for reference in references)

    def _load(self, project: UUID, reference: VersionRef) -> None:
        """Load the model as its first request would, and as one without an alias would if it is the champion."""
        PROJECT.set(project)
        asyncio.run(self._ready(reference))

    async def _ready(self, reference: VersionRef) -> None:
        await self._predictions.ready(reference)
        if reference.alias == CHAMPION:
            await self._predictions.ready(VersionRef(reference.model))
