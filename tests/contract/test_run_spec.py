"""The spec of a run folder, which may be a stranger's, is one file: nothing is included and no link is followed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import MAX_SPEC


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run of which only the spec is missing."""
    (tmp_path / "outside.yaml").write_text("name: stolen\n", encoding="utf-8")
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path / "run")


def test_spec_of_a_run_is_read(run: RunFolder):
    run.spec.write_text("\ufeffname: reviews\ntraining: {learning_rate: 3e-5}\n", encoding="utf-8")
    assert spec_file.read_run(run.spec) == {"name": "reviews", "training": {"learning_rate": 3e-5}}


@pytest.mark.parametrize("include", ["../outside.yaml", "[../outside.yaml]", "preset:quick", "/dev/zero", "[]", "null"])
def test_include_is_refused(run: RunFolder, include: str):
    run.spec.write_text(f"include: {include}\nname: reviews\n", encoding="utf-8")
    with pytest.raises(InputError, match="includes another") as refused:
        spec_file.read_run(run.spec)
    assert str(refused.value).startswith(str(run.spec))


MADE: dict[str, tuple[Callable[[Path], object], str]] = {
    "link": (lambda path: path.symlink_to("../outside.yaml"), "it is a link"),
    "link to itself": (lambda path: path.symlink_to("spec.yaml"), "it is a link"),
    "link to a device": (lambda path: path.symlink_to("/dev/zero"), "it is a link"),
    "pipe": (os.mkfifo, "not a regular file"),
    "folder": (Path.mkdir, "is a folder"),
    "nothing": (lambda path: None, "no such spec file"),
    "huge": (lambda path: (path.touch(), os.truncate(path, MAX_SPEC + 1)), "too large"),
    "bytes": (lambda path: path.write_bytes(b"name: \xff\n"), "not UTF-8"),
    "list": (lambda path: path.write_text("- name\n"), "a spec is a mapping"),
    "NUL": (lambda path: path.write_bytes(b"name: a\0b\n"), "not valid YAML"),
}


@pytest.mark.parametrize("made", MADE)
def test_spec_that_is_no_file_of_the_run_is_one_sentence(run: RunFolder, made: str):
    make, words = MADE[made]
    make(run.spec)
    with pytest.raises(InputError, match=words) as refused:
        spec_file.read_run(run.spec)
    assert str(refused.value).startswith(str(run.spec))


def test_run_folder_behind_a_link_is_the_users_choice(run: RunFolder):
    run.spec.write_text("name: reviews\n", encoding="utf-8")
    (run.path.parent / "named").symlink_to(run.path)
    assert spec_file.read_run(RunFolder(run.path.parent / "named").spec) == {"name": "reviews"}
