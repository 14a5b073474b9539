"""The sides that ask much are tested with a small real helper process of their own."""

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QProcess

from app.services.backend_client import BackendClient
from app.services.context import AppContext


@pytest.fixture
def answering(context: AppContext) -> Iterator[AppContext]:
    """The services with `vocabulary_helper.py`."""

    def make(parent: QObject) -> QProcess:
        process = QProcess(parent)
        process.setProgram(sys.executable)
        process.setArguments([str(Path(__file__).with_name("vocabulary_helper.py"))])
        return process

    made = dataclasses.replace(context, client=BackendClient(make_process=make))
    yield made
    made.client.close()
