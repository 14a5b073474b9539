"""Offline, nothing leaves: neither the helper nor a training asks the hub, and code of others in it cannot get out."""

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.backend.helper.conftest import Helper
from tests.end_to_end.burnish_process import Burnish

METRIC = '''\
"""A metric that tries to send what it sees."""
import os
import socket


class Leaving:
    title = "Leaving"
    tasks = ["text_classification"]
    greater_is_better = True

    @staticmethod
    def score(table):
        said = []
        for attempt in (
            lambda: socket.create_connection(("192.0.2.1", 80), timeout=1),
            lambda: socket.getaddrinfo("huggingface.co", 443),
        ):
            try:
                attempt()
                said.append("out")
            except OSError as error:
                said.append(f"{type(error).__name__}: {error}")
        with open(os.environ["LEAVING_SAID"], "w") as file:
            file.write("\\n".join([*said, os.environ["HF_DATASETS_OFFLINE"]]))
        return {"leaving": 0.0}
'''


class Nothing(BaseHTTPRequestHandler):
    """A hub, and a proxy, that has nothing; every request is counted."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def do_CONNECT(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Whatever goes to the hub or through a proxy comes here."""
    Nothing.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    for name in ("HF_ENDPOINT", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, address)
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", "5")
    yield Nothing.asked
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def processes(burnish: Burnish) -> None:
    """Every command is one: the switch is read when libraries are imported."""
    burnish.in_process = False


def ask_everything(helper: Helper) -> list[str]:
    model = helper.mistake("describe_model", name_or_path="somebody/absent", task="text_classification")
    tokens = helper.mistake("describe_tokenizer", tokenizer="somebody/absent")
    helper.answer("hub_account")
    helper.close()
    return [model, tokens]


@pytest.mark.slow
def test_online_the_hub_is_asked_offline_it_is_not(network: list[str], burnish: Burnish, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    ask_everything(Helper())
    assert network  # so that this test sees what it says it sees
    network.clear()

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for said in ask_everything(Helper()):
        assert "offline" in said.lower() or "network" in said.lower()
    refused = burnish("train", str(burnish.spec(model={"name_or_path": "somebody/absent"})))
    assert refused.returncode == 2
    assert burnish("train", str(burnish.spec(training={"max_steps": 2, "batch_size": 8}))).returncode == 0
    assert network == []


@pytest.mark.slow
def test_code_of_others_within_a_training_cannot_get_out(burnish: Burnish):
    site = burnish.home / "site"
    facts = site / "leaving-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: leaving\nVersion: 1.0\n", encoding="utf-8")
    (facts / "entry_points.txt").write_text("[burnish.metrics]\nleaving = leaving:Leaving\n", encoding="utf-8")
    (facts / "RECORD").write_text("leaving.py,,\n", encoding="utf-8")
    (site / "leaving.py").write_text(METRIC, encoding="utf-8")
    said = burnish.home / "said.txt"
    known = burnish.variables()["PYTHONPATH"]
    burnish.environment.update(
        PYTHONPATH=os.pathsep.join([known, str(site)]), LEAVING_SAID=str(said), HF_HUB_OFFLINE="1"
    )
    spec = burnish.spec(training={"max_steps": 2, "batch_size": 8}, evaluation={"every": 2, "metrics": ["leaving"]})
    done = burnish("train", str(spec))
    assert done.returncode == 0, done.stderr
    connected, looked_up, told = said.read_text(encoding="utf-8").splitlines()
    assert (
        connected == "OfflineError: offline mode is on, so 192.0.2.1 was not looked up; network access is not allowed"
    )
    assert "huggingface.co was not looked up" in looked_up
    assert told == "1"
