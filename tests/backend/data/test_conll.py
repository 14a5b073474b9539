"""Sentences in CoNLL columns: which lines are words, what the columns are called, where a line is wrong."""

from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.rows import Rows
from backend.data.sources.conll import Sentences, Settings
from backend.data.sources.source import ReadOptions

NER = Path(__file__).parents[2] / "data" / "ner"


@pytest.fixture
def read(tmp_path: Path):
    """Reads text as the training split."""

    def call(content: str | bytes, max_rows: int | None = None, name: str = "train.conll", **settings: object) -> Rows:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        data = DataSection(source="conll", train=str(path), max_rows=max_rows)
        rows = Sentences(Settings(**settings)).read("train", data, ReadOptions(tmp_path / "cache"))
        assert rows is not None
        return rows

    return call


def test_a_blank_line_ends_a_sentence_and_rows_know_their_first_line(read):
    rows = read("EU\tB-ORG\nrejects\tO\n\n\nGerman\tB-MISC\n")
    assert rows.table.to_pylist() == [
        {"tokens": ["EU", "rejects"], "tags": ["B-ORG", "O"]},
        {"tokens": ["German"], "tags": ["B-MISC"]},
    ]
    assert [rows.place(0), rows.place(1)] == ["train.conll:1", "train.conll:5"]


def test_four_columns_apart_by_spaces_are_those_of_conll_2003(read):
    rows = read("-DOCSTART- -X- -X- O\n\nEU NNP  B-NP B-ORG\ncalls VBZ B-VP O\n")
    assert rows.table.to_pylist() == [
        {"tokens": ["EU", "calls"], "pos": ["NNP", "VBZ"], "chunk": ["B-NP", "B-VP"], "tags": ["B-ORG", "O"]}
    ]


def test_more_columns_are_numbered_and_tags_stay_last(read):
    assert read("a\tb\tc\td\tO\n").table.column_names == ["tokens", "column_2", "column_3", "column_4", "tags"]


def test_columns_can_be_named(read):
    rows = read("1 EU B-ORG\n", column_names=["number", "tokens", "tags"])
    assert rows.table.to_pylist() == [{"number": ["1"], "tokens": ["EU"], "tags": ["B-ORG"]}]


def test_names_that_do_not_fit_the_columns_are_refused(read):
    with pytest.raises(InputError, match=r"^data\.column_names: 2 columns are listed, but train\.conll has 3"):
        read("1 EU B-ORG\n", column_names=["tokens", "tags"])


def test_one_column_is_words_without_tags(read):
    assert read("EU\nrejects\n").table.to_pylist() == [{"tokens": ["EU", "rejects"]}]


def test_words_may_hold_spaces_where_tabs_end_the_columns(read):
    assert read("New York\tB-LOC\n\xa0\tO\n").table["tokens"].to_pylist() == [["New York", "\xa0"]]


def test_line_of_another_width_is_named(read):
    with pytest.raises(InputError, match=r"^data\.train: train\.conll:3 has 1 column, but the file has 2"):
        read("EU\tB-ORG\n\nrejects\n")


def test_comments_are_left_out_and_the_word_number_sign_is_kept(read):
    rows = read("# sent_id = 1\n# text = a b\n#\tO\na\tB-X\n\n# newdoc\nb\tO\n")
    assert rows.table["tokens"].to_pylist() == [["#", "a"], ["b"]]


def test_comment_of_as_many_cells_as_columns_is_no_sentence(read):
    assert read("# id 7a8f en\nEU _ _ B-ORG\n\n# id 7a90 en\ncalls _ _ O\n").table["tokens"].to_pylist() == [
        ["EU"],
        ["calls"],
    ]


def test_conll_u_words_are_numbered_and_ranges_are_no_words(read):
    def line(number: str, word: str, tag: str) -> str:
        return "\t".join([number, word, "_", tag, *["_"] * 6])

    content = "\n".join(["# text = im Haus", line("1-2", "im", "_"), line("1", "in", "ADP"), line("2", "dem", "DET")])
    rows = read(content)
    assert rows.table.select(["tokens", "tags"]).to_pylist() == [{"tokens": ["in", "dem"], "tags": ["ADP", "DET"]}]


@pytest.mark.parametrize("content", ["\ufeffEU\tB-ORG\r\n\r\ncalls\tO\r\n", "EU\tB-ORG\n\t\ncalls\tO"])
def test_marks_line_ends_and_blank_cells_are_no_content(read, content: str):
    assert read(content).table["tokens"].to_pylist() == [["EU"], ["calls"]]


def test_only_as_many_sentences_as_wanted_are_read(read):
    assert len(read("a O\n\nb O\n\nc O\n", max_rows=2)) == 2


def test_file_without_words_is_refused(read):
    with pytest.raises(InputError, match="has no words"):
        read("-DOCSTART- O\n\n\n")


def test_files_of_one_split_must_have_the_same_columns(read, tmp_path: Path):
    (tmp_path / "a.conll").write_text("a O\n")
    (tmp_path / "b.conll").write_text("b N O\n")
    data = DataSection(source="conll", train=[str(tmp_path / "a.conll"), str(tmp_path / "b.conll")])
    with pytest.raises(InputError, match="do not have the same columns"):
        Sentences(Settings()).read("train", data, ReadOptions(tmp_path / "cache"))


def test_tables_can_be_predicted_too(tmp_path: Path):
    path = tmp_path / "new.jsonl"
    path.write_text('{"tokens": ["EU", "calls"]}\n')
    rows = Sentences(Settings()).read_file(path, DataSection(), ReadOptions(tmp_path / "cache"))
    assert rows.table["tokens"].to_pylist() == [["EU", "calls"]]


def test_real_tweets_are_read_whole(tmp_path: Path):
    data = DataSection(source="conll", train=str(NER / "train.conll"))
    rows = Sentences(Settings()).read("train", data, ReadOptions(tmp_path / "cache"))
    assert rows is not None
    text = (NER / "train.conll").read_text(encoding="utf-8")
    assert len(rows) == 60
    assert sum(map(len, rows.table["tokens"].to_pylist())) == sum(1 for line in text.splitlines() if line)
