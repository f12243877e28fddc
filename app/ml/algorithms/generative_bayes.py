r"""Generative classifier: how each class makes its rows, turned round by Bayes' rule.

P(c | x) = p(x | c) P(c) / Σ p(x | c′) P(c′): the density p of each class is learned from its rows alone, its prior P is
the share of its rows or given. The densities, from few numbers to many: independent normal columns; normal with one
covariance for all classes (linear discriminant analysis); normal with a covariance for each (quadratic); a histogram of
each column, which are taken as independent; a normal kernel about each row; of counts, as of the words of a text, the
multinomial distribution of things over the columns. Categories have a distribution of their own beside any of them, one
for each input. Everything is computed in logarithms.

Variances are of maximum likelihood: a row of weight w counts as w rows. Variances that the rows leave at zero do not
depend on units: what less than 1e-12 of the standardised variance of all rows lies in is no dimension
at all; where a class varies by less than 1e-9 of what all rows do, it takes the pooled variance of the classes, and
where that is no more, 1e-9 of the variance of all rows. Warnings report it. A class without rows has probability 0.
Where no class could have made a row (histograms without smoothing), the priors are the prediction.

In short: For each class it learns how its rows are spread, by one of six densities. Bayes' rule turns this round
into the probability of each class. Priors may be learned or given.

Use when: there are few rows, when priors differ between training and use, or when each class has a shape of its own.
Columns that repeat each other count twice under independence; take one covariance then.

A test finds 9 of 10 sick and 1 of 20 well. Of all people 1 in 100 is sick. Tested positive: 0.009/(0.009 + 0.0495).

>>> import numpy as np
>>> tested = np.r_[np.ones(9), 0, 1, np.zeros(19)]
>>> people = Data.of(Task.CLASSIFICATION, tested[:, None], np.repeat([1, 0], [10, 20]))
>>> params = GenerativeBayes(density="histogram", n_bins=2, smoothing=0, priors=[0.99, 0.01])
>>> predict(params, fit(params, people, Context.of(0)).state, np.array([[1.0]]))[0, 1].round(6)
np.float64(0.153846)

References: Fisher (1936), Ann. Eugenics 7:179; Friedman (1989), J. Amer. Statist. Assoc. 84:165; McCallum & Nigam
(1998), AAAI-98 Workshop on Learning for Text Categorization: 41; Hastie, Tibshirani & Friedman (2009), The Elements of
Statistical Learning, ch. 4 and 6; Battiti & Brunato, The LION Way, ch. 3.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Algorithm,
    ColumnUnits,
    Context,
    Data,
    Fit,
    Inputs,
    Matrix,
    Params,
    Task,
    Vector,
)
from app.ml.contract.sparse_rows import sparse
from app.ml.numerics.density.categorical import (
    Categoricals,
    categoricals,
    category_log_probabilities,
    without_categories,
)
from app.ml.numerics.density.class_columns import class_covariances, column_summaries
from app.ml.numerics.density.multinomial import (
    Multinomials,
    below_zero,
    column_shares,
    multinomial_log_densities,
    multinomials,
)
from app.ml.numerics.density.nonparametric import (
    Histograms,
    Kernels,
    histogram_log_densities,
    histograms,
    kernel_log_densities,
    kernels,
)
from app.ml.numerics.density.normal import (
    Normals,
    common_log_density,
    comparable_log_densities,
    full,
    linear_form,
    naive,
    relative_log_densities,
    shared,
)
from app.ml.numerics.density.poverty_warnings import poverty_warnings
from app.ml.numerics.linear_models.coefficient_errors import as_json, forms
from app.ml.numerics.linear_models.softmax import of_two
from app.ml.numerics.tensor_graphs.density_tensors import bayes_shares

BLOCK = 2**18
"""Numbers worked on at a time: with fewer, the calls for a block cost more than its rows."""
SPARSE_ROWS = 2**11
"""Rows worked on at a time where these are sparse."""
NO_PRIORS = "There are {} priors for {} classes."
Share = Annotated[float, Field(ge=0, le=1)]


class GenerativeBayes(Params):
    """A density for each class, and Bayes' rule."""

    density: Literal["naive_gaussian", "shared_covariance", "full_covariance", "histogram", "kernel", "multinomial"] = (
        Field(
            "naive_gaussian",
            description="Family of the density that is fitted to each class; `multinomial` is one of counts, such as "
            "those of the terms of texts.",
        )
    )
    priors: Literal["learned", "uniform"] | list[Share] = Field(
        "learned",
        description="Prior probabilities of the classes. learned (the default): their shares of the training rows; "
        "uniform: all alike; or a list of numbers from 0 to 1, one for each class, in the order of the classes.",
    )
    shrinkage: float = Field(
        0.0, ge=0, le=1, description="Share of the pooled variance in that of each class, normal densities only."
    )
    n_bins: int = Field(10, ge=1, le=1000, description="Number of bins of each histogram, over the range of all rows.")
    smoothing: float = Field(
        1.0,
        ge=0,
        le=1e6,
        description="Rows added to every bin of a histogram and to every category, or count added to each column in "
        "each class of `multinomial`.",
    )
    bandwidth: float = Field(1.0, ge=1e-6, le=1e3, description="Width of the kernels, as a multiple of Scott's rule.")


class State(NamedTuple):
    log_priors: Vector
    """(k,), −inf for a class without rows."""
    normals: Normals | None
    histograms: Histograms | None
    kernels: Kernels | None
    multinomials: Multinomials | None = None
    categories: Categoricals | None = None


def fit(params: GenerativeBayes, data: Data, context: Context) -> Fit[State]:
    log_priors, warnings = _priors(params, data)
    if params.density == "multinomial":
        density = multinomials(data, params.smoothing)
        return Fit(State(log_priors, None, None, None, density), warnings=warnings + below_zero(data))
    categories = categoricals(data, params.smoothing)
    if categories is not None:
        x = without_categories(categories, data.x)
        x.setflags(write=False)
        data = replace(data, x=x, indicated=0)
    state, others = _density(params, data, 0 if categories is None else categories.columns.size)
    return Fit(state._replace(log_priors=log_priors, categories=categories), warnings=warnings + others)


def _density(params: GenerativeBayes, data: Data, left_out: int) -> tuple[State, list[str]]:
    """With its warnings. left_out: number of columns that are no part of it, which have one value."""
    empty = State(np.zeros(0), None, None, None)
    if params.density == "histogram":
        return empty._replace(histograms=histograms(data, params.n_bins, params.smoothing)), []
    if params.density == "full_covariance":
        normals, poverty = full(data, params.shrinkage)
    elif params.density == "shared_covariance":
        normals, poverty = shared(data)
    else:
        normals, poverty = naive(data, params.shrinkage if params.density == "naive_gaussian" else 0.0)
    warnings = poverty_warnings(poverty, data, left_out)
    if params.density == "kernel":
        return empty._replace(kernels=kernels(data, normals, params.bandwidth)), warnings
    return empty._replace(normals=normals), warnings


def predict(params: GenerativeBayes, state: State, x: Matrix) -> Matrix:
    shares = np.empty((len(x), len(state.log_priors)))
    step = max(1, BLOCK // max(1, x.shape[1])) if state.multinomials is None else len(x)
    if sparse(x) is not None:
        step = SPARSE_ROWS
    two = len(state.log_priors) == 2 and np.isfinite(state.log_priors).all()
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        joint = _relative(state, x[block])
        joint += state.log_priors
        if two:
            shares[block] = of_two(joint[:, 1:] - joint[:, :1])
        else:
            joint -= joint.max(axis=1, keepdims=True)
            np.exp(joint, out=joint)
            np.divide(joint, joint.sum(axis=1, keepdims=True), out=shares[block])
    return shares


def explain(params: GenerativeBayes, state: State, x: Matrix) -> list[JSON]:
    """For each row the logarithms in Bayes' rule: of priors, densities by class, and of the density of all classes."""
    if state.categories is None:
        return _explained(state, _densities(state, x))
    numbers = without_categories(state.categories, x)
    return _explained(state, _densities(state, numbers) + category_log_probabilities(state.categories, x))


def _densities(state: State, x: Matrix) -> Matrix:
    """(n, k) log densities."""
    if state.normals is not None:
        common = common_log_density(state.normals, x)
        return np.asarray(relative_log_densities(state.normals, x) + common[:, None])
    return _free(state, x)


def _explained(state: State, densities: Matrix) -> list[JSON]:
    evidence = scipy.special.logsumexp(densities + state.log_priors, axis=1)
    return [
        {"log_priors": as_json(state.log_priors), "log_densities": as_json(each), "log_evidence": as_json(whole)}
        for each, whole in zip(densities, evidence, strict=True)
    ]


def summary(params: GenerativeBayes, state: State, units: ColumnUnits | None = None) -> JSON:
    priors = np.exp(state.log_priors).tolist()
    described: dict[str, JSON] = {"priors": priors, "classes": list(range(len(priors)))}
    if (normals := state.normals) is not None:
        whole = normals.turn is not None
        described["rank"] = int(normals.means.shape[1] if whole else np.isfinite(normals.scale).sum())
        if normals.inner is None:
            coef, constants = linear_form(normals)
            if state.categories is not None:
                coef[state.categories.columns] += state.categories.weights
                constants = constants + state.categories.constants
            described |= forms(coef.T, constants + state.log_priors, units)
        if (covariances := class_covariances(normals, units)) is not None:
            described["covariance" if normals.inner is None else "covariances"] = covariances
    if state.kernels is not None:
        described["kernels"] = len(state.kernels.rows)
    if state.multinomials is not None:
        return described | {"columns": column_shares(state.multinomials)}
    density = state.normals or state.histograms or state.kernels
    return described | {"columns": column_summaries(density, units) if density else None}


def terms(_params: GenerativeBayes, state: State) -> Matrix | None:
    """(d, k) logarithm of the share of a column in a class, less that of all classes alike."""
    if state.multinomials is None:
        return None
    log_shares = state.multinomials.log_shares
    return np.asarray((log_shares - log_shares.mean(axis=0)).T)


def _relative(state: State, x: Matrix) -> Matrix:
    """(n, k) log densities, less what all classes of a row have in common.

    Rows that no class could have made get the same density from all.
    """
    if state.categories is not None:
        numbers = _relative(state._replace(categories=None), without_categories(state.categories, x))
        return np.asarray(numbers + category_log_probabilities(state.categories, x))
    if state.normals is not None:
        return comparable_log_densities(state.normals, x)
    scores = _free(state, x)
    scores[_impossible(state, scores)] = 0.0
    return scores


def _free(state: State, x: Matrix) -> Matrix:
    """(n, k) log densities without a family."""
    if state.histograms is not None:
        return histogram_log_densities(state.histograms, x)
    if state.multinomials is not None:
        return multinomial_log_densities(state.multinomials, x)
    return kernel_log_densities(state.kernels, x) if state.kernels is not None else np.zeros((len(x), 0))


def _impossible(state: State, densities: Matrix) -> NDArray[np.bool_]:
    """(n,): rows that no class could have made, of those that have rows."""
    return np.asarray(np.isneginf(densities[:, np.isfinite(state.log_priors)]).all(axis=1))


def faults(params: GenerativeBayes, inputs: Inputs) -> Iterator[Fault]:
    """Priors that are not one for each class, and texts for another density than that of counts."""
    k = inputs.size.classes
    if isinstance(params.priors, list) and k and len(params.priors) != k:
        yield Fault("/priors", NO_PRIORS.format(len(params.priors), k), "wrong_length")
    if params.density != "multinomial" and inputs.texts:
        yield Fault("/density", "Only the multinomial density is one of the terms of texts: take it.", "wrong_kind")


def _priors(params: GenerativeBayes, data: Data) -> tuple[Vector, list[str]]:
    mass = data.weights @ data.targets
    k, present = len(mass), mass > 0
    if isinstance(params.priors, list) and len(params.priors) != k:
        raise InvalidData(NO_PRIORS.format(len(params.priors), k))
    wanted = mass if params.priors == "learned" else np.ones(k) if params.priors == "uniform" else params.priors
    shares = np.where(present, np.asarray(wanted, np.float64), 0.0)
    lost = [] if isinstance(params.priors, str) else np.flatnonzero((np.array(params.priors) > 0) & ~present).tolist()
    if not shares.any():
        raise InvalidData("Every class that has rows has prior 0.")
    with np.errstate(divide="ignore"):
        log_priors = np.log(shares / shares.sum())
    warning = f"No rows, hence probability 0 in spite of a prior: classes {data.called(lost)}."
    return log_priors, [warning] if lost else []


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=GenerativeBayes,
    state=State,
    accepts={Accepts.SPARSE},
    generative=True,
    counts=lambda params: params.density == "multinomial",
    terms=terms,
    fit=fit,
    predict=predict,
    graph=bayes_shares,
    seconds=lambda _, size: size.cells * (1e-8 + 1e-10 * size.columns) * max(1, size.classes),
    explain=explain,
    summary=summary,
    in_units=summary,
    faults=faults,
)
