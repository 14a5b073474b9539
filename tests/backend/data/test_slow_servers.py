"""A server that sends a byte now and then is given up, whatever is asked of it."""

from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from huggingface_hub import constants

from backend.contract.errors import InputError
from backend.data import archive, network_limits
from backend.data.hub_answers import client

FILE = "/a/b/resolve/main/model.safetensors"


class _Dripping(ThreadingHTTPServer):
    """Sends a byte every ten milliseconds until it is closed: of the headers, of a body, or of a body after an error."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Drips)
        self.closing = Event()
        self.address = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked has gone."""


class _Drips(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def do_GET(self) -> None:
        if "whole" in self.path:
            return self._answer_whole()
        if "headers" not in self.path:
            self.send_response(302 if "redirect" in self.path else 404 if "error" in self.path else 200)
            self.send_header("Location", "/api/whole")
            self.send_header("Content-Length", str(10**6))
            self.end_headers()
        with suppress(OSError):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: " if "headers" in self.path else b"")
            while not self.server.closing.wait(0.01):
                self.wfile.write(b"x")
                self.wfile.flush()
        self.close_connection = True
        return None

    def _answer_whole(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_HEAD = do_GET  # noqa: N815 (the name that http.server looks for)

    def log_message(self, *message: object, **named: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Dripping]:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(network_limits, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(network_limits, "STALL_SECONDS", 0.3)
    with _Dripping() as dripping:
        Thread(target=dripping.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield dripping
        finally:
            dripping.closing.set()
            dripping.shutdown()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/api/models/a/b", "/api/whoami-v2", "/a/b/resolve/main/config.json"])
def test_hub_that_drips_its_headers_is_given_up(path: str, method: str, server: _Dripping) -> None:
    with client() as hub, pytest.raises(InputError, match="responds too slowly"):
        hub.request(method, f"{server.address}{path}?headers")


@pytest.mark.parametrize("path", ["/api/models/a/b", "/api/whoami-v2", FILE, f"{FILE}?error", "/api/x?redirect"])
def test_hub_that_drips_its_answer_is_given_up(path: str, server: _Dripping) -> None:
    with client() as hub, pytest.raises(InputError, match="responds too slowly"):
        hub.get(f"{server.address}{path}")


def test_hub_that_drips_a_download_is_given_up(server: _Dripping) -> None:
    with (
        client() as hub,
        hub.stream("GET", f"{server.address}{FILE}", timeout=30) as response,
        pytest.raises(InputError, match="responds too slowly"),
    ):
        list(response.iter_bytes())


def test_silence_is_bounded_where_the_library_waits_for_ever(
    server: _Dripping, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, float | None]] = []
    with client() as hub:
        hub.event_hooks["request"].append(lambda request: asked.append(request.extensions["timeout"]))
        hub.get(f"{server.address}/api/whole", timeout=None)
    assert asked == [dict.fromkeys(("connect", "read", "write", "pool"), network_limits.SILENT_SECONDS)]


@pytest.mark.parametrize("part", ["headers", "body"])
def test_server_that_drips_an_archive_is_given_up(part: str, server: _Dripping, tmp_path: Path) -> None:
    with pytest.raises(archive.DownloadError, match="too slowly"):
        archive.fetch(f"{server.address}/pair.tar?{part}", tmp_path / "pair.tar", lambda *progress: None)


def test_time_that_the_reader_takes_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(network_limits.time, "monotonic", lambda: now[0])
    taken = 0
    for piece in network_limits.limit_stalls([b"x"] * 5):
        now[0] += 2 * network_limits.STALL_SECONDS  # of writing it to the disk
        taken += len(piece)
    assert taken == 5
