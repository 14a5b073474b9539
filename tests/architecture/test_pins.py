"""Qt and its plots are pinned to the pair that works, and what is installed is that pair."""

import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from pytestqt.qtbot import QtBot


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_window_libraries_are_pinned_exactly(project: dict):
    pins = [Requirement(line) for line in project["optional-dependencies"]["window"]]
    assert {pin.name for pin in pins} == {"PySide6-Essentials", "pyqtgraph"}
    for pin in pins:
        assert [part.operator for part in pin.specifier] == ["=="], f"{pin} is not exact"
        assert metadata.version(pin.name) in pin.specifier


def test_base_needs_no_framework_and_no_window(project: dict):
    names = {Requirement(line).name.lower() for line in project["dependencies"]}
    assert not names & {"torch", "jax", "jaxlib", "flax", "optax", "accelerate", "pyside6-essentials", "pyqtgraph"}


# A smoke test of the binding, because broken pairs install happily: PySide6 6.12 on Python 3.11 takes a reference from
# None with every call that returns it and aborts within seconds, Qt 6.11 puts a styled spin box's text out of sight.


def test_calls_that_return_none_leave_none_alone(qtbot: QtBot):
    from PySide6.QtCore import QObject

    thing = QObject()
    before = sys.getrefcount(None)
    for _ in range(500):
        thing.setObjectName("name")
    assert sys.getrefcount(None) - before > -100


def test_styled_spin_box_shows_its_text(qtbot: QtBot):
    from PySide6.QtWidgets import QAbstractSpinBox, QLineEdit, QSpinBox

    box = QSpinBox(value=42)
    plain = QSpinBox(value=42, buttonSymbols=QAbstractSpinBox.ButtonSymbols.NoButtons)
    for widget in (box, plain):
        qtbot.addWidget(widget)
        widget.setStyleSheet("QSpinBox { padding: 4px 8px; border: 1px solid gray; border-radius: 4px; }")
        widget.resize(120, 32)
        with qtbot.waitExposed(widget):
            widget.show()
        line = widget.findChild(QLineEdit)
        assert line.x() >= 8
        assert line.width() >= 60


@pytest.mark.slow
def test_plot_survives_two_hundred_updates(qtbot: QtBot):
    import numpy as np
    import pyqtgraph
    from PySide6.QtWidgets import QApplication

    plot = pyqtgraph.PlotWidget()
    qtbot.addWidget(plot)
    with qtbot.waitExposed(plot):
        plot.show()
    curve = plot.plot()
    before = sys.getrefcount(None)
    for count in range(1, 201):
        curve.setData(np.arange(count), np.sqrt(np.arange(count)))
        QApplication.processEvents()
    assert sys.getrefcount(None) - before > -200
    assert len(curve.getData()[0]) == 200
