from PySide6.QtWidgets import QWidget

from app.widgets.page_area import REACH, PageArea


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
