"""Keeping the list of runs fresh."""

import shutil

from app.core.runs.run_library import RunLibrary
from app.services import library_watcher
from app.services.library_watcher import LibraryWatcher


def test_runs_are_found_and_lost_again(qtbot, written_run, monkeypatch):
    monkeypatch.setattr(library_watcher, "INTERVAL_MS", 20)
    monkeypatch.setattr(library_watcher, "ENDED_MS", 20)
    library = RunLibrary(written_run.folder.path.parent)
    watcher = LibraryWatcher(library)
    with qtbot.waitSignal(watcher.changed):
        pass
    assert [run.title for run in library.runs] == ["written"]
    with qtbot.waitSignal(watcher.changed):
        written_run.steps(1, 4)
    assert library.runs[0].step == 4
    with qtbot.waitSignal(watcher.changed):
        shutil.rmtree(written_run.folder.path)
    assert library.runs == []
    watcher.stop()
