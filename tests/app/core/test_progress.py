"""Work says what it does and for how long, also where it tells no more."""

from app.core.text.work_stage import WorkStage
from backend.contract.rpc.protocol import Progress


def test_work_that_tells_nothing_says_for_how_long_it_goes_on():
    stage = WorkStage("Reading the data…", 100)
    assert stage.words(100.5) == "Reading the data…"
    stage.tell(Progress(text="Learning the pieces"), 102)
    assert stage.words(112) == "Learning the pieces… · 12 s"


def test_the_time_left_is_that_of_the_stage():
    stage = WorkStage("Reading the data", 0)
    stage.tell(Progress(0, 8000, "merges", "Learning the pieces"), 90)
    stage.tell(Progress(2000, 8000, "merges", "Learning the pieces"), 92)
    assert stage.words(92) == "Learning the pieces… 2\u202f000 of 8\u202f000 merges · 1 min 32 s"
    assert stage.words(94).endswith("1 min 34 s · about 12 s left")
