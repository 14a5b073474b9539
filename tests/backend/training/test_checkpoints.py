"""Checkpoints are whole or not there."""

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from backend.contract.run.folder import RunFolder
from backend.training.checkpoints import Checkpoints, verify


def filled_with(text: str):
    def write(folder: Path) -> None:
        (folder / "model.safetensors").write_text(text)

    return write


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(RunFolder(tmp_path))


def test_the_highest_step_that_verifies_is_the_latest(checkpoints: Checkpoints):
    checkpoints.save(5, filled_with("five"))
    ten = checkpoints.save(10, filled_with("ten"))
    (ten / "model.safetensors").write_text("tin")
    assert checkpoints.latest() == 5


def test_a_full_disk_leaves_the_old_checkpoint_and_nothing_else(checkpoints: Checkpoints, tmp_path: Path):
    checkpoints.save(5, filled_with("five"))

    def disk_full(folder: Path) -> None:
        (folder / "model.safetensors").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        checkpoints.save(10, disk_full)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000005"]
    assert verify(tmp_path / "checkpoints" / "step-000005")


def test_a_damaged_checkpoint_is_replaced(checkpoints: Checkpoints):
    damaged = checkpoints.save(5, filled_with("five"))
    (damaged / "model.safetensors").unlink()
    checkpoints.save(5, filled_with("again"))
    assert (damaged / "model.safetensors").read_text() == "again"


def test_a_good_checkpoint_is_never_overwritten(checkpoints: Checkpoints):
    path = checkpoints.save(5, filled_with("five"))
    checkpoints.save(5, filled_with("other"))
    assert (path / "model.safetensors").read_text() == "five"


def test_the_best_is_kept_beside_the_newest(checkpoints: Checkpoints):
    for step in (1, 2, 3, 4):
        checkpoints.save(step, filled_with(str(step)))
    assert checkpoints.remove_older(4, keep=2, best_step=1).steps == [2]
    assert checkpoints.steps() == [1, 3, 4]


def test_a_damaged_later_checkpoint_drives_out_no_good_one(checkpoints: Checkpoints):
    later = checkpoints.save(9, filled_with("nine"))
    (later / "model.safetensors").unlink()
    checkpoints.save(5, filled_with("five"))
    assert checkpoints.remove_older(5, keep=1, best_step=None).steps == []
    assert checkpoints.latest() == 5


def test_leftovers_of_a_killed_save_are_cleared(checkpoints: Checkpoints, tmp_path: Path):
    (tmp_path / "checkpoints" / ".step-000007.123").mkdir(parents=True)
    checkpoints.clear_leftovers()
    assert list((tmp_path / "checkpoints").iterdir()) == []


def stated(folder: Path, name: object, content: bytes = b"five") -> None:
    """Let the manifest name one file, as if it had that content."""
    files = {name: [len(content), hashlib.sha256(content).hexdigest()]}
    (folder / "checkpoint.json").write_text(json.dumps({"step": 5, "files": files}))


@pytest.mark.parametrize(
    "name", ["../outside", "sub/../../outside", "{folder}/outside", "", ".", "a\0b", "link", "by/link"]
)
def test_a_manifest_names_only_files_of_its_checkpoint(checkpoints: Checkpoints, name: str):
    folder = checkpoints.save(5, filled_with("five"))
    outside = folder.parent / "outside"
    outside.write_bytes(b"five")
    (folder / "link").symlink_to(outside)
    (folder / "by").mkdir()
    (folder / "by" / "link").symlink_to(outside)
    stated(folder, name.format(folder=folder.parent))
    assert not verify(folder)
    stated(folder, "model.safetensors")
    assert verify(folder)


@pytest.mark.parametrize("content", ["[" * 100_000, "5", '{"files": {"model.safetensors": []}}', '{"files": 5}'])
def test_a_manifest_of_another_shape_verifies_nothing(checkpoints: Checkpoints, content: str):
    folder = checkpoints.save(5, filled_with("five"))
    (folder / "checkpoint.json").write_text(content)
    assert not verify(folder)
    assert checkpoints.written_by(5) == ""


def test_an_endless_file_is_not_read(checkpoints: Checkpoints):
    folder = checkpoints.save(5, filled_with("five"))
    os.mkfifo(folder / "pipe")
    stated(folder, "pipe")
    assert not verify(folder)
    (folder / "checkpoint.json").unlink()
    (folder / "checkpoint.json").symlink_to("/dev/zero")
    assert not verify(folder)


def test_a_file_of_another_size_is_not_hashed(checkpoints: Checkpoints):
    folder = checkpoints.save(5, filled_with("five"))
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 42)  # takes no room on the disk, and an hour to read
    stated(folder, "huge")
    assert not verify(folder)
