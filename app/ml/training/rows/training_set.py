"""A table, read once: what every fit of one training draws its rows from."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import (
    Accepts,
    Algorithm,
    Context,
    Data,
    Each,
    Fit,
    FittedLearner,
    Labels,
    Matrix,
    Params,
    Progress,
    Task,
    Vector,
    in_turn,
)
from app.ml.contract.columns import ColumnKind
from app.ml.contract.difficulty_stages import Curriculum
from app.ml.contract.labels import Class, codes_of
from app.ml.contract.relations import Relations
from app.ml.contract.stage_clock import timed
from app.ml.contract.traits import BEYOND_COLUMNS
from app.ml.evaluation.group_splits import among, read_groups
from app.ml.evaluation.splits import Split, holdout, kfold
from app.ml.evaluation.time_splits import TimeOrder, expanding, latest, read_times
from app.ml.numerics.scaling import Spread
from app.ml.preparation.arrow_columns import Raw
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.request import Preprocessing
from app.ml.preparation.target import Classes, Target, read_classes, read_target, read_weights
from app.ml.preparation.target_encoding import Outcome
from app.ml.preparation.target_transform import carried, check_domain, transformed, turned_back, with_bias
from app.ml.preparation.text_columns import with_texts
from app.ml.training.planning.class_weights import ClassWeight, weighted
from app.ml.training.planning.difficulty import read_curriculum
from app.ml.training.planning.items import read_items
from app.ml.training.planning.plan import Plan
from app.ml.training.planning.start import Start
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.item_preparation import item_preparation
from app.ml.training.rows.matrix_form import matrix_of
from app.ml.training.rows.related_rows import read_relations
from app.ml.training.rows.unlabelled_rows import as_unlabelled, with_hidden


class TrainingSet(NamedTuple):
    """Rows are counted among those that have a target; of an unsupervised task, all."""

    task: Task
    algorithm: Algorithm[Any, Any]
    params: Params
    preprocessing: Preprocessing
    raw: Raw
    target: Target
    weights: Vector | None
    errors_known: bool
    """Weights are 1/σ² of errors known in the target's units."""
    numbers: Labels
    """(rows,) where each of them is in the dataset."""
    without_target: Labels
    """Rows of the table that lack the target, ascending."""
    groups: Labels | None
    """(rows,) codes of the groups that splits keep together."""
    times: TimeOrder | None = None
    """(rows,) the order of time in which splits keep them."""
    items: NDArray[np.str_] | None = None
    """(n,) names of all rows of the table."""
    relations: Relations | None = None
    """Between all rows of the table."""
    class_weight: ClassWeight | None = None
    curriculum: Curriculum | None = None
    """Stages of the rows."""
    reference: Classes | None = None
    """Classes of the rows that clusters are compared with; no fit sees them."""
    start: Start | None = None
    """The version that every fit starts from."""
    each: Each = in_turn
    """Makes fits of these rows, or parts of one, perhaps at once."""

    @classmethod
    @timed("reading")
    def read(cls, planned: Plan, table: pa.Table, each: Each = in_turn) -> "TrainingSet":
        """Raises InvalidData for values that cannot be used, naming them."""
        spec = planned.spec
        algorithm = find(spec.algorithm.name).algorithm
        kind = algorithm.target(planned.task)
        if planned.target is None or kind is None:
            target = Target(np.arange(table.num_rows), np.zeros(0), None)
        else:
            target = read_target(table.column(planned.target), planned.target, kind)
        if planned.task.of_numbers:
            check_domain(spec.preprocessing.target, target.y, target.rows, str(spec.target))
        weigh, exponent = (spec.weights, 1) if spec.sigma is None else (spec.sigma, -2)
        weights = None if weigh is None else read_weights(table.column(weigh), weigh, target.rows, exponent=exponent)
        raw = Raw.read(table, planned.inputs) if planned.projection is None else planned.projection.raw(table)
        items = None if spec.item is None or planned.batch_rows else read_items(table, spec.item)
        return cls(
            task=planned.task,
            algorithm=algorithm,
            params=spec.params_of(algorithm),
            preprocessing=spec.preprocessing,
            raw=raw,
            target=target,
            weights=weights,
            errors_known=spec.sigma is not None,
            numbers=target.rows,
            without_target=np.setdiff1d(np.arange(table.num_rows), target.rows, assume_unique=True),
            groups=None if (group := spec.validation.group) is None else read_groups(table, group, target.rows),
            times=None if (time := spec.validation.time) is None else read_times(table, time, target.rows),
            items=items,
            relations=read_relations(spec, raw, items, planned.related),
            class_weight=spec.class_weight,
            curriculum=read_curriculum(table, spec, target.rows),
            reference=None if (name := planned.reference) is None else read_classes(table.column(name), name),
            start=planned.start,
            each=each,
        )

    def of(self, spec: TrainSpec) -> "TrainingSet":
        """The same columns of the same rows for another algorithm and preparation. Raises InvalidData as `read`."""
        if self.task.of_numbers:
            check_domain(spec.preprocessing.target, self.target.y, self.target.rows, str(spec.target))
        algorithm = find(spec.algorithm.name).algorithm
        return self._replace(algorithm=algorithm, params=spec.params_of(algorithm), preprocessing=spec.preprocessing)

    @property
    def rows(self) -> int:
        return self.target.rows.size

    @property
    def classes(self) -> tuple[Class, ...]:
        return self.target.classes or ()

    @property
    def strata(self) -> Labels | None:
        """(rows,) classes that splits keep in proportion; None: there are none to predict."""
        return self.target.codes if self.task.of_classes else None

    def holdout(self, fraction: float, rng: np.random.Generator) -> Split:
        """Training and test rows, as the request wants them split."""
        if self.times is None:
            return holdout(self.rows, fraction, rng, self.strata, self.groups)
        test = latest(self.times.codes, fraction)
        return Split(np.setdiff1d(np.arange(self.rows), test), test)

    def folds(self, rows: Labels, count: int, rng: np.random.Generator) -> list[Split]:
        """Folds of these rows: places among them."""
        if self.times is not None:
            return [Split(*fold) for fold in expanding(self.times.take(rows), count)]
        strata = None if self.strata is None else self.strata[rows]
        return kfold(rows.size, count, rng, strata, self.groups_among(rows))

    def groups_among(self, rows: Labels) -> Labels | None:
        """Group codes of these rows, from 0 without gaps."""
        return among(self.groups, rows)

    def reference_of(self, rows: Labels) -> Classes | None:
        """Classes that the clusters of these rows are compared with; None: there are none."""
        return None if self.reference is None else self.reference.take(rows)

    @property
    def left_alone(self) -> frozenset[Accepts]:
        """Inputs of the table that preparation leaves unchanged for the algorithm."""
        there = {
            Accepts.MISSING: bool(np.isnan(self.raw.values).any()),
            Accepts.CATEGORIES: any(column.kind is ColumnKind.CATEGORICAL for column in self.raw.columns),
            Accepts.UNLABELLED: bool(self.without_target.size),
            Accepts.SPARSE: bool(self.preprocessing.text),
        }
        return frozenset(kind for kind in self.accepted if there[kind])

    @property
    def accepted(self) -> frozenset[Accepts]:
        """Inputs that the algorithm accepts, with all learners within it."""
        accepted = nested.accepts(self.algorithm, self.params, self.task)
        gaps = {Accepts.MISSING} if self.is_square and Accepts.UNKNOWN_PAIRS in accepted else set[Accepts]()
        return accepted - BEYOND_COLUMNS | gaps

    @property
    def unlabelled(self) -> Labels:
        """Rows of the table without a target that fits learn from; none if the algorithm has no use for them."""
        return self.without_target if Accepts.UNLABELLED in self.accepted else self.without_target[:0]

    def beside(self, rows: Labels) -> Labels:
        """Rows of the table that a fit of these learns from without a target; of items also those that are held out."""
        hides = self.by_item and Accepts.UNLABELLED in self.accepted
        return with_hidden(self.unlabelled, self.target.rows, self.target.rows[rows]) if hides else self.unlabelled

    @property
    def by_item(self) -> bool:
        """True if rows are items of which nothing but edges is known."""
        return self.relations is not None and self.relations.by_item

    @timed("preparing")
    def prepare(self, rows: Labels, spreads: Mapping[str, Spread] | None = None) -> Preparation:
        """Learned from these rows and the unlabelled ones; if categories become means of the target, from these.
        spreads: by name, moments of columns of all rows, where these are a sample.
        """
        labelled = self.target.rows[rows]
        centred = not nested.through_origin(self.algorithm, self.params, self.task)
        how, outcome = self.preprocessing, None
        if how.categories == "target":
            y = self.target.y[rows]
            outcome = Outcome.of(carried(how.target, y) if self.task.of_numbers else y, self.classes)
        elif (unlabelled := self.beside(rows)).size:
            labelled = np.concatenate([labelled, unlabelled])
        raw = self.raw.named([self.raw.columns[row].name for row in labelled]) if self.is_square else self.raw
        if self.by_item:
            return item_preparation(raw, labelled)
        fit = partial(Preparation.fit, rows=labelled, how=how, accepts=self.accepted, centred=centred)
        if how.text:
            return with_texts(raw, labelled, how.text, fit, counts=self.algorithm.counts(self.params))
        return fit(raw, outcome=outcome, spreads=spreads or {})

    def raw_matrix(self, preparation: Preparation, rows: Labels) -> Matrix:
        """The raw matrix of these rows, in the codes of the preparation."""
        return preparation.raw_of(self._raw_of(preparation), self.target.rows[rows])

    def training_data(self, preparation: Preparation, rows: Labels) -> Data:
        """These rows, at least one, and the unlabelled ones, as a fit gets them."""
        data = self.data(preparation, rows)
        if not (unlabelled := self.beside(rows)).size:
            return data
        labelled, x = self.target.rows[rows], self._matrix(preparation, unlabelled)
        return replace(data, unlabelled=as_unlabelled(x, unlabelled, labelled, self.relations, len(self.raw.values)))

    def _matrix(self, preparation: Preparation, table_rows: Labels) -> Matrix:
        learner = self.algorithm, self.params, len(self.classes)
        return matrix_of(learner, preparation, self._raw_of(preparation), table_rows)

    @property
    def is_square(self) -> bool:
        """True if the table has a column for every row; fits then learn from the columns of their own rows."""
        return self.relations is not None and self.relations.square is not None

    def _raw_of(self, preparation: Preparation) -> Raw:
        """With the columns of a preparation."""
        return self.raw.named([column.name for column in preparation.inputs]) if self.is_square else self.raw

    @timed("preparing")
    def data(self, preparation: Preparation, rows: Labels) -> Data:
        """These rows, at least one, as the algorithm gets them."""
        labelled = self.target.rows[rows]
        data = Data.of(
            self.task,
            self._matrix(preparation, labelled),
            self.target.y[rows] if self.target.y.size else None,
            classes=len(self.classes),
            weights=None if self.weights is None else self.weights[rows],
            levels=preparation.layout.levels,
            missing=preparation.keeps_missing,
            names=preparation.layout.names,
            words=preparation.words,
            labels=self.classes,
            indicated=preparation.indicated,
            categories=preparation.categories,
            offset=preparation.offset,
            numbers=self.numbers[rows],
            items=None if self.items is None else self.items[labelled],
            relations=self.relations and self.relations.take(labelled, len(self.raw.values)),
            target=self.algorithm.target(self.task) if self.target.y.size else None,
        )
        return data if self.curriculum is None else replace(data, curriculum=self.curriculum.take(rows))

    @timed("fitting")
    def fit(
        self,
        data: Data,
        seed: int,
        progress: Progress,
        streamed: Callable[[Context], Fit[Any]] | None = None,
        start: Any = None,
    ) -> tuple[Fit[Any], FittedLearner]:
        """data: in the target's own units, as are the predictions. streamed: fits all rows of a larger table instead.
        start: a state in the columns of the data, to start from; None: the fit starts anew.
        """
        how, context = self.preprocessing.target, nested.context(seed, progress, self.each)
        fit = self.first(start, self.turned(data), context) if streamed is None else streamed(context)
        learned = FittedLearner(turned_back(how, self.algorithm), self.params, fit.state)
        if how != "none":
            fit = with_bias(how, fit, data, learned.algorithm.predict(self.params, fit.state, data.x))
        return fit, learned

    def first(self, start: Any, data: Data, context: Context) -> Fit[Any]:
        """A fit of these rows, turned before, from this state of another one if there is one."""
        warm = self.algorithm.warm_start
        if start is None or warm is None:
            return self.algorithm.fit(self.params, data, context)
        return warm.fit(self.params, start, data, context)

    def update(self, state: Any, data: Data, seed: int) -> Fit[Any]:
        """These rows as one more batch, of an algorithm that learns so. data: in the target's own units."""
        assert self.algorithm.update is not None  # noqa: S101 - the request was checked
        return self.algorithm.update(self.params, state, self.turned(data), nested.context(seed, each=self.each))

    def turned(self, data: Data) -> Data:
        """The rows as the algorithm is fitted to them: classes weighted, the target transformed."""
        return transformed(self.preprocessing.target, weighted(self.class_weight, data), errors_known=self.errors_known)

    def coded_as(self, classes: tuple[Class, ...] | None) -> "TrainingSet":
        """With the class codes of these classes, among which are all of the target."""
        if self.target.codes is None or classes is None:
            return self
        places = codes_of(self.classes, classes)[self.target.codes]
        return self._replace(target=Target(self.target.rows, places.astype(np.float64), classes))
