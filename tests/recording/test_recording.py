"""A recording shows the smallest difference, and nothing that any two runs differ in."""

import math
from pathlib import Path
from typing import Any

from tests.recording.__main__ import differences, matches
from tests.recording.facts import event_lines, flatten, loss_lines


def step(number: int, loss: float, **more: Any) -> dict[str, Any]:
    return {"event": "StepFinished", "step": number, "loss": loss, "gradient_norm": None, "learning_rate": 1e-4, **more}


def test_how_a_sentence_was_made_is_no_difference_and_the_sentence_is():
    warned = {"event": "Warned", "message": "step 3 was slow"}
    table = {"messages": {"step 3 was slow": ["step {step} was slow", {"step": 3}]}}
    assert list(event_lines([warned])) == list(event_lines([warned | table]))
    assert list(event_lines([warned])) != list(event_lines([warned | {"message": "step 4 was slow"}]))


def test_last_bit_of_a_loss_is_a_difference():
    before, after = (list(loss_lines([step(1, loss)])) for loss in (0.7, math.nextafter(0.7, 1)))
    assert len(list(differences("losses.txt", before, after))) == 1


def test_last_bit_of_an_event_and_of_a_setting_is_a_difference():
    assert list(flatten({"learning_rate": 3e-5})) != list(flatten({"learning_rate": math.nextafter(3e-5, 1)}))


def test_time_that_a_step_took_is_none():
    assert list(event_lines([step(1, 0.7, seconds=1.0)])) == list(event_lines([step(1, 0.7, seconds=2.0)]))


def test_steps_that_a_resume_made_void_are_not_in_the_curve():
    resumed = {"event": "RunResumed", "from_step": 1}
    whole = [step(1, 0.7), step(2, 0.6), step(3, 0.5)]
    assert list(loss_lines([*whole[:2], step(3, 9.9), resumed, *whole[1:]])) == list(loss_lines(whole))


def test_checkpoint_may_be_saved_while_a_step_is_made():
    saved = {"event": "CheckpointSaved", "step": 1}
    assert list(event_lines([step(1, 0.7), saved, step(2, 0.6)])) == list(
        event_lines([step(1, 0.7), step(2, 0.6), saved])
    )


def test_compiling_may_be_quick_enough_not_to_be_announced():
    training, evaluating = ({"event": "StageStarted", "stage": stage} for stage in ("training", "evaluating"))
    compiling = {"event": "StageStarted", "stage": "compiling"}
    compiled = {"event": "ProgramCompiled", "count": 1}
    announced = [training, compiling, training, compiled, evaluating]
    assert list(event_lines(announced)) == list(event_lines([training, compiled, evaluating]))


def test_line_that_was_added_is_one_difference():
    [line] = differences("burnish.txt", ["usage", "options"], ["usage", "commands", "options"])
    assert line.endswith("(nothing) → commands")


def test_file_that_is_gone_is_a_difference():
    assert list(differences("runs/lora-jax/losses.txt", ["step 1"], None)) == ["runs/lora-jax/losses.txt: missing"]


def test_pattern_chooses_whole_runs_and_pages():
    assert matches("runs/lora-jax/losses.txt", "runs/*-jax")
    assert not matches("runs/lora-torch/losses.txt", "runs/*-jax")
    assert matches("help/burnish-train.txt", "help")
    assert matches("describe.txt", "describe")


def test_recording_knows_no_module_of_the_program():
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("[!t]*.py"))
    assert "import" in sources
    assert not any(f"{word} {package}" in sources for word in ("from", "import") for package in ("app", "backend"))
