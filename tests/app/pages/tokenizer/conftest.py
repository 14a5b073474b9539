"""The tabs that ask much are tested with small helper processes of their own, which answer as recorded."""

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.pages.tokenizer.text.text_tab import TextTab
from app.services.backend_client import BackendClient
from app.services.context import AppContext
from tests.app.example_tokens import HELLO
from tests.app.helper_process import forked_helper
from tests.app.pages.shared_helper import SharedHelperClient


def _owner(module: str) -> Iterator[BackendClient]:
    made = BackendClient(make_process=functools.partial(forked_helper, f"tests.app.pages.tokenizer.{module}"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def vocabulary_helper() -> Iterator[BackendClient]:
    """The owner of `vocabulary_helper.py`."""
    yield from _owner("vocabulary_helper")


@pytest.fixture(scope="module")
def training_helper() -> Iterator[BackendClient]:
    """The owner of `training_helper.py`."""
    yield from _owner("training_helper")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """No runs: the page's lists of them are tested with names alone."""
    return tmp_path / "runs"


@pytest.fixture
def answering(context: AppContext, vocabulary_helper: BackendClient) -> Iterator[AppContext]:
    """The services with `vocabulary_helper.py`."""
    made = dataclasses.replace(context, client=SharedHelperClient(vocabulary_helper))
    yield made
    made.client.close()


@pytest.fixture
def training_helped(context: AppContext, training_helper: BackendClient) -> Iterator[AppContext]:
    """The services with `training_helper.py`."""
    made = dataclasses.replace(context, client=SharedHelperClient(training_helper))
    yield made
    made.client.close()


@pytest.fixture
def text_tab(qtbot, context: AppContext) -> TextTab:
    """The Text tab with the tokens of “Hello world”."""
    made = TextTab(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    made.text.blockSignals(True)
    made.text.setPlainText("Hello world")
    made.text.blockSignals(False)
    made._on_tokens(HELLO)
    return made
