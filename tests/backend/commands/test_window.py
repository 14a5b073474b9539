"""The opening of the window."""

import subprocess

import pytest

from backend.commands import window
from backend.contract.processes import OPEN_AGAIN


def test_a_window_that_asks_for_it_is_opened_again(monkeypatch: pytest.MonkeyPatch):
    codes = [0, OPEN_AGAIN, OPEN_AGAIN]
    monkeypatch.setattr(subprocess, "call", lambda *_, **__: codes.pop())
    assert window.show() == 0
    assert codes == []
