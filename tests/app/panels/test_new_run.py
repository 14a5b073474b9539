"""The New run page with a small real helper process."""

import shlex
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication

from app.panels.new_run import Panel
from app.panels.new_run_cards.data_card import FRACTION, NONE
from backend.contract.resources import resource
from backend.contract.spec import run_spec

TRAIN = str(resource("demo", "sentiment", "train.csv"))
MODEL = str(resource("demo", "bert-tiny"))


@pytest.fixture
def panel(qtbot, helped):
    made = Panel(helped)
    qtbot.addWidget(made)
    made.resize(1068, 800)
    made.show()
    qtbot.waitUntil(lambda: made.catalog is not None)
    return made


@pytest.fixture
def demo(qtbot, panel):
    panel.demo.click()
    qtbot.waitUntil(lambda: panel.findings.plan is not None and not panel.reason())
    return panel


def test_the_tasks_of_the_catalog_can_be_chosen(panel):
    offered = [panel.task.tasks.itemData(number) for number in range(panel.task.tasks.count())]
    assert offered == [task.name for task in panel.catalog.tasks]
    assert panel.task.tasks.currentData() == "text_classification"


def test_start_waits_with_the_reason_beside_it(qtbot, panel):
    assert not panel.cost.start.isEnabled()
    assert "training data" in panel.cost.reason.text()
    panel.data.train.choose(TRAIN)
    qtbot.waitUntil(lambda: panel.cost.reason.text() == "Choose a model.")
    panel.model_card.choose(MODEL)
    qtbot.waitUntil(panel.cost.start.isEnabled)


def test_columns_are_guessed_with_the_reason(qtbot, panel):
    panel.data.train.choose(TRAIN)
    qtbot.waitUntil(lambda: panel.findings.preview is not None)
    assert panel.draft.get("data.columns") == {"text": "text", "label": "label"}
    assert panel.data.columns.boxes["label"].currentData() == "label"
    assert "usual name" in panel.data.columns._reasons["label"].text()


def test_real_rows_labels_and_skipped_rows_are_shown(qtbot, panel):
    panel.data.train.choose(TRAIN)
    qtbot.waitUntil(lambda: panel.findings.preview is not None)
    assert panel.data.table.shown_count() == 100
    assert "positive" in panel.data.labels.text()
    assert "train.csv:118" in panel.data.skipped.text()


def test_the_run_is_named_for_its_data_until_a_person_names_it(qtbot, panel, tmp_path: Path):
    panel.data.train.choose(TRAIN)
    assert panel.draft.get("name") == "train"
    panel.task.name.setFocus()
    panel.task.name.clear()
    qtbot.keyClicks(panel.task.name, "my run")
    panel.data.train.choose(str(tmp_path / "other.csv"))
    assert panel.draft.get("name") == "my run"


def test_a_missing_file_is_said_at_the_data(qtbot, panel):
    panel.data.train.choose("/nowhere/data.csv")
    qtbot.waitUntil(lambda: "no file" in panel.data.banner.text())
    panel.model_card.choose(MODEL)
    qtbot.waitUntil(lambda: "no file" in panel.cost.reason.text())
    assert not panel.cost.start.isEnabled()


def test_a_file_can_be_dropped_on_the_data_card(qtbot, panel):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(TRAIN)])
    event = QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    panel.data.dropEvent(event)
    assert panel.draft.get("data.train") == TRAIN


def test_validation_is_a_fraction_a_file_or_nothing(qtbot, panel):
    assert panel.data.fraction.text() == "0.1"
    panel.data.fraction.setText("0.25")
    panel.data.fraction.editingFinished.emit()
    assert panel.draft.get("data.validation") == 0.25
    panel.data.validation_kind.setCurrentText(NONE)
    panel.data.validation_kind.textActivated.emit(NONE)
    assert panel.draft.get("data.validation") is None
    panel.data.validation.choose(TRAIN)
    assert panel.draft.get("data.validation") == TRAIN
    panel.data.validation_kind.textActivated.emit(FRACTION)
    assert panel.draft.get("data.validation") == 0.1


def test_what_the_models_folder_holds_is_shown(qtbot, panel):
    panel.model_card.embedded.click()
    qtbot.waitUntil(lambda: panel.findings.model is not None)
    assert panel.draft.get("model.name_or_path") == MODEL
    assert panel.model_card.facts["Parameters"].text() == "4.39 M"
    assert panel.model_card.facts["Licence"].text() == "MIT"
    assert panel.model_card.pill.text() == "Safe weights"
    assert "new head" in panel.model_card.notes.text()


def test_a_model_that_is_not_there_is_said(qtbot, panel):
    panel.model_card.choose("/some/nowhere")
    qtbot.waitUntil(lambda: "there is no model" in panel.model_card.banner.text())


def test_old_weights_are_converted_only_after_consent(qtbot, panel):
    panel.data.train.choose(TRAIN)
    panel.model_card.choose("/models/old-weights")
    qtbot.waitUntil(lambda: panel.model_card.convert.isVisible())
    assert "converted once" in panel.reason()
    panel.model_card.convert.click()
    qtbot.waitUntil(lambda: panel.findings.model is not None and not panel.findings.model.needs_conversion)
    assert not panel.model_card.convert.isVisible()
    qtbot.waitUntil(panel.cost.start.isEnabled)


def test_the_demo_fills_everything(demo):
    assert demo.draft.get("data.train") == TRAIN
    assert demo.settings.forms["training"].values()["batch_size"] == 16
    assert demo.settings.best.currentData() == "accuracy"
    assert demo.cost.values["Steps"].text() == "600"
    run_spec(demo.draft.values())


def test_a_changed_setting_changes_the_cost(qtbot, demo):
    editor = demo.settings.forms["training"].editor("batch_size")
    editor.target.selectAll()
    qtbot.keyClicks(editor.target, "32")
    qtbot.waitUntil(lambda: demo.cost.values["Steps"].text() == "300")
    assert demo.draft.get("training.batch_size") == 32


def test_what_does_not_fit_cannot_be_started(qtbot, demo):
    demo.change("training.batch_size", 2000)
    qtbot.waitUntil(lambda: "does not fit" in demo.cost.reason.text())
    assert not demo.cost.start.isEnabled()


def test_a_refused_setting_is_marked_at_its_field(qtbot, demo):
    demo.change("training.learning_rate", 2)
    qtbot.waitUntil(lambda: "learning_rate" in demo.settings.forms["training"].mistakes())
    assert not demo.cost.start.isEnabled()
    demo.change("training.learning_rate", 3e-4)
    qtbot.waitUntil(demo.cost.start.isEnabled)


def test_all_settings_are_one_click_away(demo):
    assert demo.settings.others == {}
    demo.settings.set_unfolded(True)
    assert demo.settings.others["training"].values()["warmup"] == 0.06
    assert {"task", "training", "evaluation", "hardware", "model"} == set(demo.settings.others)


def test_another_task_brings_its_own_columns_and_settings(qtbot, demo):
    demo.task.tasks.setCurrentIndex(demo.task.tasks.findData("causal_lm"))
    demo.task.tasks.activated.emit(demo.task.tasks.currentIndex())
    assert set(demo.data.columns.boxes) == {"text"}
    assert demo.draft.get("task") == {"type": "causal_lm"}
    qtbot.waitUntil(lambda: demo.draft.get("data.columns.text") == "text")


def test_the_command_can_be_copied(demo):
    demo.cost.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert copied.endswith("burnish train sentiment.yaml")
    assert shlex.split(copied)[0] == "cat"


def test_a_run_can_be_loaded_again(qtbot, panel, runs: Path):
    panel.load_run(str(runs / "sentiment-finished"))
    assert panel.draft.get("training.epochs") == 4
    assert panel.task.name.text() == "sentiment"
    assert panel.settings.forms["training"].values()["learning_rate"] == 3e-4


def test_an_unreadable_spec_is_said(qtbot, panel, tmp_path: Path):
    with qtbot.waitSignal(panel.message) as said:
        panel.load_run(str(tmp_path))
    assert said.args[0] == "error"
