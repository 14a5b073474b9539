"""The New run page with a small real helper process."""

import dataclasses
import os
import shlex
import shutil
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication

from app.pages.new_run.data.split_fields import FRACTION, NONE
from app.pages.new_run.page import Page
from app.services.backend_client import BackendClient
from backend.contract.resources import resource
from backend.contract.rpc.plan import AutoSetting
from backend.contract.spec import run_spec
from tests.app.helper_process import helper_of_its_own
from tests.app.pages.small_helper import DEMO
from tests.foreign_package import install

TRAIN = str(resource("demo", "sentiment", "train.csv"))
ROOT = Path(__file__).parents[4]
MODEL = str(resource("demo", "bert-tiny"))


def test_the_tasks_of_the_catalog_can_be_chosen(panel):
    offered = [panel.sections.task.tasks.itemData(number) for number in range(panel.sections.task.tasks.count())]
    assert offered == [task.name for task in panel.catalog.tasks]
    assert panel.sections.task.tasks.currentData() == "text_classification"


def test_start_waits_with_the_reason_beside_it(qtbot, panel):
    assert not panel.start_bar.start.isEnabled()
    assert "training data" in panel.start_bar.reason.text()
    panel.sections.data.train.choose(TRAIN)
    qtbot.waitUntil(lambda: panel.start_bar.reason.text() == "Choose a model.")
    panel.sections.model.choose(MODEL)
    qtbot.waitUntil(panel.start_bar.start.isEnabled)


def test_columns_are_guessed_with_the_reason(qtbot, panel):
    panel.sections.data.train.choose(TRAIN)
    qtbot.waitUntil(lambda: panel.checks.preview is not None)
    assert panel.draft.get("data.columns") == {"text": "text", "label": "label"}
    assert panel.sections.data.columns.boxes["label"].currentData() == "label"
    assert "common name" in panel.sections.data.columns.reason("label")


def test_real_rows_labels_and_skipped_rows_are_shown(qtbot, panel):
    panel.sections.data.train.choose(TRAIN)
    qtbot.waitUntil(lambda: panel.checks.preview is not None)
    assert panel.sections.data.table.shown_count() == 100
    assert "positive" in panel.sections.data.labels.text()
    assert "train.csv:118" in panel.sections.data.skipped.text()


def test_the_run_is_named_for_its_data_until_a_person_names_it(qtbot, panel, tmp_path: Path):
    panel.sections.data.train.choose(TRAIN)
    assert panel.draft.get("name") == "sentiment"
    panel.sections.task.name.setFocus()
    panel.sections.task.name.clear()
    qtbot.keyClicks(panel.sections.task.name, "my run")
    panel.sections.data.train.choose(str(tmp_path / "other.csv"))
    assert panel.draft.get("name") == "my run"


def test_a_proposed_name_goes_with_its_data(panel, tmp_path: Path):
    panel.load_spec({**DEMO, "name": "sentiment 2"})
    panel.change("data.max_rows", 50)
    assert panel.draft.get("name") == "sentiment 2"
    panel.sections.data.train.choose(str(tmp_path / "other.csv"))
    assert panel.draft.get("name") == panel.sections.task.name.text() == "other"
    panel.controller.undo()
    assert panel.sections.task.name.text() == "sentiment 2"


def test_dropped_data_gives_the_demo_another_name(qtbot, demo, tmp_path: Path):
    dropped = shutil.copy(TRAIN, tmp_path / "reviews.csv")
    demo.data_controller.take([str(dropped)])
    qtbot.waitUntil(lambda: demo.sections.task.name.text() == "reviews")


def test_a_name_in_a_spec_file_outlives_other_data(panel, tmp_path: Path):
    file = tmp_path / "baseline.yaml"
    file.write_text("version: 1\nname: baseline\ntask: {type: text_classification}\ndata: {train: a.csv}\n")
    panel.controller.open(file)
    panel.sections.data.train.choose(str(tmp_path / "other.csv"))
    assert panel.draft.get("name") == "baseline"


def test_a_missing_file_is_said_at_the_data(qtbot, panel):
    panel.sections.data.train.choose("/nowhere/data.csv")
    qtbot.waitUntil(lambda: "no file" in panel.sections.data.banner.text())
    panel.sections.model.choose(MODEL)
    qtbot.waitUntil(lambda: "no file" in panel.reason())
    assert not panel.start_bar.start.isEnabled()


def test_a_file_can_be_dropped_on_the_data_card(qtbot, panel):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(TRAIN)])
    event = QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    panel.sections.data.dropEvent(event)
    qtbot.waitUntil(lambda: panel.draft.get("data.train") == TRAIN)


def test_validation_is_a_fraction_a_file_or_nothing(qtbot, panel):
    assert panel.sections.data.fraction.text() == "0.1"
    panel.sections.data.fraction.setText("0.25")
    panel.sections.data.fraction.editingFinished.emit()
    assert panel.draft.get("data.validation") == 0.25
    panel.sections.data.validation_kind.setCurrentText(NONE)
    panel.sections.data.validation_kind.textActivated.emit(NONE)
    assert panel.draft.get("data.validation") is None
    panel.sections.data.validation.choose(TRAIN)
    assert panel.draft.get("data.validation") == TRAIN
    panel.sections.data.validation_kind.textActivated.emit(FRACTION)
    assert panel.draft.get("data.validation") == 0.1


@pytest.mark.parametrize(
    ("task", "model"),
    [("text_classification", "bert-tiny"), ("causal_lm", "austen-gpt2"), ("seq2seq_lm", "eng-spa-marian")],
)
def test_the_embedded_model_that_goes_with_the_task_is_one_click_away(panel, task, model):
    panel.draft.use_task(task, {})
    panel.sections.model.show_draft(panel.draft)
    panel.sections.model.embedded.click()
    assert panel.sections.model.embedded.text() == model
    assert panel.draft.get("model.name_or_path") == str(resource("demo", model))


def test_what_the_models_folder_holds_is_shown(qtbot, panel):
    panel.sections.model.embedded.click()
    qtbot.waitUntil(lambda: panel.checks.model is not None)
    assert panel.draft.get("model.name_or_path") == MODEL
    assert panel.sections.model.facts.values["Parameters"].text() == "4.39 M"
    assert panel.sections.model.facts.values["License"].text() == "MIT"
    assert panel.sections.model.pill.text() == "Safetensors"
    assert "new head" in panel.sections.model.notes.text()


def test_a_model_that_is_not_there_is_said(qtbot, panel):
    panel.sections.model.choose("/some/nowhere")
    qtbot.waitUntil(lambda: "There is no model" in panel.sections.model.banner.text())


def test_old_weights_are_converted_only_after_consent(qtbot, panel):
    panel.sections.data.train.choose(TRAIN)
    panel.sections.open("model")
    panel.sections.model.choose("/models/slow-old-weights")
    qtbot.waitUntil(lambda: panel.sections.model.convert.isVisible())
    assert "converted once" in panel.reason()
    panel.sections.model.convert.click()
    qtbot.waitUntil(lambda: panel.checks.model is not None and not panel.checks.model.needs_conversion)
    assert not panel.sections.model.convert.isVisible()
    qtbot.waitUntil(panel.start_bar.start.isEnabled)


def test_the_demo_fills_everything(demo):
    assert demo.draft.get("data.train") == TRAIN
    assert demo.sections.settings.forms["training"].values()["batch_size"] == 16
    assert demo.sections.settings.best.currentData() == "accuracy"
    assert ("Steps", "600") in demo.sections.plan.rows
    run_spec(demo.draft.values())


def test_a_changed_setting_changes_the_cost(qtbot, demo):
    editor = demo.sections.settings.forms["training"].editor("batch_size")
    editor.target.selectAll()
    qtbot.keyClicks(editor.target, "32")
    qtbot.waitUntil(lambda: ("Steps", "300") in demo.sections.plan.rows)
    assert demo.draft.get("training.batch_size") == 32


def test_what_does_not_fit_cannot_be_started(qtbot, demo):
    demo.change("training.batch_size", 2000)
    qtbot.waitUntil(lambda: "does not fit" in demo.start_bar.reason.text())
    assert not demo.start_bar.start.isEnabled()


def test_a_refused_setting_is_marked_at_its_field(qtbot, demo):
    demo.change("training.learning_rate", 2)
    qtbot.waitUntil(lambda: "learning_rate" in demo.sections.settings.forms["training"].mistakes())
    assert not demo.start_bar.start.isEnabled()
    demo.change("training.learning_rate", 3e-4)
    qtbot.waitUntil(demo.start_bar.start.isEnabled)


def test_all_settings_are_one_click_away(demo):
    assert demo.sections.settings.others == {}
    demo.sections.settings.set_unfolded(True)
    assert demo.sections.settings.others["training"].values()["warmup"] == 0.06
    assert {"task", "data", "training", "evaluation", "model"} == set(demo.sections.settings.others)


def test_another_task_brings_its_own_columns_and_settings(qtbot, demo):
    demo.sections.task.tasks.setCurrentIndex(demo.sections.task.tasks.findData("causal_lm"))
    demo.sections.task.tasks.activated.emit(demo.sections.task.tasks.currentIndex())
    assert set(demo.sections.data.columns.boxes) == {"text"}
    assert demo.draft.get("task") == {"type": "causal_lm"}
    qtbot.waitUntil(lambda: demo.draft.get("data.columns.text") == "text")


def test_the_command_can_be_copied(demo):
    demo.start_bar.copy.trigger()
    copied = QGuiApplication.clipboard().text()
    assert copied.endswith("burnish train sentiment.yaml")
    assert shlex.split(copied)[0] == "cat"


def test_a_run_can_be_loaded_again(qtbot, panel, runs: Path):
    panel.load_run(str(runs / "sentiment-finished"))
    assert panel.draft.get("training.epochs") == 4
    assert panel.sections.task.name.text() == "sentiment 2"
    assert panel.sections.settings.forms["training"].values()["learning_rate"] == 3e-4


def test_an_unreadable_spec_is_said(qtbot, panel, tmp_path: Path):
    with qtbot.waitSignal(panel.message) as said:
        panel.load_run(str(tmp_path))
    assert said.args[0] == "error"


def choose_preset(panel: Page, title: str) -> None:
    box = panel.sections.task.presets
    box.setCurrentIndex(box.findText(title))
    box.activated.emit(box.currentIndex())


def test_a_preset_of_another_task_leaves_nothing_behind(demo):
    choose_preset(demo, "Language model from scratch")
    assert demo.draft.get("task.type") == "causal_lm"
    choose_preset(demo, "Quick classifier")
    assert demo.draft.get("task") == {"type": "text_classification", "max_length": 128}
    assert "schedule" not in demo.draft.values()["training"]
    assert demo.draft.values()["model"].get("initialise", "pretrained") == "pretrained"


def test_without_a_preset_the_draft_is_as_before(demo):
    before = demo.draft.values()
    choose_preset(demo, "Standard classifier")
    assert demo.draft.get("training.epochs") == 10
    choose_preset(demo, "None")
    assert demo.draft.values() == before


def test_without_a_preset_of_another_task_the_draft_is_as_before(qtbot, demo):
    before = demo.draft.values()
    choose_preset(demo, "Language model from scratch")
    qtbot.waitUntil(lambda: demo.checks.preview is not None)
    choose_preset(demo, "None")
    assert demo.draft.values() == before
    assert demo.sections.task.tasks.currentData() == "text_classification"
    assert set(demo.sections.data.columns.boxes) >= {"text", "label"}


def test_a_new_draft_opens_its_data_and_forgets_the_numbers_of_the_old_one(qtbot, demo):
    plan, chosen = demo.checks.plan, AutoSetting("training.epochs", 12.0, "epochs 12: there are few rows")
    demo.change("training.epochs", "auto")
    demo.checks.planned.emit(msgspec.structs.replace(plan, auto=[chosen]))
    demo.sections.open("settings")
    epochs = demo.sections.settings.forms["training"].editor("epochs").target
    assert epochs.placeholderText() == "auto: 12"
    demo.header.new.click()
    assert demo.sections.opened == "data"
    assert epochs.placeholderText() == "auto"
    demo.checks.changed.emit()
    assert demo.sections.named["settings"].header.value.text().startswith("epochs auto")


def test_a_source_says_what_it_needs_before_it_is_asked(qtbot, panel):
    box = panel.sections.data.source
    place = box.findData("hub")
    box.setCurrentIndex(place)
    box.activated.emit(place)
    assert panel.reason() == "Fill in “Dataset” under Data."
    assert panel.sections.data.banner.text() == ""


def test_what_is_known_of_other_data_holds_no_more(qtbot, demo):
    demo.sections.data.train.choose("/nowhere/data.csv")
    assert demo.checks.preview is None
    assert not demo.start_bar.start.isEnabled()


def test_an_unreadable_number_stays_marked_when_something_else_changes(qtbot, demo):
    editor = demo.sections.settings.forms["training"].editor("batch_size")
    editor.target.selectAll()
    qtbot.keyClicks(editor.target, "many")
    demo.change("training.seed", 7)
    assert "batch_size" in demo.sections.settings.forms["training"].mistakes()
    assert not demo.start_bar.start.isEnabled()


def test_consent_is_passed_on_for_the_model_it_was_given_to(qtbot, panel):
    panel.sections.data.train.choose(TRAIN)
    panel.sections.open("model")
    panel.sections.model.choose("/models/late-old-weights")
    qtbot.waitUntil(lambda: panel.sections.model.convert.isVisible())
    assert panel.checks.consent().options() == []
    panel.sections.model.convert.click()
    assert panel.checks.consent().options() == ["--convert-weights"]
    panel.sections.model.choose(MODEL)
    assert panel.checks.consent().options() == []


def test_a_spec_alone_is_no_consent_to_run_code(qtbot, panel):
    panel.sections.open("model")
    panel.sections.model.choose("/models/own-code")
    panel.draft.set("model.trust_remote_code", True)
    qtbot.waitUntil(lambda: panel.sections.model.trust.isVisible())
    assert not panel.checks.trusts_model()
    panel.sections.model.trust.click()
    qtbot.waitUntil(lambda: panel.draft.get("model.revision") == "c0ffee")
    qtbot.waitUntil(lambda: panel.checks.trusts_model())
    panel.sections.model.choose(MODEL)
    assert panel.draft.get("model.revision", "main") == "main"
    assert panel.draft.get("model.trust_remote_code") is not True


def test_an_answer_about_data_that_were_changed_is_not_taken(qtbot, panel):
    panel.sections.data.train.choose(TRAIN)
    panel.checks._preview.ask_now()
    asked = panel.checks._preview._ticket
    panel.change("data.train", "/nowhere/data.csv")
    assert not asked.open


def test_nothing_can_be_agreed_to_while_another_model_is_looked_at(qtbot, panel):
    panel.sections.open("model")
    panel.sections.model.choose("/models/lonely-old-weights")
    qtbot.waitUntil(lambda: panel.sections.model.convert.isVisible())
    panel.sections.model.choose("/some/nowhere")
    assert not panel.sections.model.convert.isVisible()
    qtbot.waitUntil(lambda: "There is no model" in panel.sections.model.banner.text())
    assert not panel.sections.model.facts.isVisible()


def test_a_conversion_that_is_overtaken_says_nothing_of_the_new_model(qtbot, panel):
    panel.sections.open("model")
    panel.sections.model.choose("/models/hasty-old-weights")
    qtbot.waitUntil(lambda: panel.sections.model.convert.isVisible())
    panel.sections.model.convert.click()
    converting = panel.checks._conversion._ticket
    panel.sections.model.choose(MODEL)
    assert not converting.open


def test_other_rows_of_a_language_model_ask_for_other_columns(qtbot, panel):
    tasks = panel.sections.task.tasks
    tasks.setCurrentIndex(tasks.findData("causal_lm"))
    tasks.activated.emit(tasks.currentIndex())
    assert list(panel.sections.data.columns.boxes) == ["text"]
    panel.draft.set("data.columns", {"text": "text"})
    panel.change("task.rows", "instructions")
    assert list(panel.sections.data.columns.boxes) == ["prompt", "input", "system", "response"]
    assert panel.draft.get("data.columns") == {}


def test_a_task_of_an_installed_package_can_be_chosen_and_set(qtbot, context, tmp_path, monkeypatch):
    site = install(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(site)]))
    client = BackendClient(make_process=helper_of_its_own)
    panel = Page(dataclasses.replace(context, client=client))
    qtbot.addWidget(panel)
    qtbot.waitUntil(lambda: panel.catalog is not None)
    client.close()
    tasks = panel.sections.task.tasks
    tasks.setCurrentIndex(tasks.findData("shouting"))
    tasks.activated.emit(tasks.currentIndex())
    assert panel.draft.get("task.type") == "shouting"
    assert panel.sections.task.description.text() == "Sorts texts that are written in capitals."
    panel.sections.settings.set_unfolded(True)
    assert "signs" in panel.sections.settings.others["training"]._rows["optimizer"].field.choices


def test_what_only_the_removed_bridge_trained_is_started_with_pytorch_alone(panel):
    panel.change("hardware.engine", "jax")
    panel.change("hardware.bridge", True)
    assert "hardware.bridge" not in panel.controller.settings()
    panel.change("hardware.engine", "torch")
    assert not panel.draft.says("hardware.bridge")


def test_data_can_be_looked_at_as_the_training_sees_it(qtbot, panel):
    assert not panel.sections.data.tokens.isEnabled()
    assert panel.offered()[1]
    panel.fill_demo()
    qtbot.waitUntil(lambda: panel.sections.data.tokens.isEnabled() and not panel.reason())
    with qtbot.waitSignal(panel.data_requested):
        panel.sections.data.tokens.click()
    spec, lacks = panel.offered()
    assert (spec["name"], lacks) == ("sentiment", "")
