"""Loading ahead of what other pages need."""

import sys
from types import ModuleType

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.services import preloading
from app.services.preloading import Preloader, load_parts


def test_it_loads_its_modules_last_and_a_step_at_a_time():
    steps = list(load_parts(["colorsys"]))
    assert steps[-1] == "colorsys"
    assert len(steps) > 500  # each class of the bindings by itself
    assert "colorsys" in sys.modules


def test_it_says_when_all_is_there(qtbot: QtBot):
    owner = QObject()
    loading = Preloader(["colorsys"], owner)
    assert not loading.is_active
    with qtbot.waitSignal(loading.done):
        loading.start()
        assert loading.is_active
    assert not loading.is_active


def test_it_stops_when_the_window_closes(qtbot: QtBot):
    owner = QObject()
    loading = Preloader(["no_such_module"], owner)
    loading.start()
    loading.stop()
    assert not loading.is_active


def test_a_name_that_is_gone_by_now_is_no_mistake(monkeypatch):
    library = ModuleType("PySide6.QtVanishing")
    library.__dir__ = lambda: ["QOuter.Inner"]  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, library.__name__, library)
    monkeypatch.setattr(preloading, "BINDINGS", ("QtVanishing",))
    assert [*load_parts(["colorsys"])][-2:] == ["QOuter.Inner", "colorsys"]
