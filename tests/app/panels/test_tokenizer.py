"""The Tokenizer page: the choice of a tokenizer and its sides."""

from pathlib import Path

import pytest

from app.panels.tokenizer import SIDES, Panel


@pytest.fixture
def panel(qtbot, context) -> Panel:
    made = Panel(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    return made


def test_the_demo_model_is_offered_and_a_path_may_be_typed(panel: Panel):
    assert Path(panel.choice.tokenizer()).name == "bert-tiny"
    panel.choice.box.setEditText("/somewhere/model")
    assert panel.choice.tokenizer() == "/somewhere/model"


def test_every_side_is_told_of_the_tokenizer_when_it_comes_into_view(panel: Panel):
    panel.show_tokenizer("/somewhere/model")
    for place in range(len(SIDES)):
        panel.show_side(place)
        assert panel.side().tokenizer == "/somewhere/model"
