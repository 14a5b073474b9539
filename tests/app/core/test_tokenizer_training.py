"""What the window works out about tokenizers that are made: columns, commands, folders, tables."""

import shlex

import pytest

from app.core.text.tokenizer_training import (
    extend_command,
    free_folder,
    new_tokens,
    note_of,
    proposed_rows,
    saved_words,
    tokens_of,
    train_command,
)
from backend.__main__ import main
from backend.catalog import catalog
from backend.contract.resources import resource
from backend.contract.tokens.text_columns import likely_texts
from backend.contract.tokens.training import ProposedToken, TokenCounts

SOURCES = {source.name: source for source in catalog().sources}
NEW = ProposedToken("zyzzyva", False, ["z", "##y"], [1, 2])
OLD = ProposedToken("the", False, ["the"], [1996], 1996, "it is already a token (ID 1996)")
UNUSED = ProposedToken("[unused5]", True, ["["], [3], 6)


@pytest.mark.parametrize(
    ("columns", "row", "likely"),
    [
        (["id", "text", "label"], ["1", "A long and winding review", "positive"], ["text"]),
        (["source", "target", "id"], ["The house is red.", "La casa es roja.", "77"], ["source", "target"]),
        (["word"], ["cat"], ["word"]),
        (["number"], ["3.14159265358979"], []),
        ([], [], []),
    ],
)
def test_columns_with_texts_are_guessed(columns, row, likely):
    assert likely_texts(columns, [row, row, row]) == likely


@pytest.mark.parametrize(
    ("source", "data", "columns"),
    [
        ("files", {"source": "files", "train": str(resource("demo", "sentiment", "train.csv"))}, ["text"]),
        ("files", {"source": "files", "train": [str(resource("demo", "sentiment", f"{one}.csv")) for one in ("train", "validation")]}, ["text"]),
        ("demo", {"source": "demo", "name": "eng-spa", "max_rows": 50}, ["source", "target"]),
    ],
)  # fmt: skip
def test_the_command_trains_the_same_tokenizer(source, data, columns, tmp_path, capsys):
    settings = {
        "kind": "bpe",
        "vocabulary": 300,
        "lowercase": True,
        "special_tokens": ["<a b>", "it's"],
        "held_out": 0.1,
    }
    output = str(tmp_path / "a name")
    command = train_command(SOURCES[source], data, columns, settings, output, str(resource("demo", "bert-tiny")))
    assert command.startswith("burnish tokenizer train --data ")
    assert main(shlex.split(command)[1:]) == 0
    assert output in capsys.readouterr().out


def test_the_command_adds_the_same_tokens(tmp_path, capsys):
    command = extend_command(
        str(resource("demo", "bert-tiny")), ["sodium chloride"], ["<x>"], True, str(tmp_path / "own")
    )
    assert main(shlex.split(command)[1:]) == 0
    assert "2 tokens added" in capsys.readouterr().out


def test_a_proposed_folder_is_never_there(tmp_path):
    assert free_folder(tmp_path, "my data/bpe").name == "my-data-bpe"
    (tmp_path / "my-data-bpe").mkdir()
    assert free_folder(tmp_path, "my data/bpe").name == "my-data-bpe-2"
    assert free_folder(tmp_path, "///").name == "tokenizer"


def test_each_line_is_a_token():
    assert tokens_of("  sodium chloride \n\nNaCl\n") == ["sodium chloride", "NaCl"]


def test_only_new_tokens_can_be_added():
    assert new_tokens([NEW, OLD, UNUSED]) == [NEW, UNUSED]


def test_counts_stand_beside_what_can_be_added():
    rows = proposed_rows([NEW, OLD], {"zyzzyva": 3, "the": 90})
    place = rows.columns.index("occurs")
    assert [rows.cell(row, place) for row in range(2)] == [3, ""]
    assert "occurs" not in proposed_rows([NEW]).columns


@pytest.mark.parametrize(
    ("token", "note"),
    [(NEW, ""), (OLD, "Already a token: ID 1996"), (UNUSED, "Already exists (ID 6); will become special"),
     (ProposedToken("🙂", False, [], []), "Currently unknown"), (ProposedToken(" ", False, [], [], None, "a token must have"), "A token must have")],
)  # fmt: skip
def test_notes_say_what_becomes_of_a_token(token, note):
    assert note_of(token) == note


@pytest.mark.parametrize(("after", "words"), [(900, "10.0% fewer"), (1000, "no change"), (1008, "0.8% more")])
def test_what_is_saved_is_said(after, words):
    assert words in saved_words(TokenCounts(counts={}, rows=5, tokens_before=1000, tokens_after=after))
