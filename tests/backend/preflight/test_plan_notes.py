"""A plan tells what the task found in the data, before anything is trained."""

from pathlib import Path

import pytest

from backend.contract.catalog import Device
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.preflight.cost import plan
from backend.preflight.messages import rate_note
from backend.preflight.resolve import resolve

CPU = Device("cpu", 0, "Processor", 8000.0, 6000.0, ["float32"])
DEMO = {
    "task": {"type": "text_classification"},
    "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
    "data": {"source": "demo"},
}
SENTENCE = "Ann B-PER\nlives O\nin O\nBonn I-LOC\n\n"


@pytest.mark.parametrize(
    ("training", "adapter", "far"),
    [
        ({"learning_rate": 5.0}, None, "above the usual 1e-5 to 5e-4 with AdamW: training is likely to diverge"),
        ({"learning_rate": 1e-9}, None, "below the usual 1e-5 to 5e-4 with AdamW: the model will learn very little"),
        ({"learning_rate": 0.1}, {"type": "lora"}, "above the usual 1e-4 to 1e-3 for an adapter"),
        ({"learning_rate": 0.02}, {"type": "lora"}, ""),
        ({"learning_rate": 0.02, "optimizer": "sgd"}, None, ""),
        ({"learning_rate": 0.02, "optimizer": "adafactor"}, None, ""),
        ({"learning_rate": 0.01}, None, ""),
    ],
)
def test_a_learning_rate_far_outside_the_usual_is_told(training: dict, adapter: dict | None, far: str):
    spec = resolve({**DEMO, "training": training, "adapter": adapter}, Path())
    assert far in " ".join(rate_note(spec))
    assert bool(rate_note(spec)) is bool(far)


def test_a_plan_begins_with_what_it_thinks_of_the_learning_rate():
    notes = plan(resolve({**DEMO, "training": {"learning_rate": 5.0}}, Path()), [CPU]).notes
    assert notes[0].startswith("The learning rate 5 is far above")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"model": {**DEMO["model"], "weights": "nf4"}}, "model.weights"),
        ({"adapter": {"type": "lora", "initialization": "loftq"}}, "adapter.initialization"),
        ({"training": {"optimizer": "paged_adamw"}}, "training.optimizer"),  # not on a CPU
    ],
)
def test_a_plan_refuses_what_a_start_would(changes: dict, field: str):
    with pytest.raises(InputError) as caught:
        plan(resolve({**DEMO, **changes}, Path()), [CPU])
    assert caught.value.field == field


def test_a_plan_tells_of_repaired_tags(tmp_path: Path):
    (tmp_path / "faulty.conll").write_text(SENTENCE * 10)
    spec = {
        "task": {"type": "token_classification", "scheme": "BIO"},
        "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
        "data": {"source": "conll", "train": "faulty.conll", "validation": 0.2},
        "hardware": {"threads": 1},
    }
    notes = plan(resolve(spec, tmp_path), [CPU]).notes
    assert any(note.startswith("data.train: 8 tags did not follow BIO and were repaired") for note in notes)
