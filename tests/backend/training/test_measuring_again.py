"""What a task has to say of new rows reaches a person, and is no reason to tokenise them anew."""

from pathlib import Path
from typing import Any

import pytest

from backend.contract.resources import resource
from backend.inference import predict
from backend.tasks.text_classification import TextClassification
from backend.training import loop
from tests.backend.training.test_evaluations import run_folder

ROWS = resource("demo", "sentiment") / "validation.csv"


def test_a_note_on_measured_rows_is_told_and_makes_no_new_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path / "cache"))
    folder = run_folder(tmp_path, training={"max_steps": 1, "checkpoint_every": "never"})
    assert loop.run(folder) == 0
    first = predict.evaluate(str(tmp_path), ROWS)
    kept = sorted((tmp_path / "cache" / "features").iterdir())

    def noting(task: Any, rows: Any, columns: Any, facts: dict[str, Any], split: str) -> None:
        facts["notes"] = ["some rows are odd"]

    monkeypatch.setattr(TextClassification, "check", noting)
    again = predict.evaluate(str(tmp_path), ROWS)

    assert (first.notes, again.notes) == ((), ("some rows are odd",))
    assert sorted((tmp_path / "cache" / "features").iterdir()) == kept
