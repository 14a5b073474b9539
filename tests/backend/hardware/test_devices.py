"""Tests that a run's device is what its spec wishes, or that the wish is refused by its name."""

from typing import Any

import pytest

from backend.contract.catalog import Device
from backend.contract.errors import InputError
from backend.contract.spec import RunSpec, run_spec
from backend.hardware.devices import choose

PROCESSOR = Device("cpu", 0, "Processor", 8000, 4000, ["float32", "bfloat16"])
CARDS = [Device("cuda", index, f"Card {index}", 16000, 12000, ["float32", "float16"]) for index in range(2)]


def spec(**hardware: Any) -> RunSpec:
    return run_spec(
        {
            "task": {"type": "text_classification"},
            "model": {"name_or_path": "bert-base-uncased"},
            "data": {},
            "hardware": hardware,
        }
    )


def test_an_accelerator_goes_before_the_processor():
    chosen = choose(spec(), [*CARDS, PROCESSOR])
    assert (chosen.name, chosen.precision) == ("cuda:0", "float16")


def test_the_numbered_device_is_taken():
    assert choose(spec(devices=[1]), [*CARDS, PROCESSOR]).name == "cuda:1"


def test_the_processor_is_taken_where_there_is_nothing_else():
    chosen = choose(spec(), [PROCESSOR])
    assert (chosen.name, chosen.precision) == ("cpu", "float32")


@pytest.mark.parametrize(
    ("hardware", "field"),
    [
        ({"device": "mps"}, "hardware.device"),
        ({"devices": [7]}, "hardware.devices"),
        ({"devices": [0, 1]}, "hardware.devices"),
        ({"precision": "bfloat16"}, "hardware.precision"),
    ],
)
def test_what_cannot_be_had_is_refused_by_its_name(hardware: dict[str, Any], field: str):
    with pytest.raises(InputError) as refusal:
        choose(spec(**hardware), [*CARDS, PROCESSOR])
    assert refusal.value.field == field
