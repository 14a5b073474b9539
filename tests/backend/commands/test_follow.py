"""Tests that whoever follows a run sees whole events, each once, and only those of the attempt that was started."""

from pathlib import Path

import pytest

from backend.commands.follow import (
    Follower,
    RunOutcome,
    format_metrics,
    report_outcome,
)
from backend.commands.screen import ProgressScreen
from backend.contract.run import events
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import INTERRUPTED_EXIT_CODE, ExitRecord, ProcessRecord, RunFolder, boot_id, host_id


class Lines(ProgressScreen):
    """A screen that keeps its lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


def test_a_host_that_ends_without_a_word_says_how_the_first_did(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.spec.touch()
    own = run.host(1)
    own.path.mkdir()
    for folder, code, message in ((run, -9, "it was killed"), (own, -6, "it was terminated by SIGABRT")):
        folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 2, 0.0))
        folder.write_exit_record(ExitRecord(1, code, 0.0, message))
    found = Follower(own, events.EventReader(own.events), Lines()).watch()

    assert (found.state, found.message, found.folder.path) == (
        "failed",
        "the first host is gone: it was killed",
        run.path,
    )
    assert found.hint == f"Resume it with: burnish resume {run.name}"


def evaluation(step: int, split: str, accuracy: float, is_best: bool = False) -> events.EvaluationFinished:
    """What one split's measurement says."""
    return events.EvaluationFinished(
        time=0, step=step, epoch=1.0, metrics={"accuracy": accuracy}, rows=4, seconds=0.1, split=split, is_best=is_best
    )


def test_an_evaluation_is_one_line_with_both_splits(tmp_path: Path) -> None:
    folder, screen = RunFolder(tmp_path), Lines()
    told = [
        events.StageStarted(time=0, stage="evaluating"),
        evaluation(5, "validation", 0.5, is_best=True),
        events.StageStarted(time=0, stage="evaluating"),
        evaluation(5, "train", 0.75),
        events.StageStarted(time=0, stage="training"),
        evaluation(10, "validation", 0.25),
        events.ModelExported(time=0, folder="model", step=5),
        events.RunFinished(time=0, state="finished", step=10),
    ]
    folder.events.write_bytes(b"".join(events.encode(each) for each in told))
    Follower(folder, events.EventReader(folder.events), screen).watch()

    assert [line for line in screen.lines if line.startswith("after step")] == [
        "after step 5: validation accuracy 0.5, the best so far; train accuracy 0.75",
        "after step 10: validation accuracy 0.25",
    ]
    assert screen.lines[-1] == "the saved model is from step 5"


def test_an_interrupted_run_ends_with_a_code_of_its_own_and_the_command_that_resumes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunFolder(tmp_path / "reviews")
    run.path.mkdir()
    run.spec.touch()
    run.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 2, 0.0))
    run.write_exit_record(ExitRecord(1, 0, 0.0))
    run.events.write_bytes(
        events.encode(events.RunFinished(time=1, state="interrupted", step=3, message="it was told to stop"))
    )

    assert (
        report_outcome(Follower(run, events.EventReader(run.events), Lines()).watch(), as_json=False)
        == INTERRUPTED_EXIT_CODE
    )
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "reviews interrupted: it was told to stop. Resume it with: burnish resume reviews"


def test_variants_of_very_many_metrics_are_counted_and_not_told():
    metrics: dict[str, float | None] = {"loss": 0.3, "f1": 0.5, "accuracy": 0.9}
    metrics |= {f"f1_{number}": 0.1 for number in range(20)}
    assert format_metrics(metrics) == "f1 0.5, accuracy 0.9, loss 0.3, and 20 more"


def test_few_metrics_are_all_told():
    assert format_metrics({"loss": 0.3, "f1": 0.5, "f1_macro": 0.4}) == "f1 0.5, f1_macro 0.4, loss 0.3"


def test_the_way_out_is_said_with_values_as_they_are(tmp_path: Path, capsys):
    mend = RunFix({"model.tokenizer_options.pad_token": "[PAD]"})
    report_outcome(RunOutcome(RunFolder(tmp_path), "failed", mend=mend), as_json=False)
    assert capsys.readouterr().err.startswith("restart with pad_token [PAD] by: burnish train")
