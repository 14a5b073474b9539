"""The offline switch: what would leave the machine is refused before it does, what stays on it is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRY = """
import socket, sys
from backend.contract import offline
offline.enforce()
listener = socket.create_server(("127.0.0.1", 0))
here = listener.getsockname()[1]

def said(attempt):
    try:
        attempt()
    except offline.OfflineError as error:
        return str(error)
    except OSError as error:
        return f"tried: {type(error).__name__}"
    return "done"

def asked():
    with offline.allow_network():
        return socket.getaddrinfo("192.0.2.1", 80)

datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for attempt in (
    lambda: socket.socket().connect(("192.0.2.1", 80)),
    lambda: socket.getaddrinfo("huggingface.co", 443),
    lambda: socket.gethostbyname("huggingface.co"),
    lambda: datagram.sendto(b"x", ("192.0.2.1", 53)),
    lambda: socket.create_connection(("127.0.0.1", here)),
    lambda: socket.getaddrinfo("localhost", here),
    asked,
):
    print(said(attempt))
"""


def attempts(offline: str, code: str = TRY) -> list[str]:
    environment = {**os.environ, "HF_HUB_OFFLINE": offline, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_what_would_leave_the_machine_is_refused_with_its_name():
    refused, *_ = said = attempts("1")
    assert refused == "offline mode is on, so 192.0.2.1 was not looked up; network access is not allowed"
    assert [line.split(",")[0] for line in said[:4]] == ["offline mode is on"] * 4
    assert "huggingface.co was not looked up" in said[1]


def test_what_stays_on_the_machine_and_what_is_wanted_by_name_is_not_refused():
    assert attempts("1")[4:] == ["done", "done", "done"]


@pytest.mark.skipif(sys.platform == "win32", reason="another sentence of the system's")
def test_without_the_switch_nothing_is_refused():
    code = TRY.replace('lambda: socket.socket().connect(("192.0.2.1", 80)),', "").replace(
        '"huggingface.co"', '"localhost"'
    )
    assert not [line for line in attempts("0", code) if "offline mode" in line]
