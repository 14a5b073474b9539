"""The Tokenizer page: the choice of a tokenizer and its sides."""

from pathlib import Path

import pytest

from app.pages.tokenizer.page import TABS, Page
from backend.contract.rpc.models import CachedModel, CachedModels
from backend.contract.tokens import options


@pytest.fixture
def panel(qtbot, context) -> Page:
    made = Page(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    return made


def test_the_demo_model_is_offered_and_a_path_may_be_typed(panel: Page):
    assert Path(panel.choice.tokenizer()).name == "bert-tiny"
    panel.choice.box.setEditText("/somewhere/model")
    assert panel.choice.tokenizer() == "/somewhere/model"


def test_every_side_is_told_of_the_tokenizer_when_it_comes_into_view(panel: Page):
    panel.show_tokenizer("/somewhere/model")
    for place in range(len(TABS)):
        panel.show_tab(place)
        assert panel.tab().tokenizer == "/somewhere/model"


def test_a_dropped_folder_is_a_tokenizer_and_a_dropped_text_is_shown(panel: Page, tmp_path: Path):
    panel.take(tmp_path)
    assert panel.choice.tokenizer() == str(tmp_path)
    text = tmp_path / "notes.md"
    text.write_text("From a file.")
    panel.take(text)
    assert panel.tab().text.toPlainText() == "From a file."


def test_models_of_the_cache_are_offered(panel: Page):
    panel.choice._on_cached(CachedModels([CachedModel("google/mt5-small", 1200.0)]))
    panel.choice.box.setCurrentText("google/mt5-small · in the Hub cache")
    assert panel.choice.tokenizer() == "google/mt5-small"


def test_folders_and_files_can_be_looked_for(panel: Page):
    assert [action.text() for action in panel.choice.browse_menu.actions()] == ["Browse folder…", "Browse file…"]


def test_every_side_is_there_once():
    assert len({module for _, module, _ in TABS}) == len({title for title, _, _ in TABS}) == len(TABS)


def test_the_tokenizer_of_the_new_run_is_offered_with_its_options(panel: Page):
    panel.show_tab([name for _, name, _ in TABS].index("train.train_tab.TrainTab"))
    model = {"name_or_path": "/demo/gpt2", "tokenizer_options": {"add_prefix_space": True}}
    panel.show_draft({"model": model}, "")
    panel.choice.box.setCurrentIndex(0)
    panel.choice.box.activated.emit(0)
    assert options.parse_name(panel.tab().tokenizer).options == {"add_prefix_space": True}
    panel.show_draft({"model": {**model, "tokenizer_options": {"add_prefix_space": False}}}, "")
    assert options.parse_name(panel.tab().tokenizer).options == {"add_prefix_space": False}
    panel.show_draft({}, "")
    assert not any(panel.choice.box.itemText(place).startswith("New run") for place in range(panel.choice.box.count()))
