import pytest
from PySide6.QtWidgets import QPushButton, QWidget

from app.widgets.page_layout import REACH, PageArea, fit_words


def test_the_scroll_bar_stands_in_the_margin_and_takes_nothing_from_the_cards(qtbot, styled):
    content = QWidget()
    area = PageArea(content)
    qtbot.addWidget(area)
    area.resize(500, 300)
    area.show()
    for height, scrolls in ((100, False), (900, True)):
        content.setMinimumHeight(height)
        qtbot.waitUntil(lambda scrolls=scrolls: area.verticalScrollBar().isVisible() == scrolls)
        qtbot.waitUntil(lambda: content.width() == 500 - REACH)


@pytest.mark.parametrize(("room", "left"), [(500, ["Compare", "Stop"]), (220, ["", "Stop"]), (10, ["", ""])])
def test_words_go_in_order_until_the_rest_has_room(qtbot, room: int, left: list[str]):
    first, second = QPushButton(), QPushButton()
    for button in (first, second):
        qtbot.addWidget(button)
    width = {"": 50, "Compare": 200, "Stop": 150}
    words = {first: "Compare", second: "Stop"}
    wordless = fit_words(words, lambda: sum(width[button.text()] for button in words) - room)
    assert [button.text() for button in words] == left
    assert wordless == {button for button in words if not button.text()}
