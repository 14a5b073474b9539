"""What an installed package's object must have is what the protocol of its kind says."""

from typing import Any

import pytest

from backend.data.sources.source import Source
from backend.engines.torch.optimizers.optimizer import OptimizerEntry
from backend.registry import PLUGGED
from backend.remote.plugin_jobs import JobLauncher
from backend.tasks.task import Task

PROTOCOLS: dict[str, Any] = {"task": Task, "source": Source, "optimizer": OptimizerEntry, "launcher": JobLauncher}

NOT_ASKED = {"settings", "examples", "trained_architecture", "row_view", "hub_filter"}
"""What an instance has, and what an older package may leave out: the catalog has a default for each."""


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_plugin_is_asked_for_all_that_the_protocol_has(kind: str) -> None:
    protocol = PROTOCOLS[kind]
    members = {*vars(protocol), *protocol.__annotations__} - NOT_ASKED
    assert {name for name in members if not name.startswith("_")} == set(PLUGGED[kind])
