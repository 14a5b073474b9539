"""Widgets are tested in the window's own style, so that sizes and colours are those that people see."""

import pytest
from PySide6.QtWidgets import QApplication

from app import theme


@pytest.fixture(scope="session")
def qapp_args() -> list[str]:
    return ["burnish"]


@pytest.fixture
def styled(qapp: QApplication) -> QApplication:
    """The application in light colours."""
    theme.apply(qapp, "light")
    return qapp
