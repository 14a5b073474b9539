"""Buttons lose their words one after another, and only as many as must."""

import pytest
from PySide6.QtWidgets import QPushButton

from app.widgets.text.fitting_words import fit_words


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
