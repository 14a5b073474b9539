"""The cache of rows: written once, mapped, rebuilt when damaged, never half there."""

import os
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from backend.data.sources.source import ReadOptions


def entries(cache):
    return sorted(path for path in cache.iterdir() if path.is_dir())


class StopError(Exception):
    pass


def test_a_second_reading_writes_nothing(desk):
    path = desk.write("a.csv", "text\nx\n")
    first = desk.read(path)
    (entry,) = entries(desk.reading.cache)
    before = {file.name: file.stat().st_mtime_ns for file in entry.iterdir()}
    second = desk.read(path)
    assert second.fingerprint == first.fingerprint
    assert {file.name: file.stat().st_mtime_ns for file in entry.iterdir()} == before


def test_the_fingerprint_follows_content_and_settings_and_no_name(desk):
    path = desk.write("a.csv", "text\nx\n")
    first = desk.read(path).fingerprint
    os.utime(path, (1, 1))
    assert desk.read(path).fingerprint == first
    assert desk.read(desk.write("other.csv", "text\nx\n")).fingerprint == first
    assert desk.read(path, quoting="none").fingerprint != first
    assert desk.read(path, max_rows=1).fingerprint != first
    assert desk.read(desk.write("a.csv", "text\ny\n")).fingerprint != first


def test_changed_content_is_read_again(desk):
    desk.read(desk.write("a.csv", "text\nx\n"))
    assert desk.read(desk.write("a.csv", "text\ny\n")).table["text"].to_pylist() == ["y"]


@pytest.mark.parametrize("name", ["table.arrow", "lines.bin", "file_index.bin", "facts.json"])
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_damaged_entry_is_made_again(desk, name, how):
    path = desk.write("a.csv", "text\nx\ny\n")
    desk.read(path)
    (entry,) = entries(desk.reading.cache)
    damaged = entry / name
    if how == "cut":
        damaged.write_bytes(damaged.read_bytes()[:-3])
    else:
        damaged.unlink()
    assert desk.read(path).table["text"].to_pylist() == ["x", "y"]


def test_a_stopped_reading_leaves_nothing(desk):
    path = desk.write("a.csv", "text\n" + "some words\n" * 30_000)

    def stop(done: int, total: int, unit: str) -> None:
        if done:
            raise StopError

    patient, desk.reading = desk.reading, ReadOptions(desk.reading.cache, stop)
    with pytest.raises(StopError):
        desk.read(path)
    assert entries(desk.reading.cache) == []
    desk.reading = patient
    assert len(desk.read(path)) == 30_000


def test_progress_grows_to_the_size_of_the_file(desk):
    path = desk.write("a.csv", "text\n" + "some words\n" * 30_000)
    told = []
    desk.reading = ReadOptions(desk.reading.cache, lambda *one: told.append(one))
    desk.read(path)
    done = [one[0] for one in told if one[1]]
    assert done == sorted(done)
    assert told[-1] == (path.stat().st_size, path.stat().st_size, "bytes")


def test_the_rows_lie_in_the_file_and_not_in_memory(desk):
    path = desk.write("a.txt", "a line of some length, again and again\n" * 500_000)
    desk.read(path)
    before = pa.total_allocated_bytes()
    rows = desk.read(path)
    assert rows.table.nbytes > 15_000_000
    assert pa.total_allocated_bytes() - before < 1_000_000


_READ = """
import sys
from pathlib import Path
from backend.contract.spec import DataSection
from backend.data.sources.files import Files, Settings
from backend.data.sources.source import ReadOptions
path, cache, done = map(Path, sys.argv[1:])
told = []
rows = Files(Settings()).read("train", DataSection(train=str(path)), ReadOptions(cache, lambda *one: told.append(one)))
print(len(rows), rows.fingerprint, sum(1 for one in told if one[0]))
"""


def test_processes_that_want_the_same_rows_write_them_once(desk):
    path = desk.write("a.csv", "text,label\n" + "some words to read,1\n" * 60_000)
    command = [sys.executable, "-c", _READ, str(path), str(desk.reading.cache), "-"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=60)[0].split() for process in running]
    assert {tuple(answer[:2]) for answer in answers} == {("60000", answers[0][1])}
    assert sorted(int(answer[2]) > 0 for answer in answers) == [False, True]
    assert len(entries(desk.reading.cache)) == 1


def test_a_killed_writer_blocks_nobody(desk):
    path = desk.write("a.csv", "text,label\n" + "some words to read,1\n" * 300_000)
    command = [sys.executable, "-c", _READ, str(path), str(desk.reading.cache), "-"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not any(desk.reading.cache.glob("*.part/table.arrow")) and time.monotonic() < deadline:
        assert process.poll() is None, "the writer ended before it could be killed"
    process.kill()
    process.wait()
    assert len(desk.read(path)) == 300_000
    assert [entry.suffix for entry in entries(desk.reading.cache)] == [""]


_FULL = """
import resource, sys
from pathlib import Path
from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.sources.files import Files, Settings
from backend.data.sources.source import ReadOptions
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    Files(Settings()).read("train", DataSection(train=sys.argv[1]), ReadOptions(Path(sys.argv[2])))
except InputError as error:
    print(error)
"""


@pytest.mark.skipif(os.name == "nt", reason="file sizes cannot be limited there")
def test_a_full_disk_is_one_sentence_and_leaves_nothing(desk):
    path = desk.write("a.csv", "text\n" + "some words\n" * 100_000)
    command = [sys.executable, "-c", _FULL, str(path), str(desk.reading.cache)]
    sentence = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "cannot be written" in sentence
    assert "BURNISH_CACHE" in sentence
    assert entries(desk.reading.cache) == []
