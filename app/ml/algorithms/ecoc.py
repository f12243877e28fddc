r"""Error-correcting output codes: many two-class learners, of which a few may be wrong about a row.

Each class has a codeword of L bits, and each bit a learner of two classes: those with a 1 there against the others. For
a row the L learners give a word, and the class whose codeword is nearest has it. If any two codewords differ in at
least d bits, ⌊(d − 1)/2⌋ wrong bits are corrected. By Hamming distance the nearest classes share the probability
equally; by likelihood a class has the product of the bits' probabilities, taken for independent. One against all they
are not, and probabilities too sure: by shares each class has that of its own bit, divided by their sum.

Codes: exhaustive, all 2^{k−1} − 1 ways to divide k classes in two (d = 2^{k−2}, for k up to 10); random, the best
of some draws; one_vs_all (d = 2, which corrects nothing); or given, a list of bits for each class in the order of the
class labels. Columns that are constant, equal or complementary add nothing and are refused.

On 120 rows of the benchmark table `wide.yes`, of many columns, the error is 0.327, that of scikit-learn's
OutputCodeClassifier with trees 0.316, and 0.209 with `logistic` as `estimator` instead of trees. On `duplicates.yes` it
is 0.269, 0.267 and 0.294. The differences with trees on both sides are measured, and unexplained.

In short: Each class has a codeword of bits, and each bit a learner of two classes. The prediction is the class whose
codeword is nearest to the outputs of the learners. A few learners may be wrong.

Use when: there are several classes and the learner is good at two, such as `adaboost` of stumps or `perceptron`.

Of "111" and "000", "101" is "111"; with the exhaustive code of 5 classes, 15 bits and d = 8, any 3 may be wrong:

>>> nearest(np.array([[1, 0, 1]]), np.array([[1, 1, 1], [0, 0, 0]])).tolist()
[[1.0, 0.0]]
>>> code = exhaustive(5)
>>> code.shape, min_distance(code)
((5, 15), 8)

References: Dietterich & Bakiri (1995), J. Artif. Intell. Res. 2:263; Battiti & Brunato, The LION Way, ch. 11.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    FittedLearner,
    Inputs,
    Learner,
    Matrix,
    Member,
    NestedFit,
    Params,
    Size,
    Symmetry,
    Task,
    learner,
)
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.tensor_graphs.codeword_tensors import decoded_words
from app.ml.numerics.tensor_graphs.learner_tensors import learner_tensor

MOST_CLASSES = 10
"""That the exhaustive code takes: 511 bits."""
TOO_LONG = "The exhaustive code of {} classes is too long: take random."
NO_WORDS = "The code needs a codeword for each of the {} classes."
DRAWS = 100
MIN_PROBABILITY = 1e-12
"""A learner of a bit is never taken for surer than this."""
Code = NDArray[np.int8]
"""(k, L) of bits."""


class ECOC(Params):
    estimator: Learner = learner("Learner that is trained for each bit.", name="decision_tree")
    code: Literal["auto", "exhaustive", "random", "one_vs_all"] = Field(
        "auto", description="auto: exhaustive for up to 6 classes, else random."
    )
    bits: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Length L of a random code, at least log2 k for k classes; null: about 10 log2 k.",
    )
    code_words: list[list[Annotated[int, Field(ge=0, le=1)]]] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Code words in place of `code`: the bits of each class, by ascending label; null: those of `code`.",
    )
    decode: Literal["likelihood", "hamming", "shares"] = Field(
        "likelihood",
        description="Distance by which the nearest codeword is found. shares: each class by a bit of its own, "
        "if it has one.",
    )

    @model_validator(mode="after")
    def _a_code(self) -> Self:
        if self.code_words is not None and (wrong := _no_code(self.code_words)):
            raise ValueError(wrong)
        return self


class State(NamedTuple):
    members: tuple[FittedLearner, ...]
    """One for each bit."""
    code: Code


def fit(params: ECOC, data: Data, context: Context) -> Fit[State]:
    code = _code(params, data.targets.shape[1], context.rng)
    members = tuple(context.fit_all([NestedFit(params.estimator, partial(_of_bit, data, bit)) for bit in code.T]))
    return Fit(State(members, code), iterations=len(members), warnings=[*_other_length(params, *code.shape)])


def _other_length(params: ECOC, classes: int, bits: int) -> Iterator[str]:
    """A sentence where a random code is not as long as requested."""
    if (
        params.bits not in {None, bits}
        and params.code_words is None
        and classes > 1
        and _kind(params, classes) == "random"
    ):
        why = "fewer cannot distinguish them" if bits > (params.bits or 0) else "there are no more ways to divide them"
        yield f"The code of {classes} classes has {bits} bits, not {params.bits}: {why}."


def _of_bit(data: Data, bit: NDArray[Any]) -> Data:
    """The rows with the bit of their class as the target."""
    return data.with_target(Task.CLASSIFICATION, bit[data.codes] * 1.0, classes=2)


def predict(params: ECOC, state: State, x: Matrix) -> Matrix:
    if not state.members:
        return np.ones((len(x), len(state.code)))
    ones = _ones(state, x)
    if params.decode == "hamming":
        return nearest((ones > 0.5) * 1, state.code)
    sure = np.clip(ones, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    if params.decode == "shares" and np.array_equal(state.code, np.eye(len(state.code))):
        part: Matrix = sure / sure.sum(axis=1, keepdims=True)
        return part
    logs = np.zeros((len(x), len(state.code)))
    for bit, p in zip(state.code.T, sure.T, strict=True):
        logs += np.where(bit, np.log(p)[:, None], np.log1p(-p)[:, None])
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    probabilities: Matrix = shares / shares.sum(axis=1, keepdims=True)
    return probabilities


def _ones(state: State, x: Matrix) -> Matrix:
    """(n, L) the probability of a 1 by each bit's learner."""
    return np.column_stack([np.zeros((len(x), 0)), *(member.predict(x)[:, 1] for member in state.members)])


def nearest(words: NDArray[np.intp], code: NDArray[np.int_] | Code) -> Matrix:
    """(n, k) equal shares of the classes whose codewords differ from the word (n, L) in the fewest bits."""
    bit_distances = distances(words, code)
    best = bit_distances == bit_distances.min(axis=1, keepdims=True)
    shares: Matrix = best / best.sum(axis=1, keepdims=True)
    return shares


def distances(words: NDArray[np.intp], code: NDArray[np.int_] | Code) -> NDArray[np.intp]:
    """(n, k) the bits in which each word (n, L) differs from each codeword (Hamming)."""
    bit_distances: NDArray[np.intp] = (words[:, None, :] != code[None]).sum(axis=2)
    return bit_distances


def explain(params: ECOC, state: State, x: Matrix) -> list[JSON]:
    """For each row the probability of a 1 by every bit's learner, and in how many bits the word misses each class's."""
    ones = _ones(state, x)
    bit_distances = distances((ones > 0.5) * 1, state.code)
    return [{"bits": p, "distances": far} for p, far in zip(ones.tolist(), bit_distances.tolist(), strict=True)]


def exhaustive(k: int) -> Code:
    """Every way to divide k classes in two, once: (k, 2^{k−1} − 1). The first class always has a 1."""
    ways = np.arange(2 ** (k - 1) - 1)
    bits = ways[None] >> np.arange(k - 2, -1, -1)[:, None] & 1
    return np.vstack([np.ones_like(ways), bits]).astype(np.int8)


def min_distance(code: Code) -> int:
    """The fewest bits in which two codewords differ."""
    bit_distances = (code[:, None, :] != code[None]).sum(axis=2)
    return int(bit_distances[~np.eye(len(code), dtype=bool)].min())


def summary(params: ECOC, state: State) -> JSON:
    distance = min_distance(state.code) if len(state.code) > 1 else 0
    return {
        "bits": state.code.shape[1],
        "classes": every(len(state.code)),
        "code": state.code.tolist(),
        "min_distance": distance,
        "corrects": max(0, (distance - 1) // 2),
    }


def faults(params: ECOC, inputs: Inputs) -> Iterator[Fault]:
    """Codes that are none for so many classes."""
    k = inputs.size.classes
    if params.code_words is not None and k and len(params.code_words) != k:
        yield Fault("/code_words", NO_WORDS.format(k), "wrong_length")
    elif params.code_words is None and k > MOST_CLASSES and _kind(params, k) == "exhaustive":
        yield Fault("/code", TOO_LONG.format(k))


def _code(params: ECOC, k: int, rng: np.random.Generator) -> Code:
    """Raises InvalidData for a code that is none for k classes."""
    if params.code_words is not None:
        return _given(params.code_words, k)
    if k == 1:
        return np.ones((1, 0), np.int8)
    kind = _kind(params, k)
    if kind == "one_vs_all":
        return np.eye(k, dtype=np.int8)[:, : 1 if k == 2 else k]
    if kind == "exhaustive":
        if k > MOST_CLASSES:
            raise InvalidData(TOO_LONG.format(k))
        return exhaustive(k)
    return _random(k, _bits(params, k), rng)


def _kind(params: ECOC, k: int) -> str:
    return params.code if params.code != "auto" else "exhaustive" if k <= 6 else "random"


def _bits(params: ECOC, k: int) -> int:
    """Length of a random code."""
    return max(params.bits or math.ceil(10 * math.log2(k)), math.ceil(math.log2(k)))


def _fits(params: ECOC, size: Size) -> tuple[float, Size]:
    k, each = max(2, size.classes), size._replace(classes=2)
    if params.code_words is not None:
        return len(params.code_words[0]), each
    ways = 2 ** min(k - 1, MOST_CLASSES - 1) - 1
    bits = {"one_vs_all": k, "exhaustive": ways, "random": _bits(params, k)}[_kind(params, k)]
    return min(bits, ways) if k <= MOST_CLASSES else bits, each


def _random(k: int, bits: int, rng: np.random.Generator) -> Code:
    """The one of some draws of different columns whose nearest codewords are farthest apart."""
    ways = 2 ** (k - 1) - 1
    if bits >= ways and k <= MOST_CLASSES:
        return exhaustive(k)
    best, farthest = np.zeros((k, 0), np.int8), -1
    for _ in range(DRAWS):
        code = _columns(k, bits, rng)
        if (distance := min_distance(code)) > farthest:
            best, farthest = code, distance
    if not farthest:
        raise InvalidData(f"A random code of {bits} bits cannot distinguish {k} classes: take more bits.")
    return best


def _columns(k: int, bits: int, rng: np.random.Generator) -> Code:
    """Different ones; of more than `MOST_CLASSES` classes perhaps a few less, where nearly all there are are wanted."""
    if k <= MOST_CLASSES:
        every = exhaustive(k)
        return every[:, rng.choice(every.shape[1], bits, replace=False)]
    drawn = rng.integers(0, 2, (k, 2 * bits), dtype=np.int8)
    code = np.unique(drawn ^ drawn[:1] ^ 1, axis=1)  # the first class has a 1, as a complement is the same problem
    code = code[:, ~code.all(axis=0)]
    return code[:, rng.permutation(code.shape[1])[:bits]]


def _given(words: list[list[int]], k: int) -> Code:
    if len(words) != k:
        raise InvalidData(NO_WORDS.format(k))
    return np.array(words, np.int8).reshape(k, -1)


def _no_code(words: list[list[int]]) -> str:
    """Why these are none."""
    if len({len(word) for word in words}) > 1:
        return "Codewords are all of one length."
    code = np.array(words, np.int8).reshape(len(words), -1)
    if len(np.unique(code, axis=0)) < len(code):
        return "Two classes have the same codeword."
    if len(np.unique(code ^ code[:1], axis=1).T) < code.shape[1] or (code == code[:1]).all(axis=0).any():
        return "A column of the code is constant, or equal or complementary to another: it separates nothing new."
    return ""


def to_tensor(params: ECOC, state: State, x: Tensor) -> Tensor:
    if not state.members:
        return x.repeated(np.ones(len(state.code)))
    ones = [learner_tensor(member, x)[[1]] for member in state.members]
    return decoded_words(ones[0].beside(*ones[1:]), state.code, params.decode, MIN_PROBABILITY)


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=ECOC,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    degrees=lambda params: params.decode == "hamming",
    members=lambda params, task: [Member("/estimator", params.estimator, task, partial(_fits, params))],
    explain=explain,
    summary=summary,
    faults=faults,
    breaks={
        Symmetry.COLUMN_ORDER: "a tree as the learner takes the first of equally good columns",
    },
)
