"""The sections of the New run page: mistakes, hardware, plan, what makes a run fit, and the way to each section."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from app.pages.new_run.page import Page
from app.pages.new_run.section_state import SECTIONS
from app.widgets.forms.field_row import FieldHelp
from backend.contract.catalog import Device
from backend.contract.rpc.plan import DeviceList, DiskPart, DiskPlan, DiskVolume
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.run.cost import DiskFix, MemoryFix
from tests.app.pages.new_run.draft_steps import line, write


def test_what_was_typed_wrong_goes_with_the_field_that_another_choice_takes_away(qtbot, demo):
    demo.sections.open("settings")
    demo.sections.settings.groups["training"].set_open(True)
    form = demo.sections.settings.others["training"]
    form.set_unfolded(True)
    write(qtbot, form.editor("adam_epsilon").target, "0")
    assert "Adam epsilon" in demo.reason()
    optimizer = form.editor("optimizer").target
    optimizer.setCurrentIndex(optimizer.findData("sgd"))
    optimizer.activated.emit(optimizer.currentIndex())
    assert not any(demo.sections.mistakes().values())
    qtbot.waitUntil(demo.start_bar.start.isEnabled)
    demo.search_bar.search.setText("epsilon")
    demo.search.seek()
    assert demo.search_bar.nothing.text() == "“Adam epsilon” has no effect with the current “Optimizer”."
    assert demo.sections.settings.forms["training"].isVisibleTo(demo.sections.settings.inside)
    demo.search_bar.search.setText("weight_decay")
    demo.search.seek()
    assert demo.sections.settings.optimizer_form.isHidden()
    demo.search_bar.search.setText("momentum")
    demo.search.seek()
    assert demo.sections.settings.optimizer_form.isVisible()
    optimizer.setCurrentIndex(optimizer.findData("adamw"))
    optimizer.activated.emit(optimizer.currentIndex())
    demo.search_bar.search.clear()
    assert form.editor("adam_epsilon").target.text() == "1e-8"
    assert demo.draft.get("training.adam_epsilon") == 1e-8


def test_a_mistake_in_an_adapter_that_is_taken_off_stops_nothing(qtbot, demo):
    demo.sections.settings.adapter.setCurrentIndex(demo.sections.settings.adapter.findData("lora"))
    demo.sections.settings.adapter.activated.emit(demo.sections.settings.adapter.currentIndex())
    write(qtbot, demo.sections.settings.adapter_form.form.editor("rank").target, "0")
    assert "1 or more" in demo.reason()
    demo.sections.settings.adapter.setCurrentIndex(0)
    demo.sections.settings.adapter.activated.emit(0)
    assert demo.reason() == ""
    qtbot.waitUntil(demo.start_bar.start.isEnabled)


def test_a_plan_given_up_for_a_mistake_is_asked_for_again_when_it_is_mended(qtbot, demo):
    write(qtbot, line(demo, "learning_rate"), "0.5x")
    qtbot.waitUntil(lambda: demo.checks.plan is None and not demo.checks._plan.waits)
    qtbot.keyClick(line(demo, "learning_rate"), Qt.Key.Key_Backspace)
    qtbot.waitUntil(lambda: demo.checks.plan is not None)
    qtbot.waitUntil(demo.start_bar.measure.isEnabled)


def test_help_says_what_a_field_takes_and_what_it_is_called(qtbot, demo):
    row = demo.sections.settings.forms["training"].row_of("training.batch_size")
    hint = row.title.toolTip()
    for words in (
        "Rows per optimizer step",
        "from 1 to 1\u202f000\u202f000",
        "Default: auto",
        "In a spec: training.batch_size",
    ):
        assert words in hint
    row.ask.click()
    sheet = next(one for one in QApplication.topLevelWidgets() if isinstance(one, FieldHelp))
    assert "training.batch_size" in sheet.accessibleName()
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.isVisible()


def test_devices_are_listed_with_their_memory_and_precision_with_its_reason(demo):
    card = demo.sections.hardware
    assert card.device.itemText(0) == "Automatic → Processor, 2 cores"
    assert card.precision.itemText(0) == "Automatic → float32"
    assert card.precision_note.text() == "float32: this processor has no bfloat16 instructions."
    assert not card.precision.model().item(card.precision.findData("float16")).isEnabled()
    assert "does not support float16" in card.precision.itemData(3, Qt.ItemDataRole.ToolTipRole)


def test_free_memory_that_was_read_long_ago_says_so(demo, monkeypatch):
    card = demo.sections.hardware
    card.set_devices(DeviceList([Device("cuda", 0, "Card", 16000, 12000, ["float32"])]))
    assert card.age.text() == ""
    later = time.time() + 300
    monkeypatch.setattr(time, "time", lambda: later)
    demo.sections.open("hardware")
    assert card.age.text() == "5 minutes ago"


def test_automatic_names_the_device_with_the_most_free_memory(demo):
    card = demo.sections.hardware
    card.set_devices(
        DeviceList([Device("cuda", 0, "Busy card", 16000, 2000), Device("cuda", 1, "Idle card", 16000, 12000)])
    )
    assert card.device.itemText(0) == "Automatic → Idle card"


def test_of_several_cards_both_engines_take_some(demo):
    card = demo.sections.hardware
    card.set_devices(DeviceList([Device("cuda", number, "Card", 16000, 12000, ["float32"]) for number in range(3)]))
    card.devices.boxes[1].click()
    assert demo.draft.get("hardware.devices") == [0, 1]
    assert [box.isChecked() for box in card.devices.boxes.values()] == [True, True, False]
    demo.change("hardware.engine", "jax")
    card.set_devices(DeviceList([Device("cuda", number, "Card", 16000, 12000, ["float32"]) for number in range(3)]))
    card.devices.boxes[2].click()
    assert demo.draft.get("hardware.devices") == [0, 2]
    assert card.form.row_of("hardware.hosts") is not None


def test_a_strategy_for_several_processes_is_offered_where_there_may_be_several(demo):
    card, offered = demo.sections.hardware, []
    card.set_devices(DeviceList([Device("cpu", 0, "Processor", 16000, 12000, ["float32"])]))
    for key, value in (("hardware.processes", 1), ("hardware.processes", 2), ("hardware.strategy", "fsdp")):
        demo.change(key, value)
        offered.append([name for name in card.form.keys() if name in ("hardware.strategy", "hardware.cpu_offload")])  # noqa: SIM118
    assert offered == [[], ["hardware.strategy"], ["hardware.strategy", "hardware.cpu_offload"]]
    shown = list(card.form.keys())
    assert shown.index("hardware.strategy") == shown.index("hardware.processes") + 1


def test_an_engine_that_does_not_know_the_model_says_so_and_cannot_be_chosen(demo):
    card = demo.sections.hardware
    model = demo.checks.model
    assert card.engine.model().item(card.engine.findData("jax")).isEnabled()
    card.show_model(type(model)(name="x", model_type="mamba"))
    assert not card.engine.model().item(card.engine.findData("jax")).isEnabled()
    assert "does not support the architecture 'mamba'" in card.engine_note.text()


def test_what_makes_it_fit_is_one_click_and_one_step(qtbot, demo):
    plan = demo.checks.plan
    ways = [
        MemoryFix(title="All of these", changes={"training.epochs": 1}, memory_mb=9000, fits=False),
        MemoryFix(title="LoRA adapter", changes={"adapter": {"type": "lora"}}, memory_mb=470, fits=True, note="Few."),
    ]
    values = {name: getattr(plan, name) for name in plan.__struct_fields__}
    demo.sections.plan.show_plan(type(plan)(**{**values, "remedies": ways}))
    assert demo.sections.plan.remedies.buttons[0].text() == "LoRA adapter · 470 MB"
    assert [action.text() for action in demo.sections.plan.remedies.menu.actions()] == [
        "All of these: about 9.0 GB, still too much"
    ]
    demo.sections.plan.remedies.buttons[0].click()
    assert demo.draft.get("adapter") == {"type": "lora"}
    assert demo.sections.settings.adapter.currentData() == "lora"
    assert demo.header.undo.toolTip() == "Undo LoRA adapter (Ctrl+Z)"
    demo.header.undo.click()
    assert not demo.draft.get("adapter")


def test_a_full_disk_is_said_in_the_bar_and_what_needs_less_is_one_click(demo):
    problem = "The disk will be full: the run writes about 211 MB to /runs, where 190 MB is free"
    fix = DiskFix(title="Keep one checkpoint", changes={"training.keep_checkpoints": 1}, disk_mb=158, fits=True)
    parts, volumes = [DiskPart("Checkpoints", 158.0, "3 × 53 MB")], [DiskVolume("/runs", 211, 190, 1000)]
    disk = DiskPlan(parts=parts, volumes=volumes, problem=problem, fixes=[fix])
    demo.checks._on_plan(msgspec.structs.replace(demo.checks.plan, disk=disk))
    shown = demo.sections.plan
    assert demo.start_bar.reason.text() == f"{problem}."
    assert demo.start_bar.start.isEnabled()  # somebody may free space meanwhile
    assert shown.disk_problem.text() == f"{problem}."
    assert ("Checkpoints", "158 MB") in shown.rows
    assert shown.disk_fixes.buttons[0].text() == "Keep one checkpoint · 158 MB"
    shown.disk_fixes.buttons[0].click()
    assert demo.draft.get("training.keep_checkpoints") == 1
    demo.checks._on_plan(msgspec.structs.replace(demo.checks.plan or demo.sections.plan.plan, disk=None))
    assert demo.start_bar.reason.text() == ""
    assert shown.disk_fixes.isHidden()
    demo.header.undo.click()


@pytest.fixture
def resizable_plan(demo) -> Iterator[QWidget]:
    """The plan's panel, which a test may give a width."""
    yield demo.sections.plan
    demo.sections.plan.setMinimumWidth(0)
    demo.sections.plan.setMaximumWidth(16_777_215)


def test_the_words_of_a_plan_have_room_in_a_narrow_panel(qtbot, demo, resizable_plan):
    plan = resizable_plan
    demo.sections.open("settings")
    words = next(one for one in plan.findChildren(QLabel) if one.text() == "per epoch, excluding padding")
    for width in (700, 300, 700):
        plan.setFixedWidth(width)
        qtbot.waitUntil(lambda width=width: plan.width() == width)
        QApplication.processEvents()
        assert words.width() > 140


def test_texts_longer_than_the_model_reads_are_named_by_title_and_cut_by_a_click(demo):
    demo.draft.set("task.max_length", 600)
    values = {name: getattr(demo.checks.model, name) for name in demo.checks.model.__struct_fields__}
    demo.checks.model = type(demo.checks.model)(**{**values, "max_length": 512})
    said = "task.max_length: 600 tokens exceed the 512 positions of this model; set task.max_length to 512 or less"
    demo.checks._on_mistake("plan", ErrorReply(said, "task.max_length"))
    assert demo.start_bar.reason.text().endswith("model; set “Max length” to 512 or less")
    demo.sections.plan.remedies.buttons[0].click()
    assert demo.draft.get("task.max_length") == 512
    assert not any(demo.sections.mistakes().values())


def test_the_cost_is_told_by_its_parts(demo):
    demo.start_bar.details.trigger()
    plan = demo.sections.plan
    assert plan.isVisible()
    assert ("activations", "406 MB") in plan.rows
    assert ("Batch size", "16") in plan.rows


def test_a_line_says_how_its_section_stands_and_opens_it(qtbot, panel):
    data = panel.sections.data.header
    assert data.accessibleDescription().startswith("Something is still missing here.")
    panel.sections.data.train.choose("/nowhere/data.csv")
    qtbot.waitUntil(lambda: data.accessibleDescription().startswith("There is a problem here."))
    assert "no file" in data.accessibleDescription()
    panel.sections.settings.header.click()
    assert (panel.sections.settings.area.isVisible(), panel.sections.data.area.isVisible()) == (True, False)
    assert data.note.text() == "Fix “Training data”"
    panel.sections.settings.header.click()
    assert panel.sections.settings.header.isChecked(), "one section is always open"


def test_what_blocks_the_start_leads_to_where_it_is(qtbot, panel):
    panel.sections.open("settings")
    panel.sections.data.train.choose("/nowhere/data.csv")
    qtbot.waitUntil(lambda: "no file" in panel.start_bar.reason.text())
    panel.start_bar.reason.click()
    qtbot.waitUntil(lambda: panel.sections.data.inside.isAncestorOf(QApplication.focusWidget()))


SAID = "It is wrong for a reason that is said in one sentence"
TOLD = {
    ("data", "data.train"): "Data: fix “Training data”",
    ("data", "data.columns.label"): "Data: fix the label column",
    ("data", None): "Data: fix the data",
    ("model", "model.name_or_path"): "Model: choose another model",
    ("plan", "data.columns.label"): "Data: fix the label column",
    ("plan", "training.learning_rate"): "Settings: fix “Learning rate”",
    ("plan", "model.initialise"): "Settings: fix “Start from”",
    ("plan", None): "Settings: change the settings",
    ("plan", "hardware.device"): "Hardware: fix “Device”",
}
"""Topic and field of a mistake, and what the bar says while the section in which it is said is open."""


def said_in(page: Page) -> list[str]:
    """What can be read on the page of that sentence."""
    shown = [one for one in (*page.findChildren(QLabel), page.start_bar.reason) if one.isVisible()]
    return [one.text() for one in shown if SAID in one.text()]


@pytest.mark.parametrize(("topic", "field"), TOLD)
def test_what_is_wrong_is_said_once_and_the_bar_leads_to_it(demo, topic: str, field: str | None):
    demo.checks._on_mistake(topic, ErrorReply(f"{field}: {SAID}" if field else SAID, field))
    place, in_plan = (
        demo.checks.obstacle()[0],
        {"hardware", "settings", "search"} if (topic, field) == ("plan", None) else set(),
    )
    for name in SECTIONS:
        demo.sections.open(name)
        told = name in {place, *in_plan}
        assert demo.start_bar.reason.text() == (TOLD[topic, field] if told else SAID), name
        is_folded = name == place and field == "model.initialise"  # its group is closed until one jumps there
        assert len(said_in(demo)) == int(not is_folded), name
    demo.jump(place)
    assert len(said_in(demo)) == 1


def test_a_typed_mistake_is_said_at_its_field_alone(qtbot, demo):
    demo.sections.open("settings")
    write(qtbot, line(demo, "batch_size"), "0")
    assert demo.start_bar.reason.text() == "Settings: fix “Batch size”"
    demo.sections.open("data")
    assert demo.start_bar.reason.text() == "Batch size: enter 1 or more."
    assert demo.sections.settings.header.note.text() == "Fix “Batch size”"


def test_a_warning_of_the_plan_is_said_there_while_it_is_in_view(demo):
    disk = DiskPlan(parts=[], volumes=[], problem=SAID, fixes=[])
    demo.checks._on_plan(msgspec.structs.replace(demo.checks.plan, disk=disk))
    for name in SECTIONS:
        demo.sections.open(name)
        assert said_in(demo) == [f"{SAID}."], name
    assert demo.start_bar.reason.text() == "Plan: use less disk space"
    assert demo.start_bar.reason.toolTip() == f"{SAID}."


def test_a_jump_leads_to_what_is_wrong_in_a_section(qtbot, demo):
    training = demo.sections.settings.groups["training"]
    training.set_open(True)
    epsilon = training.form.editor("adam_epsilon").target
    training.form.set_unfolded(True)
    write(qtbot, epsilon, "0")
    training.form.set_unfolded(False)
    training.set_open(False)
    demo.search_bar.search.setText("memory_limit")
    demo.search.seek()
    demo.jump("settings")
    assert epsilon.hasFocus()
    assert demo.search_bar.search.text() == ""
    area = demo.sections.settings.area
    assert 0 <= epsilon.mapTo(area, QPoint(0, 0)).y() < area.height()


def test_a_typed_path_is_taken_where_it_rests_on_a_file_or_the_field_is_left(qtbot, panel, tmp_path: Path):
    train = panel.sections.data.train.line
    write(qtbot, train, str(tmp_path))
    train.setCursorPosition(len(train.text()))
    panel.sections.data.train._rest.timeout.emit()
    assert panel.draft.get("data.train") is None
    (tmp_path / "mine.csv").write_text("text,label\nfine,good\n")
    qtbot.keyClicks(train, "/mine.csv")
    qtbot.waitUntil(lambda: panel.draft.get("data.train") == str(tmp_path / "mine.csv"))
    assert train.hasFocus()
    write(qtbot, train, str(tmp_path / "none.csv"))
    panel.sections.task.name.setFocus()
    assert panel.draft.get("data.train") == str(tmp_path / "none.csv")
    qtbot.waitUntil(lambda: "no file" in panel.reason())
    assert not panel.draft.get("model.name_or_path"), "what is wrong comes before what is missing"
