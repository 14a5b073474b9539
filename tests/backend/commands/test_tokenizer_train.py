"""`burnish tokenizer train` and `extend` make folders that others open, and refuse what they cannot use."""

import json
import signal
import subprocess

import pytest
from transformers import AutoTokenizer

from backend.__main__ import main
from backend.contract.processes import python_command
from backend.contract.resources import resource


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
        (["--column", "french"], "there is no column 'french'; the columns are english, spanish"),
        (["--kind", "magic"], "--kind: 'magic' cannot be used"),
        (["--vocabulary", "1"], "--vocabulary: 1 cannot be used"),
        (["--min-frequency", "0"], "--min-frequency: 0 cannot be used"),
        (
            ["--vocabulary", "100"],
            "--vocabulary: 100 leaves no room for 1 special token and the 256 bytes; set it to 257",
        ),
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
    assert "already contains a tokenizer; choose" in capsys.readouterr().err


BERT_TINY = str(resource("demo", "bert-tiny"))


def test_compression_is_measured_beside_the_old_one(texts, tmp_path, capsys):
    arguments = ["--data", str(texts), "--output", str(tmp_path / "made"), "--vocabulary", "300", "--json"]
    assert main(["tokenizer", "train", *arguments, "--compare", BERT_TINY]) == 0
    made = json.loads(capsys.readouterr().out.splitlines()[-1])
    new, old = made["compression"]
    assert made["held_out"]
    assert (new["tokenizer"], old["tokenizer"]) == (str(tmp_path / "made"), BERT_TINY)
    assert new["rows"] == old["rows"] == 8
    assert new["tokens_per_word"] == pytest.approx(new["tokens"] / new["words"], abs=1e-4)


def test_any_source_gives_texts(tmp_path):
    arguments = ["--source", "demo", "--data", "eng-spa", "--column", "target", "--output", str(tmp_path / "made")]
    assert main(["tokenizer", "train", *arguments, "--vocabulary", "500", "--special", "<a>", "<b>"]) == 0
    assert "<a>" in AutoTokenizer.from_pretrained(tmp_path / "made").all_special_tokens


def _hears_interrupts() -> None:
    """A shell without job control lets its background jobs ignore SIGINT, and their children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_stopped_training_leaves_nothing(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("\n".join(f"{n * n} {n:b} words that never end" for n in range(150_000)))
    command = python_command("backend", "tokenizer", "train", "--data", str(path), "--output", str(tmp_path / "made"))
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=_hears_interrupts)
    assert process.stderr is not None
    assert "rows of" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "nothing was written" in said or "interrupted" in said  # which, depends on how far it had come
    assert [each.name for each in tmp_path.iterdir()] == ["long.txt"]


def test_an_extended_tokenizer_is_saved_and_said(tmp_path, capsys):
    arguments = ["--add", "zyzzyva", "--add-special", "<speaker>", "--output", str(tmp_path / "own"), "--json"]
    assert main(["tokenizer", "extend", BERT_TINY, *arguments]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["added"], said["vocabulary"], said["path"]) == (2, 30524, str(tmp_path / "own"))
    assert said["tokens"][0]["pieces"] == ["z", "##y", "##zzy", "##va"]
    assert AutoTokenizer.from_pretrained(tmp_path / "own").tokenize("zyzzyva") == ["zyzzyva"]


def test_without_output_an_extension_is_only_shown(texts, tmp_path, capsys):
    (tmp_path / "list.txt").write_text("the house\n\n")
    arguments = ["--tokens", str(tmp_path / "list.txt"), "--data", str(texts), "--column", "english"]
    assert main(["tokenizer", "extend", BERT_TINY, *arguments]) == 0
    out = capsys.readouterr().out
    assert "40x" in out
    assert "give --output to save it" in out


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ([], "specify a token to add"),
        (["--add", "the"], "already tokens"),
        (["--tokens", "none.txt"], "--tokens none.txt"),
    ],
)
def test_an_extension_of_nothing_is_refused(more, sentence, tmp_path, capsys):
    assert main(["tokenizer", "extend", BERT_TINY, *more, "--output", str(tmp_path / "own")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "own").exists()
