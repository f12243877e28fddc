"""The report of a training, as it is stored and sent: metrics with error bars, curves, warnings."""

from typing import Any, Literal

from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.stage_clock import StageSeconds
from app.ml.contract.task import DESCRIPTION as TASK
from app.ml.evaluation.baselines import Baseline
from app.ml.evaluation.cluster_profiles import ClusterProfiles
from app.ml.evaluation.confusion_matrix import ConfusionMatrix
from app.ml.evaluation.guarantees import Guarantees
from app.ml.evaluation.ranked_terms import RankedTerms
from app.ml.evaluation.reliability_curve import ClassReliability
from app.ml.evaluation.residuals import Residuals
from app.ml.evaluation.row_sample import RowSample
from app.ml.preparation.restoring import RestoredRow
from app.ml.statistics.metric_value import Metric


class Gap(Wire):
    """Training beside test: a large gap means overfitting."""

    name: str = Field(description="Name of the metric.")
    average: Literal["macro"] | None = Field(
        None, description="Average over classes, as in the metrics: `macro`, or null."
    )
    train: float | None = Field(description="Value on the training rows; null where undefined.")
    test: float | None = Field(description="Value on the test rows; null where undefined.")
    gap: float | None = Field(
        description="Difference by which the test metric is worse than the training metric; negative when it is better."
    )


class RejectionCurve(Wire):
    """Effect of rejecting uncertain rows: a row is accepted where its largest probability is at least the threshold."""

    thresholds: list[float] = Field(description="Thresholds, in ascending order.")
    rejected: list[float] = Field(description="The share of rows that is not accepted.")
    accuracy: list[float | None] = Field(
        description="Accuracy of the accepted rows for each threshold; null where there is none."
    )
    lower: list[float | None] = Field(
        description="Lower end of the interval of each accuracy; null where no row is accepted."
    )
    upper: list[float | None] = Field(
        description="Upper end of the interval of each accuracy; null where no row is accepted."
    )
    confidence: float = Field(0.95, description="Confidence level of the intervals, from 0 to 1.")
    interval: str | None = Field(None, description="Method of the bounds, as in a metric.")
    display: list[str] = Field(description="The accuracies rounded to their error bars, for people.")


class Reuse(Wire):
    """Rows that were evaluated, and how often."""

    data_digest: str = Field(description="SHA-256 of the dataset.")
    rows: str = Field(description="Name of the part of the dataset's rows.")
    uses: int | None = Field(
        None,
        description="Number of evaluations on these rows, with this one. The more, the more optimistic the metrics.",
    )


class Duplicates(Wire):
    """Evaluated rows that equal a training row in all features and the target."""

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
    """Fold of a cross-validation."""

    fold: int = Field(description="Number of the fold, from 1.")
    rows: int = Field(description="Number of rows that were predicted in the fold.")
    metrics: list[Metric] = Field(description="Metrics of the fold.")


class ReportCurve(Wire):
    """Curve of a report."""

    name: str = Field(description="Name of the curve.")
    x: list[float] | None = Field(None, description="Horizontal values.")
    y: list[float] = Field(description="Vertical values.")


class UnscaledSummary(Wire):
    """The same fit in the table's own units. Powers in a linear model are those of the values themselves."""

    columns: list[str] = Field(description="Names of the columns, in the order of the coefficients.")
    summary: Any = Field(
        description="Summary as in the report, with coefficients, means, variances and curves in the table's own units."
    )


class Jitter(Wire):
    """Fits of inputs to which noise was added."""

    noise: float = Field(description="Its standard deviation, as a share of that of each column but 0/1 ones.")
    refits: int = Field(description="Number of refits on slightly changed data.")
    spread: list[float] = Field(description="Standard deviation of each coefficient over these fits.")
    amplification: float | None = Field(
        description="Relative change of the coefficients over that of the inputs; about 1 or less is stable."
    )


class Conditioning(Wire):
    """Condition of the matrix that the algorithm saw, each column less its mean where there is an intercept."""

    condition_number: float | None = Field(
        description="Ratio of the largest to the smallest singular value; null: infinite, since columns "
        "depend on each other."
    )
    scaled_condition_number: float | None = Field(
        description="Condition number with columns of unit length: units play no part."
    )
    rank: int = Field(description="Numerical rank of the matrix.")
    variance_inflation: list[float | None] = Field(
        description="Factor for each column by which its dependence on the others multiplies the variance of "
        "its coefficient. Null for columns that others determine, and for constant ones."
    )
    jitter: Jitter | None = Field(
        None,
        description="Spread of the coefficients under small changes of the data; null where it was not "
        "computed: it is for regressions of moderate size.",
    )


class Springs(Wire):
    """The training rows as springs that pull a linear fit up or down, in the units it was made in."""

    energy: float = Field(description="Half the sum of strength · length² over all rows: half of χ².")
    force: float = Field(description="The sum of strength · length over all rows: 0 at rest, if there is an intercept.")
    torques: list[float] = Field(
        description="Sum of strength · length · value for each of `columns`: 0 at rest, else what a penalty holds."
    )
    at_rest: bool = Field(description="True where nothing but the springs pulls: the fit is that of least squares.")
    rows: list[int] = Field(description="Some of the rows in the dataset, from 0; the lists below are of these.")
    strengths: list[float] = Field(description="Their weights: 1/σ² where errors are known.")
    fitted: list[float] = Field(description="Point at which the spring holds the fit.")
    observed: list[float] = Field(description="Point to which it pulls.")
    energies: list[float] = Field(description="Energy of each spring of a coefficient.")


class CoverageByPrediction(Wire):
    """A fifth of the rows, by predicted value."""

    rows: int = Field(description="Number of rows.")
    lowest_prediction: float = Field(description="Smallest prediction of these rows, in the target's unit.")
    highest_prediction: float = Field(description="Largest prediction of these rows, in the target's unit.")
    coverage: Metric = Field(description="Share of these rows whose target lies within its interval.")
    mean_width: float | None = Field(description="Mean width in the target's unit. Null: some interval is not bounded.")


class IntervalReport(Wire):
    """Prediction intervals of a regression, measured on rows with a known target."""

    interval: str = Field(
        description="Method of the intervals, as in a prediction: algorithm, split-conformal, cv-plus or "
        "cross-validation."
    )
    guarantee: str = Field(description="One sentence on what the intervals promise, and under which condition.")
    confidence: float = Field(description="Share of new targets that the intervals are to cover.")
    target_minimum: float | None = Field(description="Intervals do not go below it. Null: no limit.")
    target_maximum: float | None = Field(description="Intervals do not go above it. Null: no limit.")
    coverage: Metric = Field(
        description="Share of the rows whose target lies within its interval. On the rows held out in training, which "
        "set the widths of split-conformal intervals, it is near the confidence by construction."
    )
    fifths: list[CoverageByPrediction] = Field(
        description="Coverage by fifths of the predictions, smallest first; empty for fewer than 50 rows."
    )


class Report(Wire):
    """Everything learned at fit time."""

    task: str = Field(description=TASK)
    evidence: str = Field(description="Evidence behind the metrics: one sentence with rows, folds and seed.")
    rows_train: int = Field(description="Number of training rows.")
    rows_test: int = Field(description="Number of test rows.")
    rows_unlabelled: int = Field(
        0, description="Number of rows without a target that the fit learned from, besides `rows_train`; 0: none."
    )
    seed: int = Field(description="Seed of splits, draws and fit.")
    test: list[Metric] = Field(description="Metrics on held-out rows, which were used once.")
    train: list[Metric] = Field(description="Metrics on the training rows, which promise nothing for new rows.")
    baselines: list[Baseline] = Field(
        [], description="Constant predictions on the test rows; empty without these, and for tasks without a target."
    )
    gaps: list[Gap] = Field([], description="Training beside test metrics.")
    stability: Metric | None = Field(
        None,
        description="Agreement of the clusters that fits of two random halves of the training rows give the same rows, "
        "as the mean adjusted Rand index of repeated halvings: 1 where they are always the same, about 0 where chance "
        "alone makes them so. Null for other tasks, and for models of items, which predict no rows of another fit.",
    )
    cross_validation: list[Metric] | None = Field(
        None,
        description="Metrics of cross-validation, all of whose rows are training rows: means over "
        "folds or resamples, or metrics of all rows predicted one by one.",
    )
    bootstrap_632: list[Metric] | None = Field(
        None,
        description="The .632 estimate: 0.632 times the metric of the rows left out of resamples plus 0.368 "
        "times that of the training rows.",
    )
    folds: list[Fold] | None = Field(None, description="Metrics of each fold; null: no cross-validation.")
    prototypes: list[RestoredRow] | None = Field(
        None,
        description="Rows that stand for the clusters, such as their centres, in the units and categories of the "
        "table: the first 200; `decode` has all. Null for other tasks.",
    )
    confusion_matrix: ConfusionMatrix | None = Field(
        None, description="Counts of rows by true and predicted class; null where there are no classes."
    )
    rejection: RejectionCurve | None = Field(
        None, description="Accuracy of the accepted rows for each threshold; null where there are no probabilities."
    )
    reliability: list[ClassReliability] | None = Field(
        None,
        description="Reliability curves on the test rows: of the second of two classes, or of each of more against the "
        "rest; a training has those of its ten most frequent classes. Null where there are no probabilities, or no row "
        "was held out.",
    )
    row_sample: RowSample | None = Field(
        None,
        description="Values of single training rows behind the plots of rows. Null for tasks with a target of their "
        "own, for models of items, and for models of earlier releases.",
    )
    cluster_profiles: ClusterProfiles | None = Field(
        None,
        description="Means and quartiles of the numeric columns in each cluster. Null for other tasks, and without "
        "such columns.",
    )
    reuse: Reuse | None = Field(None, description="Reuse of the held-out rows; null: no row was held out.")
    guarantees: Guarantees | None = Field(
        None,
        description="Upper bounds of the error rate on new rows, each with its premises. Null: no classification, or a "
        "model of an earlier release or without a training of its own, as a committee.",
    )
    duplicates: Duplicates | None = Field(
        None, description="Equal rows on both sides of the splits. Null: not counted, as in models of earlier releases."
    )
    residuals: list[Residuals] = Field(
        [], description="Residuals of a regression on the training and on the test rows."
    )
    intervals: IntervalReport | None = Field(
        None,
        description="Coverage of 95 % prediction intervals on the rows held out. Null: no regression, no row held out, "
        "or no interval of new targets.",
    )
    curves: list[ReportCurve] = Field([], description="Curves of the model, such as ROC and training curves.")
    conditioning: Conditioning | None = Field(
        None, description="Condition of the fit of models with a coefficient for each column; null for others."
    )
    springs: Springs | None = Field(
        None, description="Forces of a regression with a coefficient for each column; null for other models."
    )
    stages: StageSeconds | None = Field(
        None,
        description="Seconds of each stage of the job that made the version; `storing` until this report was written. "
        "Null: no job made it, or one of an earlier release.",
    )
    cores: int | None = Field(
        None, description="Largest number of processor cores that computed for it at once; null as `stages`."
    )
    converged: bool = Field(description="True where the fit converged.")
    iterations: int = Field(description="Number of iterations or rounds of the fit.")
    columns: list[str] = Field(
        [],
        description="Names of the columns of the matrix that the algorithm saw, in the order of its coefficients, "
        "without those of the terms of texts.",
    )
    offsets: list[float] = Field([], description="Offset of each of these columns, in the table's own units.")
    scales: list[float] = Field(
        [],
        description="The algorithm saw (value - offset) / scale; a coefficient in the table's own units is "
        "coefficient / scale.",
    )
    imputed: dict[str, Any] = Field(
        {},
        description="Value that stands for a missing one of each input: a number (of a boolean the share of true), a "
        "date or a category; `(missing)`: a level of its own. Null: the algorithm takes missing values as they are, or "
        "the parts of a date are imputed instead, or a category is unseen where it is missing, as no training row was.",
    )
    summary: Any = Field(
        None,
        description="Summary by the algorithm, such as coefficients or importances; a `column`, its "
        "categories and classes by name.",
    )
    terms: list[RankedTerms] | None = Field(
        None,
        description="Terms of texts with the largest weights; a model of texts has no `summary`, as the weights of all "
        "terms are too many. Null: it learns from no texts, or has no weights of columns.",
    )
    unscaled: UnscaledSummary | None = Field(
        None,
        description="Summary in the table's own units, of models that report coefficients, means or curves of columns; "
        "null for others.",
    )
    warnings: list[str] = Field(
        [], description="Sentences on what a careful reader should know; empty where there is none."
    )
