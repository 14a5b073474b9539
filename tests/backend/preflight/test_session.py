"""What a run tells its engine of added tokens: which are new to the model, and what they replace."""

from pathlib import Path

import pytest

from backend.preflight.resolve import resolve
from backend.preflight.session import new_tokens
from backend.tokenizers.loading import open_tokenizer

BERT_TINY = Path(__file__).parents[3] / "resources" / "demo" / "bert-tiny"
OPTIONS = {"added_tokens": ["zyzzyva"]}


def of_run(opened=None, /, **model):
    values = {"task": {"type": "text_classification"}, "data": {"train": "train.csv", "validation": 0.1}}
    spec = resolve({**values, "model": {"name_or_path": str(BERT_TINY), **model}}, Path("/"))
    return new_tokens(spec, opened or open_tokenizer(str(BERT_TINY), options=model.get("tokenizer_options")), BERT_TINY)


def zyzzyva():
    tokenizer = open_tokenizer(str(BERT_TINY))
    return tuple(tokenizer.convert_tokens_to_ids(tokenizer.tokenize("zyzzyva")))


def test_added_tokens_of_the_options_begin_as_their_pieces():
    found = of_run(tokenizer_options=OPTIONS)
    assert (found.pieces, found.known) == ({30522: zyzzyva()}, 30522)


def test_a_saved_extended_tokenizer_means_the_same(tmp_path):
    open_tokenizer(str(BERT_TINY), options=OPTIONS).save_pretrained(tmp_path)
    found = of_run(open_tokenizer(str(tmp_path)), tokenizer=str(tmp_path))
    assert (found.pieces, found.known) == ({30522: zyzzyva()}, 30522)


def test_usual_embeddings_take_no_mean():
    assert of_run(tokenizer_options=OPTIONS, new_embeddings="usual").pieces == {30522: ()}


@pytest.mark.parametrize("model", [{}, {"tokenizer_options": OPTIONS, "initialise": "from_config"}])
def test_without_added_tokens_or_weights_nothing_is_new(model):
    assert not of_run(**model).pieces


def test_another_vocabulary_says_nothing_of_the_models_rows():
    folder = str(BERT_TINY.parent / "austen-gpt2")
    found = of_run(open_tokenizer(folder, options=OPTIONS), tokenizer=folder)
    assert (dict(found.pieces), found.known) == ({}, None)
