"""The draft that is kept between windows."""

from pathlib import Path

import pytest

from app.core.draft.draft import Draft
from app.core.draft.kept_draft import keep_draft, read_kept


def test_a_kept_draft_is_the_same_with_its_file_and_name(tmp_path: Path):
    draft = Draft(
        {"version": 1, "name": "mine", "training": {"epochs": 3, "learning_rate": 3e-5}}, file=tmp_path / "a.yaml"
    )
    draft.named = draft.task_chosen = True
    keep_draft(draft, tmp_path / "config" / "draft.json")
    kept = read_kept(tmp_path / "config" / "draft.json")
    assert kept is not None
    assert (kept.values(), kept.file) == (draft.values(), draft.file)
    assert (kept.named, kept.task_chosen) == (True, True)


def test_the_task_of_a_draft_that_an_older_window_kept_counts_as_chosen(tmp_path: Path):
    path = tmp_path / "draft.json"
    path.write_text('{"version": 1, "values": {"task": {"type": "causal_lm"}}, "file": null, "named": false}')
    kept = read_kept(path)
    assert kept is not None
    assert kept.task_chosen


@pytest.mark.parametrize("content", ["", "{", "[]", '{"values": 3, "file": null, "named": false}', '{"values": {}}'])
def test_what_cannot_be_read_is_no_draft(tmp_path: Path, content: str):
    path = tmp_path / "draft.json"
    path.write_text(content)
    assert read_kept(path) is None
    assert read_kept(tmp_path / "none.json") is None
