"""What truncation left out is told in the plan and by the run."""

from pathlib import Path

import pyarrow as pa
from end_to_end.translators import mt5_folder, sentences

from backend.contract import spec_file
from backend.contract.catalog import Device
from backend.contract.run.events import Warned
from backend.contract.run.folder import RunFolder
from backend.contract.spec import RunSpec
from backend.engines.cpu_device import cpu_device
from backend.preflight import cost
from backend.preflight.messages import truncation_notes
from backend.preflight.resolve import resolve
from backend.training.event_log import read_events
from backend.training.loop import run

PAIRS = sentences(24, seed=3)


def spec(folder: Path, **hardware: object) -> RunSpec:
    """A translator whose targets are cut to four tokens."""
    for ending, side in (("source", 0), ("target", 1)):
        (folder / f"train.{ending}").write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
    model = mt5_folder(folder / "mt5", [text for pair in sentences(200, seed=1) for text in pair])
    values = {
        "task": {"type": "seq2seq_lm", "max_length": 64, "max_target_length": 4, "max_new_tokens": 2},
        "model": {"name_or_path": str(model), "initialise": "from_config"},
        "data": {"source": "parallel", "train": "."},
        "training": {"max_steps": 1, "checkpoint_every": "never"},
        "hardware": {"threads": 1, "device": "cpu", **hardware},
    }
    return resolve(values, folder)


def test_nothing_is_said_where_nothing_was_cut():
    assert truncation_notes([pa.record_batch({"cut_source": [0, 0], "input_ids": [[1], [2]]})], "rows") == []


def test_rows_and_tokens_are_counted_over_all_batches():
    batches = [pa.record_batch({"cut_target": pa.array(cut, pa.int32())}) for cut in ([0, 3], [2, 0])]
    [note] = truncation_notes(batches, "training rows")
    assert note.startswith("2 of 4 training rows lose the end of their target, 5 tokens in total")


def test_the_plan_tells_of_cut_targets(tmp_path: Path):
    notes = cost.plan(spec(tmp_path), [cpu_device()]).notes
    assert [note for note in notes if "24 of 24 training rows lose the end of their target" in note]


def test_the_plan_explains_float16_that_was_chosen_by_hand(tmp_path: Path):
    card = Device("cuda", 0, "Card", 16000, 12000, ["float32", "float16"])
    plan = cost.plan(spec(tmp_path, device="cuda", precision="float16"), [card])
    assert [note for note in plan.notes if "overflow" in note]


def test_the_run_warns_of_cut_targets(tmp_path: Path):
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.spec.write_text(spec_file.dump(spec(tmp_path).model_dump(mode="json")), encoding="utf-8")
    assert run(folder) == 0
    warned = [event.message for event in read_events(folder.events) if isinstance(event, Warned)]
    assert [words for words in warned if "24 of 24 train rows lose the end of their target" in words]
