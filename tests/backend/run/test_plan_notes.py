"""A plan tells what the task found in the data, before anything is trained."""

from pathlib import Path

from backend.contract.catalog import Device
from backend.contract.resources import resource
from backend.run.cost import plan
from backend.run.resolving import resolve

CPU = Device("cpu", 0, "Processor", 8000.0, 6000.0, ["float32"])
SENTENCE = "Ann B-PER\nlives O\nin O\nBonn I-LOC\n\n"


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
