"""Tests that an output replaces nothing but a plain file of the person's own, and leaves nothing half-written."""

import errno
import os
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.output_file import check_output, check_output_folder, output_errors, whole_file


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder with some of its files."""
    folder = tmp_path / "run"
    (folder / "model").mkdir(parents=True)
    for name in ("spec.yaml", "events.jsonl", "predictions.csv", "model/config.json"):
        (folder / name).write_text("its own")
    return folder


def write(path: Path, *others: Path) -> None:
    with whole_file(path, "--output", *others) as beside:
        beside.write_text("new")


def test_plain_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("old")

    write(tmp_path / "out.csv")

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"out.csv": "new"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only Unix has FIFOs")
def test_fifo_stays(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "fifo")

    with pytest.raises(InputError, match=r"--output: .* is not a regular file; use a file on a disk"):
        write(path)
    assert path.is_fifo()


@pytest.mark.parametrize("target", ["file", "absent"])
def test_link_stays_and_the_file_it_leads_to_is_named(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_text("old")
    (link := tmp_path / "link").symlink_to(tmp_path / target)

    with pytest.raises(InputError, match=f"is a link; use the file it points to .*{target}"):
        write(link)
    assert link.is_symlink()
    assert (tmp_path / "file").read_text() == "old"


def test_link_to_a_device_is_not_a_regular_file(tmp_path: Path) -> None:
    (link := tmp_path / "link").symlink_to(os.devnull)

    with pytest.raises(InputError, match="is not a regular file"):
        write(link)


@pytest.mark.parametrize("name", ["spec.yaml", "events.jsonl", "predictions.csv", "run.lock", "stop", "Queued"])
def test_what_belongs_to_a_run_is_not_written(run: Path, name: str) -> None:
    before = sorted(run.rglob("*"))

    with pytest.raises(InputError, match="belongs to the run run; choose a new file"):
        write(run / name)
    assert sorted(run.rglob("*")) == before


@pytest.mark.parametrize("name", ["model/config.json", "model/new.csv"])
def test_no_file_goes_deeper_into_a_run(run: Path, name: str) -> None:
    with pytest.raises(InputError, match="is inside the folder of the run run"):
        write(run / name)
    assert [path.name for path in (run / "model").iterdir()] == ["config.json"]


def test_run_is_found_through_a_link(run: Path, tmp_path: Path) -> None:
    (tmp_path / "shortcut").symlink_to(run / "model")

    with pytest.raises(InputError, match="is inside the folder of the run"):
        write(tmp_path / "shortcut" / "new.csv")


def test_new_file_at_the_top_of_a_run_is_written(run: Path) -> None:
    write(run / "mine.csv")

    assert (run / "mine.csv").read_text() == "new"


def test_folder_with_a_spec_of_ones_own_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("mine")
    (tmp_path / "out").mkdir()

    write(tmp_path / "out" / "a.csv")

    assert (tmp_path / "out" / "a.csv").exists()


@pytest.mark.parametrize("name", [".", "model", "exported"])
def test_folder_in_a_run_is_refused(run: Path, name: str) -> None:
    with pytest.raises(
        InputError, match=r"--model: .* is inside the folder of the run run; choose a folder outside it"
    ):
        check_output_folder(run / name, "--model")


def test_input_is_not_written_over(tmp_path: Path) -> None:
    (source := tmp_path / "texts").write_text("kept")
    os.link(source, other := tmp_path / "other")

    for path in (source, other):
        with pytest.raises(InputError, match="is the input file"):
            write(path, source)
    assert source.read_text() == "kept"


def write_half(path: Path, error: OSError) -> None:
    with whole_file(path, "--output") as beside:
        beside.write_text("half")
        raise error


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "the disk is full; free up some space"),
        (errno.EDQUOT, "the disk is full; free up some space"),
        (errno.EFBIG, "the disk is full; free up some space"),
        (errno.EROFS, "the disk is read-only; choose a file on another disk"),
    ],
)
def test_disk_that_takes_no_more_leaves_the_old_file(tmp_path: Path, number: int, sentence: str) -> None:
    (path := tmp_path / "out.csv").write_text("old")

    with pytest.raises(InputError, match=f"--output: .* cannot be written: {sentence}"):
        write_half(path, OSError(number, os.strerror(number)))
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"out.csv": "old"}


def test_error_of_another_file_passes(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), output_errors(tmp_path / "out.csv", "--output"):
        (tmp_path / "input.csv").read_text()


def test_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder .*nowhere does not exist; create it first"):
        check_output(tmp_path / "nowhere" / "out.csv", "--output")
