"""Owns the waiting for conditions, for every test of the backend that watches processes."""

import time
from collections.abc import Callable

import pytest

Until = Callable[[Callable[[], object]], None]


@pytest.fixture
def until() -> Until:
    """Waits for a condition; fails after a minute, as machines may be busy."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "the condition was never met"
            time.sleep(0.01)

    return wait
