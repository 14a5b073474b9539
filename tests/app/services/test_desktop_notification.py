"""Messages of a desktop without a tray."""

import os
from pathlib import Path

import pytest

from app.services import desktop_notification

pytestmark = pytest.mark.skipif(os.name == "nt", reason="freedesktop's program")


@pytest.fixture
def sent(tmp_path: Path, monkeypatch) -> Path:
    """Where a small `notify-send` of the test writes what it was given."""
    program, file = tmp_path / desktop_notification.PROGRAM, tmp_path / "sent"
    program.write_text(f"""#!/bin/sh\nprintf '%s\\n' "$@" > '{file}.part' && mv '{file}.part' '{file}'\n""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
    return file


def test_the_desktop_is_told_in_plain_text(qtbot, sent: Path):
    assert desktop_notification.notify("Burnish", "<b>reviews</b> & more has failed.", True)
    qtbot.waitUntil(sent.exists)
    assert sent.read_text().splitlines() == [
        "--app-name=Burnish",
        "--urgency=critical",
        "--",
        "Burnish",
        "&lt;b&gt;reviews&lt;/b&gt; &amp; more has failed.",
    ]


def test_without_a_session_nobody_is_told(sent: Path, monkeypatch):
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert not desktop_notification.notify("Burnish", "reviews has finished.", False)
    assert not sent.exists()
