"""The form that is made from a JSON Schema alone."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QWheelEvent
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QLineEdit, QPlainTextEdit

from app.widgets.forms.schema_form import SchemaForm
from backend.contract.rpc.plan import AutoSetting
from backend.contract.spec.evaluation import EvaluationSection
from backend.contract.spec.hardware import HardwareSection
from backend.contract.spec.model import ModelSection
from backend.contract.spec.section import Section
from backend.contract.spec.tokenizer_training import TokenizerTraining
from backend.contract.spec.training import TrainingSection

SECTIONS = [TrainingSection, ModelSection, EvaluationSection, HardwareSection]


@pytest.fixture
def form(qtbot, styled):
    made = SchemaForm(TrainingSection.model_json_schema(), "training")
    qtbot.addWidget(made)
    made.show()
    return made


def typed(qtbot, form: SchemaForm, name: str, text: str) -> None:
    target = form.editor(name).target
    line = target if isinstance(target, QLineEdit) else target.lineEdit()  # type: ignore[attr-defined]
    line.selectAll()
    qtbot.keyClicks(line, text)


@pytest.mark.parametrize("section", SECTIONS)
def test_defaults_of_a_section_come_back_unchanged(qtbot, styled, section: type[Section]):
    schema = section.model_json_schema()
    form = SchemaForm(schema)
    qtbot.addWidget(form)
    for name, row in form._rows.items():
        if "default" in schema["properties"][name]:
            assert row.read() == ""
            assert row.value == schema["properties"][name]["default"]


def test_help_shows_code_in_quotation_marks(qtbot, styled):
    form = SchemaForm({"properties": {"encoding": {"type": "string", "description": "`auto` finds it, or `utf-8`."}}})
    qtbot.addWidget(form)
    assert form.editor("encoding").target.toolTip().startswith("“auto” finds it, or “utf-8”.")


def test_small_numbers_may_be_written_with_an_exponent(qtbot, form: SchemaForm):
    with qtbot.waitSignal(form.changed) as signal:
        typed(qtbot, form, "learning_rate", "3e-5")
    assert form.values()["learning_rate"] == 3e-5
    assert signal.args[0] == "training.learning_rate"


def test_all_fields_end_below_each_other_changed_or_not(qtbot, form: SchemaForm):
    form.show_values({"epochs": 7.0})
    ends = {"epochs", "batch_size", "learning_rate"}
    qtbot.waitUntil(lambda: form._rows["epochs"].reset.isVisible())
    qtbot.waitUntil(lambda: len({form.editor(name).widget.geometry().right() for name in ends}) == 1)


def test_a_choice_is_called_by_its_title_and_stays_what_it_is(qtbot, styled):
    form = SchemaForm(TokenizerTraining.model_json_schema())
    qtbot.addWidget(form)
    box = form.editor("kind").target
    assert isinstance(box, QComboBox)
    assert box.currentText() == "Byte-level BPE"
    assert form.values()["kind"] == "byte_bpe"


def test_a_mistake_is_told_in_plain_words_and_the_last_good_value_stays(qtbot, form: SchemaForm):
    typed(qtbot, form, "batch_size", "0")
    assert form.mistakes() == {"batch_size": "Enter 1 or more."}
    assert form.values()["batch_size"] == "auto"


def test_words_in_a_number_field_are_told(qtbot, form: SchemaForm):
    typed(qtbot, form, "batch_size", "many")
    assert form.mistakes() == {"batch_size": "Enter “auto” or a whole number."}


@pytest.mark.parametrize(("name", "example"), [("weight_decay", "0.01"), ("adam_epsilon", "1e-8")])
def test_the_example_of_a_number_fits_its_field(qtbot, form: SchemaForm, name: str, example: str):
    typed(qtbot, form, name, "three")
    assert form.mistakes() == {name: f"Enter a number such as {example}."}


def test_a_mistake_names_its_field_as_the_form_does_with_thin_spaces(qtbot, styled):
    field = {"type": "integer", "title": "Max length", "unit": "tokens", "maximum": 1_000_000, "default": 128}
    form = SchemaForm({"properties": {"max_length": field}})
    qtbot.addWidget(form)
    typed(qtbot, form, "max_length", "2000000")
    assert list(form.mistake_sentences().values()) == ["Max length (tokens): enter 1\u202f000\u202f000 or less."]


@pytest.mark.parametrize(("text", "value"), [("never", "never"), ("500", 500), ("epoch", "epoch")])
def test_a_field_takes_words_and_numbers(qtbot, form: SchemaForm, text: str, value: object):
    typed(qtbot, form, "checkpoint_every", text)
    assert form.values()["checkpoint_every"] == value
    assert form.mistakes() == {}


def test_a_word_is_shown_in_german_and_taken_in_both_languages(qtbot, german, form: SchemaForm):
    form.show_values({"checkpoint_every": "never"})
    assert form.editor("checkpoint_every").target.currentText() == "nie"
    for text, value in (("Epoche", "epoch"), ("never", "never")):
        typed(qtbot, form, "checkpoint_every", text)
        assert form.values()["checkpoint_every"] == value


def test_another_word_is_refused_with_the_choices(qtbot, form: SchemaForm):
    typed(qtbot, form, "checkpoint_every", "daily")
    assert form.mistakes() == {"checkpoint_every": "Enter “epoch”, “never” or a whole number."}


def test_empty_means_nothing_where_nothing_is_allowed(qtbot, form: SchemaForm):
    form.set_values({"max_steps": 10})
    form.editor("max_steps").target.clear()  # type: ignore[attr-defined]
    form.editor("max_steps").changed.emit()
    assert form.values()["max_steps"] is None


def test_each_type_has_its_editor(qtbot, styled):
    form = SchemaForm(ModelSection.model_json_schema())
    qtbot.addWidget(form)
    kinds = {name: type(form.editor(name).target) for name in ("name_or_path", "config", "trust_remote_code")}
    assert kinds == {"name_or_path": QLineEdit, "config": QPlainTextEdit, "trust_remote_code": QCheckBox}
    assert isinstance(form.editor("initialise").target, QComboBox)


def test_a_mapping_is_written_as_yaml(qtbot, styled):
    form = SchemaForm(ModelSection.model_json_schema())
    qtbot.addWidget(form)
    text = form.editor("config").target
    with qtbot.waitSignal(form.changed):
        text.setPlainText("num_hidden_layers: 4")  # type: ignore[attr-defined]
    assert form.values()["config"] == {"num_hidden_layers": 4}


def test_mistakes_are_announced_when_there_are_others(qtbot, form: SchemaForm):
    announced = []
    form.mistakes_changed.connect(lambda: announced.append(len(form.mistakes())))
    form.show_values({"epochs": 7.0})
    form.clear_marks()
    assert announced == []
    form.mark("epochs", "too many")
    form.mark("batch_size", "too large")
    form.clear_marks()
    form.show_values({"epochs": 7.0})
    assert announced == [1, 2, 0]


def test_a_mapping_that_is_just_written_is_told_although_marks_are_cleared(qtbot, styled):
    form = SchemaForm(ModelSection.model_json_schema(), "model")
    qtbot.addWidget(form)
    with qtbot.waitSignal(form.changed) as signal:
        form.editor("config").target.setPlainText("num_hidden_layers: 4")  # type: ignore[attr-defined]
        form.clear_marks()
    assert signal.args == ["model.config", {"num_hidden_layers": 4}]


def test_a_changed_field_offers_its_default_back(qtbot, form: SchemaForm):
    row = form._rows["seed"]
    form.set_values({"seed": 7})
    assert row.reset.isVisible()
    with qtbot.waitSignal(form.changed) as signal:
        row.reset.click()
    assert signal.args == ["training.seed", 42]
    assert not row.reset.isVisible()


def test_advanced_fields_are_folded_until_asked_for(qtbot, form: SchemaForm):
    beta = form.editor("adam_beta1").target
    assert not beta.isVisible()
    form._fold.click()
    assert beta.isVisible()


def test_marking_a_folded_field_unfolds_it(qtbot, form: SchemaForm):
    assert form.mark("training.adam_beta1", "Enter a number below 1.")
    assert form.editor("adam_beta1").target.isVisible()
    assert not form.mark("model.name_or_path", "another section")


def test_setting_values_emits_nothing(qtbot, form: SchemaForm):
    with qtbot.assertNotEmitted(form.changed):
        form.set_values({"batch_size": 8, "schedule": "cosine", "length_buckets": True})
    assert form.changed_values() == {"batch_size": 8, "schedule": "cosine", "length_buckets": True}


def test_the_wheel_over_an_unfocused_list_changes_nothing(qtbot, form: SchemaForm):
    box = form.editor("schedule").target
    form.editor("epochs").target.setFocus()
    place = QPointF(5, 5)
    turn = QWheelEvent(
        place, box.mapToGlobal(place), QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(box, turn)
    assert form.values()["schedule"] == "linear"
    assert not turn.isAccepted()


def test_a_screen_reader_is_told_the_field_and_its_mistake(qtbot, form: SchemaForm):
    target = form.editor("batch_size").target
    spoken = QAccessible.queryAccessibleInterface(target)
    assert spoken.text(QAccessible.Text.Name) == "Batch size"
    typed(qtbot, form, "batch_size", "0")
    assert spoken.text(QAccessible.Text.Description) == "Enter 1 or more."


def test_auto_is_an_empty_field_with_the_chosen_number_in_grey_and_the_reason_in_its_help(qtbot, form: SchemaForm):
    reason = "learning rate 4e-4: bert-tiny has 4.4 million parameters; small models need larger steps"
    line = form.editor("learning_rate").target
    assert (line.text(), line.placeholderText()) == ("", "auto")
    form.show_chosen([AutoSetting("training.learning_rate", 4e-4, reason)])
    assert line.placeholderText() == "auto: 0.0004"
    assert "small models need larger steps" in line.toolTip()
    form.show_chosen([])
    assert line.placeholderText() == "auto"
    assert "small models" not in line.toolTip()


def test_a_number_replaces_auto_and_an_empty_field_brings_it_back(qtbot, form: SchemaForm):
    typed(qtbot, form, "learning_rate", "2e-5")
    assert form.values()["learning_rate"] == 2e-5
    form.editor("learning_rate").target.selectAll()
    qtbot.keyClick(form.editor("learning_rate").target, Qt.Key.Key_Backspace)
    assert (form.values()["learning_rate"], form.mistakes()) == ("auto", {})
    typed(qtbot, form, "learning_rate", "Auto")
    assert form.values()["learning_rate"] == "auto"


def test_a_switch_may_be_left_to_burnish_and_shows_what_is_chosen(form: SchemaForm):
    box = form.editor("gradient_checkpointing").target
    form.show_chosen([AutoSetting("training.gradient_checkpointing", True, "gradient checkpointing on: not enough")])
    assert [box.itemText(place) for place in range(box.count())] == ["auto: on", "on", "off"]
    assert "not enough" in box.toolTip()
    form.show_chosen([])
    assert box.currentText() == "auto"


def test_a_choice_may_be_left_to_burnish_and_shows_what_is_chosen(qtbot):
    form = SchemaForm(
        {"properties": {"compile": {"enum": ["auto", "never", "always"], "title": "Compile", "default": "auto"}}},
        prefix="hardware",
    )
    qtbot.addWidget(form)
    box = form.editor("compile").target
    form.show_chosen([AutoSetting("hardware.compile", "always", "compile always: a long run")])
    assert [box.itemText(place) for place in range(box.count())] == ["auto: always", "never", "always"]
    assert "a long run" in box.toolTip()
    assert form.values() in ({}, {"compile": "auto"})
    form.show_chosen([])
    assert box.currentText() == "auto"


@pytest.mark.parametrize(("place", "value"), [(0, "auto"), (1, True), (2, False)])
def test_a_switch_gives_on_off_or_auto(form: SchemaForm, place: int, value: bool | str):
    box = form.editor("gradient_checkpointing").target
    box.setCurrentIndex(place)
    box.activated.emit(place)
    assert (form.values()["gradient_checkpointing"], form.mistakes()) == (value, {})
