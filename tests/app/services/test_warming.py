"""Loading ahead of what other pages need."""

import sys

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.services.warming import Warming, parts


def test_it_loads_its_modules_last_and_a_step_at_a_time():
    steps = list(parts(["colorsys"]))
    assert steps[-1] == "colorsys"
    assert len(steps) > 500  # each class of the bindings by itself
    assert "colorsys" in sys.modules


def test_it_says_when_all_is_there(qtbot: QtBot):
    owner = QObject()
    warming = Warming(["colorsys"], owner)
    assert not warming.is_active
    with qtbot.waitSignal(warming.done):
        warming.start()
        assert warming.is_active
    assert not warming.is_active


def test_it_stops_when_the_window_closes(qtbot: QtBot):
    owner = QObject()
    warming = Warming(["no_such_module"], owner)
    warming.start()
    warming.stop()
    assert not warming.is_active
