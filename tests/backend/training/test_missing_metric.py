"""A metric that decides and never comes is told of, for its name may be misspelt."""

from pathlib import Path

from backend.contract.run.events import Warned
from backend.training import loop
from backend.training.event_log import read_events
from tests.backend.training.test_evaluations import run_folder


def test_a_variant_that_no_evaluation_gives_is_told_once(tmp_path: Path) -> None:
    folder = run_folder(
        tmp_path,
        training={"max_steps": 2, "checkpoint_every": "never", "early_stopping": 2},
        evaluation={"every": 1, "best_metric": "f1_positve"},
    )

    assert loop.run(folder) == 0

    (told,) = [event.message for event in read_events(folder.events) if isinstance(event, Warned)]
    assert "do not report 'f1_positve'" in told
    assert "f1_macro" in told
