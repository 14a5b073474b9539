"""Services whose helper answers questions about a training's data."""

import dataclasses
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QProcess

from app.services.backend_client import BackendClient
from app.services.context import AppContext


@pytest.fixture
def training_helped(context: AppContext):
    """The panel's services with recorded answers."""

    def make(parent: QObject) -> QProcess:
        process = QProcess(parent)
        process.setProgram(sys.executable)
        process.setArguments([str(Path(__file__).with_name("training_helper.py"))])
        return process

    made = dataclasses.replace(context, client=BackendClient(make_process=make))
    yield made
    made.client.close()
