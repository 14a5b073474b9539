"""The sides that ask much are tested with small helper processes of their own, which answer as recorded."""

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QProcess

from app.services.backend_client import BackendClient
from app.services.context import AppContext


def _helped_by(script: str, context: AppContext) -> AppContext:
    def make(parent: QObject) -> QProcess:
        process = QProcess(parent)
        process.setProgram(sys.executable)
        process.setArguments([str(Path(__file__).with_name(script))])
        return process

    return dataclasses.replace(context, client=BackendClient(make_process=make))


@pytest.fixture
def answering(context: AppContext) -> Iterator[AppContext]:
    """The services with `vocabulary_helper.py`."""
    made = _helped_by("vocabulary_helper.py", context)
    yield made
    made.client.close()


@pytest.fixture
def training_helped(context: AppContext) -> Iterator[AppContext]:
    """The services with `training_helper.py`."""
    made = _helped_by("training_helper.py", context)
    yield made
    made.client.close()
