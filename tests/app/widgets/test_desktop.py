"""Messages of the desktop, where there is one."""

import pytest
from PySide6.QtWidgets import QSystemTrayIcon, QWidget

from app.widgets import desktop
from app.widgets.desktop import DesktopMessages


@pytest.fixture
def messages(qtbot, styled) -> DesktopMessages:
    window = QWidget()
    qtbot.addWidget(window)
    return DesktopMessages(window, lambda: None)


def test_without_a_desktop_nothing_is_shown(messages: DesktopMessages):
    assert not desktop.shows_messages()  # the tests' platform has no tray
    assert not messages.show_message("Burnish", "reviews has finished.", False)
    assert messages._icon is None


def test_the_icon_is_in_the_tray_only_while_a_message_is(messages: DesktopMessages, monkeypatch):
    monkeypatch.setattr(desktop, "shows_messages", lambda: True)
    assert messages.show_message("Burnish", "reviews failed.", True)
    assert messages._icon.isVisible()
    messages.withdraw()
    assert not messages._icon.isVisible()


def test_a_run_name_is_not_markup_to_a_desktop_that_reads_it(messages: DesktopMessages, monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr(desktop, "shows_messages", lambda: True)
    monkeypatch.setattr(QSystemTrayIcon, "showMessage", lambda tray, title, text, *rest: shown.append(text))
    messages.show_message("Burnish", '<img src="file:///trap.png"> has failed.', True)
    assert shown == ['‹img src="file:///trap.png"› has failed.']
