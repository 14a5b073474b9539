"""The Search section of New run: settings are added, bad ranges are refused where they are typed, and Start starts the search."""

from typing import Any

import pytest

from app.core.draft.draft_settings import Setting
from app.pages.new_run.page import Page
from app.pages.new_run.values_dialog import LINEAR, LIST, LOG, ValuesDialog
from tests.app.pages.new_run.draft_steps import write
from tests.app.pages.small_helper import DEMO


@pytest.fixture
def searching(qtbot, demo: Page) -> Page:
    """The page with a search over the batch size."""
    demo.sections.open("search")
    demo.sections.search.search("training.batch_size")
    accept(demo, LIST, "8, 16, 32")
    return demo


def accept(page: Page, kind: str, *texts: str) -> None:
    dialog = page.sections.search.dialog
    assert dialog is not None
    fill(dialog, kind, *texts)
    assert dialog.accept_button.isEnabled(), dialog.mistake.text()
    dialog.accept_button.click()


def fill(dialog: ValuesDialog, kind: str, *texts: str) -> None:
    dialog.kind.setCurrentIndex(dialog.kind.findData(kind))
    for line, text in zip([dialog.line] if kind == LIST else [dialog.low, dialog.high], texts, strict=True):
        line.setText(text)
        line.textEdited.emit(text)


def test_one_setting_makes_a_search_and_its_removal_a_run_again(searching: Page):
    search = searching.draft.get("search")
    assert search["space"] == {"training.batch_size": [8, 16, 32]}
    assert (search["trials"], search["confirm"]["baseline"]) == (12, True)
    assert searching.start_bar.start.text() == "Start search"
    assert searching.sections.search.header.value.text() == "12 trials · Batch size"
    searching.sections.search.rows["training.batch_size"].remove.click()
    assert "search" not in searching.draft.values()
    assert searching.start_bar.start.text() == "Start training"
    searching.controller.undo()
    assert searching.draft.get("search.space") == {"training.batch_size": [8, 16, 32]}


def test_searched_setting_shows_its_values_in_place_of_one(searching: Page):
    row = searching.sections.settings.forms["training"].row_of("training.batch_size")
    assert row is not None
    assert not row.editor.widget.isVisibleTo(searching)
    searching.sections.open("settings")
    assert row._searched is not None
    assert row._searched.text() == "8, 16, 32"
    row.search_requested.emit()
    dialog = searching.sections.search.dialog
    assert dialog is not None
    assert dialog.line.text() == "8, 16, 32"
    dialog.reject()


def test_present_value_is_in_the_middle_of_what_is_suggested(demo: Page):
    demo.sections.search.search("training.learning_rate")
    dialog = demo.sections.search.dialog
    assert dialog is not None
    assert (dialog.kind.currentData(), dialog.low.text(), dialog.high.text()) == (LOG, "7.5e-5", "0.0012")
    dialog.accept_button.click()
    assert demo.draft.get("search.space") == {"training.learning_rate": {"log": [7.5e-5, 0.0012]}}


@pytest.mark.parametrize(
    ("key", "kind", "texts", "words"),
    [
        ("learning_rate", LOG, ("0", "1"), "0: Enter a number above 0."),
        ("learning_rate", LOG, ("1e-3", "1e-5"), "The first number must be smaller than the second."),
        ("learning_rate", LINEAR, ("", "1"), "Enter a number for both ends."),
        ("learning_rate", LINEAR, ("fast", "1"), "fast is not a number."),
        ("learning_rate", LIST, ("1e-4",), "Give at least two values."),
        ("learning_rate", LIST, ("1e-4, 0.0001",), "0.0001 is listed twice."),
        ("learning_rate", LIST, ("1e-4, fast",), "fast: Enter"),
        ("batch_size", LINEAR, ("4.5", "8"), "This setting takes whole numbers."),
        ("weight_decay", LOG, ("0", "0.1"), "A log scale must start above 0."),
    ],
    ids=str,
)  # fmt: skip
def test_bad_range_is_one_sentence_at_the_field(demo: Page, key: str, kind: str, texts: tuple[str, ...], words: str):
    section = demo.sections.search
    section.search(f"training.{key}")
    assert section.dialog is not None
    fill(section.dialog, kind, *texts)
    assert section.dialog.mistake.text().startswith(words)
    assert not section.dialog.accept_button.isEnabled()
    section.dialog.reject()
    assert not demo.draft.is_search


@pytest.mark.parametrize(
    ("extras", "texts", "values"),
    [
        ({"anyOf": [{"const": "auto"}, {"type": "number"}]}, "auto, 2e-5", ["auto", 2e-5]),
        ({"type": "array", "items": {"type": "string"}}, "query; query, value", [["query"], ["query", "value"]]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "1, 2", [1, 2]),
        ({"type": "string"}, "linear, cosine", ["linear", "cosine"]),
    ],
    ids=str,
)
def test_list_has_the_kind_of_its_setting(qtbot, extras: dict[str, Any], texts: str, values: list[Any]):
    dialog = ValuesDialog(Setting("training.some", "Some", "", None, extras), [])
    qtbot.addWidget(dialog)
    fill(dialog, LIST, texts)
    assert dialog.read() == (values, "")


@pytest.mark.parametrize(
    "values", [{"int": [1, 5]}, {"log_int": [2, 64]}, {"uniform": [1.5, 5.0]}, {"log": [0.1, 8.0]}]
)
def test_range_of_numbers_stays_as_it_was_written(qtbot, values: dict[str, Any]):
    dialog = ValuesDialog(Setting("training.epochs", "Epochs", "", None, {"type": "number"}), values)
    qtbot.addWidget(dialog)
    assert dialog.read() == (values, "")


def test_choices_are_ticked(qtbot):
    dialog = ValuesDialog(Setting("training.some", "Some", "", None, {"type": "boolean"}), [True])
    qtbot.addWidget(dialog)
    assert dialog.read()[1] == "Give at least two values."
    for box, _ in dialog.choices:
        box.setChecked(True)
    assert dialog.read() == ([True, False], "")


def test_parts_of_a_search_are_turned_on_and_off(searching: Page):
    section = searching.sections.search
    section.boxes["halving"].click()
    assert searching.draft.get("search.halving") == {"factor": 3, "rungs": 2}
    section.boxes["confirm"].click()
    assert searching.draft.get("search.confirm") is None
    searching.controller.undo()
    assert section.boxes["confirm"].isChecked()


def test_number_of_trials_is_typed(qtbot, searching: Page):
    write(qtbot, searching.sections.search.forms["search"].editor("trials").target, "24")
    assert searching.draft.get("search.trials") == 24
    write(qtbot, searching.sections.search.forms["search"].editor("trials").target, "0")
    assert "1 or more" in searching.reason()


def test_refusal_of_the_backend_stands_at_its_range(searching: Page):
    searching.sections.mark("search.space.training.batch_size", "The range is empty.")
    row = searching.sections.search.rows["training.batch_size"]
    assert row._mistake.text() == "The range is empty."
    searching.sections.clear_marks()
    assert not row._mistake.isVisibleTo(row)


def test_start_starts_the_search(qtbot, searching: Page, monkeypatch):
    started: list[dict[str, Any]] = []
    monkeypatch.setattr(searching._context.jobs, "start", lambda spec, *given, **options: started.append(spec))
    qtbot.waitUntil(lambda: searching.checks.plan is not None and searching.start_bar.start.isEnabled())
    searching.start_bar.start.click()
    searching.starter._set_busy(False)
    assert started[0]["search"]["space"] == {"training.batch_size": [8, 16, 32]}
    assert searching.offered()[0].keys() == DEMO.keys()


def test_menu_offers_what_matters_first_and_nothing_twice(searching: Page):
    section = searching.sections.search
    section.menu.aboutToShow.emit()
    titles = [action.text() for action in section.menu.actions() if action.menu() is None and action.text()]
    assert titles[0] == "Learning rate"
    assert "Batch size" not in titles
    assert [action.text() for action in section.menu.actions() if action.menu() is not None][:2] == ["Task", "Model"]
