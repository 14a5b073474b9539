"""The rows of a step are the very arrays that the engine gets in that step of a run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.run.events import DataLoaded, PlanMade, StepFinished
from backend.contract.run.folder import RunFolder
from backend.data.batches import Batch
from backend.engines.torch.engine import TorchEngine
from backend.inspect.batch_preview import preview, preview_run
from backend.inspect.feature_view import rows_of_step, view_feature
from backend.inspect.length_report import training_lengths
from backend.preflight.datasets import ignore_progress
from backend.preflight.resolve import resolve
from backend.training import loop
from backend.training.event_log import EventLog
from tests.backend.inspect.looked_at import looked, spec, table, text

STEPS = 5


@pytest.fixture(params=["masked", "translated"])
def trained(own_cache: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> tuple[RunFolder, list]:
    """A run of five steps, and what its engine was given in each."""
    given: list[list[Batch]] = []
    step = TorchEngine.train_step

    def noting(self: Any, micro_batches: Any, *arguments: Any) -> Any:
        given.append([dict(one) for one in micro_batches])
        return step(self, micro_batches, *arguments)

    monkeypatch.setattr(TorchEngine, "train_step", noting)
    values = spec(own_cache, request.param, {"max_steps": STEPS, "checkpoint_every": "never"}).model_dump()
    values["hardware"]["micro_batch_size"] = 3
    folder = RunFolder(own_cache / "run")
    folder.path.mkdir()
    folder.spec.write_text(spec_file.dump(values), encoding="utf-8")
    assert loop.run(folder) == 0
    return folder, given


def test_every_step_shows_what_the_engine_was_given(trained: tuple[RunFolder, list]):
    folder, given = trained
    look = preview_run(folder, lambda name: ignore_progress)
    for number in range(1, STEPS + 1):
        for shown, real in zip(look.passes(number), given[number - 1], strict=True):
            assert shown.keys() == real.keys()
            assert all(np.array_equal(shown[name], real[name]) for name in real)
    rows = rows_of_step(look, 2)
    assert rows.step is not None
    assert (rows.step.loss is not None, rows.step.differs, len(rows.step.shapes)) == (True, "", 2)
    for place, line in enumerate(rows.lines):
        number, row = divmod(place, 3)
        shown = view_feature(look, line.feature, 2)
        assert shown.arrays["input_ids"] == given[1][number]["input_ids"][row].tolist()
        assert shown.arrays["labels"] == given[1][number]["labels"][row].tolist()


@pytest.mark.parametrize(
    ("engine", "device", "width"), [("torch", "cpu", 132), ("torch", "cuda", 136), ("jax", "cpu", 160)]
)
def test_rows_are_padded_as_the_runs_engine_pads(own_cache: Path, engine: str, device: str, width: int):
    table(own_cache, {"text": ["town " * 130, "town"] * 4, "label": ["good", "bad"] * 4})
    values = spec(own_cache, "classified", {"batch_size": 8}, max_length=256).model_dump()
    values["hardware"] = {"engine": engine, "device": device}
    shown = preview(resolve(values, own_cache), lambda name: ignore_progress)
    assert [one["input_ids"].shape for one in shown.passes(1)] == [(8, width)]
    [chosen] = [rule for rule in training_lengths(shown, lambda name: ignore_progress).padding if rule.chosen]
    assert chosen.padding == pytest.approx(1 - 4 * (132 + 3) / (8 * width))


def test_other_data_than_the_run_had_is_refused(own_cache: Path):
    folder = _begun(own_cache, fingerprint="other")
    with pytest.raises(InputError, match="has changed since the run started"):
        preview_run(folder, lambda name: ignore_progress)


def test_what_the_removed_bridge_trained_can_be_looked_at(own_cache: Path):
    folder = _begun(own_cache)
    values = spec_file.read(folder.spec)
    values["hardware"] = {"engine": "jax", "device": "cpu", "bridge": True}
    folder.spec.write_text(spec_file.dump(values), encoding="utf-8")
    log = EventLog(folder.events)
    log.append(
        PlanMade(
            time=0.0, total_steps=15, steps_per_epoch=15, batch_size=4, micro_batch_size=4, accumulation=1, epochs=1.0
        )
    )
    log.close()
    assert len(preview_run(folder, lambda name: ignore_progress).passes(1)) == 1


def test_a_count_of_tokens_that_differs_is_told(own_cache: Path):
    folder = _begun(own_cache, tokens=9999)
    step = rows_of_step(preview_run(folder, lambda name: ignore_progress), 1).step
    assert step is not None
    assert step.differs.startswith("The run counted 9,999 tokens in this step, but these rows have")


def _begun(folder: Path, fingerprint: str = "", tokens: int = 0) -> RunFolder:
    run = RunFolder(folder / "begun")
    run.path.mkdir()
    run.spec.write_text(spec_file.dump(spec(folder, "classified").model_dump()), encoding="utf-8")
    log = EventLog(run.events)
    log.append(DataLoaded(time=0.0, split="train", rows=60, fingerprint=fingerprint))
    log.append(_step(1, 0.5, tokens))
    log.close()
    return run


def _step(number: int, loss: float, tokens: int) -> StepFinished:
    return StepFinished(
        time=0.0, step=number, epoch=0.1, loss=loss, learning_rate=0.1, gradient_norm=1.0, rows=4, tokens=tokens, seconds=0.1
    )  # fmt: skip


def test_a_step_beyond_the_training_is_refused(own_cache: Path):
    look = looked(own_cache, "classified")
    for step in (0, look.total_steps + 1):
        with pytest.raises(
            InputError, match=f"there is no step {step}: this training has steps 1 to {look.total_steps}"
        ):
            look.indices(step)


def test_features_of_a_row_are_its_windows(own_cache: Path):
    look = looked(own_cache, "asked", max_length=64)
    rows = look.features.scalars["row"]
    for row in (0, 5, len(look.rows) - 1):
        assert look.features_of(row).tolist() == np.flatnonzero(rows == row).tolist()


def test_the_block_that_holds_a_row_is_found(own_cache: Path):
    table(own_cache, {"text": [text(n, 4) for n in range(60)]})
    look = looked(own_cache, "blocks")
    spans = look.features.table["spans_row"].to_pylist()
    assert all(row in spans[int(look.features_of(row)[0])] for row in range(len(look.rows)))


def test_a_run_that_goes_on_tells_its_newest_losses(own_cache: Path):
    folder = _begun(own_cache, tokens=1)
    look = preview_run(folder, lambda name: ignore_progress)
    assert look.with_new_events(folder) is look
    log = EventLog(folder.events)
    log.append(_step(2, 0.25, tokens=7))
    log.close()
    newer = look.with_new_events(folder)
    assert newer.features is look.features
    assert newer.past.step(2) == (7, 0.25)
