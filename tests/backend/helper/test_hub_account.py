"""Logging in to the hub, against a small real server that answers as the hub does."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.backend.helper.conftest import Helper, InProcessHelper
from tests.backend.models.fake_hub import hub_library

TOKEN = "hf_" + "Abcdefghij" * 3


class Hub(BaseHTTPRequestHandler):
    """Knows one token."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        told = {
            "name": "ada",
            "fullname": "Ada L.",
            "orgs": [{"name": "engines"}],
            "auth": {"accessToken": {"displayName": "laptop", "role": "read"}},
        }
        body = json.dumps(told if known else {"error": "Invalid credentials"}).encode()
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """The requests that a hub of our own was asked."""
    Hub.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield Hub.asked
    server.shutdown()
    server.server_close()


def test_a_token_logs_in_is_kept_by_the_hub_library_and_is_never_told(hub: list[str], tmp_path: Path):
    helper = Helper()
    assert helper.answer("hub_account")["has_token"] is False
    refused = helper.mistake("hub_login", token="hf_" + "wrongwrong" * 3)
    assert "does not recognize this token" in refused
    assert "wrongwrong" not in refused
    assert "without spaces" in helper.mistake("hub_login", token="two words")

    account = helper.answer("hub_login", token=f" {TOKEN}\n")
    assert (account["name"], account["organisations"]) == ("ada", ["engines"])
    kept = tmp_path / "home" / "token"
    assert kept.read_text() == TOKEN
    assert account["token_file"] == str(kept)
    assert TOKEN not in json.dumps(account)

    assert helper.answer("hub_logout").get("has_token", False) is False
    assert not kept.exists()
    assert hub
    assert set(hub) == {"/api/whoami-v2"}

    helper.process.stdin.close()
    said = helper.process.stderr.read().decode()
    helper.close()
    assert TOKEN not in said
    assert "wrongwrong" not in said


def test_offline_nobody_is_asked_and_the_page_is_told_why(hub: list[str], tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text(TOKEN)
    with hub_library(HF_HUB_OFFLINE="1"):
        helper = InProcessHelper()
        account = helper.answer("hub_account")
        assert (account["has_token"], account["name"]) == (True, "")
        assert "Offline mode is on" in account["note"]
        assert "offline" in helper.mistake("hub_login", token=TOKEN)
    assert hub == []
