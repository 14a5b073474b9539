"""Widgets are tested in the window's own style, so that sizes and colours are those that people see."""

import functools
from collections.abc import Iterator

import pytest
import shiboken6
from PySide6.QtWidgets import QApplication, QWidget

from app import theme
from app.core import i18n
from app.core.tasks import learn_tasks
from backend import catalog

_kept: list[QWidget] = []


@pytest.fixture(scope="session")
def qapp_args() -> list[str]:
    return ["burnish"]


@pytest.fixture(scope="session", autouse=True)
def known_tasks() -> None:
    """The window knows the tasks, as it does once the catalog has come."""
    learn_tasks(catalog.catalog().tasks)


@pytest.fixture(autouse=True)
def keep_widgets(qtbot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold every widget of a test until Qt has deleted it, as the window holds its pages.

    pytest-qt holds them weakly, and a tree of widgets that Python's collector takes apart in an event crashes.
    """
    _kept[:] = [widget for widget in _kept if shiboken6.isValid(widget)]
    add = qtbot.addWidget

    def add_and_keep(widget: QWidget, **options: object) -> None:
        _kept.append(widget)
        add(widget, **options)

    monkeypatch.setattr(qtbot, "addWidget", add_and_keep)


@pytest.fixture(autouse=True)
def patience(qtbot, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test waits for may take a minute; pytest-qt gives up after five seconds, which a busy machine needs."""
    for name in ("waitUntil", "waitSignal", "waitSignals", "waitExposed", "waitActive"):
        monkeypatch.setattr(qtbot, name, functools.partial(getattr(qtbot, name), timeout=60_000))


@pytest.fixture
def styled(qapp: QApplication) -> QApplication:
    """The application in light colours; where it has them already, every living widget is spared being styled anew."""
    if theme.is_dark() or not qapp.styleSheet():
        theme.apply(qapp, "light")
    return qapp


@pytest.fixture
def german() -> Iterator[None]:
    """The window speaks German; what was imported before keeps its English constants."""
    i18n.choose("de")
    yield
    i18n.choose(i18n.ENGLISH)
