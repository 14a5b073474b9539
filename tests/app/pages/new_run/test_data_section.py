"""The New run page's data: drops anywhere, what they are taken for, the guess beside its reason, all rows at a glance."""

import gzip
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel

from app.pages.new_run.data.column_choice import ColumnChoice
from app.pages.new_run.page import Page
from app.widgets.toast import ToastOverlay
from backend.contract.catalog import Preset
from backend.contract.errors import Fix
from backend.contract.resources import resource
from backend.contract.rpc.data import DataPreview, RecognisedData
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.protocol import ErrorReply
from backend.helper.queries.data import QUERIES
from backend.tasks.text_classification import TextClassification

TRAIN = str(resource("demo", "sentiment", "train.csv"))
SQUAD = str(Path(__file__).parents[3] / "data" / "squad" / "train.json")
LEFT, PLAIN, COPY = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, Qt.DropAction.CopyAction
PREVIEW = next(query.answer for query in QUERIES if query.name == "preview_data")
SLOW_MS = 30_000
"""The helper's first look loads the data room."""


def dragged(panel: Page, *paths: str, at: QPoint | None = None) -> tuple[QMimeData, QPointF]:
    """Files over the page, or over a place in it; the window is told, as the system would."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(path) for path in paths])
    place = at if at is not None else QPoint(300, 20)
    QApplication.sendEvent(panel.windowHandle(), QDragEnterEvent(place, COPY, mime, LEFT, PLAIN))
    return mime, QPointF(place)


def drop(panel: Page, *paths: str, at: QPoint | None = None) -> None:
    mime, place = dragged(panel, *paths, at=at)
    QApplication.sendEvent(panel.windowHandle(), QDropEvent(place, COPY, mime, LEFT, PLAIN))


def looked_at(qtbot, panel: Page) -> None:
    qtbot.waitUntil(lambda: panel.data_controller.glance is not None, timeout=SLOW_MS)


def test_a_drop_anywhere_is_announced_recognised_said_and_undone(qtbot, panel, tmp_path: Path):
    card = panel.sections.data
    assert card.zone.isVisible()
    packed = tmp_path / "packed.txt.gz"
    packed.write_bytes(gzip.compress(Path(TRAIN).read_bytes()))
    dragged(panel, str(packed))
    assert panel.data_controller.drops.hint.words() == "Drop to use it as data"
    panel.sections.open("settings")
    drop(panel, str(packed))
    assert panel.sections.opened == "data"  # where it is said what became of the drop
    qtbot.waitUntil(lambda: card.recognised.isVisible(), timeout=SLOW_MS)
    assert panel.data_controller.drops.hint.words() == ""
    assert panel.draft.get("data.format") == "csv"
    assert "packed.txt.gz for training, unpacked from gzip" in card.recognised.text()
    assert panel.draft.get("name") == "packed"
    assert not card.zone.isVisible()
    card.recognised.undo.click()
    assert (panel.draft.get("data.train"), panel.draft.get("data.format", "auto")) == (None, "auto")
    assert card.zone.isVisible()
    assert not card.recognised.isVisible()


def test_a_folder_typed_for_training_is_split_as_one_that_is_dropped(qtbot, panel, tmp_path: Path):
    for name in ("train.json", "dev.json"):
        (tmp_path / name).write_bytes(Path(SQUAD).read_bytes())
    panel.draft.set("data.source", "squad")
    panel.sections.data.train.choose(str(tmp_path))
    qtbot.waitUntil(lambda: panel.draft.get("data.validation") == str(tmp_path / "dev.json"), timeout=SLOW_MS)
    assert panel.draft.get("data.train") == str(tmp_path / "train.json")


def test_how_a_file_is_read_goes_with_the_file(panel, tmp_path: Path):
    for name in ("old.csv", "new.csv"):
        (tmp_path / name).write_text("text;label\na film;good\n", encoding="utf-8")
    controller = panel.controller
    controller.change("data.train", str(tmp_path / "old.csv"))
    controller.change("data.encoding", "windows-1252")
    controller.change("data.max_rows", 100)
    controller.change("data.train", str(tmp_path / "new.csv"))
    assert (panel.draft.get("data.encoding"), panel.draft.get("data.max_rows")) == (None, 100)
    controller.undo()
    assert panel.draft.get("data.encoding") == "windows-1252"


def test_a_file_of_windows_is_read_at_a_click_beside_what_it_would_say(qtbot, panel):
    card = panel.sections.data
    panel.resize(1068, 720)
    panel.controller.change("data.train", "films.csv")
    lines = ("text,label", f"a poem of {'many words, ' * 9}poesía")
    fix = Fix("Read as Windows-1252", {"data.encoding": "windows-1252"}, lines, "films.csv is not UTF-8:")
    advice = "films.csv line 2 is not UTF-8 (byte 0xE9); use --set data.encoding=windows-1252, or save it again"
    panel.checks._on_mistake("data", ErrorReply(advice, "data.train", fix=fix))
    assert card.banner.fix.isVisible()
    assert card.banner.fix.text() == "Read as Windows-1252"
    assert card.banner.text().splitlines() == ["films.csv is not UTF-8:", *lines]
    assert [one.text() for one in panel.findChildren(QLabel) if "--set" in one.text()] == []
    assert panel.reason() == "The data can't be read yet. See the Data section."
    qtbot.waitUntil(lambda: card.banner.minimumSizeHint().width() < 400)
    assert panel.sections.data.banner.width() <= panel.sections.side.width()
    card.banner.fix.click()
    assert panel.draft.get("data.encoding") == "windows-1252"
    card.show_problem("another problem")
    assert not card.banner.fix.isVisible()


def test_an_id_as_label_is_said_first_and_a_click_takes_the_likely_column(qtbot, panel, tmp_path: Path):
    card, film = panel.sections.data, tmp_path / "films.csv"
    rows = [f"A-{number:04},{number} warm and funny scenes,{'good' if number % 3 else 'bad'}" for number in range(400)]
    film.write_text("\n".join(["id,text,sentiment", *rows]), encoding="utf-8")
    panel.controller.change("data.train", str(film))
    panel.controller.change("data.columns.label", "id")
    data = {"source": "files", "train": str(film), "validation": 0.1, "columns": {"label": "id"}}
    preview = PREVIEW({"data": data, "task": {"type": "text_classification"}}, lambda progress: None)
    panel.checks._on_preview(preview)
    says = "“id” has a different value in each of 400 rows. “sentiment” is probably meant."
    said = card.column_banner
    assert said.text() == panel.reason() == says
    assert said.fix.text() == "Use “sentiment”"
    panel.checks._on_mistake("plan", preview.wrong_column)
    assert said.fix.isVisible()
    assert said.text() == panel.reason() == says
    assert (card.banner.isVisible(), card.columns.reason("label")) == (False, ""), "it is said once"
    said.fix.click()
    assert panel.draft.get("data.columns.label") == "sentiment"


def test_settings_are_called_by_their_titles_wherever_data_is_spoken_of(panel):
    card = panel.sections.data
    read = "films.xlsx: the sheet “Notes” is used; set data.sheet to use another one: “Films”."
    shown = "films.xlsx: the sheet “Notes” is used; set “Sheet” to use another one: “Films”."
    found = RecognisedData(data={}, source_title="Files", words="This is a workbook.", warnings=[read])
    card.recognised.say(found)
    assert card.recognised.text() == f"This is a workbook. {shown}"
    card.banner.show_message("warning", read)
    assert card.banner.text() == shown
    toasts = ToastOverlay(panel)
    toasts.show_message("warning", read)
    assert toasts.messages() == [shown]


def test_another_sheet_is_read_at_a_click(panel):
    card = panel.sections.data
    panel.controller.change("data.train", "films.xlsx")
    fix = Fix("Read sheet Films", {"data.sheet": "Films"}, ("text | stars", "a film | 3"), "“Films” is a table:")
    preview = DataPreview(columns=["Notes"], rows=[["by Ann"]], row_count=1, guessed_columns={}, fix=fix)
    panel.checks._on_preview(preview)
    assert card.banner.isVisible()
    assert card.banner.text().splitlines() == ["“Films” is a table:", "text | stars", "a film | 3"]
    card.banner.fix.click()
    assert panel.draft.get("data.sheet") == "Films"


def test_a_drop_on_the_field_of_a_split_is_that_split(qtbot, panel):
    field = panel.sections.data.test
    place = field.mapTo(panel, field.rect().center())
    panel.sections.scroll_to(field)
    place = field.mapTo(panel, field.rect().center())
    dragged(panel, TRAIN, at=place)
    assert panel.data_controller.drops.hint.words() == "Drop to test on it"
    drop(panel, TRAIN, at=place)
    qtbot.waitUntil(lambda: panel.draft.get("data.test") == TRAIN, timeout=SLOW_MS)
    assert not panel.draft.get("data.train")


def test_data_dropped_beside_the_open_model_is_data_nevertheless(qtbot, panel):
    panel.sections.open("model")
    model = panel.sections.model
    drop(panel, TRAIN, at=model.panel.mapTo(panel, model.panel.rect().center()))
    qtbot.waitUntil(lambda: panel.draft.get("data.train") == TRAIN, timeout=SLOW_MS)
    assert panel.sections.opened == "data"
    assert not panel.draft.get("model.name_or_path")


def offered(panel: Page) -> list[str]:
    return [button.text() for button in panel.sections.data.recognised.task_buttons]


@pytest.fixture
def similar(tmp_path: Path) -> str:
    """Pairs of sentences with scores."""
    path = tmp_path / "similar.csv"
    rows = [f"a warm film {row},a cold film {row},{row / 8}" for row in range(40)]
    path.write_text("\n".join(["sentence1,sentence2,similarity", *rows]), encoding="utf-8")
    return str(path)


def test_data_that_is_made_for_one_task_decides_it_until_a_person_does(qtbot, panel, similar: str):
    note = panel.sections.data.recognised
    drop(panel, similar)
    qtbot.waitUntil(lambda: panel.draft.get("task.type") == "text_regression", timeout=SLOW_MS)
    qtbot.waitUntil(lambda: panel.draft.get("data.columns.label") == "similarity", timeout=SLOW_MS)
    says = "The task is now text regression, because “similarity” contains scores, for example 0.0."
    assert note.isVisible()
    assert note.text() == f"This is a table (CSV): similar.csv for training. {says}"
    assert offered(panel) == ["Back to text classification"]
    note.task_buttons[0].click()
    qtbot.waitUntil(lambda: offered(panel) == ["Switch to text regression"], timeout=SLOW_MS)
    assert panel.draft.get("task.type") == "text_classification"
    assert panel.reason() == "Choose a column for label, or switch to text regression."


def test_a_drop_and_the_task_that_it_decides_are_one_step_to_undo(qtbot, panel, similar: str):
    panel.sections.data.train.choose(similar)
    qtbot.waitUntil(lambda: panel.draft.get("task.type") == "text_regression", timeout=SLOW_MS)
    panel.controller.undo()
    assert (panel.draft.get("task.type"), panel.draft.get("data.train")) == ("text_classification", None)
    assert panel.controller.history.undo_words == ""
    panel.controller.redo()
    qtbot.waitUntil(lambda: offered(panel) == ["Back to text classification"], timeout=SLOW_MS)
    assert panel.draft.get("task.type") == "text_regression"


def test_undo_beside_the_data_takes_back_the_task_too_but_no_other_setting(qtbot, panel, similar: str):
    drop(panel, similar)
    qtbot.waitUntil(lambda: panel.draft.get("data.columns.label") == "similarity", timeout=SLOW_MS)
    panel.controller.change("training.seed", 7)
    panel.sections.data.recognised.undo.click()
    assert (panel.draft.get("task"), panel.draft.get("data.train")) == ({"type": "text_classification"}, None)
    assert (panel.draft.get("training.seed"), panel.draft.get("name")) == (7, "run")
    assert not panel.draft.task_chosen
    panel.controller.undo()
    assert (panel.draft.get("task.type"), panel.draft.get("data.train")) == ("text_regression", similar)


def test_a_preset_without_a_task_stays_when_the_data_decides(qtbot, panel, similar: str):
    preset = Preset("careful", "Careful", "", {"training": {"warmup": 0.3}})
    panel.controller.apply_preset(preset)
    drop(panel, similar)
    qtbot.waitUntil(lambda: panel.draft.get("task.type") == "text_regression", timeout=SLOW_MS)
    assert panel.controller.overlay.preset == preset
    assert panel.draft.get("training.warmup") == 0.3


def test_what_is_still_recognised_does_not_reach_another_draft(qtbot, panel, similar: str):
    panel.data_controller.take([similar])
    panel.controller.start_over()
    with qtbot.waitSignal(panel.checks.devices_found, timeout=SLOW_MS):
        panel.checks.look_again()  # answered after what was dropped
    assert panel.draft.get("data.train") is None


def test_the_draft_before_cannot_be_started_while_a_drop_is_inspected(qtbot, demo, tmp_path: Path):
    qtbot.waitUntil(lambda: demo.start_bar.start.isEnabled(), timeout=SLOW_MS)
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG\r\n")
    drop(demo, str(picture))
    assert demo.reason() == "Inspecting the dropped files…"
    assert not demo.start_bar.start.isEnabled()
    qtbot.waitUntil(lambda: "is an image" in demo.sections.data.banner.text(), timeout=SLOW_MS)
    assert demo.start_bar.start.isEnabled(), "the draft is as it was"


def test_only_the_rows_that_were_dropped_may_decide(qtbot, panel, similar: str, tmp_path: Path):
    missing = tmp_path / "missing.csv"
    panel.sections.data.train.choose(str(missing))
    qtbot.waitUntil(lambda: panel.checks.problems.get("data"), timeout=SLOW_MS)
    panel.controller.apply({"data.train": similar}, "Settings from another page")
    qtbot.waitUntil(lambda: offered(panel) == ["Switch to text regression"], timeout=SLOW_MS)
    assert panel.draft.get("task.type") == "text_classification"


def test_a_task_that_a_person_has_chosen_is_kept_and_the_other_one_offered(qtbot, panel, similar: str):
    panel.controller.choose_task("text_classification")
    panel.sections.data.train.choose(similar)
    qtbot.waitUntil(lambda: offered(panel) == ["Switch to text regression"], timeout=SLOW_MS)
    assert panel.draft.get("task.type") == "text_classification"
    panel.sections.data.recognised.task_buttons[0].click()
    qtbot.waitUntil(lambda: panel.draft.get("data.columns.label") == "similarity", timeout=SLOW_MS)
    assert panel.sections.data.recognised.isHidden(), "what it offered is done"


@pytest.fixture
def novel(tmp_path: Path) -> str:
    """Running text, which two kinds of language models can learn."""
    path = tmp_path / "emma.txt"
    path.write_text("\n".join(f"Emma had lived {year} years in the world" for year in range(21)), encoding="utf-8")
    return str(path)


def test_running_text_is_for_a_causal_language_model_and_the_other_one_is_a_click_away(qtbot, panel, novel: str):
    panel.sections.data.train.choose(novel)
    qtbot.waitUntil(lambda: len(offered(panel)) == 2, timeout=SLOW_MS)
    assert panel.draft.get("task.type") == "causal_lm"
    assert offered(panel) == ["Switch to masked language modeling", "Back to text classification"]
    assert panel.sections.data.recognised.text() == (
        "The task is now causal language modeling, because the data is running text without any labels."
    )
    assert panel.reason() == "Choose a model."
    panel.sections.data.recognised.task_buttons[0].click()
    assert panel.draft.get("task.type") == "masked_lm"


def test_a_model_that_does_not_suit_the_first_task_decides_for_the_other_once(qtbot, panel, novel: str):
    panel.sections.data.train.choose(novel)
    qtbot.waitUntil(lambda: panel.draft.get("task.type") == "causal_lm", timeout=SLOW_MS)
    encoder = ModelDescription(name="encoder", found="folder", problem="An encoder cannot continue a text")
    panel.checks.described.emit(encoder)
    assert panel.draft.get("task.type") == "masked_lm"
    assert offered(panel) == ["Switch to causal language modeling", "Back to text classification"]
    panel.checks.described.emit(encoder)
    assert panel.draft.get("task.type") == "masked_lm", "it suits neither, so there is nothing to try"


def test_running_text_leaves_a_task_that_a_person_has_chosen(qtbot, panel, novel: str):
    panel.controller.choose_task("text_classification")
    panel.sections.data.train.choose(novel)
    qtbot.waitUntil(lambda: len(offered(panel)) == 2, timeout=SLOW_MS)
    assert offered(panel) == ["Switch to causal language modeling", "Switch to masked language modeling"]
    assert panel.reason() == "Choose a column for label, or switch to causal language modeling."
    assert panel.draft.get("task.type") == "text_classification"


def test_a_labelled_table_for_a_language_model_is_offered_to_text_classification_and_may_start(
    qtbot, panel, tmp_path: Path
):
    table = tmp_path / "films.csv"
    table.write_text("text,label\n" + "a warm film,good\na cold film,bad\n" * 20, encoding="utf-8")
    panel.controller.choose_task("causal_lm")
    drop(panel, str(table))
    qtbot.waitUntil(lambda: offered(panel) == ["Switch to text classification"], timeout=SLOW_MS)
    assert panel.draft.get("task.type") == "causal_lm"
    assert panel.draft.get("data.columns.text") == "text"
    assert panel.reason() == "Choose a model."


def test_scores_as_label_are_an_error_with_the_other_task_as_its_button(qtbot, panel, similar: str):
    panel.controller.choose_task("text_classification")
    panel.controller.change("data.train", similar)
    panel.controller.change("data.columns.label", "similarity")
    card = panel.sections.data
    said = card.column_banner
    qtbot.waitUntil(lambda: said.fix.isVisible(), timeout=SLOW_MS)
    assert card.recognised.isHidden()
    assert said.text() == (
        "“similarity” contains scores, for example 0.0. "
        "Switch to text regression, or list the values in “Labels” if each one is a class."
    )
    assert card.columns.boxes["label"].currentText() == "similarity", "the reason is said below"
    assert said.fix.text() == "Switch to text regression"
    said.fix.click()
    assert panel.draft.get("task.type") == "text_regression"


def test_labels_that_are_listed_put_a_column_right(qtbot, panel, similar: str):
    panel.controller.choose_task("text_classification")
    panel.controller.change("data.train", similar)
    panel.controller.change("data.columns.label", "similarity")
    qtbot.waitUntil(lambda: panel.sections.data.column_banner.isVisible(), timeout=SLOW_MS)
    panel.change("task.labels", [str(row / 8) for row in range(40)])
    qtbot.waitUntil(lambda: not panel.sections.data.column_banner.isVisible(), timeout=SLOW_MS)
    assert panel.reason() == "Choose a model."


def test_another_source_is_chosen_by_content_and_its_task_is_one_click_away(qtbot, panel):
    panel.controller.choose_task("text_classification")
    panel.sections.data.train.choose(SQUAD)
    qtbot.waitUntil(lambda: panel.draft.get("data.source") == "squad", timeout=SLOW_MS)
    assert offered(panel) == ["Switch to question answering"]
    panel.sections.data.recognised.task_buttons[0].click()
    assert panel.sections.data.recognised.isHidden(), "what it offered is done"
    assert panel.draft.get("task.type") == "question_answering"
    assert panel.draft.get("data.train") == SQUAD


def test_what_is_no_data_is_refused_left_to_others_or_pasted_instead(qtbot, new_run, tmp_path: Path):
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG\r\n")
    drop(new_run, str(picture))
    qtbot.waitUntil(lambda: "is an image" in new_run.sections.data.banner.text(), timeout=SLOW_MS)
    assert not new_run.draft.get("data.train")
    assert new_run.sections.data.panel.title.text() == "Data", "nothing is inspected any more"
    dragged(new_run, str(tmp_path / "run.yaml"))
    assert new_run.data_controller.drops.hint.words() == ""
    (tmp_path / "config.json").touch()
    model = new_run.sections.model
    dragged(new_run, str(tmp_path), at=model.mapTo(new_run, QPoint(20, 20)))
    assert new_run.data_controller.drops.hint.words() == ""
    QGuiApplication.clipboard().setText(f"{TRAIN}\n")
    new_run.data_controller.drops.paste()
    qtbot.waitUntil(lambda: new_run.draft.get("data.train") == TRAIN, timeout=SLOW_MS)


@pytest.fixture
def chosen(qtbot, panel):
    panel.sections.data.train.choose(TRAIN)
    looked_at(qtbot, panel)
    return panel


def test_rows_columns_and_all_that_they_hold_are_shown_at_a_glance(chosen):
    [text, label, other] = chosen.sections.data.table.shown_columns()
    assert [text.part, label.part, other.part] == ["Text", "Label", ""]
    assert text.color != label.color
    view = chosen.sections.data.view
    assert view.splits.text().replace("\u202f", " ") == "2 158 for training, 240 for validation, 2 skipped."
    assert "median 15 tokens" in view.summary.text()
    assert "also occur in the training data" in view.warnings.text()
    assert "Duplicates in the training data: 11 training rows." in view.notes.text()
    box = chosen.sections.data.columns.boxes["label"]
    at = box.findData("text")
    assert not box.model().item(at).isEnabled()
    assert box.itemText(at).startswith("text · holds 2,400 unique values")


def test_a_changed_guess_can_be_undone(qtbot, chosen):
    columns = chosen.sections.data.columns
    box = columns.boxes["label"]
    box.setCurrentIndex(box.findData("source"))
    box.activated.emit(box.currentIndex())
    qtbot.waitUntil(lambda: columns.back_button("label").isVisible(), timeout=SLOW_MS)
    assert columns.reason("label") == "Detected: “label”"
    columns.back_button("label").click()
    assert chosen.draft.get("data.columns.label") == "label"


def test_the_unusable_rows_are_listed_and_written_and_a_row_is_shown_whole(qtbot, chosen, tmp_path: Path):
    chosen.sections.data.view.unusable.click()
    dialog = chosen.data_controller.unusable
    assert [dialog.table.model().index(1, column).data() for column in range(4)] == [
        "Training",
        "train.csv",
        "902",
        "no text",
    ]
    dialog.write(str(tmp_path / "out.csv"))
    qtbot.waitUntil(lambda: "Exported 2 rows" in dialog.said.text())
    dialog.close_button.click()
    assert dialog.isHidden()
    chosen.sections.data.table.row_requested.emit(3)
    dialog = chosen.data_controller.row
    qtbot.waitUntil(lambda: dialog.said.text() == "train.csv:5")
    assert len(dialog.cells["text"].toPlainText()) == 2500
    dialog.close()


def test_the_look_at_all_rows_can_be_stopped(qtbot, panel):
    view = panel.sections.data.view
    panel.sections.data.train.choose(TRAIN)
    qtbot.waitUntil(lambda: panel.checks.preview is not None, timeout=SLOW_MS)
    view.show_counting(0.5)
    assert view.counting.isVisible()
    view.stop_counting.click()
    assert not view.counting.isVisible()
    assert "Not all rows were checked" in view.notes.text()


def test_reading_can_be_stopped_and_begun_again_and_addresses_are_paths(qtbot, panel, tmp_path: Path):
    panel.change("data.train", TRAIN)
    panel.sections.data.stop.click()
    assert "was stopped" in panel.sections.data.banner.text()
    assert panel.sections.data.again.isVisible()
    panel.sections.data.again.click()
    qtbot.waitUntil(lambda: panel.checks.preview is not None, timeout=SLOW_MS)
    field = panel.sections.data.validation
    field.line.setText(f"file://{tmp_path}/a%20b.csv")
    field.line.editingFinished.emit()
    assert panel.draft.get("data.validation") == f"{tmp_path}/a b.csv"


def test_lists_of_labels_offer_several_labels_per_row(tmp_path: Path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "one two", "label": ["a", "b"]}\n{"text": "three four", "label": ["b"]}\n' * 3, "utf-8")
    data = {"source": "files", "train": str(rows)}
    found = PREVIEW({"task": {"type": "text_classification"}, "data": data}, lambda progress: None)
    assert found.wrong_column.fix.changes == {"task.labels_per_row": "many", "data.columns.labels": "label"}
    many = {"type": "text_classification", "labels_per_row": "many"}
    found = PREVIEW({"task": many, "data": {**data, "columns": {"labels": "label"}}}, lambda progress: None)
    assert (found.wrong_column, found.label_counts) == (None, {"b": 6, "a": 3})


def test_several_columns_are_chosen_as_labels_in_a_dialog(qtbot, tmp_path: Path):
    rows = tmp_path / "rows.csv"
    rows.write_text("text,money,sport,id\none two,1,0,1\nthree four,1,1,2\n", "utf-8")
    task = {"type": "text_classification", "labels_per_row": "many"}
    columns = {"text": "text", "labels": ["money", "sport"]}
    data = {"source": "files", "train": str(rows), "columns": columns}
    found = PREVIEW({"task": task, "data": data}, lambda progress: None)
    assert found.label_counts == {"money": 2, "sport": 1}
    choice = ColumnChoice()
    qtbot.addWidget(choice)
    choice.set_parts([one for one in TextClassification.columns if one.name != "label"])
    choice.show_preview(found, columns)
    box = choice.boxes["labels"]
    assert (box.currentText(), choice.reason("labels")) == ("money, sport", "2 columns")
    chosen = []
    choice.changed.connect(lambda part, column: chosen.append((part, column)))
    box.activated.emit(box.count() - 1)
    assert box.currentText() == "money, sport"
    dialog = choice.several
    assert dialog.names() == ["money", "sport"]
    assert [dialog.list.item(row).text() for row in range(dialog.list.count())] == ["money", "sport", "id"]
    dialog.list.item(0).setCheckState(Qt.CheckState.Unchecked)
    assert not dialog.accept_button.isEnabled()
    dialog.list.item(2).setCheckState(Qt.CheckState.Checked)
    dialog.accept_button.click()
    assert chosen == [("labels", ["sport", "id"])]
