"""Editors of lists, mappings and offered words, made from a schema."""

import pytest
from PySide6.QtWidgets import QComboBox, QLineEdit

from app.core import i18n
from app.widgets.forms.inputs import QuietDoubleSpinBox
from app.widgets.forms.schema_form import SchemaForm
from backend.contract.spec.hardware import HardwareSection
from backend.contract.spec.model import ModelSection
from backend.contract.spec.training import TrainingSection
from backend.data.sources.demo import Settings as Demo
from backend.tasks.text_classification import Settings as Classification


def form_of(qtbot, section) -> SchemaForm:
    made = SchemaForm(section.model_json_schema())
    qtbot.addWidget(made)
    made.show()
    return made


def typed(qtbot, form: SchemaForm, name: str, text: str) -> object:
    target = form.editor(name).target
    line = target.lineEdit() if isinstance(target, QComboBox) else target
    assert isinstance(line, QLineEdit)
    line.selectAll()
    qtbot.keyClicks(line, text)
    assert form.mistakes() == {}
    return form.values()[name]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("embeddings, 2", ["embeddings", 2]),
        ("*.layer.0.*", ["*.layer.0.*"]),
        ("[embeddings, encoder]", ["embeddings", "encoder"]),
    ],
)
def test_what_is_frozen_is_one_line(qtbot, styled, text: str, value: list):
    assert typed(qtbot, form_of(qtbot, ModelSection), "frozen", text) == value


def test_labels_that_look_like_numbers_stay_words(qtbot, styled):
    assert typed(qtbot, form_of(qtbot, Classification), "labels", '0, 1, "2, 3"') == ["0", "1", "2, 3"]


def test_no_labels_are_nothing(qtbot, styled):
    form = form_of(qtbot, Classification)
    form.set_values({"labels": ["a", "b"]})
    form.editor("labels").target.clear()  # type: ignore[attr-defined]
    form.editor("labels").changed.emit()
    assert form.values()["labels"] is None


@pytest.mark.parametrize(("text", "value"), [("balanced", "balanced"), ("{yes: 2, no: 1}", {"yes": 2, "no": 1})])
def test_weights_are_a_word_or_a_mapping(qtbot, styled, text: str, value: object):
    assert typed(qtbot, form_of(qtbot, Classification), "class_weights", text) == value


def test_a_mapping_in_a_line_comes_back_unchanged(qtbot, styled):
    form = form_of(qtbot, Classification)
    form.set_values({"class_weights": {"yes": 2.5, "no, not": 1}})
    assert form.editor("class_weights").value() == {"yes": 2.5, "no, not": 1}


def test_environment_variables_are_texts(qtbot, styled):
    form = form_of(qtbot, HardwareSection)
    form.set_unfolded(True)
    form.editor("environment").target.setPlainText("OMP_NUM_THREADS: 4\nOMP_DYNAMIC: true")  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: form.values()["environment"] == {"OMP_NUM_THREADS": "4", "OMP_DYNAMIC": "true"})
    assert form.mistakes() == {}


def test_variable_that_a_spec_may_not_set_is_named(qtbot, styled):
    form = form_of(qtbot, HardwareSection)
    form.set_values({"environment": {"LD_PRELOAD": "x"}})
    assert form.mistakes() == {"environment": "A spec can't set LD_PRELOAD. Set it in your environment instead."}


def test_embedded_data_is_offered(qtbot, styled):
    box = form_of(qtbot, Demo).editor("name").target
    assert isinstance(box, QComboBox)
    assert [box.itemText(place) for place in range(box.count())] == ["sentiment", "austen", "eng-spa"]


def test_a_field_that_means_nothing_now_is_hidden(qtbot, styled):
    form = form_of(qtbot, TrainingSection)
    form.set_unfolded(True)
    assert not form.editor("schedule_power").widget.isVisible()
    form.set_values({"schedule": "polynomial"})
    assert form.editor("schedule_power").widget.isVisible()


def test_what_a_person_is_writing_is_not_moved(qtbot, styled):
    form = form_of(qtbot, Demo)
    line = form.editor("name").target.lineEdit()  # type: ignore[attr-defined]
    line.setText("asten")
    line.setCursorPosition(1)
    form.changed.connect(lambda key, value: form.set_values({"name": value}))
    qtbot.keyClicks(line, "u")
    assert (line.text(), line.cursorPosition()) == ("austen", 2)


@pytest.mark.parametrize("text", ["0,05", "0.05", "5e-2"])
def test_a_german_field_takes_comma_and_point(qtbot, styled, german, text: str):
    form = form_of(qtbot, TrainingSection)
    assert typed(qtbot, form, "weight_decay", text) == 0.05
    assert typed(qtbot, form, "warmup", text) == 0.05
    form.set_values({"weight_decay": 0.25})
    assert form.editor("weight_decay").target.text() == "0,25"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("code", "shown"), [("de", "0,250"), ("en", "0.250")])
def test_a_field_of_decimals_takes_both_signs_and_shows_that_of_the_language(qtbot, styled, code: str, shown: str):
    i18n.choose(code)
    box = QuietDoubleSpinBox(minimum=0, maximum=1, step=0.01, decimals=3)
    i18n.choose(i18n.ENGLISH)
    qtbot.addWidget(box)
    for text in ("0,25", "0.25"):
        box.setValue(0)
        box.lineEdit().selectAll()
        qtbot.keyClicks(box.lineEdit(), text)
        box.interpretText()
        assert (box.value(), box.text()) == (0.25, shown)
