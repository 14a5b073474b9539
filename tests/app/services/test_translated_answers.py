"""What a real helper process says arrives in the language of the window."""

from collections.abc import Iterator

import pytest

from app.core import i18n
from app.services.backend_client import BackendClient


@pytest.fixture
def german() -> Iterator[None]:
    i18n.choose("de")
    yield
    i18n.choose(i18n.ENGLISH)


def test_a_refusal_arrives_in_german_with_its_values(qtbot, german: None):
    mistakes: list = []
    client = BackendClient()
    client.ask("recognise_data", {"paths": ["/nowhere/a b.csv"]}, lambda _: None, mistakes.append)
    qtbot.waitUntil(lambda: bool(mistakes), timeout=60_000)
    client.close()
    assert mistakes[0].message == "/nowhere/a b.csv: diese Datei oder diesen Ordner gibt es nicht; prüfen Sie den Pfad"
