"""What is learned at fit time, in the form it is told: figures with error bars, curves, warnings."""

from typing import Any, Literal

from pydantic import Field

from app.ml.contract.labels import Label
from app.ml.evaluation.residuals import Residuals
from app.ml.statistics.figures import Figure
from app.wire import Wire


class Gap(Wire):
    """Training beside test: a large gap means overfitting."""

    name: str
    average: Literal["macro"] | None = Field(
        None, description="Average over classes, as in the metrics: `macro`, or null."
    )
    train: float | None
    test: float | None
    gap: float | None = Field(
        description="Difference by which the test metric is worse than the training metric; negative when it is better."
    )


class ConfusionCell(Wire):
    """Some of the rows behind one count."""

    truth: int = Field(description="Index of the true class.")
    assigned: int
    count: int
    rows: list[int] = Field(description="Row numbers counted from 0: the first of them.")


class ConfusionMatrix(Wire):
    """Rows are the true classes, columns the assigned ones."""

    classes: list[Label]
    counts: list[list[int]]
    cells: list[ConfusionCell] | None = Field(None, description="Example rows, where requested: mistakes before hits.")


class RejectionCurve(Wire):
    """What rejecting doubtful rows would leave: a row is accepted when its largest probability is above a threshold."""

    thresholds: list[float]
    rejected: list[float] = Field(description="The share of rows that is not accepted.")
    accuracy: list[float | None] = Field(description="Of the accepted rows; null where there is none.")
    lower: list[float | None]
    upper: list[float | None]
    confidence: float = 0.95
    interval: str | None = Field(None, description="Method of the bounds, as in a metric.")
    display: list[str] = Field(description="The accuracies rounded to their error bars, for people.")


class Reuse(Wire):
    """Which rows judged, and how often they have."""

    data_digest: str
    rows: str = Field(description="Which of the dataset's rows.")
    uses: int | None = Field(
        None, description="Judgements that rested on these rows, this one included: the more, the more optimistic."
    )


class Duplicates(Wire):
    """Rows that judged a fit which had learned from an equal row: the same values in all features and the target."""

    test_rows: int = Field(description="Test rows that equal a training row in all columns used.")
    expected_test_rows: float = Field(
        description="The part of `test_rows` that chance explains, if the columns were independent of each other: "
        "large where columns have few different values."
    )
    validation_share: float | None = Field(
        None,
        description="Share, from 0 to 1, of the rows evaluated in cross-validation that equal a training "
        "row of the fit. Null: no cross-validation.",
    )
    expected_validation_share: float | None = Field(
        None, description="The part of `validation_share` that chance explains. Null: no cross-validation."
    )


class Fold(Wire):
    fold: int
    rows: int
    metrics: list[Figure]


class ReportCurve(Wire):
    name: str
    x: list[float] | None = None
    y: list[float]


class UnscaledSummary(Wire):
    """The same fit in the table's own units: powers are those of the values themselves."""

    columns: list[str]
    summary: Any = Field(description="As `summary`, with a coefficient for each of these columns.")


class Jitter(Wire):
    """Fits of inputs to which noise was added."""

    noise: float = Field(description="Its standard deviation, as a share of that of each column but 0/1 ones.")
    refits: int
    spread: list[float] = Field(description="Standard deviation of each coefficient over these fits.")
    amplification: float | None = Field(
        description="Relative change of the coefficients over that of the inputs; about 1 or less is stable."
    )


class Conditioning(Wire):
    """Of the matrix the algorithm saw, each column less its mean where there is an intercept."""

    condition_number: float | None = Field(description="Null: infinite, for columns that depend on each other.")
    scaled_condition_number: float | None = Field(description="With columns of unit length: units play no part.")
    rank: int
    variance_inflation: list[float | None] = Field(
        description="For each column: by how much its dependence on the others multiplies the variance of its "
        "coefficient. Null for columns that others make up, and for constant ones."
    )
    jitter: Jitter | None = Field(None, description="Of regressions on data that are not too large.")


class Springs(Wire):
    """The training rows as springs that pull a linear fit up or down, in the units it was made in."""

    energy: float = Field(description="Half the sum of strength · length² over all rows: half of χ².")
    force: float = Field(description="The sum of strength · length over all rows: 0 at rest, if there is an intercept.")
    torques: list[float] = Field(
        description="For each of `columns`, the sum of strength · length · value: 0 at rest, else what a penalty holds."
    )
    at_rest: bool = Field(description="Whether nothing but the springs pulls: the fit is that of least squares.")
    rows: list[int] = Field(description="Some of the rows in the dataset, from 0; the lists below are of these.")
    strengths: list[float] = Field(description="Their weights: 1/σ² where errors are known.")
    fitted: list[float] = Field(description="Where the spring holds the fit.")
    observed: list[float] = Field(description="Where it pulls to.")
    energies: list[float]


class CoverageByPrediction(Wire):
    """A fifth of the rows, by predicted value."""

    rows: int = Field(description="Number of rows.")
    lowest_prediction: float = Field(description="Smallest prediction of these rows, in the target's unit.")
    highest_prediction: float = Field(description="Largest prediction of these rows, in the target's unit.")
    coverage: Figure = Field(description="Share of these rows whose target lies within its interval.")
    mean_width: float | None = Field(description="Mean width in the target's unit. Null: some interval is not bounded.")


class IntervalReport(Wire):
    """Prediction intervals of a regression, measured on rows with a known target."""

    interval: str = Field(
        description="How the intervals were found, as in a prediction: algorithm, split-conformal or cross-validation."
    )
    guarantee: str = Field(description="One sentence on what the intervals promise, and under which condition.")
    confidence: float = Field(description="Share of new targets that the intervals are to cover.")
    target_minimum: float | None = Field(description="Intervals do not go below it. Null: no limit.")
    target_maximum: float | None = Field(description="Intervals do not go above it. Null: no limit.")
    coverage: Figure = Field(
        description="Share of the rows whose target lies within its interval. On the rows held out in training, which "
        "set the widths of split-conformal intervals, it is near the confidence by construction."
    )
    fifths: list[CoverageByPrediction] = Field(
        description="Coverage by fifths of the predictions, smallest first; empty for fewer than 50 rows."
    )


class Report(Wire):
    """Everything learned at fit time."""

    task: str
    rests_on: str = Field(description="One sentence: rows, folds, seed.")
    rows_train: int
    rows_test: int
    seed: int
    test: list[Figure] = Field(description="On held-out rows, looked at once.")
    train: list[Figure] = Field(description="On the training rows: never a promise.")
    gaps: list[Gap] = []
    cross_validation: list[Figure] | None = Field(
        None,
        description="Metrics of cross-validation, all of whose rows are training rows: means over "
        "folds or resamples, or metrics of all rows predicted one by one.",
    )
    bootstrap_632: list[Figure] | None = Field(
        None,
        description="The .632 estimate: 0.632 times the metric of the rows left out of resamples plus 0.368 "
        "times that of the training rows.",
    )
    folds: list[Fold] | None = None
    confusion_matrix: ConfusionMatrix | None = None
    rejection: RejectionCurve | None = None
    reuse: Reuse | None = Field(None, description="Of the held-out rows.")
    duplicates: Duplicates | None = Field(
        None, description="Equal rows on both sides of the splits. Null: not counted, as in models of earlier releases."
    )
    residuals: list[Residuals] = Field([], description="Of a regression: on the training and on the test rows.")
    intervals: IntervalReport | None = Field(
        None,
        description="Coverage of 95 % prediction intervals on the rows held out. Null: no regression, no row held out, "
        "or no interval of new targets.",
    )
    curves: list[ReportCurve] = []
    conditioning: Conditioning | None = Field(None, description="Of models with a coefficient for each column.")
    springs: Springs | None = Field(None, description="Of regressions with a coefficient for each column.")
    converged: bool
    iterations: int
    columns: list[str] = Field([], description="Of the matrix the algorithm saw, in the order its coefficients have.")
    offsets: list[float] = Field([], description="Of each of these columns, in the table's own units.")
    scales: list[float] = Field(
        [],
        description="The algorithm saw (value - offset) / scale; a coefficient in the table's own units is "
        "coefficient / scale.",
    )
    summary: Any = Field(
        None, description="What the algorithm has to say for itself; a `column`, its categories and classes by name."
    )
    unscaled: UnscaledSummary | None = Field(None, description="Of linear models: the same in the table's own units.")
    warnings: list[str] = []
