"""Work says what it does, how fast and for how long."""

import pytest

from app.core.progress import DownloadPace, RowPace, WorkStage
from backend.contract.rpc.protocol import Progress


def test_work_that_tells_nothing_says_for_how_long_it_goes_on():
    stage = WorkStage("Reading the data…", 100)
    assert stage.words(100.5) == "Reading the data…"
    stage.report(Progress(text="Learning the pieces"), 102)
    assert stage.words(112) == "Learning the pieces… · 12 s"


def test_the_time_left_is_that_of_the_stage():
    stage = WorkStage("Reading the data", 0)
    stage.report(Progress(0, 8000, "merges", "Learning the pieces"), 90)
    stage.report(Progress(2000, 8000, "merges", "Learning the pieces"), 92)
    assert stage.words(92) == "Learning the pieces… 2\u202f000 of 8\u202f000 merges · 1 min 32 s"
    assert stage.words(94).endswith("1 min 34 s · about 12 s left")


def test_pace_says_rate_and_time_left_once_they_are_known():
    pace = RowPace()
    assert pace.words(0, 1000, "rows", 10.0) == "0 of 1\u202f000 rows"
    assert pace.words(500, 1000, "rows", 15.0) == "500 of 1\u202f000 rows · 100 rows/s · 5 s left"
    pace.begin()
    assert pace.words(600, 1000, "rows", 16.0) == "600 of 1\u202f000 rows"


def test_the_speed_of_a_download_is_a_mean_and_the_time_left_follows():
    pace = DownloadPace()
    assert pace.words() == "Contacting the Hub…"
    for second in range(20):
        pace.add(Progress(2e6 * second, 100e6, "bytes", "", "model.safetensors", 1e6, 90e6), float(second))
    assert pace.bytes_per_second == pytest.approx(2e6)
    assert pace.words() == "38 MB of 100 MB · 2.0 MB/s · 31 s left"
    assert pace.file_words() == "model.safetensors, 1 MB of 90 MB"
    pace.wait(20.0)
    assert "2.0 MB/s" in pace.words()
    pace.wait(31.0)
    assert pace.words() == "38 MB of 100 MB · no data for 12 s"
    pace.add(Progress(0, 100e6, "bytes"), 32.0)  # the server began anew
    assert pace.words() == "0 MB of 100 MB"
