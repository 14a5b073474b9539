"""Files from strangers: regular ones of bounded size, and no links inside a run folder."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from backend.contract.errors import InputError
from backend.contract.safe_files import (
    check_folder,
    check_inside,
    open_inside,
    open_unlinked,
    read_regular,
    read_unlinked,
    write_whole,
)

WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def test_file_behind_a_link_that_the_user_names_is_read(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"words")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_regular(tmp_path / "link", 5) == b"words"


def test_larger_file_is_refused(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"words!")
    with pytest.raises(InputError, match="too large"):
        read_regular(tmp_path / "file", 5)


@pytest.mark.parametrize("name", ["/dev/zero", "/proc/self/environ", "/proc/kmsg"])
def test_endless_file_is_refused(name: str):
    with pytest.raises(InputError, match="not a regular file"):
        read_regular(Path(name), 5)


def test_pipe_without_a_writer_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        read_regular(tmp_path / "pipe", 5)


def test_link_inside_a_folder_is_not_followed(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"kept")
    run = tmp_path / "run"
    run.mkdir()
    (run / "events.jsonl").symlink_to(outside)
    with pytest.raises(OSError, match="is a link"):
        open_inside(run, "events.jsonl", WRITE)
    assert outside.read_bytes() == b"kept"


def test_linked_folder_inside_a_folder_is_not_followed(tmp_path: Path):
    (tmp_path / "outside").mkdir()
    run = tmp_path / "run"
    run.mkdir()
    (run / "checkpoints").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="is a link"):
        open_inside(run, "checkpoints/step", WRITE)
    assert list((tmp_path / "outside").iterdir()) == []


def test_link_to_itself_is_in_its_folder(tmp_path: Path):
    (tmp_path / "loop").symlink_to("loop")
    check_inside(tmp_path / "loop", tmp_path)  # whoever opens it says that it cannot be read


def test_folder_reached_through_a_link_is_the_users_choice(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "named").symlink_to(tmp_path / "run")
    os.close(open_inside(tmp_path / "named", "run.lock", WRITE))
    assert (tmp_path / "run" / "run.lock").is_file()


def test_a_write_that_fails_leaves_nothing(tmp_path: Path):
    (tmp_path / "exit.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "exit.json", b"{}")
    assert [path.name for path in tmp_path.iterdir()] == ["exit.json"]


def test_file_with_another_name_is_read_and_not_emptied(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"kept")
    run = tmp_path / "run"
    run.mkdir()
    (run / "process.log").hardlink_to(outside)
    with pytest.raises(OSError, match="another name"):
        open_inside(run, "process.log", WRITE)
    assert read_unlinked(run / "process.log", 4) == b"kept"


def test_pipe_inside_a_folder_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "events.jsonl")
    with pytest.raises(OSError, match="not a regular file"):
        open_unlinked(tmp_path / "events.jsonl")


def test_folder_in_place_of_a_file_is_refused(tmp_path: Path):
    (tmp_path / "events.jsonl").mkdir()
    with pytest.raises(OSError, match="not a regular file"):
        open_unlinked(tmp_path / "events.jsonl")


def test_larger_record_is_not_read(tmp_path: Path):
    (tmp_path / "exit.json").write_bytes(b"words!")
    with pytest.raises(OSError, match="too large"):
        read_unlinked(tmp_path / "exit.json", 5)


@pytest.mark.parametrize(
    "name", ["spec.yaml", ".spec.yaml.1", "checkpoints", "checkpoints/step-000001", "model/a/b/c.bin"]
)
def test_link_anywhere_below_a_folder_is_found(tmp_path: Path, name: str):
    link = tmp_path / "run" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is a link"):
        check_folder(tmp_path / "run")


def test_pipe_below_a_folder_is_found(tmp_path: Path):
    (tmp_path / "checkpoints").mkdir()
    os.mkfifo(tmp_path / "checkpoints" / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        check_folder(tmp_path)


def test_folder_of_files_and_folders_passes(tmp_path: Path):
    (tmp_path / "checkpoints" / "step-000001").mkdir(parents=True)
    (tmp_path / "checkpoints" / "step-000001" / "model.safetensors").write_bytes(b"")
    (tmp_path / "spec.yaml").hardlink_to(tmp_path / "checkpoints" / "step-000001" / "model.safetensors")
    check_folder(tmp_path, ["process.log"])


@pytest.mark.parametrize(("tag", "is_link"), [(0xA000000C, True), (0xA0000003, True), (0x9000001A, False), (0, False)])
def test_of_windows_reparse_points_only_links_and_junctions_are_refused(
    tag: int, is_link: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """0x9000001A is a file of OneDrive."""
    (tmp_path / "file").write_bytes(b"words")
    status = SimpleNamespace(st_mode=stat.S_IFREG, st_reparse_tag=tag, st_file_attributes=stat.FILE_ATTRIBUTE_REPARSE_POINT)  # fmt: skip
    monkeypatch.setattr(os, "supports_dir_fd", set())
    monkeypatch.setattr(Path, "lstat", lambda _: status)
    if is_link:
        with pytest.raises(OSError, match="it is a link"):
            read_unlinked(tmp_path / "file", 5)
    else:
        assert read_unlinked(tmp_path / "file", 5) == b"words"
