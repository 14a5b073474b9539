"""Tests how a file that a run predicts is read: by its content, or as the run's own files were."""

from pathlib import Path

import pytest

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder
from backend.inference.new_file import NewFile, read_new_file

MODEL = resource("demo", "bert-tiny")
GREETINGS = "Schöne Grüße"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run whose files were Windows-1252 with colons between their cells; no model is needed to read another file."""
    folder = RunFolder(tmp_path / "runs" / "2026-11-21-1530-greetings")
    folder.model.mkdir(parents=True)
    (folder.model / "config.json").write_text("{}", encoding="utf-8")
    spec = {"version": 1, "name": "greetings", "task": {"type": "text_classification"}}
    spec |= {"data": {"train": "x.csv", "columns": {"text": "text"}, "encoding": "windows-1252", "delimiter": ":"}}
    spec |= {"model": {"name_or_path": str(MODEL)}, "hardware": {"device": "cpu"}}
    folder.spec.write_text(spec_file.dump(spec), encoding="utf-8")
    return folder


def read(run: RunFolder, content: str, encoding: str, changes: tuple[str, ...] = ()) -> NewFile:
    file = run.path.parent.parent / "new.csv"
    file.write_text(content, encoding=encoding)
    return read_new_file(str(run.path), file, changes=list(changes))


def texts(found: NewFile) -> list[str]:
    return found.rows.table["text"].to_pylist()


def test_utf8_is_read_as_utf8(run: RunFolder) -> None:
    found = read(run, f"text,label\n{GREETINGS},good\n", "utf-8")

    assert (texts(found), found.note) == ([GREETINGS], "")


def test_encoding_of_the_run_is_used_alone_if_that_is_enough(run: RunFolder) -> None:
    found = read(run, f"text;label\n{GREETINGS};good\n", "windows-1252")

    assert texts(found) == [GREETINGS]
    assert found.note == "new.csv was read like the run's own files, with data.encoding: windows-1252"


def test_delimiter_of_the_run_is_used_if_the_columns_are_missing_without(run: RunFolder) -> None:
    found = read(run, f"text:label\n{GREETINGS}:good\n", "windows-1252")

    assert texts(found) == [GREETINGS]
    assert found.note.endswith("data.delimiter: ':'")


def test_delimiter_of_the_run_is_used_without_its_encoding(run: RunFolder) -> None:
    found = read(run, f"text:label\n{GREETINGS}:good\n", "utf-8")

    assert texts(found) == [GREETINGS]
    assert found.note == "new.csv was read like the run's own files, with data.delimiter: ':'"


def test_run_without_a_model_is_refused_before_its_settings_are_read(run: RunFolder) -> None:
    (run.model / "config.json").unlink()
    run.spec.write_text("task: 3", encoding="utf-8")

    with pytest.raises(InputError, match="has no model yet"):
        read(run, "text,label\na,good\n", "utf-8")


def test_file_that_is_readable_without_the_run_but_has_other_columns_is_read_without(run: RunFolder) -> None:
    found = read(run, f"review,label\n{GREETINGS},good\n", "utf-16")

    assert (found.rows.table.column_names, found.note) == (["review", "label"], "")


def test_what_is_asked_for_comes_before_the_run(run: RunFolder) -> None:
    found = read(run, f"text:label\n{GREETINGS}:good\n", "mac-roman", ("data.encoding=mac-roman",))

    assert texts(found) == [GREETINGS]
    assert "encoding" not in found.note


def test_file_that_the_run_does_not_help_with_is_refused_as_without_it(run: RunFolder) -> None:
    with pytest.raises(InputError, match="is empty"):
        read(run, "", "utf-8")
