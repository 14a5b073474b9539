"""The search for a setting over all cards of the New run page."""

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QWidget

from app.pages.new_run.page import Page


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
    assert "No results for “cappuccino”" in demo.bar.nothing.text()
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


def test_a_search_ends_when_the_page_is_left(demo):
    epochs = demo.cards.settings.forms["training"].row_of("training.epochs").title
    demo.bar.search.setText("memory_limit")
    demo.search.seek()
    assert not epochs.isVisible()
    demo.bar.hide()  # as with the page; a hidden window would lose the keyboard
    demo.bar.show()
    assert demo.bar.search.text() == ""
    assert epochs.isVisible()
