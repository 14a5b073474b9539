"""Files, lists, patterns and folders, and how their columns come together."""

import json
import os
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.data import data_files as paths
from backend.data.data_files import data_files, folder_files


def test_a_list_keeps_its_order_and_says_which_file_a_row_is_from(desk):
    rows = desk.read(desk.write("b.csv", "text\nx\n"), desk.write("a.csv", "text\ny\nz\n"))
    assert rows.table["text"].to_pylist() == ["x", "y", "z"]
    assert [rows.place(row) for row in range(3)] == ["b.csv:2", "a.csv:2", "a.csv:3"]


@pytest.mark.parametrize("how", ["folder", "pattern"])
def test_folders_and_patterns_give_their_files_in_order(desk, how):
    for name in ("2.csv", "1.csv", ".hidden.csv"):
        desk.write(f"many/{name}", f"text\nfrom {name}\n")
    desk.write("many/README.md", "not data")
    path = desk.folder / "many"
    rows = desk.read(path if how == "folder" else path / "*.csv")
    assert rows.table["text"].to_pylist() == ["from 1.csv", "from 2.csv"]


def test_files_named_alike_are_told_apart_by_their_folders(desk):
    rows = desk.read(desk.write("en/a.csv", "text\nx\n"), desk.write("de/a.csv", "text\ny\n"))
    assert rows.files == ("en/a.csv", "de/a.csv")


def test_columns_in_another_order_are_united_by_name(desk):
    rows = desk.read(desk.write("a.csv", "text,label\nx,1\n"), desk.write("b.csv", "label,text\n2,y\n"))
    assert rows.table.to_pydict() == {"text": ["x", "y"], "label": ["1", "2"]}


def test_whole_numbers_widen_to_fractions_across_files(desk):
    rows = desk.read(desk.write("a.jsonl", '{"n": 1}\n'), desk.write("b.jsonl", '{"n": 0.5}\n'))
    assert rows.table["n"].to_pylist() == [1.0, 0.5]


def test_other_columns_are_refused_by_name(desk):
    sentence = desk.refusal(desk.write("a.csv", "text,label\nx,1\n"), desk.write("b.csv", "text,stars\ny,2\n"))
    assert "a.csv and b.csv do not have the same columns: only one of them has label, stars" in sentence


def test_columns_of_other_kinds_are_refused_by_name(desk):
    sentence = desk.refusal(desk.write("a.csv", "n\n1\n"), desk.write("b.jsonl", '{"n": 1}\n'))
    assert "'n' is string in a.csv and int64 in b.jsonl" in sentence


def test_a_missing_file_is_refused_with_the_one_that_is_nearly_named_so(desk):
    desk.write("reviews.csv", "text\nx\n")
    sentence = desk.refusal(desk.folder / "review.csv")
    assert sentence.startswith("data.train: ")
    assert "there is no such file" in sentence
    assert "found: reviews.csv" in sentence


def test_a_pattern_without_files_is_refused(desk):
    assert "no file matches the pattern" in desk.refusal(desk.folder / "*.csv")


def test_a_folder_without_files_is_refused(desk):
    (desk.folder / "empty").mkdir()
    assert "has no files" in desk.refusal(desk.folder / "empty")


def test_a_folder_of_several_kinds_is_refused_with_a_pattern(desk):
    desk.write("many/a.csv", "text\nx\n")
    desk.write("many/b.txt", "x\n")
    sentence = desk.refusal(desk.folder / "many")
    assert ".csv, .txt" in sentence
    assert "*.csv" in sentence


def test_a_file_with_brackets_in_its_name_is_no_pattern(desk):
    assert len(desk.read(desk.write("a[1].csv", "text\nx\n"))) == 1


def test_max_rows_counts_over_all_files(desk):
    rows = desk.read(desk.write("a.csv", "text\nx\ny\n"), desk.write("b.csv", "text\nz\nw\n"), max_rows=3)
    assert rows.table["text"].to_pylist() == ["x", "y", "z"]


@pytest.mark.parametrize("name", ["../secret.arrow", "{outside}", "sub/../../secret.arrow", "..", "", 5, None, ["a"]])
@pytest.mark.parametrize("kind", ["state.json", "dataset_dict.json"])
def test_a_saved_data_set_names_nothing_outside_its_folder(tmp_path: Path, kind: str, name: object):
    (tmp_path / "secret.arrow").write_text("a token")
    folder = tmp_path / "saved"
    folder.mkdir()
    given = name.format(outside=tmp_path / "secret.arrow") if isinstance(name, str) else name
    (folder / "dataset_info.json").write_text("{}")
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": given}]}))
    if kind == "dataset_dict.json":
        (folder / kind).write_text(json.dumps({"splits": [given]}))
    with pytest.raises(InputError, match="is not in its folder"):
        data_files(str(folder), None)


@pytest.mark.parametrize("value", [5, None, "train", {"a": 1}, [5]])
def test_a_damaged_list_of_a_saved_data_set_is_one_sentence(tmp_path: Path, value: object):
    (tmp_path / "dataset_info.json").write_text("{}")
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": value}))
    with pytest.raises(InputError, match="save"):
        data_files(str(tmp_path), None)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize("how", ["folder", "pattern", "pattern of folders", "saved", "saved split"])
def test_links_found_in_a_folder_do_not_lead_out_of_it(tmp_path: Path, how: str):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "train.txt").write_text("a token\n")
    folder = tmp_path / "data"
    (folder / "rows").mkdir(parents=True)
    (folder / "linked").symlink_to(tmp_path / "home")
    if how == "saved split":
        (folder / "dataset_dict.json").write_text('{"splits": ["linked"]}')
        for name, content in (("dataset_info.json", {}), ("state.json", {"_data_files": [{"filename": "train.txt"}]})):
            (tmp_path / "home" / name).write_text(json.dumps(content))
    elif how != "pattern of folders":
        (folder / "train.txt").symlink_to("../home/train.txt")
    if how == "saved":
        (folder / "dataset_info.json").write_text("{}")
        (folder / "state.json").write_text('{"_data_files": [{"filename": "train.txt"}]}')
    given = {"pattern": folder / "*.txt", "pattern of folders": folder / "*" / "train.txt"}.get(how, folder)
    with pytest.raises(InputError, match="is a link that points outside"):
        data_files(str(given), None)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_links_that_the_user_names_or_the_hub_has_made_are_followed(tmp_path: Path):
    snapshot = tmp_path / "datasets--a--b" / "snapshots" / "0f" / "data"
    blob = tmp_path / "datasets--a--b" / "blobs" / "1e"
    snapshot.mkdir(parents=True)
    blob.parent.mkdir()
    blob.write_text("text\nx\n")
    (snapshot / "train.csv").symlink_to("../../../blobs/1e")
    (snapshot / "inside.csv").symlink_to("train.csv")
    (tmp_path / "named").symlink_to(snapshot)
    (tmp_path / "named.csv").symlink_to(blob)
    assert data_files(str(tmp_path / "named.csv"), None) == [tmp_path / "named.csv"]
    assert data_files(str(tmp_path / "named"), "train") == [tmp_path / "named" / "train.csv"]
    assert data_files(str(snapshot / "t*.csv"), "train") == [snapshot / "train.csv"]


@pytest.mark.parametrize("where", ["", ".git/", "_cache/"])
def test_hidden_files_are_looked_through_within_a_limit(where, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "MAX_ENTRIES", 20)
    (tmp_path / where).mkdir(exist_ok=True)
    (tmp_path / "rows.csv").write_text("text\na\n")
    for number in range(30):
        (tmp_path / where / f".{number}").touch()
    if where:
        assert folder_files(tmp_path)[0] == [tmp_path / "rows.csv"]
    else:
        with pytest.raises(InputError, match="contains more than 20 files and folders, including hidden ones; specify"):
            folder_files(tmp_path)


def test_links_in_a_circle_are_not_followed(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "sub" / "rows.csv").write_text("text\na\n")
    assert folder_files(tmp_path)[0] == [tmp_path / "sub" / "rows.csv"]


def test_pattern_of_too_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "MAX_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}.csv").write_text("text\na\n")
    with pytest.raises(InputError, match="more than 3 files match the pattern"):
        data_files(str(tmp_path / "*.csv"), None)
