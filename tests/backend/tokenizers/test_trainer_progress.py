"""A trainer of the tokenizers library is heard while it works, and what others write to stderr stays theirs."""

import os

import pytest
from tokenizers.trainers import BpeTrainer, UnigramTrainer

from backend.tokenizers.train import TokenizerTraining, train
from backend.tokenizers.trainer_progress import enable_progress, report_progress

TEXTS = ["The cat sat on the mat.", "The cat saw the other cat."] * 30


@pytest.mark.parametrize("kind", ["byte_bpe", "bpe", "wordpiece"])
def test_merges_are_told_while_they_are_made(kind: str, capfd: pytest.CaptureFixture[str]):
    said = []
    train(TEXTS, TokenizerTraining(kind=kind, vocabulary=400), lambda *words: said.append(words), len(TEXTS))
    assert said[0] == ("Reading the texts", 60, 60, "texts")
    merges = [words for words in said if words[-1] == "merges"]
    assert merges
    assert all(stage == "Learning the pieces" and 0 <= done <= total <= 400 for stage, done, total, _ in merges)
    assert capfd.readouterr().err == ""


def test_a_unigram_says_that_it_tells_nothing(capfd: pytest.CaptureFixture[str]):
    said = []
    train(TEXTS, TokenizerTraining(kind="unigram", vocabulary=60), lambda *words: said.append(words), len(TEXTS))
    assert said[-1] == ("Learning the pieces; Unigram reports no progress", 0, 0, "")
    assert not enable_progress(UnigramTrainer())
    assert capfd.readouterr().err == ""


def test_what_others_write_goes_on_to_stderr(capfd: pytest.CaptureFixture[str]):
    said = []
    with report_progress(BpeTrainer(), lambda *words: said.append(words)):
        os.write(2, b'before\r{"stage":"Count pairs","current":1,')
        os.write(2, b'"total":2}\nafter {"no": "stage"}\n')
    os.write(2, b"later")
    assert capfd.readouterr().err == 'before\rafter {"no": "stage"}\nlater'
    assert said == [("Counting pairs of characters", 1, 2, "words")]
