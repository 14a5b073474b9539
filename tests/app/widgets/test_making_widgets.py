"""The drop-down with ticks, and bars in groups."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.widgets.empty_state import EmptyState
from app.widgets.forms.inputs import CheckMenu
from app.widgets.plots.paired_bars import Group, PairedBars


def test_what_is_ticked_is_shown_and_told(qtbot):
    menu = CheckMenu("Columns", "Choose columns")
    qtbot.addWidget(menu)
    assert not menu.isEnabled()
    menu.offer(["source", "target", "a & b"], ["source"])
    assert (menu.currentText(), menu.accessibleName()) == ("source", "Columns: source")
    with qtbot.waitSignal(menu.changed):
        menu.menu.actions()[2].trigger()
    assert menu.checked_items() == ["source", "a & b"]
    assert menu.currentText() == "source, a & b"


def test_the_list_opens_from_the_keyboard(qtbot):
    menu = CheckMenu("Columns", "Choose columns")
    qtbot.addWidget(menu)
    menu.offer(["source"], [])
    menu.show()
    qtbot.keyClick(menu, Qt.Key.Key_Space)
    assert menu.menu.isVisible()
    menu.menu.close()


def test_bars_are_read_aloud_and_drawn(qtbot):
    bars = PairedBars()
    qtbot.addWidget(bars)
    bars.show_groups(["New", "old"], [Group("Tokens per word", [1.2, 2.4], ["1.20", "2.40"])])
    bars.resize(320, bars.sizeHint().height())
    bars.show()
    assert bars.accessibleDescription() == "Tokens per word: New 1.20, old 2.40"
    image = bars.grab().toImage()
    middle = [image.pixelColor(x, 22 + 10).name() for x in range(100, 256)]
    assert 0.4 < middle.count(middle[0]) / len(middle) < 0.6  # half as long as the other


def test_nothing_measured_takes_no_room(qtbot):
    bars = PairedBars()
    qtbot.addWidget(bars)
    bars.show_groups([], [])
    assert bars.height() == 0


def test_an_empty_state_breaks_its_sentence_where_there_is_less_room(qtbot):
    page = QWidget()
    qtbot.addWidget(page)
    state = EmptyState("text", "Nothing yet", "Choose texts and settings. " * 6)
    QVBoxLayout(page).addWidget(state)
    page.resize(300, 300)
    page.show()
    sentence = state._sentence
    qtbot.waitUntil(lambda: sentence.width() > 0 and sentence.height() > 0)
    assert sentence.mapTo(page, sentence.rect().topRight()).x() <= page.width()
    narrow = sentence.height()
    page.resize(900, 300)
    qtbot.waitUntil(lambda: sentence.height() < narrow)
