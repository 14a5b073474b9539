"""The New run page: each source shows what it needs, presets bring theirs, adapters and optimizers their settings."""

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QComboBox

from app.pages.new_run.data.split_fields import FRACTION, OWN
from app.pages.new_run.page import Page
from backend.contract.resources import resource
from backend.data import column_summary

TRAIN = str(resource("demo", "sentiment", "train.csv"))
MODEL = str(resource("demo", "bert-tiny"))


def choose(box: QComboBox, data: object) -> None:
    place = next(at for at in range(box.count()) if box.itemData(at) == data)
    box.setCurrentIndex(place)
    box.activated.emit(place)


def choose_preset(panel: Page, name: str) -> None:
    assert panel.catalog is not None
    choose(panel.sections.task.presets, next(preset for preset in panel.catalog.presets if preset.name == name))


def glue(panel: Page, folder: str = "/glue") -> Page:
    choose(panel.sections.data.source, "glue")
    panel.change("data.folder", folder)
    panel.change("data.task", "rte")
    return panel


@pytest.mark.parametrize(
    ("source", "asks_for_training", "browses"),
    [("files", True, True), ("conll", True, True), ("squad", True, True), ("parallel", True, True), ("hub", True, False),
     ("glue", True, False), ("xnli", True, False), ("tatoeba", True, False), ("demo", False, False)],
)  # fmt: skip
def test_a_source_shows_the_fields_of_its_splits(panel, source: str, asks_for_training: bool, browses: bool):
    choose(panel.sections.data.source, source)
    train = panel.sections.data.train
    assert (train.isVisible(), train.isVisible() and train.file_button.isVisible()) == (asks_for_training, browses)


def test_a_source_with_splits_of_its_own_needs_no_file(qtbot, panel):
    panel.sections.model.choose(MODEL)
    glue(panel)
    qtbot.waitUntil(lambda: panel.checks.plan is not None and not panel.reason())
    assert panel.draft.values()["data"] == {
        "source": "glue", "folder": "/glue", "task": "rte",
        "columns": {"text": "sentence1", "text_pair": "sentence2", "label": "label"},
    }  # fmt: skip


def test_a_source_with_splits_of_its_own_measures_on_its_own_or_a_fraction(panel):
    glue(panel)
    kind = panel.sections.data.validation_kind
    assert kind.currentText() == OWN
    kind.textActivated.emit(FRACTION)
    assert panel.draft.get("data.validation") == 0.1
    kind.textActivated.emit(OWN)
    assert panel.draft.get("data.validation") is None


def test_a_run_is_named_for_the_task_of_a_benchmark(panel):
    assert glue(panel).draft.get("name") == "rte"


def test_a_folder_that_is_not_there_is_said_at_its_field(qtbot, panel):
    glue(panel, "nowhere")
    qtbot.waitUntil(lambda: "folder" in panel.sections.data._form.mistakes())
    assert panel.sections.data.banner.text() == ""
    panel.change("data.folder", "/glue")
    assert panel.sections.data._form.mistakes() == {}


def test_a_folder_can_be_dropped_on_a_source_that_has_one(qtbot, panel, tmp_path):
    glue(panel)
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path))])
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    panel.sections.data.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, mime, left, none))
    qtbot.waitUntil(lambda: panel.draft.get("data.folder") == str(tmp_path))


def test_columns_of_the_task_come_first(qtbot, panel):
    glue(panel)
    qtbot.waitUntil(lambda: panel.checks.preview is not None)
    shown = [column.name for column in panel.sections.data.table.shown_columns()]
    assert shown == ["sentence1", "sentence2", "label", "index"]


def test_of_numbered_choices_one_more_than_is_used_is_asked_for(qtbot, panel):
    choose(panel.sections.task.tasks, "multiple_choice")
    panel.draft.set("data.columns", {"choice_0": "text", "choice_1": "label"})
    panel.sections.data.train.choose(TRAIN)
    panel.draft.set("data.columns", {"choice_0": "text", "choice_1": "label"})
    qtbot.waitUntil(lambda: panel.checks.preview is not None)
    boxes = panel.sections.data.columns.boxes
    assert [name for name, box in boxes.items() if name.startswith("choice_") and box.isVisible()] == [
        "choice_0", "choice_1", "choice_2"
    ]  # fmt: skip


def test_presets_of_the_chosen_task_come_first(panel):
    choose(panel.sections.task.tasks, "token_classification")
    box = panel.sections.task.presets
    assert [box.itemText(place) for place in range(4)] == [
        "None", "TOKEN CLASSIFICATION", "Names in text (CoNLL)", "Names in text, small model"
    ]  # fmt: skip


def test_a_heading_among_the_presets_cannot_be_chosen(panel):
    model = panel.sections.task.presets.model()
    assert not model.item(1).isEnabled()  # type: ignore[attr-defined]


def test_a_preset_of_another_task_switches_the_task_and_stays_shown(panel):
    choose_preset(panel, "squad-v2")
    assert panel.sections.task.tasks.currentData() == "question_answering"
    assert panel.sections.task.presets.currentText() == "SQuAD v2.0"
    assert panel.draft.get("data.name") == "rajpurkar/squad_v2"


def test_every_preset_fills_a_page_that_its_sections_take(panel):
    fields = {entry.name: set(entry.settings["properties"]) for entry in panel.catalog.sources}
    common = {"source", "train", "validation", "test", "columns", "max_rows"}
    for preset in panel.catalog.presets:
        choose_preset(panel, preset.name)
        data = panel.draft.values()["data"]
        assert set(data) <= common | fields[data["source"]], preset.name
        assert panel.sections.settings.mistakes() == {}
    choose(panel.sections.task.presets, None)
    assert panel.draft.get("data.source") == "files"


def test_what_decides_the_columns_is_not_hidden(qtbot, panel):
    choose(panel.sections.task.tasks, "causal_lm")
    panel.sections.open("settings")
    qtbot.waitUntil(lambda: panel.sections.settings.forms["task"].editor("rows").widget.isVisible())


def test_an_adapter_brings_its_settings(panel):
    settings = panel.sections.settings
    assert settings.adapter_form.form is None
    choose(settings.adapter, "lora")
    assert panel.draft.get("adapter") == {"type": "lora"}
    [form] = settings.adapter_form.forms()
    rank = form.editor("rank")
    rank.target.setText("16")
    rank.changed.emit()
    assert panel.draft.get("adapter") == {"type": "lora", "rank": 16}


def test_without_an_adapter_nothing_of_it_stays(panel):
    choose(panel.sections.settings.adapter, "lora")
    choose(panel.sections.settings.adapter, None)
    assert panel.draft.get("adapter") is None
    assert not panel.sections.settings.adapter_form.isVisible()


def test_a_refused_adapter_setting_is_marked_at_its_field(panel):
    choose(panel.sections.settings.adapter, "lora")
    panel.sections.mark("adapter.targets", "There is no matrix with that name.")
    assert panel.sections.settings.mistakes() == {
        "Target modules": "Target modules: there is no matrix with that name."
    }


def test_an_optimizer_brings_its_settings_and_takes_them_away(panel):
    settings = panel.sections.settings
    settings.set_unfolded(True)
    assert not settings.optimizer_form.isVisible()
    choose(settings.others["training"].editor("optimizer").target, "sgd")
    assert settings.optimizer_form.form is not None
    momentum = settings.optimizer_form.form.editor("momentum")
    momentum.target.setText("0.9")
    momentum.changed.emit()
    assert panel.draft.get("training.optimizer_options") == {"momentum": 0.9}
    choose(settings.others["training"].editor("optimizer").target, "adamw")
    assert "optimizer_options" not in panel.draft.values()["training"]


def test_typing_asks_once(qtbot, panel):
    asked = []
    ask = panel._context.client.ask
    panel._context.client.ask = lambda query, *rest: asked.append(query) or ask(query, *rest)
    glue(panel)
    line = panel.sections.data._form.editor("folder").target
    line.setFocus()
    qtbot.keyClicks(line, "/rte")
    qtbot.waitUntil(lambda: panel.checks.preview is not None)
    assert asked.count("preview_data") == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (["Ann", "lives", "in", "Bonn"], "Ann lives in Bonn"),
        (["A first text.", "A second one."], "A first text. | A second one."),
        ({"text": ["Bonn", "Bonn"], "answer_start": [13, 13]}, "Bonn (at 13)"),
        ([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}], "user: Hi\nassistant: Hello"),
        ({"id": 3, "note": None}, "id: 3"),
        ([1, 2.5], "1 2.5"),
        (None, ""),
    ],
)
def test_lists_and_structures_read_as_people_say_them(value: object, shown: str):
    assert column_summary.cell_text(value, 100) == shown


def test_a_long_cell_is_cut():
    assert column_summary.cell_text(["word"] * 1000, 10) == "word word …"
