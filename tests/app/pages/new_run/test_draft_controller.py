"""The New run page as people set a run up: undo, search, files, presets, changed settings, hardware, and what makes it fit."""

import dataclasses
import json
import shlex
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QObject, QPoint, QPointF, QProcess, QRect, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

from app import theme
from app.core import preferences
from app.pages.new_run.cost_details import CostDetails
from app.pages.new_run.draft_controller import NEW
from app.pages.new_run.page import Page
from app.services.backend_client import BackendClient
from app.services.context import AppContext
from app.widgets.forms.field_help import FieldHelp
from backend.contract import spec_file
from backend.contract.catalog import Device
from backend.contract.rpc.plan import DeviceList
from backend.contract.rpc.protocol import Mistake
from backend.contract.run.cost import Remedy
from tests.app.pages.small_helper import DEMO


@pytest.fixture(scope="module")
def page(qapp, tmp_path_factory):
    """One page for all tests here, with its shortcuts as the main window makes them, and its own folders."""
    home = tmp_path_factory.mktemp("home")
    theme.apply(qapp, "light")

    def make(parent: QObject) -> QProcess:
        process = QProcess(parent)
        process.setProgram(sys.executable)
        process.setArguments([str(Path(__file__).with_name("small_helper.py"))])
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BURNISH_CONFIG", str(home / "config"))
        patch.setenv("BURNISH_RUNS", str(home / "runs"))
        context = AppContext.create(preferences.load())
        context = dataclasses.replace(context, client=BackendClient(make_process=make))
        made = Page(context)
        made.resize(1068, 800)
        for action in made.offered_actions():
            for keys in action.shortcuts():
                QShortcut(QKeySequence(keys), made, action.do)
        yield made
        context.close()
        made.close()
        made.deleteLater()


@pytest.fixture
def panel(qtbot, page):
    """The page as it is at first."""
    page.show()
    qtbot.waitUntil(lambda: page.catalog is not None, timeout=60_000)
    qtbot.waitUntil(lambda: page.activateWindow() or page.isActiveWindow())
    page.bar.search.clear()
    page.draft.replace({**NEW, "task": {"type": "text_classification"}})
    page.draft.named = False
    page.controller.overlay.forget()
    page.controller.replaced.emit()
    page.controller.forget_history()
    return page


@pytest.fixture
def demo(qtbot, panel):
    """The page with the demo in it, and the answers about it."""
    panel.load_spec(DEMO, "The demo")
    qtbot.waitUntil(lambda: panel.checks.plan is not None and not panel.reason())
    return panel


def line(panel: Page, name: str) -> QLineEdit:
    target = panel.cards.settings.forms["training"].editor(name).target
    assert isinstance(target, QLineEdit)
    return target


def write(qtbot, field: QLineEdit, text: str) -> None:
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)


def spec(tmp_path: Path, values: dict) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(spec_file.dump(values))
    return path


def dropped(path: Path) -> tuple[QMimeData, QDropEvent]:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    at, keys = QPointF(5, 5), Qt.KeyboardModifier.NoModifier
    return mime, QDropEvent(at, Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, keys)


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
    demo.controller.apply_preset(next(one for one in demo.catalog.presets if one.title == "Careful classifier"))
    assert demo.cards.task.presets.currentText() == "Careful classifier"
    demo.controller.choose_task("causal_lm")
    assert demo.header.undo.toolTip().startswith("Undo Task: ")
    demo.header.undo.click()
    assert demo.cards.task.presets.currentText() == "Careful classifier"
    assert demo.cards.task.tasks.currentData() == "text_classification"
    demo.header.undo.click()
    assert demo.draft.values() == before
    assert demo.cards.task.presets.currentText() == "None"
    demo.header.undo.click()
    assert demo.draft.get("data.train") is None
    demo.header.redo.click()
    assert demo.draft.values() == before


def test_columns_that_were_guessed_are_no_step_of_their_own(qtbot, panel, tmp_path: Path):
    data = tmp_path / "rows.csv"
    data.write_text("text,label\nfine,a\nbad,b\n")
    panel.cards.data.train.choose(str(data))
    qtbot.waitUntil(lambda: panel.draft.get("data.columns") == {"text": "text", "label": "label"})
    panel.header.undo.click()
    assert panel.draft.get("data.train") is None
    assert not panel.header.undo.isEnabled()


def test_a_setting_is_searched_opened_and_stepped_to(qtbot, demo):
    bar, settings = demo.bar, demo.cards.settings
    bar.ask()
    qtbot.keyClicks(bar.search, "warm")
    demo.search.seek()
    assert demo.search.present() == "training.warmup"
    assert settings.groups["training"].is_open()
    assert settings.others["training"].row_of("training.warmup").title.isVisible()
    assert not settings.others["training"].row_of("training.weight_decay").title.isVisible()
    assert not settings.forms["training"].row_of("training.epochs").title.isVisible()
    places = len(demo.search.places)
    assert bar.count.text() == f"{1 + [key for key, _ in demo.search.places].index('training.warmup')} of {places}"
    first = demo.search.present()
    qtbot.keyClick(bar.search, Qt.Key.Key_Return)
    assert demo.search.present() != first or places == 1
    bar.search.setText("training.warmup")
    demo.search.seek()
    qtbot.keyClick(bar.search, Qt.Key.Key_Escape)
    assert settings.forms["training"].row_of("training.epochs").title.isVisible()
    qtbot.waitUntil(settings.others["training"].editor("warmup").target.hasFocus)


def test_what_stands_on_other_cards_is_found_too_and_nothing_found_teaches(demo):
    demo.bar.search.setText("hardware.memory_limit")
    demo.search.seek()
    assert demo.cards.hardware.form.row_of("hardware.memory_limit").title.isVisible()
    demo.bar.search.setText("hardware.precision")
    demo.search.seek()
    assert demo.cards.hardware.captions["hardware.precision"].property("sought") == "found"
    demo.bar.search.setText("lora")
    demo.search.seek()
    assert demo.cards.settings.captions["adapter.type"].property("sought") == "found"
    demo.bar.search.setText("cappuccino")
    demo.search.seek()
    assert "No setting is called “cappuccino”" in demo.bar.nothing.text()
    assert demo.bar.nothing.isVisible()
    demo.bar.search.clear()
    assert not demo.bar.nothing.isVisible()
    assert demo.cards.settings.forms["training"].isVisible()


@pytest.mark.parametrize("key", ["data.encoding", "data.sheet", "data.format"])
def test_a_setting_of_the_data_is_unfolded_and_wholly_in_view(qtbot, demo, key: str):
    demo.resize(740, 1000)  # what a window of 960 pixels leaves the page
    demo.bar.search.setText(key)
    demo.search.seek()
    row = next(form.row_of(key) for form in demo.cards.data.forms_shown())
    assert row.title.isVisible()
    qtbot.waitUntil(lambda: all(is_in_view(demo, widget) for widget in (row.title, row.editor.widget)))


def is_in_view(page: Page, widget: QWidget) -> bool:
    area = page.cards._area.viewport()
    return area.rect().contains(QRect(widget.mapTo(area, QPoint(0, 0)), widget.size()))


def test_what_was_typed_wrong_goes_with_the_field_that_another_choice_takes_away(qtbot, demo):
    demo.cards.settings.groups["training"].set_open(True)
    form = demo.cards.settings.others["training"]
    form.set_unfolded(True)
    write(qtbot, form.editor("adam_epsilon").target, "0")
    assert "Adam epsilon" in demo.reason()
    optimizer = form.editor("optimizer").target
    optimizer.setCurrentIndex(optimizer.findData("sgd"))
    optimizer.activated.emit(optimizer.currentIndex())
    assert not any(demo.cards.mistakes().values())
    qtbot.waitUntil(demo.cards.cost.start.isEnabled)
    demo.bar.search.setText("epsilon")
    demo.search.seek()
    assert demo.bar.nothing.text() == "“Adam epsilon” has no effect with the present choice of “Optimizer”."
    assert demo.cards.settings.forms["training"].isVisible()
    demo.bar.search.setText("weight_decay")
    demo.search.seek()
    assert demo.cards.settings.optimizer_form.isHidden()
    demo.bar.search.setText("momentum")
    demo.search.seek()
    assert demo.cards.settings.optimizer_form.isVisible()
    optimizer.setCurrentIndex(optimizer.findData("adamw"))
    optimizer.activated.emit(optimizer.currentIndex())
    demo.bar.search.clear()
    assert form.editor("adam_epsilon").target.text() == "1e-8"
    assert demo.draft.get("training.adam_epsilon") == 1e-8


def test_a_mistake_in_an_adapter_that_is_taken_off_stops_nothing(qtbot, demo):
    demo.cards.settings.adapter.setCurrentIndex(demo.cards.settings.adapter.findData("lora"))
    demo.cards.settings.adapter.activated.emit(demo.cards.settings.adapter.currentIndex())
    write(qtbot, demo.cards.settings.adapter_form.form.editor("rank").target, "0")
    assert "1 or more" in demo.reason()
    demo.cards.settings.adapter.setCurrentIndex(0)
    demo.cards.settings.adapter.activated.emit(0)
    assert demo.reason() == ""
    qtbot.waitUntil(demo.cards.cost.start.isEnabled)


def test_a_plan_given_up_for_a_mistake_is_asked_for_again_when_it_is_mended(qtbot, demo):
    write(qtbot, line(demo, "learning_rate"), "0.5x")
    qtbot.waitUntil(lambda: demo.checks.plan is None and not demo.checks._plan.waits)
    qtbot.keyClick(line(demo, "learning_rate"), Qt.Key.Key_Backspace)
    qtbot.waitUntil(lambda: demo.checks.plan is not None)
    assert demo.cards.cost.details.isEnabled()


def test_a_search_ends_when_the_page_is_left(demo):
    epochs = demo.cards.settings.forms["training"].row_of("training.epochs").title
    demo.bar.search.setText("memory_limit")
    demo.search.seek()
    assert not epochs.isVisible()
    demo.bar.hide()  # as with the page; a hidden window would lose the keyboard
    demo.bar.show()
    assert demo.bar.search.text() == ""
    assert epochs.isVisible()


def test_changed_settings_are_counted_listed_and_reset(demo):
    settings = demo.cards.settings
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
    settings, task = panel.cards.settings, panel.controller.task()
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
    assert "0.06" in warmup.reset.toolTip()
    training.reset.click()
    assert panel.draft.get("training.warmup") == 0.06
    assert settings.changes.isHidden()
    write(qtbot, warmup.editor.target, "0")
    assert settings.changes.text() == "1 changed"
    warmup.reset.click()
    assert panel.draft.get("training.warmup") == 0.06
    assert settings.changes.isHidden()
    panel.controller.choose_task("question_answering")
    assert not panel.draft.says("training.warmup")
    assert settings.changes.isHidden()


def test_help_says_what_a_field_takes_and_what_it_is_called(qtbot, demo):
    row = demo.cards.settings.forms["training"].row_of("training.batch_size")
    hint = row.title.toolTip()
    for words in (
        "Rows per optimizer step",
        "from 1 to 1\u202f000\u202f000",
        "Default: 32",
        "In a spec: training.batch_size",
    ):
        assert words in hint
    row.ask.click()
    sheet = next(one for one in QApplication.topLevelWidgets() if isinstance(one, FieldHelp))
    assert "training.batch_size" in sheet.accessibleName()
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.isVisible()


def test_a_saved_draft_is_opened_again_and_its_command_names_the_file(qtbot, demo, tmp_path: Path):
    demo.change("training.epochs", 9)
    values = demo.draft.values()
    demo.controller.save(tmp_path / "kept.yaml")
    demo.cards.cost.copy.click()
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
    demo.cards.data.train.dropEvent(event)
    assert demo.draft.get("data.train") == train
    demo.dropEvent(event)
    assert demo.cards.task.name.text() == "dropped"


def test_what_a_file_says_wrongly_is_told_with_its_line_and_marked_at_its_field(qtbot, demo, tmp_path: Path):
    path = tmp_path / "wrong.yaml"
    path.write_text("task: {type: text_classification}\ntraining:\n  batch_size: many\n  epoch: 3\n")
    with qtbot.waitSignal(demo.message) as said:
        demo.controller.open(path)
    assert said.args[0] == "warning"
    assert "wrong.yaml, line 4: left out training.epoch" in said.args[1]
    assert "wrong.yaml, line 3: Batch size cannot be many" in said.args[1]
    assert "batch_size" in demo.cards.settings.forms["training"].mistakes()
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
    assert demo.cards.task.presets.findText("Eleven times") > 0
    demo.change("training.epochs", 2)
    demo.presets.look()
    dialog = demo.presets.dialog
    own = dialog.list.findItems("Eleven times", Qt.MatchFlag.MatchExactly)[0]
    dialog.list.setCurrentItem(own)
    assert ["Epochs", "2", "11", "training.epochs"] in dialog.table.texts()
    assert dialog.delete.isVisible()
    dialog.use.click()
    assert demo.draft.get("training.epochs") == 11
    assert demo.cards.task.presets.currentText() == "Eleven times"
    assert "Epochs: 2 → 11" in demo.cards.task.preset_changes.text()
    demo.presets.look()
    dialog.delete.click()
    assert demo.cards.task.presets.findText("Eleven times") < 0
    assert demo.draft.get("training.epochs") == 11
    dialog.reject()


def test_a_shipped_preset_cannot_be_deleted_nor_its_name_taken(demo):
    demo.presets.look()
    assert demo.presets.dialog.preset() in demo.catalog.presets
    assert not demo.presets.dialog.delete.isVisible()
    demo.presets.dialog.reject()
    demo.presets.ask_save()
    demo.presets.saving.name.setText(demo.catalog.presets[0].name)
    assert "choose another name" in demo.presets.saving.mistake.text()
    assert not demo.presets.saving.save.isEnabled()
    demo.presets.saving.reject()


def test_devices_are_listed_with_their_memory_and_precision_with_its_reason(demo):
    card = demo.cards.hardware
    assert card.device.itemText(0) == "Automatic → Processor, 2 cores"
    assert card.precision.itemText(0) == "Automatic → float32"
    assert card.precision_note.text() == "Because float32: this processor has no bfloat16 instructions."
    assert not card.precision.model().item(card.precision.findData("float16")).isEnabled()
    assert "cannot compute in float16" in card.precision.itemData(3, Qt.ItemDataRole.ToolTipRole)


def test_of_several_cards_one_engine_takes_some_and_the_other_one(demo):
    card = demo.cards.hardware
    card.set_devices(DeviceList([Device("cuda", number, "Card", 16000, 12000, ["float32"]) for number in range(3)]))
    card.devices.boxes[1].click()
    assert demo.draft.get("hardware.devices") == [1]
    assert [box.isChecked() for box in card.devices.boxes.values()] == [False, True, False]
    demo.change("hardware.engine", "jax")
    assert demo.draft.get("hardware.devices") is None
    card.set_devices(DeviceList([Device("cuda", number, "Card", 16000, 12000, ["float32"]) for number in range(3)]))
    card.devices.boxes[2].click()
    assert demo.draft.get("hardware.devices") == [0, 2]
    assert card.form.row_of("hardware.hosts") is not None


def test_an_engine_that_does_not_know_the_model_says_so_and_cannot_be_chosen(demo):
    card = demo.cards.hardware
    model = demo.checks.model
    assert card.engine.model().item(card.engine.findData("jax")).isEnabled()
    card.show_model(type(model)(name="x", model_type="mamba"))
    assert not card.engine.model().item(card.engine.findData("jax")).isEnabled()
    assert "does not know the architecture 'mamba'" in card.engine_note.text()


def test_what_makes_it_fit_is_one_click_and_one_step(qtbot, demo):
    plan = demo.checks.plan
    ways = [
        Remedy(title="All of these", changes={"training.epochs": 1}, memory_mb=9000, fits=False),
        Remedy(title="LoRA adapter", changes={"adapter": {"type": "lora"}}, memory_mb=470, fits=True, note="Few."),
    ]
    values = {name: getattr(plan, name) for name in plan.__struct_fields__}
    demo.cards.cost.show_plan(type(plan)(**{**values, "remedies": ways}))
    assert demo.cards.cost.remedies.buttons[0].text() == "LoRA adapter · 470 MB"
    assert [action.text() for action in demo.cards.cost.remedies.menu.actions()] == [
        "All of these: about 9.0 GB, still too much"
    ]
    demo.cards.cost.remedies.buttons[0].click()
    assert demo.draft.get("adapter") == {"type": "lora"}
    assert demo.cards.settings.adapter.currentData() == "lora"
    assert demo.header.undo.toolTip() == "Undo LoRA adapter (Ctrl+Z)"
    demo.header.undo.click()
    assert not demo.draft.get("adapter")


def test_texts_longer_than_the_model_reads_are_named_by_title_and_cut_by_a_click(demo):
    demo.draft.set("task.max_length", 600)
    values = {name: getattr(demo.checks.model, name) for name in demo.checks.model.__struct_fields__}
    demo.checks.model = type(demo.checks.model)(**{**values, "max_length": 512})
    said = (
        "task.max_length: 600 tokens are more than the 512 positions of this model; set task.max_length to 512 or less"
    )
    demo.checks._on_mistake("plan", Mistake(said, "task.max_length"))
    assert demo.cards.cost.reason.text().endswith("model; set “Longest text” to 512 or less")
    demo.cards.cost.remedies.buttons[0].click()
    assert demo.draft.get("task.max_length") == 512
    assert not any(demo.cards.mistakes().values())


def test_the_cost_is_told_by_its_parts(demo):
    demo.cards.cost.details.click()
    sheet = next(one for one in QApplication.topLevelWidgets() if isinstance(one, CostDetails))
    assert ("activations", "406 MB") in sheet.rows
    assert ("Rows of a step", "16") in sheet.rows
    sheet.close()


def test_buttons_above_say_how_each_card_stands_and_lead_there(qtbot, panel):
    assert panel.bar.buttons["data"].accessibleDescription() == "Something is still to be chosen here."
    panel.cards.data.train.choose("/nowhere/data.csv")
    qtbot.waitUntil(lambda: panel.bar.buttons["data"].accessibleDescription() == "Something is wrong here.")
    panel.bar.buttons["settings"].click()
    assert panel.cards.settings.isAncestorOf(QApplication.focusWidget())


def test_the_button_of_a_card_leads_to_what_is_wrong_in_it(qtbot, demo):
    training = demo.cards.settings.groups["training"]
    training.set_open(True)
    epsilon = training.form.editor("adam_epsilon").target
    training.form.set_unfolded(True)
    write(qtbot, epsilon, "0")
    training.form.set_unfolded(False)
    training.set_open(False)
    demo.bar.search.setText("memory_limit")
    demo.search.seek()
    demo.bar.buttons["settings"].click()
    assert epsilon.hasFocus()
    assert demo.bar.search.text() == ""
    place = epsilon.mapTo(demo.cards._area, QPoint(0, 0)).y()
    assert 0 <= place < demo.cards._area.height()


def test_a_typed_path_is_taken_where_it_rests_on_a_file_or_the_field_is_left(qtbot, panel, tmp_path: Path):
    train = panel.cards.data.train.line
    write(qtbot, train, str(tmp_path))
    train.setCursorPosition(len(train.text()))
    panel.cards.data.train._rest.timeout.emit()
    assert panel.draft.get("data.train") is None
    (tmp_path / "mine.csv").write_text("text,label\nfine,good\n")
    qtbot.keyClicks(train, "/mine.csv")
    qtbot.waitUntil(lambda: panel.draft.get("data.train") == str(tmp_path / "mine.csv"))
    assert train.hasFocus()
    write(qtbot, train, str(tmp_path / "none.csv"))
    panel.cards.task.name.setFocus()
    assert panel.draft.get("data.train") == str(tmp_path / "none.csv")
    qtbot.waitUntil(lambda: "no file" in panel.cards.cost.reason.text())
    assert not panel.draft.get("model.name_or_path"), "what is wrong comes before what is missing"


def test_the_copied_command_computes_and_keeps_runs_where_the_window_does(demo, monkeypatch):
    monkeypatch.setattr(demo._context.preferences, "runs_folder", "/my runs")
    monkeypatch.setattr(demo._context.preferences, "offline", True)
    demo.cards.cost.copy.click()
    last = QGuiApplication.clipboard().text().splitlines()[-1]
    assert last == "HF_HUB_OFFLINE=1 BURNISH_RUNS='/my runs' burnish train sentiment.yaml"


def test_the_copied_command_carries_the_draft(demo):
    demo.change("training.optimizer", "sgd")
    demo.cards.cost.copy.click()
    written = QGuiApplication.clipboard().text().split("\n", 1)[1].split("\nSPEC\n")[0]
    assert json.loads(written) == demo.draft.values()
