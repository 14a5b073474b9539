"""The search for a setting in all sections of the New run page."""

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QWidget

from app.pages.new_run.page import Page


def test_a_setting_is_searched_opened_and_stepped_to(qtbot, demo):
    bar, settings = demo.search_bar, demo.sections.settings
    bar.ask()
    qtbot.keyClicks(bar.search, "warm")
    demo.search.seek()
    assert demo.search.present() == "training.warmup"
    assert settings.groups["training"].is_open()
    assert settings.others["training"].row_of("training.warmup").title.isVisible()
    assert not settings.others["training"].row_of("training.weight_decay").title.isVisible()
    assert not settings.forms["training"].row_of("training.epochs").title.isVisible()
    bar.search.setText("training.epochs")
    demo.search.seek()
    assert settings.forms["training"].row_of("training.epochs").title.isVisible()
    bar.search.setText("warm")
    demo.search.seek()
    places = len(demo.search.places)
    assert bar.count.text() == f"{1 + [key for key, _ in demo.search.places].index('training.warmup')} of {places}"
    first = demo.search.present()
    qtbot.keyClick(bar.search, Qt.Key.Key_Return)
    assert demo.search.present() != first or places == 1
    bar.search.setText("training.warmup")
    demo.search.seek()
    qtbot.keyClick(bar.search, Qt.Key.Key_Escape)
    assert settings.forms["training"].row_of("training.epochs").title.isVisible()
    target = settings.others["training"].editor("warmup").target
    qtbot.waitUntil(lambda: demo.window().focusWidget() is target)  # which needs no window in front


def test_what_stands_on_other_cards_is_found_too_and_nothing_found_teaches(demo):
    demo.search_bar.search.setText("hardware.memory_limit")
    demo.search.seek()
    assert demo.sections.hardware.form.row_of("hardware.memory_limit").title.isVisible()
    demo.search_bar.search.setText("hardware.precision")
    demo.search.seek()
    assert demo.sections.hardware.captions["hardware.precision"].property("sought") == "found"
    demo.search_bar.search.setText("lora")
    demo.search.seek()
    assert demo.sections.settings.captions["adapter.type"].property("sought") == "found"
    demo.search_bar.search.setText("cappuccino")
    demo.search.seek()
    assert "No results for “cappuccino”" in demo.search_bar.nothing.text()
    assert demo.search_bar.nothing.isVisible()
    demo.search_bar.search.clear()
    assert not demo.search_bar.nothing.isVisible()
    assert demo.sections.settings.forms["training"].isVisible()


@pytest.mark.parametrize("key", ["data.encoding", "data.sheet", "data.format"])
def test_a_setting_of_the_data_is_unfolded_and_wholly_in_view(qtbot, demo, key: str):
    demo.resize(740, 1000)  # what a window of 960 pixels leaves the page
    demo.search_bar.search.setText(key)
    demo.search.seek()
    row = next(form.row_of(key) for form in demo.sections.data.forms_shown())
    assert row.title.isVisible()
    qtbot.waitUntil(lambda: all(is_in_view(demo, widget) for widget in (row.title, row.editor.widget)))


def is_in_view(page: Page, widget: QWidget) -> bool:
    area = page.sections.data.area.viewport()
    return area.rect().contains(QRect(widget.mapTo(area, QPoint(0, 0)), widget.size()))


def test_a_search_ends_when_the_page_is_left(demo):
    epochs = demo.sections.settings.forms["training"].row_of("training.epochs").title
    demo.search_bar.search.setText("memory_limit")
    demo.search.seek()
    settings = demo.sections.settings
    assert not epochs.isVisibleTo(settings.inside)
    demo.search_bar.hide()  # as with the page; a hidden window would lose the keyboard
    demo.search_bar.show()
    assert demo.search_bar.search.text() == ""
    assert epochs.isVisibleTo(settings.inside)
