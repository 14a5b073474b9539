"""Notes and tags of runs."""

from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder
from backend.contract.run.notes import RunNotes, change_notes, notes_file, read_notes, tags_of, write_notes


def test_what_was_written_is_read(tmp_path: Path):
    folder = RunFolder(tmp_path)
    write_notes(folder, RunNotes("naïve\nbaseline", ("a", "b")))
    assert read_notes(folder) == RunNotes("naïve\nbaseline", ("a", "b"))


@pytest.mark.parametrize("content", ["", "[1]", '{"tags": 5}', "\0"])
def test_a_damaged_file_counts_as_none(tmp_path: Path, content: str):
    folder = RunFolder(tmp_path)
    notes_file(folder).write_text(content)
    assert read_notes(folder) == RunNotes()


def test_tags_are_divided_by_commas_and_spaces_and_stand_once():
    assert tags_of(["#paper, old", "paper;  lr-1e-3"]) == ("paper", "old", "lr-1e-3")


def test_a_sentence_is_no_tag():
    with pytest.raises(InputError, match="at most 40 letters"):
        tags_of(["x" * 41])


def test_a_folder_that_takes_no_file_says_so(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be written"):
        write_notes(RunFolder(tmp_path / "gone"), RunNotes("x"))


def test_two_who_change_different_words_keep_both(tmp_path: Path):
    folder, seen = RunFolder(tmp_path), RunNotes("first", ("paper",))
    write_notes(folder, seen)
    change_notes(folder, lambda stored: stored.merge_edits(seen, RunNotes("better", ("paper",))))
    change_notes(folder, lambda stored: stored.merge_edits(seen, RunNotes("first", ("paper", "baseline"))))
    assert read_notes(folder) == RunNotes("better", ("paper", "baseline"))
