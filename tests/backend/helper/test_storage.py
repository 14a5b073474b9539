"""How much room caches take, and that clearing them takes nothing from under a run."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

from backend.contract.errors import InputError
from backend.contract.rpc.storage import ClearedCache, StorageUse
from backend.contract.run.folder import ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.run.lock import hold_lock
from backend.data.cache import open_or_write
from backend.helper.queries.storage import QUERIES

ASKED = {query.name: query.answer for query in QUERIES}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BURNISH_RUNS", str(tmp_path / "runs"))
    (tmp_path / "runs").mkdir()
    return tmp_path / "cache"


def kept(cache: Path, part: str, name: str, size: int = 8192, hours_ago: float = 5.0) -> Path:
    folder = cache / part / name
    folder.mkdir(parents=True)
    (folder / "table.arrow").write_bytes(b"x" * size)
    used = time.time() - hours_ago * 3600
    os.utime(folder, (used, used))
    return folder


def storage() -> StorageUse:
    return ASKED["storage"]({}, lambda progress: None)


def clear(*parts: str) -> ClearedCache:
    return ASKED["clear_cache"]({"parts": list(parts)}, lambda progress: None)


def alive(runs: Path, hours_ago: float) -> RunFolder:
    run = RunFolder(runs / "2026-11-21-1530-sentiment")
    run.path.mkdir()
    run.spec.write_text("version: 1\n", encoding="utf-8")
    run.lock.touch()
    begun = time.time() - hours_ago * 3600
    run.write_process_record(ProcessRecord(1, host_id(), boot_id(), os.getpid(), os.getpid(), begun))
    return run


def test_sizes_are_told_by_part(cache: Path):
    kept(cache, "features", "a", 40_000)
    kept(cache, "tables", "b", 20_000)
    told = storage()
    sizes = {part.name: part.size for part in told.parts}
    assert 40_000 <= sizes["features"] < 60_000
    assert 20_000 <= sizes["tables"] < 40_000
    assert sizes["weights"] == 0
    assert told.cache_size >= sizes["features"] + sizes["tables"]
    assert told.free > 0


def test_a_cache_that_is_not_there_yet_takes_no_room(cache: Path):
    assert storage().cache_size == 0
    assert clear("features").freed == 0


def test_only_the_parts_that_are_named_are_cleared(cache: Path):
    features, tables = kept(cache, "features", "a"), kept(cache, "tables", "b")
    assert clear("features").freed >= 8192
    assert not features.exists()
    assert tables.exists()


def test_what_a_live_run_may_read_stays_and_the_run_is_named(cache: Path, tmp_path: Path):
    before, since = kept(cache, "features", "old", hours_ago=5), kept(cache, "features", "used", hours_ago=1)
    run = alive(tmp_path / "runs", hours_ago=2)
    with hold_lock(run.lock):
        cleared = clear("features")
    assert (before.exists(), since.exists()) == (False, True)
    assert cleared.kept >= 8192
    assert cleared.kept_for == ["2026-11-21-1530-sentiment"]
    assert clear("features").kept == 0  # the run is over
    assert not since.exists()


def test_what_is_opened_counts_as_used(cache: Path):
    folder = kept(cache, "features", "a", hours_ago=5)
    open_or_write(folder, lambda there: there.name, lambda there: None, lambda done, total, unit: None)
    assert time.time() - folder.stat().st_mtime < 60


def test_what_is_just_being_written_stays(cache: Path):
    folder = kept(cache, "features", "a")
    with FileLock(folder.with_name("a.lock")):
        assert clear("features").freed == 0
    assert folder.exists()


def test_a_part_that_there_is_not_is_refused(cache: Path):
    with pytest.raises(InputError, match="not a part of the cache"):
        clear("runs")


def test_opened_predictions_are_counted_and_cleared_but_what_is_just_written(cache: Path):
    folder = cache / "pages"
    folder.mkdir(parents=True)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    opened, left, written = (
        folder / "a.arrow", folder / f".b.arrow.{gone.pid}", folder / f".c.arrow.{os.getpid()}"
    )  # fmt: skip
    for page in (opened, left, written):
        page.write_bytes(b"x" * 40_000)
    (told,) = [part for part in storage().parts if part.name == "pages"]
    assert (told.title, told.size >= 120_000) == ("Opened predictions", True)
    assert clear("pages").freed >= 80_000
    assert [page.exists() for page in (opened, left, written)] == [False, False, True]
