"""Terms of documents are those of scikit-learn's CountVectorizer."""

import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from app.ml.preparation.text_request import TextColumn
from app.ml.preparation.text_terms import terms_of

DOCUMENTS = [
    "Ein Über-Test, naïve_x 42 a b!  ",
    "",
    "  a  bb\n\nccc ünï  ",
    "x",
    "the the the cat\tsat",
    "日本語 テスト 🙂🙂 नमस्ते दुनिया",
    "\n",
    "é e\u0301x ABC abc",
]
RANGES = [[1, 1], [1, 2], [2, 4], [3, 3], [5, 6]]
LETTERS = st.text(st.sampled_from("aAbß éE\u0301_1.,\n\t 日🙂ῲ\u00a0"), max_size=25)


def ours(documents, how):
    found = terms_of(pa.array(documents, pa.string()), how)
    counts, names = found.counts.csr.tocoo(), found.names.to_pylist()
    assert len(set(names)) == len(names)
    return {(int(i), names[j]): float(v) for i, j, v in zip(counts.row, counts.col, counts.data, strict=True)}


def theirs(documents, **settings):
    vectorizer = CountVectorizer(**settings)
    try:
        counts = vectorizer.fit_transform([unicodedata.normalize("NFC", one) for one in documents]).tocoo()
    except ValueError:  # no terms at all
        return {}
    names = vectorizer.get_feature_names_out()
    return {(int(i), names[j]): float(v) for i, j, v in zip(counts.row, counts.col, counts.data, strict=True)}


@pytest.mark.parametrize("ngram_range", RANGES, ids=str)
@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
def test_terms_are_those_of_the_oracle(analyzer, ngram_range):
    how = TextColumn(analyzer=analyzer, ngram_range=ngram_range)
    assert ours(DOCUMENTS, how) == theirs(DOCUMENTS, analyzer=analyzer, ngram_range=tuple(ngram_range))


@settings(max_examples=40, deadline=None)
@given(st.lists(LETTERS, min_size=1, max_size=4), st.sampled_from(["word", "char", "char_wb"]), st.sampled_from(RANGES))
def test_terms_of_drawn_documents_are_those_of_the_oracle(documents, analyzer, ngram_range):
    how = TextColumn(analyzer=analyzer, ngram_range=ngram_range, lowercase=False)
    expected = theirs(documents, analyzer=analyzer, ngram_range=tuple(ngram_range), lowercase=False)
    assert ours(documents, how) == expected


def test_case_is_kept_on_request_and_lowered_letter_by_letter():
    assert ours(["Straße STRASSE"], TextColumn(lowercase=False)) == {(0, "Straße"): 1, (0, "STRASSE"): 1}
    assert ours(["Straße STRASSE Straße"], TextColumn()) == {(0, "straße"): 2, (0, "strasse"): 1}


def test_composed_and_decomposed_letters_are_the_same():
    assert ours(["cafe\u0301 café"], TextColumn()) == {(0, "café"): 2}


def test_stop_words_are_left_out_before_runs_are_made():
    how = TextColumn(ngram_range=[1, 2], stop_words=["The", "on"])
    documents = ["The cat sat on the mat"]
    assert ours(documents, how) == theirs(documents, ngram_range=(1, 2), stop_words=["the", "on"])


def test_missing_texts_have_no_terms():
    assert ours([None, "two words", None], TextColumn()) == {(1, "two"): 1, (1, "words"): 1}
    assert ours([None], TextColumn()) == ours([], TextColumn()) == {}


def test_a_slice_has_the_terms_of_its_own_documents():
    sliced = pa.array(["left out", "some words", None, "out again"])[1:3]
    found = terms_of(sliced, TextColumn())
    assert sorted(found.names.to_pylist()) == ["some", "words"]
    assert np.diff(found.counts.csr.indptr).tolist() == [2, 0]
