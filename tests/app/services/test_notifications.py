"""Messages of a desktop without a tray."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.services import notifications

ROOT = Path(__file__).parents[3]
BUS = """<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>"""
"""A session's bus on which nothing is started."""
pytestmark = pytest.mark.skipif(os.name == "nt", reason="freedesktop's program")


@pytest.fixture
def sent(tmp_path: Path, monkeypatch) -> Path:
    """Where a small `notify-send` of the test writes what it was given."""
    program, file = tmp_path / notifications.PROGRAM, tmp_path / "sent"
    program.write_text(f"""#!/bin/sh\nprintf '%s\\n' "$@" > '{file}.part' && mv '{file}.part' '{file}'\n""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
    return file


def test_the_desktop_is_told_in_plain_text(qtbot, sent: Path):
    assert notifications.notify("Burnish", "<b>reviews</b> & more has failed.", True)
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
    assert not notifications.notify("Burnish", "reviews has finished.", False)
    assert not sent.exists()


@pytest.mark.skipif(shutil.which("dbus-run-session") is None, reason="no D-Bus here")
def test_without_the_program_the_message_arrives_at_the_desktops_portal(tmp_path: Path):
    configuration = tmp_path / "bus.conf"
    configuration.write_text(BUS)
    bus = [str(shutil.which("dbus-run-session")), f"--dbus-daemon={shutil.which('dbus-daemon')}"]
    command = [*bus, f"--config-file={configuration}", "--", sys.executable, "-m", "tests.app.services.portal_desktop"]
    environment = {**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "<b>reviews</b> & more has failed.", "error"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "id": "<b>reviews</b> & more has failed.",
        "title": "Burnish",
        "body": "<b>reviews</b> & more has failed.",
        "priority": "high",
    }
