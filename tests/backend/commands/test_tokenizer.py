"""`burnish tokenizer train` makes a folder that others open, and refuses what it cannot use."""

import json

import pytest

from backend.__main__ import main


@pytest.fixture
def texts(tmp_path):
    """A CSV with two columns of text."""
    path = tmp_path / "pairs.csv"
    path.write_text("english,spanish\n" + "the house,la casa\nthe tree,el árbol\n" * 40, encoding="utf-8")
    return path


def test_every_column_of_text_is_learnt(texts, tmp_path):
    assert (
        main(["tokenizer", "train", "--data", str(texts), "--output", str(tmp_path / "made"), "--vocabulary", "300"])
        == 0
    )
    vocabulary = json.loads((tmp_path / "made" / "tokenizer.json").read_text())["model"]["vocab"]
    assert {"Ġhouse", "Ġcasa"} <= set(vocabulary)


def test_only_the_named_column_is_learnt(texts, tmp_path):
    arguments = ["--data", str(texts), "--column", "english", "--output", str(tmp_path / "made"), "--vocabulary", "300"]
    assert main(["tokenizer", "train", *arguments]) == 0
    assert "Ġcasa" not in json.loads((tmp_path / "made" / "tokenizer.json").read_text())["model"]["vocab"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--column", "french"], "there is no column 'french'; there are english, spanish"),
        (["--kind", "magic"], "--tokenizer.kind"),
        (["--vocabulary", "1"], "--tokenizer.vocabulary"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(more, sentence, texts, tmp_path, capsys):
    assert main(["tokenizer", "train", "--data", str(texts), "--output", str(tmp_path / "made"), *more]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_a_tokenizer_is_never_overwritten(texts, tmp_path, capsys):
    arguments = ["tokenizer", "train", "--data", str(texts), "--output", str(tmp_path / "made")]
    assert main(arguments) == 0
    assert main(arguments) == 2
    assert "holds a tokenizer already" in capsys.readouterr().err
