"""Tests that files, folders and addresses are recognised by what is in them, whatever they are called."""

import gzip
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from backend.contract.errors import InputError
from backend.contract.rpc.data import RecognisedData
from backend.inspect import recognition
from backend.inspect.data_report import data_report, request_of_data
from backend.inspect.recognition import recognise

DATA = Path(__file__).parents[2] / "data"
TABLE = "text,label\n" + "".join(f"a film of {number},{number % 2}\n" for number in range(6))
PACKED_TABLE = gzip.compress(TABLE.encode(), mtime=0)  # the same bytes in every process
CONLL = "Ann B-PER\nlives O\n.\tO\n\nBonn B-LOC\n. O\n".replace("\t", " ")


def written(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def found_in(path: Path | str, split: str | None = None) -> RecognisedData:
    return recognise([str(path)], split)


@pytest.mark.parametrize(
    ("name", "content", "data"),
    [
        ("reviews.txt", TABLE, {"format": "csv"}),
        ("reviews.txt", TABLE.replace(",", "\t"), {"format": "tsv"}),
        ("reviews.csv", TABLE.replace(",", "\t"), {}),
        ("reviews.json", '{"text": "a"}\n{"text": "b"}\n', {}),
        ("reviews.jsonl", '[\n{"text": "a"},\n{"text": "b"}]', {}),
        ("reviews.csv", '{"text": "a"}\n{"text": "b"}\n', {}),
        ("reviews.csv.gz", PACKED_TABLE, {}),
        ("reviews.txt.gz", PACKED_TABLE, {"format": "csv"}),
        ("novel.txt", "Call me, if you like, Ishmael.\nSome, say, years ago.\nNever mind, how, long.\n" * 3, {}),
    ],
)
def test_a_table_is_known_whatever_its_ending(tmp_path: Path, name: str, content: str | bytes, data: dict[str, str]):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert found_in(path).data == {"source": "files", "train": str(path), **data}


def test_a_parquet_file_needs_no_ending(tmp_path: Path):
    pyarrow.parquet.write_table(pa.table({"text": ["a"]}), tmp_path / "part-0")
    found = found_in(tmp_path / "part-0")
    assert (found.data["train"], found.words) == (str(tmp_path / "part-0"), "This is Parquet: part-0 for training.")


@pytest.mark.parametrize(
    ("place", "source", "task"),
    [
        ("squad/train.json", "squad", "question_answering"),
        ("ner/train.conll", "conll", "token_classification"),
        ("glue/RTE", "glue", "text_classification"),
        ("glue/STS-B", "glue", "text_regression"),
        ("parallel", "tatoeba", "seq2seq_lm"),
        ("xnli", "xnli", "text_classification"),
    ],
)
def test_each_source_knows_its_own_files(place: str, source: str, task: str):
    found = found_in(DATA / place)
    assert (found.data["source"], found.task) == (source, task)


def test_words_with_their_tags_are_known_without_an_ending_that_says_so(tmp_path: Path):
    written(tmp_path, tags_dot_txt=CONLL)
    assert found_in(tmp_path / "tags.txt").data["source"] == "conll"


@pytest.mark.parametrize(
    ("tags", "source"), [(["DET", "NOUN", "VERB"], "conll"), (["DET", "NOUN", "VERB", "ADJ"], "files")]
)
def test_words_with_few_different_tags_are_known_by_them(tmp_path: Path, tags: list[str], source: str):
    lines = [f"word{number} {tags[number % len(tags)]}\n" for number in range(12)]
    written(tmp_path, tags_dot_txt="".join(lines[:6]) + "\n" + "".join(lines[6:]))
    assert found_in(tmp_path / "tags.txt").data["source"] == source


def test_pairs_of_languages_are_found_beside_each_other(tmp_path: Path):
    written(tmp_path, train_dot_en="a\nb\n", train_dot_de="x\ny\n", dev_dot_en="c\n", dev_dot_de="z\n")
    found = found_in(tmp_path)
    assert found.data == {
        "source": "parallel", "train": str(tmp_path / "train"), "validation": str(tmp_path / "dev"),
        "source_ending": "de", "target_ending": "en",
    }  # fmt: skip


def test_files_of_a_folder_find_their_splits_by_name_and_the_rest_is_told(tmp_path: Path):
    written(
        tmp_path, train_dot_csv=TABLE, dev_dot_csv=TABLE, my_test_dot_csv=TABLE, README_dot_md="#", old_dot_csv=TABLE
    )
    found = found_in(tmp_path)
    assert {split: Path(found.data[split]).name for split in ("train", "validation", "test")} == {
        "train": "train.csv", "validation": "dev.csv", "test": "my_test.csv"
    }  # fmt: skip
    assert [one.name for one in found.left_out] == ["README.md", "old.csv"]


def test_folders_named_for_splits_count_too(tmp_path: Path):
    written(tmp_path, train__a_dot_csv=TABLE, train__b_dot_csv=TABLE, validation__a_dot_csv=TABLE)
    found = found_in(tmp_path)
    assert [Path(one).name for one in found.data["train"]] == ["a.csv", "b.csv"]
    assert Path(found.data["validation"]).parent.name == "validation"


def test_folder_of_training_files_is_named_as_one_folder(tmp_path: Path):
    written(tmp_path, corpus__a_dot_txt="One.\n", corpus__b_dot_txt="Two.\n", corpus__README_dot_md="#")
    found = found_in(tmp_path / "corpus")
    assert found.data == {"source": "files", "train": str(tmp_path / "corpus")}
    assert found.words == "This is plain text: the folder corpus with 2 files for training."


def test_files_of_a_folder_are_listed_if_its_name_would_read_others(tmp_path: Path):
    written(tmp_path, a_dot_csv=TABLE, b_dot_csv=TABLE, c_dot_csv="")
    assert [Path(one).name for one in found_in(tmp_path).data["train"]] == ["a.csv", "b.csv"]


def test_a_file_alone_is_training_data_whatever_its_name(tmp_path: Path):
    written(tmp_path, test_dot_csv=TABLE)
    assert found_in(tmp_path / "test.csv").data["train"] == str(tmp_path / "test.csv")


def test_a_drop_on_a_split_is_that_split(tmp_path: Path):
    written(tmp_path, train_dot_csv=TABLE)
    assert found_in(tmp_path / "train.csv", "validation").data == {
        "source": "files", "validation": str(tmp_path / "train.csv")
    }  # fmt: skip


def test_a_saved_data_set_gives_its_splits(tmp_path: Path):
    written(tmp_path, dataset_dict_dot_json=json.dumps({"splits": ["train", "dev"]}))
    assert found_in(tmp_path).data == {
        "source": "files", "train": str(tmp_path / "train"), "validation": str(tmp_path / "dev")
    }  # fmt: skip


@pytest.mark.parametrize(
    "address", ["https://huggingface.co/datasets/stanfordnlp/imdb", "hf://datasets/stanfordnlp/imdb"]
)
def test_an_address_of_the_hub_is_its_data_set(address: str):
    assert found_in(address).data == {"source": "hub", "name": "stanfordnlp/imdb", "train": "train", "validation": 0.1}


def test_a_file_address_is_its_path(tmp_path: Path):
    path = written(tmp_path, a__with_space_dot_csv=TABLE) / "a" / "with_space.csv"
    assert found_in(path.as_uri()).data["train"] == str(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x89PNG\r\n\x1a\n", "is an image"),
        (b"", "is empty"),
        (b"PK\x03\x04rest", "not a workbook"),
        (b"\x1f\x8bjunk", "damaged"),
    ],
)
def test_what_holds_no_rows_is_refused_in_one_sentence(tmp_path: Path, content: bytes, words: str):
    (tmp_path / "thing").write_bytes(content)
    with pytest.raises(InputError, match=f"^thing .*{words}"):
        found_in(tmp_path / "thing")


def test_a_model_is_not_taken_for_data_because_of_its_json_files(tmp_path: Path):
    model = tmp_path / "my-bert"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    (model / "model.safetensors").write_bytes(b"weights")
    for place in (model, model / "model.safetensors"):
        with pytest.raises(
            InputError, match=f"{place.name} is a model, not data; use its folder as model.name_or_path"
        ):
            found_in(place)


def test_a_folder_of_one_file_without_rows_is_not_called_these_1_files(tmp_path: Path):
    written(tmp_path, README_dot_md="#")
    with pytest.raises(InputError, match=r"^README.md, the only file here, does not contain rows \(.*use CSV"):
        found_in(tmp_path)


def test_a_folder_without_rows_says_what_would_do(tmp_path: Path):
    written(tmp_path, README_dot_md="#", picture_dot_png=b"\x89PNG")
    with pytest.raises(InputError, match=r"none of these 2 files contains rows.* use CSV"):
        found_in(tmp_path)


def test_another_address_is_refused_with_the_way_out():
    with pytest.raises(InputError, match="download the file first"):
        found_in("https://example.org/data.csv")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "text,label\nverse,poes\u00c3\u00ada\n".encode(),
            "column “label” .*“poes\u00c3\u00ada” in a.csv:2 is probably “poesía”",
        ),
        ("text,label\nverse,poesía\n".encode("cp1252"), "as Windows-1252 it reads “verse,poesía”"),
    ],
)
def test_text_in_another_encoding_is_warned_of(tmp_path: Path, content: bytes, words: str):
    (tmp_path / "a.csv").write_bytes(content)
    [warning] = found_in(tmp_path / "a.csv").warnings
    assert re.search(words, warning)


def test_the_encoding_that_a_file_has_stands_in_the_data(tmp_path: Path):
    (tmp_path / "train.csv").write_bytes("text,label\nverse,poesía\n".encode("cp1252"))

    found = found_in(tmp_path)
    (tmp_path / "dev.csv").write_text("text,label\nverse,poesía\n", encoding="utf-8")
    mixed = found_in(tmp_path)

    assert found.data["encoding"] == "windows-1252"
    assert "--set" not in found.warnings[0]
    assert "encoding" not in mixed.data
    assert (len(mixed.unreadable), mixed.warnings, found.unreadable) == (1, [], [])  # who reads it is told the same


def test_an_encoding_that_would_break_another_file_is_not_set(tmp_path: Path):
    (tmp_path / "a.csv").write_bytes("text,label\nverse,poesía\n".encode("cp1252"))
    (tmp_path / "b.csv").write_text("text,label\nverse,poesía\n", encoding="utf-8")

    found = found_in(tmp_path)

    assert "encoding" not in found.data
    assert "different encodings (not UTF-8: a.csv; UTF-8: b.csv)" in found.unreadable[0]


def test_sentence_about_the_encoding_is_made_of_values(tmp_path: Path):
    (tmp_path / "train.csv").write_bytes("text,label\nverse,poesía: if that is right, use --set x\n".encode("cp1252"))
    assert found_in(tmp_path / "train.csv").warnings == [
        "train.csv is not UTF-8; as Windows-1252 it reads “verse,poesía: if that is right, use --set x”, so data.encoding is set to that; if that text is wrong, change windows-1252 to the encoding of the file, or save it again as UTF-8"
    ]


def test_files_in_the_same_encoding_are_named_in_one_sentence(tmp_path: Path):
    for name in ("train.csv", "test.csv"):
        (tmp_path / name).write_bytes("text,label\nverse,poesía\n".encode("cp1252"))
    [warning] = found_in(tmp_path).warnings
    assert warning.startswith("train.csv, test.csv are not UTF-8; as Windows-1252 the first reads “verse,poesía”")


def test_long_json_is_not_read_whole_to_be_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written(tmp_path, a_dot_json='[{"text": "poes\u00c3\u00ada"}]')
    assert found_in(tmp_path / "a.json").warnings
    monkeypatch.setattr(recognition, "_LONGEST_JSON", 10)
    assert found_in(tmp_path / "a.json").warnings == []


@pytest.mark.parametrize("rows", ["A film, which I liked\nNo, never\n", "plain\nWell, well, well\n"])
def test_texts_with_commas_under_one_name_are_one_column(tmp_path: Path, rows: str):
    path = written(tmp_path, a_dot_csv=f"text\n{rows}") / "a.csv"
    found = found_in(path)
    assert found.data["delimiter"] == "\t"
    assert found.warnings[0].startswith(
        "a.csv has one column in its header, but its rows contain commas, so every line is read as one text"
    )
    report = data_report(request_of_data(found.data, {}, None, tmp_path / "cache"))
    assert report.splits["train"].rows == 2
    assert report.splits["train"].unusable == 0


@pytest.mark.parametrize(
    "content", ['text\n"A film, which I liked"\nplain\n', "text,label\na,b\nb,c\n", "text\na\nb\n"]
)
def test_ordinary_table_keeps_its_delimiter(tmp_path: Path, content: str):
    found = found_in(written(tmp_path, a_dot_csv=content) / "a.csv")
    assert "delimiter" not in found.data
    assert found.warnings == []


def test_one_column_without_a_usable_row_says_the_way_out(tmp_path: Path):
    path = written(tmp_path, a_dot_csv="text\nNo, never\nWell, well\n") / "a.csv"
    with pytest.raises(InputError, match=r"if every line is one text, set data\.delimiter to a character"):
        data_report(request_of_data({"train": str(path)}, {}, None, tmp_path / "cache"))


CHANCE = bytes((number * 37 + number // 7) % 128 or 1 for number in range(4000))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.jsonl", "a.csv.gz", "a"])
def test_bytes_of_chance_are_no_rows(tmp_path: Path, name: str):
    (tmp_path / name).write_bytes(gzip.compress(CHANCE) if name.endswith(".gz") else CHANCE)
    with pytest.raises(InputError, match="contains control characters, which do not occur in text; use a file"):
        found_in(tmp_path / name)


@pytest.mark.parametrize("source", [{"source": "conll"}, {"source": "files", "format": "csv"}])
def test_every_source_refuses_bytes_of_chance(tmp_path: Path, source: dict[str, str]):
    (tmp_path / "a.csv").write_bytes(CHANCE)
    with pytest.raises(InputError, match="contains control characters, which do not occur"):
        data_report(request_of_data({"train": str(tmp_path / "a.csv"), **source}, {}, None, tmp_path / "cache"))


def test_text_cut_at_a_control_character_is_text(tmp_path: Path):
    found = found_in(written(tmp_path, a_dot_txt="one\x01two\x02\n" * 50) / "a.txt")
    assert found.words == "This is plain text: a.txt for training."


def test_lost_letters_are_counted_and_shown(tmp_path: Path):
    written(tmp_path, a_dot_csv="text,label\nfine,1\nSch\ufffdne Gr\ufffd\ufffde,2\n")

    [warning] = found_in(tmp_path / "a.csv").warnings

    assert "has 3 replacement characters (U+FFFD)" in warning
    assert "“Sch\ufffdne” in a.csv:3; export the data again" in warning
    assert data_report(request_of_data({"train": str(tmp_path / "a.csv")}, {}, None, tmp_path)).notes == [warning]


def test_text_that_reads_well_is_not_warned_of(tmp_path: Path):
    written(tmp_path, a_dot_csv="text,label\nverse,poesía\n")
    assert found_in(tmp_path / "a.csv").warnings == []


def texts(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("good\n")
    return folder


@pytest.mark.parametrize(
    "files", [["pos/1.txt", "pos/2.txt", "neg/1.txt"], ["train/pos/1.txt", "train/neg/1.txt", "test/pos/1.txt"]]
)
def test_folders_that_may_be_labels_are_told_with_the_way_out(tmp_path: Path, files: list[str]):
    (said,) = found_in(texts(tmp_path / "data", *files)).warnings
    assert said.startswith("The text files are in the folders neg, pos. If these are labels, create one table")


@pytest.mark.parametrize("files", [["train/1.txt", "test/1.txt"], ["1.txt", "2.txt"], ["pos/1.txt", "pos/2.txt"]])
def test_folders_that_are_no_labels_are_not_told(tmp_path: Path, files: list[str]):
    assert found_in(texts(tmp_path / "data", *files)).warnings == []
