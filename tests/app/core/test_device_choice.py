"""Which devices the window shows as those of a run: the ones that the backend would take."""

from typing import Any

import pytest

from app.core.draft.device_choice import selected_devices
from app.core.draft.draft import Draft
from backend.contract.catalog import Device

CPU = Device("cpu", 0, "CPU", 16000, 8000)
CARDS = [Device("cuda", 0, "Card", 80000, 20000), Device("cuda", 1, "Card", 80000, 79000)]


@pytest.mark.parametrize(
    ("hardware", "numbers"),
    [
        ({}, [1]),
        ({"processes": "auto"}, [1]),
        ({"processes": 2}, [1, 0]),
        ({"devices": [0]}, [0]),
        ({"device": "cpu", "processes": 2}, [0]),
    ],
)
def test_the_freest_devices_are_selected_unless_some_are_named(hardware: dict[str, Any], numbers: list[int]):
    found = selected_devices(Draft({"hardware": hardware}), [CPU, *CARDS])
    assert [device.index for device in found] == numbers
