"""Every piece stands in the table with what it means in a text, whichever family its tokenizer is of."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.vocabulary.search import Search, find
from backend.tokenizers.vocabulary.tables import VocabularyTables, read_vocabulary, unused_ids


def read(folder: Path) -> VocabularyTables:
    return read_vocabulary(open_tokenizer(str(folder)))


def row(tables: VocabularyTables, piece: str) -> dict:
    return next(one for one in tables.pieces.to_pylist() if one["piece"] == piece)


def test_a_byte_level_piece_is_told_as_the_text_that_it_forms(byte_level: Path):
    tables = read(byte_level)
    assert tables.kind == "byte-level BPE"
    found = row(tables, "Ġlaz")
    assert (found["text"], found["bytes"], found["length"], found["script"]) == (" laz", "20 6C 61 7A", 4, "Latin")


def test_every_byte_of_a_byte_level_vocabulary_is_one(byte_level: Path):
    tables = read(byte_level)
    assert tables.types()["byte"] == 256
    assert row(tables, "Ċ")["bytes"] == "0A"
    assert {one["bytes"] for one in tables.pieces.to_pylist() if one["type"] == "byte"} == {
        f"{byte:02X}" for byte in range(256)
    }


def test_part_of_a_character_keeps_its_bytes(byte_level: Path):
    assert row(read(byte_level), "à")["bytes"] == "E0"
    assert row(read(byte_level), "à")["text"] == "\ufffd"


def test_the_end_of_text_is_special(byte_level: Path):
    found = row(read(byte_level), "<|endoftext|>")
    assert (found["type"], found["text"], found["rank"]) == ("special", "<|endoftext|>", None)


def test_merges_stand_by_rank_with_what_they_make(byte_level: Path):
    merges = read(byte_level).merges.to_pylist()
    assert [merge["rank"] for merge in merges] == list(range(len(merges)))
    assert all(merge["left"] + merge["right"] == merge["result"] for merge in merges)
    assert row(read(byte_level), merges[3]["result"])["id"] == merges[3]["id"]
    assert row(read(byte_level), merges[3]["result"])["rank"] <= 3


def test_a_piece_of_sentencepiece_has_its_space_and_a_score(unigram: Path):
    tables = read(unigram)
    assert tables.kind == "Unigram"
    assert row(tables, "▁")["text"] == " "
    assert row(tables, "▁")["score"] < 0
    assert tables.merges is None


def test_a_piece_of_wordpiece_that_goes_on_loses_its_sign(word_piece: Path):
    found = next(one for one in read(word_piece).pieces.to_pylist() if one["piece"].startswith("##"))
    assert found["text"] == found["piece"][2:]


def test_scripts_are_those_of_unicode(demo_bert: Path):
    tables = read(demo_bert)
    assert row(tables, "##ක")["script"] == "Sinhala"
    assert row(tables, "日")["script"] == "Han"
    assert row(tables, "2019")["script"] == ""


def test_kept_free_pieces_are_unused_and_special_ones_special(demo_bert: Path):
    assert read(demo_bert).types() == {"normal": 29523, "special": 5, "added": 0, "byte": 0, "unused": 994}


def test_bytes_of_a_fallback_are_bytes():
    vocabulary = {"<unk>": 0, "▁a": 1, "a": 2, "▁": 3, "<0x0A>": 4, "<0xE2>": 5}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("▁", "a")], unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tables = read_vocabulary(PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>"))
    assert row(tables, "<0x0A>")["text"] == "\n"
    assert row(tables, "<0xE2>")["type"] == "byte"
    assert row(tables, "▁a")["text"] == " a"


def test_ids_without_a_piece_are_unused_rows_and_so_are_those_that_the_model_has_to_spare(tmp_path: Path):
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 5}, unk_token="a"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="a").save_pretrained(tmp_path)
    assert (read(tmp_path).missing, read(tmp_path).size) == (4, 2)
    (tmp_path / "config.json").write_text('{"vocab_size": 8}')
    tables = read(tmp_path)
    assert tables.pieces["id"].to_pylist() == list(range(8))
    assert [one["id"] for one in tables.pieces.to_pylist() if one["piece"] is None] == [1, 2, 3, 4, 6, 7]
    assert tables.types()["unused"] == tables.missing == 6
    assert find(tables.pieces, Search(types=("unused",))).tolist() == [1, 2, 3, 4, 6, 7]
    assert find(tables.pieces, Search(text="b")).tolist() == [5]


@pytest.mark.parametrize("config", ["", "[]", '{"vocab_size": "many"}', '{"vocab_size": 1}', '{"text_config": null}'])
def test_a_configuration_that_says_nothing_of_rows_adds_none(config: str, tmp_path: Path):
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a")))
    (tmp_path / "config.json").write_text(config)
    tokenizer.name_or_path = str(tmp_path)
    assert read_vocabulary(tokenizer).missing == 0


def test_a_damaged_file_with_a_huge_id_fills_no_memory():
    assert len(unused_ids([0, 2_000_000_000], 0)) == 1_000_000


def test_an_added_token_is_added():
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))
    tokenizer.add_tokens(["<speaker>"])
    assert row(read_vocabulary(tokenizer), "<speaker>")["type"] == "added"


def test_a_tokenizer_in_python_code_is_read_too():
    tables = read_vocabulary(ByT5Tokenizer())
    assert tables.kind == "ByT5Tokenizer"
    assert row(tables, "a")["id"] == 100
    assert row(tables, "</s>")["type"] == "special"


@pytest.fixture(scope="module")
def demo_bert() -> Path:
    from backend.contract.resources import resource

    return Path(str(resource("demo", "bert-tiny")))
