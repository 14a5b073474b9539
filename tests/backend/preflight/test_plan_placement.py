"""A plan for several devices says what lies on each of them, and what rows that do not divide cost."""

from pathlib import Path
from typing import Any

import pytest

from backend.commands.plan import _format_plan
from backend.contract.catalog import Device
from backend.contract.errors import InputError
from backend.contract.rpc.plan import RunPlan
from backend.preflight import cost, resolve

CARDS = [Device("cuda", index, f"Card {index}", 16000, 12000, ["float32"]) for index in range(4)]
CPU = Device("cpu", 0, "CPU", 16000, 12000, ["float32"])
MODEL = Path(__file__).parents[3] / "resources" / "demo" / "bert-tiny"


@pytest.fixture
def plan(tmp_path: Path):
    """The plan of a small training with these changes of its hardware."""
    (tmp_path / "train.csv").write_text("text,label\n" + "".join(f"word {n},{'ab'[n % 2]}\n" for n in range(40)))

    def make(batch_size: int, **hardware: Any) -> RunPlan:
        values = {
            "task": {"type": "text_classification", "max_length": 16},
            "model": {"name_or_path": str(MODEL)},
            "data": {"train": "train.csv"},
            "training": {"batch_size": batch_size},
            "hardware": {"engine": "jax", "device": "cuda", "devices": [0, 1, 2, 3], **hardware},
        }
        return cost.plan(resolve.resolve(values, tmp_path), [*CARDS, CPU])

    return make


def megabytes(plan: RunPlan, name: str) -> float:
    return next(part.megabytes for part in plan.memory if part.name == name)


def test_every_device_reads_its_part_of_the_batch_and_holds_all_weights(plan):
    found = plan(16)
    assert [(one.device, one.rows) for one in found.placement] == [(f"cuda:{number}", 4) for number in range(4)]
    assert (found.micro_batch_size, found.accumulation) == (4, 1)
    assert found.placement[0].weights_mb == pytest.approx(4 * found.parameters / 1e6)


def test_the_devices_of_every_host_read_their_part(plan):
    found = plan(16, devices=[0, 1], hosts=2)
    names = ["host 0 cuda:0", "host 0 cuda:1", "host 1 cuda:0", "host 1 cuda:1"]
    assert [(one.device, one.rows) for one in found.placement] == [(name, 4) for name in names]
    assert found.device == "cuda:0, cuda:1 on each of 2 hosts"


def test_of_several_hosts_all_devices_are_taken(plan):
    assert len(plan(16, devices=None, hosts=2).placement) == 8


def test_fsdp_leaves_a_quarter_of_weights_and_optimizer_on_each(plan):
    whole, shared = plan(16), plan(16, parallelism="fsdp")
    for name in ("Weights", "Gradients", "Optimizer"):
        assert 0.25 <= megabytes(shared, name) / megabytes(whole, name) < 0.26
    assert shared.placement[3].optimizer_mb == megabytes(shared, "Optimizer")


def test_rows_that_do_not_divide_are_filled_and_the_next_numbers_named(plan):
    found = plan(13)
    assert [one.rows for one in found.placement] == [4, 4, 4, 1]
    assert any("3 padding rows" in note and "12 or 16 rows would need none" in note for note in found.notes)
    assert not any("padding rows" in note for note in plan(12).notes)


def test_rows_per_device_are_those_of_the_spec(plan):
    found = plan(16, micro_batch_size=2)
    assert (found.micro_batch_size, found.accumulation) == (2, 2)


def test_the_words_name_every_device(plan):
    words = _format_plan(plan(16, parallelism="fsdp"))
    assert "4 rows per pass and device" in words
    assert all(f"on cuda:{number} " in words for number in range(4))


def test_processes_that_share_the_cpu_are_one_line(plan):
    found = plan(16, engine="torch", device="cpu", devices=None, processes=2)
    assert [(one.device, one.rows, one.processes) for one in found.placement] == [("cpu", 8, 2)]
    assert _format_plan(found).count("on cpu, 2 processes") == 1
    assert [
        (one.rows, one.processes) for one in plan(5, engine="torch", device="cpu", devices=None, processes=2).placement
    ] == [(3, 1), (2, 1)]


def test_one_device_needs_no_placement(plan):
    assert plan(16, devices=None).placement == []


def test_layers_that_cannot_be_divided_are_refused(plan):
    with pytest.raises(InputError, match="the layers of bert"):
        plan(16, tensor_parallel=2)
