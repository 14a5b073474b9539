"""What people do to a draft: undo, presets, changed settings, files, and the command that does the same."""

import json
import shlex
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.core.draft.kept_draft import NAME, read_kept
from app.core.preferences import default_path
from tests.app.pages.new_run.draft_steps import dropped, line, spec, write


def test_letters_typed_into_a_field_are_undone_and_redone_as_one_step(qtbot, demo):
    field = line(demo, "batch_size")
    write(qtbot, field, "64")
    assert demo.header.undo.toolTip() == "Undo Batch size: 6 → 64 (Ctrl+Z)"
    qtbot.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert (demo.draft.get("training.batch_size"), field.text()) == (16, "16")
    qtbot.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert (demo.draft.get("training.batch_size"), field.text()) == (64, "64")


def test_undo_takes_back_first_what_was_typed_wrong_and_then_the_step_before(qtbot, demo):
    write(qtbot, line(demo, "epochs"), "7")
    write(qtbot, line(demo, "batch_size"), "many")
    demo.header.undo.click()
    assert (line(demo, "batch_size").text(), demo.draft.get("training.epochs")) == ("16", 7)
    demo.header.undo.click()
    assert line(demo, "epochs").text() == "4"


def test_another_spec_a_preset_and_a_task_are_one_step_each(qtbot, demo):
    before = demo.draft.values()
    demo.controller.apply_preset(next(one for one in demo.catalog.presets if one.title == "Standard classifier"))
    assert demo.sections.task.presets.currentText() == "Standard classifier"
    demo.controller.choose_task("causal_lm")
    assert demo.header.undo.toolTip().startswith("Undo Task: ")
    demo.header.undo.click()
    assert demo.sections.task.presets.currentText() == "Standard classifier"
    assert demo.sections.task.tasks.currentData() == "text_classification"
    demo.header.undo.click()
    assert demo.draft.values() == before
    assert demo.sections.task.presets.currentText() == "None"
    demo.header.undo.click()
    assert demo.draft.get("data.train") is None
    demo.header.redo.click()
    assert demo.draft.values() == before


def test_columns_that_were_guessed_are_no_step_of_their_own(qtbot, panel, tmp_path: Path):
    data = tmp_path / "rows.csv"
    data.write_text("text,label\nfine,a\nbad,b\n")
    panel.sections.data.train.choose(str(data))
    qtbot.waitUntil(lambda: panel.draft.get("data.columns") == {"text": "text", "label": "label"})
    panel.header.undo.click()
    assert panel.draft.get("data.train") is None
    assert not panel.header.undo.isEnabled()


def test_changed_settings_are_counted_listed_and_reset(demo):
    settings = demo.sections.settings
    demo.change("training.warmup", 0.2)
    demo.change("training.weight_decay", 0.5)
    assert settings.groups["training"].count.text() == "2 changed"
    settings.changes.click()
    listed = {one.setting.key for one in demo.changes._changes}
    assert {"training.warmup", "training.weight_decay", "training.epochs"} <= listed
    settings.groups["training"].reset.click()
    assert demo.draft.get("training.weight_decay") == 0.01
    assert settings.groups["training"].count.text() == ""
    assert not {"training.warmup"} & {one.setting.key for one in demo.changes._changes}
    demo.header.undo.click()
    assert (demo.draft.get("training.warmup"), demo.draft.get("training.weight_decay")) == (0.2, 0.5)
    demo.changes.reset_all.click()
    assert settings.changes.isHidden()
    assert demo.draft.get("data.train")


def test_what_a_task_fills_in_by_itself_is_not_changed_and_is_what_reset_goes_back_to(qtbot, panel):
    settings, task = panel.sections.settings, panel.controller.task()
    panel.draft.merge(task.defaults)
    panel.controller.replaced.emit()
    panel.controller.forget_history()
    training = settings.groups["training"]
    assert settings.changes.isHidden()
    assert training.reset.isHidden()
    training.set_open(True)
    warmup = training.form.row_of("training.warmup")
    assert not warmup.is_changed()
    write(qtbot, warmup.editor.target, "0.5")
    assert settings.changes.text() == training.count.text() == "1 changed"
    assert "auto" in warmup.reset.toolTip()
    training.reset.click()
    assert panel.draft.get("training.warmup") == "auto"
    assert settings.changes.isHidden()
    write(qtbot, warmup.editor.target, "0")
    assert settings.changes.text() == "1 changed"
    warmup.reset.click()
    assert panel.draft.get("training.warmup") == "auto"
    assert settings.changes.isHidden()
    panel.controller.choose_task("question_answering")
    assert panel.draft.get("training.warmup") == "auto"
    assert settings.changes.isHidden()


def test_a_saved_draft_is_opened_again_and_its_command_names_the_file(qtbot, demo, tmp_path: Path):
    demo.change("training.epochs", 9)
    values = demo.draft.values()
    demo.controller.save(tmp_path / "kept.yaml")
    demo.start_bar.copy.trigger()
    assert QGuiApplication.clipboard().text() == f"burnish train {shlex.quote(str(tmp_path / 'kept.yaml'))}"
    demo.change("training.epochs", 3)
    demo.controller.open(tmp_path / "kept.yaml")
    assert demo.draft.values() == values
    assert line(demo, "epochs").text() == "9"
    demo.header.undo.click()
    assert demo.draft.get("training.epochs") == 3


def test_a_yaml_file_dropped_on_the_page_is_the_new_draft_and_on_the_data_card_no_data(qtbot, demo, tmp_path: Path):
    path = spec(tmp_path, {**demo.draft.values(), "name": "dropped"})
    _mime, event = dropped(path)
    train = demo.draft.get("data.train")
    demo.sections.data.train.dropEvent(event)
    assert demo.draft.get("data.train") == train
    demo.dropEvent(event)
    assert demo.sections.task.name.text() == "dropped"


def test_what_a_file_says_wrongly_is_told_with_its_line_and_marked_at_its_field(qtbot, demo, tmp_path: Path):
    path = tmp_path / "wrong.yaml"
    path.write_text("task: {type: text_classification}\ntraining:\n  batch_size: many\n  epoch: 3\n")
    with qtbot.waitSignal(demo.message) as said:
        demo.controller.open(path)
    assert said.args[0] == "warning"
    assert "wrong.yaml, line 4: ignored the unknown setting training.epoch" in said.args[1]
    assert "wrong.yaml, line 3: Batch size can't be many" in said.args[1]
    assert "batch_size" in demo.sections.settings.forms["training"].mistakes()
    before = demo.draft.values()
    path.write_text("task: [\n")
    with qtbot.waitSignal(demo.message) as said:
        demo.controller.open(path)
    assert said.args[0] == "error"
    assert "line" in said.args[1]
    assert demo.draft.values() == before


def test_an_own_preset_is_saved_listed_compared_used_and_deleted(qtbot, demo):
    demo.change("training.epochs", 11)
    demo.presets.ask_save()
    saving = demo.presets.saving
    assert not saving.save.isEnabled()
    saving.name.setText("Eleven times")
    saving.save.click()
    assert demo.sections.task.presets.findText("Eleven times") > 0
    demo.change("training.epochs", 2)
    demo.presets.open_dialog()
    dialog = demo.presets.dialog
    own = dialog.list.findItems("Eleven times", Qt.MatchFlag.MatchExactly)[0]
    dialog.list.setCurrentItem(own)
    assert ["Epochs", "2", "11", "training.epochs"] in dialog.table.texts()
    assert dialog.delete.isVisible()
    dialog.use.click()
    assert demo.draft.get("training.epochs") == 11
    assert demo.sections.task.presets.currentText() == "Eleven times"
    assert "Epochs: 2 → 11" in demo.sections.task.preset_changes.text()
    demo.presets.open_dialog()
    dialog.delete.click()
    assert demo.sections.task.presets.findText("Eleven times") < 0
    assert demo.draft.get("training.epochs") == 11
    dialog.reject()


def test_a_shipped_preset_cannot_be_deleted_nor_its_name_taken(demo):
    demo.presets.open_dialog()
    assert demo.presets.dialog.preset() in demo.catalog.presets
    assert not demo.presets.dialog.delete.isVisible()
    demo.presets.dialog.reject()
    demo.presets.ask_save()
    demo.presets.saving.name.setText(demo.catalog.presets[0].name)
    assert "choose another name" in demo.presets.saving.mistake.text()
    assert not demo.presets.saving.save.isEnabled()
    demo.presets.saving.reject()


def test_the_copied_command_computes_and_keeps_runs_where_the_window_does(demo, monkeypatch):
    monkeypatch.setattr(demo._context.preferences, "runs_folder", "/my runs")
    monkeypatch.setattr(demo._context.preferences, "offline", True)
    demo.start_bar.copy.trigger()
    last = QGuiApplication.clipboard().text().splitlines()[-1]
    assert last == "HF_HUB_OFFLINE=1 BURNISH_RUNS='/my runs' burnish train sentiment.yaml"


def test_the_copied_command_carries_the_draft(demo):
    demo.change("training.optimizer", "sgd")
    demo.start_bar.copy.trigger()
    written = QGuiApplication.clipboard().text().split("\n", 1)[1].split("\nSPEC\n")[0]
    assert json.loads(written) == demo.draft.values()


def test_a_choice_of_the_task_already_shown_is_kept(panel):
    def is_kept_as_chosen() -> bool:
        kept = read_kept(default_path().with_name(NAME))
        return kept is not None and kept.task_chosen

    panel.controller.change("training.epochs", 9)
    panel.controller.keep()
    assert not is_kept_as_chosen()
    panel.controller.choose_task("text_classification")
    panel.controller.keep()
    assert is_kept_as_chosen()


def test_someone_who_sets_up_a_task_has_chosen_it(panel):
    panel.controller.change("training.epochs", 9)
    assert not panel.draft.task_chosen
    panel.controller.change("task.max_length", 64)
    assert panel.draft.task_chosen
    panel.controller.undo()
    assert not panel.draft.task_chosen
    panel.controller.apply({"task.max_length": 32}, "Shorter texts")
    assert panel.draft.task_chosen
