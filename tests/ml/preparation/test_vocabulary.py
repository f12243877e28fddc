"""Vocabularies and weighted counts are those of scikit-learn's TfidfVectorizer."""

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from app.base.errors import InvalidData
from app.ml.preparation import text_terms
from app.ml.preparation.text_request import TextColumn
from app.ml.preparation.vocabulary import Vocabulary

DOCUMENTS = [
    line
    for load in (load_iris, load_wine, load_breast_cancer, load_diabetes)
    for line in load().DESCR.splitlines()
    if line.strip()
]
"""Lines of the descriptions of data sets that scikit-learn brings along."""
TRAINING, NEW = DOCUMENTS[::2], DOCUMENTS[1::2]


def learned(documents=TRAINING, **settings):
    how = TextColumn(**{"weighting": "tfidf", **settings})
    return Vocabulary.learn("text", how, pa.array(documents, pa.string()))


def numbers(vocabulary, documents):
    return vocabulary.numbers(vocabulary.counts(pa.array(documents, pa.string()))).csr.toarray()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sublinear_tf": True},
        {"norm": "l1"},
        {"norm": None},
        {"ngram_range": [1, 2], "min_df": 2},
        {"min_df": 0.02, "max_df": 0.2},
        {"max_df": 5},
        {"analyzer": "char_wb", "ngram_range": [2, 3], "min_df": 3},
        {"stop_words": ["the", "of", "class"]},
    ],
    ids=str,
)
def test_numbers_are_those_of_the_oracle(settings):
    oracle = TfidfVectorizer(**{k: tuple(v) if k == "ngram_range" else v for k, v in settings.items()} or {})
    expected = oracle.fit(TRAINING).transform(NEW).toarray()
    vocabulary = learned(**settings)
    assert vocabulary.terms == oracle.get_feature_names_out().tolist()
    np.testing.assert_allclose(numbers(vocabulary, NEW), expected, atol=1e-15, rtol=1e-13)


def test_counts_are_those_of_the_oracle_and_whole():
    oracle = CountVectorizer().fit(TRAINING)
    vocabulary = learned(weighting="counts")
    np.testing.assert_array_equal(numbers(vocabulary, NEW), oracle.transform(NEW).toarray())


def test_the_most_frequent_terms_stay_and_of_equal_ones_the_first():
    documents = ["b b b", "c c a a", "d d e"]
    vocabulary = learned([one.replace(" ", "x ") + "x" for one in documents], max_features=3)
    assert (vocabulary.terms, vocabulary.left_out) == (["ax", "bx", "cx"], 2)


def test_terms_ascend_by_their_bytes():
    vocabulary = learned(["zz éé aa ZZ 😀😀 日本 __"], lowercase=False)
    assert vocabulary.terms == sorted(vocabulary.terms, key=str.encode)


def test_one_document_has_the_numbers_that_it_has_among_others():
    vocabulary = learned(ngram_range=[1, 2], sublinear_tf=True)
    together = numbers(vocabulary, NEW)
    for row in range(0, len(NEW), 20):
        np.testing.assert_array_equal(numbers(vocabulary, NEW[row : row + 1])[0], together[row])


def test_blocks_of_documents_make_no_difference(monkeypatch):
    settings = {"ngram_range": [1, 2], "min_df": 2}
    whole = learned(**settings)
    expected = numbers(whole, NEW)
    monkeypatch.setattr(text_terms, "BLOCK", 1000)
    apart = learned(**settings)
    assert (apart.encoded, apart.idf.tobytes()) == (whole.encoded, whole.idf.tobytes())
    np.testing.assert_array_equal(numbers(apart, NEW), expected)


def test_unknown_terms_are_left_out():
    vocabulary = learned(["cat dog", "dog bird"])
    found = vocabulary.counts(pa.array(["dog horse dog", "horse", "", None], pa.string())).csr.toarray()
    assert found.tolist() == [[0, 0, 2], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("documents", [[None, ""], ["! ?", "a"], []])
def test_training_documents_without_terms_are_refused_by_the_column(documents):
    with pytest.raises(InvalidData, match="column 'text' have no terms"):
        learned(documents)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"ngram_range": [2, 1]}, "the first number of ngram_range is above the second"),
        ({"analyzer": "char", "stop_words": ["the"]}, "stop_words are words"),
        ({"min_df": 1.5}, "min_df is a share below 1, or a whole number"),
        ({"weighting": "counts", "sublinear_tf": True}, "sublinear_tf and norm are of tfidf"),
        ({"ngram_range": [1, 2, 3]}, "at most 2"),
        ({"max_features": 0}, "greater than or equal to 1"),
    ],
    ids=str,
)
def test_settings_that_contradict_each_other_are_refused(settings, sentence):
    with pytest.raises(ValidationError, match=sentence):
        TextColumn(**settings)
