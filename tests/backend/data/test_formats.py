"""JSONL, JSON, Parquet, Arrow, saved data sets and plain text, found by extension or by content."""

import json
import math
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.formats.detect import format_of
from backend.data.sources.files import Files, Settings

DATA = Path(__file__).parents[2] / "data"
TABLE = {"text": ["good", None, "ආයුබෝවන්"], "stars": [5, 1, None], "score": [0.5, math.inf, -1.0]}


def cells(rows) -> dict[str, list]:
    return rows.table.to_pydict()


def stream_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather", "stream.arrow", "parquet-without-extension"])
def test_typed_tables_keep_types_and_nulls(desk, name):
    path, table = desk.folder / name, pa.table(TABLE)
    if "parquet" in name:
        pq.write_table(table, path)
    elif name == "stream.arrow":
        path.write_bytes(stream_of(table))
    else:
        pyarrow.feather.write_feather(table, path, compression="uncompressed")
    rows = desk.read(path)
    assert cells(rows) == TABLE
    assert rows.place(2) == f"{name}:3"


def test_dictionaries_and_large_strings_become_plain_text(desk):
    path = desk.folder / "a.parquet"
    table = pa.table(
        {
            "label": pa.array(["a", "b", "a"]).dictionary_encode(),
            "text": pa.array(["x", "y", "z"], pa.large_string()),
            "words": pa.array([["x"], [], None], pa.large_list(pa.large_string())),
        }
    )
    pq.write_table(table, path)
    rows = desk.read(path)
    assert cells(rows) == {"label": ["a", "b", "a"], "text": ["x", "y", "z"], "words": [["x"], [], None]}
    assert rows.table.schema.types == [pa.string(), pa.string(), pa.list_(pa.string())]


def test_a_cut_off_parquet_file_is_refused(desk):
    path = desk.folder / "a.parquet"
    pq.write_table(pa.table(TABLE), path)
    path.write_bytes(path.read_bytes()[:-20])
    assert "a.parquet cannot be read" in desk.refusal(path)


def test_parquet_columns_of_one_name_are_refused(desk):
    path = desk.folder / "a.parquet"
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["x", "x"]), path)
    assert "two columns 'x'" in desk.refusal(path)


def test_parquet_without_rows_is_refused(desk):
    path = desk.folder / "a.parquet"
    pq.write_table(pa.table({"x": pa.array([], pa.string())}), path)
    assert "no rows" in desk.refusal(path)


def test_json_lines_keep_types_lines_and_absent_keys(desk):
    path = desk.write("a.jsonl", '{"text": "x\\ny", "n": 1}\n\n{"text": null, "n": 2.5, "more": [1, 2]}\n')
    rows = desk.read(path)
    assert cells(rows) == {"text": ["x\ny", None], "n": [1.0, 2.5], "more": [None, [1, 2]]}
    assert [rows.place(0), rows.place(1)] == ["a.jsonl:1", "a.jsonl:3"]


def test_a_column_that_appears_late_is_found(desk):
    lines = [json.dumps({"n": number}) for number in range(10_000)] + ['{"n": 0.5, "late": "here"}']
    rows = desk.read(desk.write("a.jsonl", "\n".join(lines)))
    assert rows.table.column_names == ["n", "late"]
    assert rows.table["late"].to_pylist()[-2:] == [None, "here"]


def test_lines_that_are_no_objects_are_skipped_and_placed(desk):
    rows = desk.read(desk.write("a.jsonl", '{"a": 1}\n{"a": \n[1]\n{"a": 2}\n'))
    assert cells(rows) == {"a": [1, 2]}
    assert [one.place for one in rows.skipped] == ["a.jsonl:2", "a.jsonl:3"]


def test_a_file_without_objects_is_refused(desk):
    assert "a.jsonl is not a JSON object" in desk.refusal(desk.write("a.jsonl", "hello\nthere\n"))


@pytest.mark.parametrize("between", [0, 9_000])
def test_a_column_of_two_kinds_is_refused_with_both_lines(desk, between):
    lines = ['{"label": 1}'] * (between + 1) + ['{"label": "one"}']
    sentence = desk.refusal(desk.write("a.jsonl", "\n".join(lines)))
    assert f"a.jsonl line {between + 2}: 'label' is text here but a number in line 1" in sentence


def test_nan_in_json_lines_is_understood(desk):
    values = cells(desk.read(desk.write("a.jsonl", '{"x": NaN}\n{"x": 1.0}\n')))["x"]
    assert math.isnan(values[0])
    assert values[1] == 1.0


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_json_list_is_read_with_or_without_its_wrapping(desk, wrapped):
    objects = [{"text": "a", "label": True}, {"text": "b", "label": False}]
    rows = desk.read(desk.write("a.json", json.dumps({"version": 1, "data": objects} if wrapped else objects)))
    assert cells(rows) == {"text": ["a", "b"], "label": [True, False]}
    assert rows.place(1) == "a.json:2"


def test_json_with_an_object_a_line_is_read_as_such(desk):
    assert cells(desk.read(desk.write("a.json", '{"a": 1}\n{"a": 2}\n'))) == {"a": [1, 2]}


def test_broken_json_is_refused_with_its_line(desk):
    assert "a.json line 2 is not valid JSON" in desk.refusal(desk.write("a.json", '[{"a": 1},\n{"a": }]'))


def test_an_unfinished_json_is_refused_in_whole_words(desk):
    assert "(Unterminated string);" in desk.refusal(desk.write("a.json", '[{"a": "b'))


def test_json_of_another_shape_is_refused_with_its_keys(desk):
    assert "keys train, test;" in desk.refusal(desk.write("a.json", '{"train": [], "test": []}'))
    many = json.dumps(dict.fromkeys("abcdefgh", 1))
    assert "keys a, b, c, d, e, …;" in desk.refusal(desk.write("b.json", many))


def test_json_lines_may_have_a_byte_order_mark(desk):
    assert cells(desk.read(desk.write("a.jsonl", "\ufeff" + '{"a": "é"}\n'))) == {"a": ["é"]}


def test_plain_text_is_continuous_and_keeps_blank_lines(desk):
    rows = desk.read(desk.write("a.txt", "One line.\r\n\r\n  Indented.\u2028Same line.\n"))
    assert cells(rows) == {"text": ["One line.", "", "  Indented.\u2028Same line."]}
    assert rows.continuous


def test_a_novel_comes_back_to_the_character(desk):
    path = DATA / "austen" / "persuasion-beginning.txt"
    assert "\n".join(desk.read(path).table["text"].to_pylist()) + "\n" == path.read_text(encoding="utf-8")


def test_text_of_blank_lines_alone_is_refused(desk):
    assert "a.txt is empty" in desk.refusal(desk.write("a.txt", " \n\n"))


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ('{"a": 1}\n{"a": 2}\n', ["a"]),
        ('[{"b": 1}]', ["b"]),
        ("x\ty\n1\t2\n", ["x", "y"]),
        ("x,y\n1,2\n", ["x", "y"]),
        ("Call me, if you like, Ishmael.\nSome years ago.\n", ["text"]),
    ],
)
def test_content_decides_where_the_extension_says_nothing(desk, content, names):
    assert desk.read(desk.write("data.unknown", content)).table.column_names == names


def test_the_format_can_be_given(desk):
    path = desk.write("list.txt", "text,label\nx,1\n")
    assert desk.read(path, format="csv").table.column_names == ["text", "label"]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"PK\x03\x04rest", "not a workbook"),
        (b"\x1f\x8brest", "gzip"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ],
)
def test_files_that_are_no_tables_are_refused_by_name(desk, start, words):
    assert words in desk.refusal(desk.write("a.csv", start))


@pytest.fixture
def saved() -> datasets.Dataset:
    features = datasets.Features(
        text=datasets.Value("string"),
        label=datasets.ClassLabel(names=["no", "yes"]),
        tags=datasets.List(datasets.ClassLabel(names=["O", "B"])),
    )
    return datasets.Dataset.from_dict(
        {"text": ["a", "b", "c"], "label": [1, 0, -1], "tags": [[0, 1], [], [1]]}, features=features
    )


def test_a_saved_data_set_names_its_labels_and_hides_unknown_ones(desk, saved):
    saved.save_to_disk(desk.folder / "saved", num_shards=2)
    rows = desk.read(desk.folder / "saved")
    assert cells(rows) == {"text": ["a", "b", "c"], "label": ["yes", "no", None], "tags": [["O", "B"], [], ["B"]]}


def test_a_parquet_file_with_named_labels_names_them(desk, saved):
    saved.to_parquet(desk.folder / "a.parquet")
    assert cells(desk.read(desk.folder / "a.parquet"))["label"] == ["yes", "no", None]


def test_a_saved_dictionary_gives_the_split_of_our_name(desk, saved):
    datasets.DatasetDict(train=saved, validation=saved.select([2])).save_to_disk(desk.folder / "saved")
    assert len(desk.read(desk.folder / "saved")) == 3
    assert cells(desk.read(desk.folder / "saved", split="validation"))["text"] == ["c"]


def test_a_saved_dictionary_without_our_split_is_refused_with_those_it_has(desk, saved):
    datasets.DatasetDict(train=saved, other=saved).save_to_disk(desk.folder / "saved")
    sentence = desk.refusal(desk.folder / "saved", split="validation")
    assert "no split 'validation': train, other" in sentence
    assert str(desk.folder / "saved" / "train") in sentence
    assert len(desk.read(desk.folder / "saved" / "other")) == 3


def test_one_more_file_is_read_whole_whatever_the_limit_of_the_splits(desk):
    path = desk.write("a.csv", "text\nx\ny\n")
    assert len(Files(Settings()).read_file(path, DataSection(max_rows=1), desk.reading)) == 2


def test_a_fraction_and_nothing_name_no_rows(desk):
    source = Files(Settings())
    data = DataSection(validation=0.1)
    assert source.read("validation", data, desk.reading) is None
    assert source.read("train", data, desk.reading) is None


def test_an_unknown_encoding_is_no_setting():
    with pytest.raises(ValueError, match="not a text encoding"):
        Settings(encoding="klingon")


def test_one_more_file_that_is_missing_is_refused(desk):
    with pytest.raises(InputError, match="no such file"):
        Files(Settings()).read_file(desk.folder / "nowhere.csv", DataSection(), desk.reading)


@pytest.mark.parametrize(
    ("name", "content", "source"),
    [("tweets.conll", "Rome\tB-LOC\n", "conll"), ("train.json", '{"data": [{"paragraphs": [{"qas": []}]}]}', "squad")],
)
def test_a_file_of_another_source_is_refused_with_its_name(tmp_path, name, content, source):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=f"data.source: {source}"):
        format_of(path)
