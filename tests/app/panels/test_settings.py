"""The Settings page."""

from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication

from app.core import preferences
from app.panels.settings import Panel
from app.widgets.icon_label import IconToolButton
from backend.contract.queries import Mistake

FINDINGS = [
    {"state": "fine", "text": "Python 3.11", "mend": ""},
    {"state": "missing", "text": "A library is missing", "mend": "apt-get install it"},
]


@pytest.fixture
def panel(qtbot, context) -> Panel:
    made = Panel(context)
    qtbot.addWidget(made)
    made.resize(1000, 800)
    made.show()
    return made


def stored(context) -> preferences.Preferences:
    return preferences.load(context.preferences.path)


def test_a_choice_of_theme_is_kept_and_told(qtbot, panel: Panel, context):
    with qtbot.waitSignal(panel.theme_changed) as signal:
        panel.theme_group.button(2).click()
    assert signal.args == ["dark"]
    assert stored(context).theme == "dark"


def test_a_theme_that_is_not_known_here_follows_the_system(qtbot, context):
    context.preferences.set("theme", "sepia")
    panel = Panel(context)
    qtbot.addWidget(panel)
    assert panel.theme_group.checkedId() == 0


def test_check_boxes_are_kept(panel: Panel, context):
    panel.offline.click()
    panel.csv_bom.click()
    panel.csv_defuse.click()
    assert (stored(context).offline, stored(context).csv_bom, stored(context).csv_defuse) == (True, True, True)


def test_another_runs_folder_is_looked_at_at_once(panel: Panel, context, tmp_path: Path):
    panel.set_folder("runs_folder", str(tmp_path / "elsewhere"))
    assert context.library.root == tmp_path / "elsewhere"
    assert panel.runs_folder.text() == str(tmp_path / "elsewhere")
    assert stored(context).runs_folder == str(tmp_path / "elsewhere")


def test_what_is_missing_comes_with_a_command_to_copy(qtbot, panel: Panel):
    panel._on_doctor({"findings": FINDINGS})
    assert panel.doctor_lines.count() == 2
    button = panel.doctor_lines.itemAt(1).widget().findChild(IconToolButton)
    with qtbot.waitSignal(panel.message):
        button.click()
    assert QGuiApplication.clipboard().text() == "apt-get install it"


def test_checking_again_replaces_the_lines(panel: Panel):
    panel._on_doctor({"findings": FINDINGS})
    panel._on_doctor({"findings": FINDINGS[:1]})
    assert panel.doctor_lines.count() == 1


def test_a_mistake_of_the_helper_is_shown(panel: Panel):
    panel._on_mistake(Mistake("The helper is not there; try again."))
    assert panel.doctor_banner.text() == "The helper is not there; try again."
    assert panel.check_again.isEnabled()
