"""The questions about a vocabulary work on one folder, whichever worker answers them."""

import csv
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.helper.queries.vocabulary import QUERIES

ASK = {query.name: query.answer for query in QUERIES}
AUSTEN = str(resource("demo", "austen-gpt2"))
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("vocabulary")
    ASK["vocabulary"]({"tokenizer": AUSTEN, "folder": str(made)}, lambda progress: None)
    return made


@pytest.fixture
def ask(folder: Path) -> Ask:
    return lambda name, **arguments: ASK[name]({"folder": str(folder), **arguments}, lambda progress: None)


def numbers(found: Any) -> list[int]:
    rows = np.load(found.path).tolist()
    assert len(rows) == found.count
    return rows


def test_the_answer_tells_what_there_is(tmp_path: Path):
    told = ASK["vocabulary"]({"tokenizer": AUSTEN, "folder": str(tmp_path)}, lambda progress: None)
    assert (told.kind, told.size, told.merges, told.missing) == ("byte-level BPE", 4096, 3839, 0)
    assert told.types == {"normal": 3839, "special": 1, "added": 0, "byte": 256, "unused": 0}
    assert next(iter(told.scripts)) == "Latin"


def test_rows_are_found_and_sorted(ask: Ask):
    rows = numbers(ask("find_pieces", search="mother"))
    assert rows == [819, 2629]
    assert numbers(ask("find_pieces", search="mother", sort_by="id", descending=True)) == rows[::-1]


def test_merges_are_searched_too(ask: Ask):
    assert numbers(ask("find_pieces", table="merges", search="2629", by="id")) == [2372]


def test_an_unknown_way_to_search_is_told(ask: Ask):
    with pytest.raises(InputError, match="'magic' is not a search"):
        ask("find_pieces", search="a", by="magic")


def test_a_folder_that_is_gone_is_told(tmp_path: Path):
    with pytest.raises(InputError, match="open it again"):
        ASK["find_pieces"]({"folder": str(tmp_path / "gone"), "search": "a"}, lambda progress: None)


def test_a_piece_tells_its_merges(ask: Ask):
    parts = ask("piece_origin", tokenizer=AUSTEN, id=819).parts
    assert (parts[0].piece, parts[0].text, parts[0].rank) == ("Ġmother", " mother", 562)


def test_an_id_without_a_piece_is_a_row_that_says_so(tmp_path: Path):
    shutil.copytree(AUSTEN, tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    config = tmp_path / "model" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "vocab_size": 4100}))
    (tmp_path / "folder").mkdir()
    about = {"tokenizer": str(tmp_path / "model"), "folder": str(tmp_path / "folder")}
    told = ASK["vocabulary"](about, lambda progress: None)
    assert (told.size, told.missing, told.types["unused"]) == (4096, 4, 4)
    said = ASK["piece_origin"]({**about, "id": 4099}, lambda progress: None)
    assert said.sentence.startswith("This row of the embedding matrix is unused")
    assert ASK["piece_origin"]({**about, "id": 400}, lambda progress: None).parts


def test_a_special_token_tells_that_it_is_one(ask: Ask):
    (special,) = numbers(ask("find_pieces", types=["special"]))
    assert "special token" in ask("piece_origin", tokenizer=AUSTEN, id=special).sentence


def test_frequencies_are_counted_and_sorted_by(folder: Path, ask: Ask, tmp_path: Path):
    data = tmp_path / "texts.csv"
    data.write_text("text,n\nthe mother,1\nthe mother,2\nmother,3\n", encoding="utf-8")
    said: list[Any] = []
    counts = ASK["count_pieces"](
        {"tokenizer": AUSTEN, "folder": str(folder), "data": str(data), "column": "text"}, said.append
    )
    often = np.load(counts.path)
    assert (often.sum(), counts.used) == (5, 3)
    assert often[[440, 819, 2629]].tolist() == [2, 2, 1]
    assert said[-1].done == said[-1].total == 3
    assert numbers(ask("find_pieces", sort_by="frequency", descending=True))[:3] == [440, 819, 2629]


def test_a_column_that_is_not_there_is_told(ask: Ask, tmp_path: Path):
    data = tmp_path / "texts.csv"
    data.write_text("text\na\n", encoding="utf-8")
    with pytest.raises(InputError, match="there is no column 'words'; the columns are text"):
        ask("count_pieces", tokenizer=AUSTEN, data=str(data), column="words")


def test_an_export_has_the_rows_that_are_shown_in_their_order(ask: Ask, folder: Path, tmp_path: Path):
    np.save(folder / "shown.npy", np.array([2629, 440]))
    output = tmp_path / "pieces.csv"
    told = ask("export_vocabulary", rows=str(folder / "shown.npy"), output=str(output))
    with output.open(encoding="utf-8", newline="") as file:
        assert [row["piece"] for row in csv.DictReader(file)] == ["mother", "the"]
    assert told.rows == 2


def test_cells_that_a_spreadsheet_would_run_are_defused_on_request(ask: Ask, folder: Path, tmp_path: Path):
    np.save(folder / "shown.npy", np.array(numbers(ask("find_pieces", search="^=$", by="regex"))))
    written = {}
    for defuse in (True, False):
        output = tmp_path / f"{defuse}.csv"
        ask("export_vocabulary", rows=str(folder / "shown.npy"), output=str(output), defuse=defuse)
        with output.open(encoding="utf-8", newline="") as file:
            written[defuse] = next(iter(csv.DictReader(file)))["piece"]
    assert written == {True: "'=", False: "="}


def test_what_cannot_be_written_is_told(ask: Ask, tmp_path: Path):
    with pytest.raises(InputError, match="cannot be written"):
        ask("export_vocabulary", output=str(tmp_path / "no" / "folder.csv"))


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes")
def test_another_worker_searches_what_one_has_opened_and_a_count_can_be_stopped(shared_helper, tmp_path: Path):
    helper = shared_helper
    about = {"tokenizer": AUSTEN, "folder": str(tmp_path)}
    assert helper.answer("vocabulary", **about)["size"] == 4096
    assert helper.answer("find_pieces", folder=str(tmp_path), search="mother")["count"] == 2
    data = tmp_path / "long.csv"
    data.write_text("text\n" + "the mother of all houses\n" * 400_000, encoding="utf-8")
    number = helper.ask("count_pieces", **about, data=str(data), column="text")
    helper.cancel(number)
    assert "cancelled" in helper.reply(number)["error"]["message"]
    assert not (tmp_path / "frequency.npy").exists()
