"""Tokenizers that were made here are listed after a restart, until they are forgotten or their folder is gone."""

import shutil
from pathlib import Path

import pytest

from app.core import preferences
from app.core.preferences import Preferences
from app.core.text import tokenizer_list
from app.core.text.tokenizer_list import MadeBefore
from app.pages.tokenizer.page import TABS, Page
from app.pages.tokenizer.train.train_tab import MADE_BEFORE
from backend.contract.tokens.training import TrainedTokenizer

MAKE = [name for _, name, _ in TABS].index("train.train_tab.TrainTab")


@pytest.fixture
def folders(context, tmp_path: Path) -> list[Path]:
    """Two tokenizers that were made here, the second one last."""
    made = [tmp_path / name for name in ("first", "second")]
    for folder in made:
        folder.mkdir()
        (folder / "tokenizer.json").write_text("{}")
        tokenizer_list.remember(context.preferences, TrainedTokenizer(path=str(folder), vocabulary=2000))
    return made


@pytest.fixture
def panel(qtbot, context, folders) -> Page:
    made = Page(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    made.show_tab(MAKE)
    made.tab().show_way(MADE_BEFORE)
    return made


def offered(panel: Page) -> list[str]:
    return [panel.choice.box.itemData(place) for place in range(panel.choice.box.count())]


def test_the_newest_is_first_and_is_read_from_the_settings_again(context, folders):
    again = preferences.load(context.preferences.path)
    assert [one.path for one in tokenizer_list.made_tokenizers(again)] == [str(folders[1]), str(folders[0])]
    tokenizer_list.remember(again, TrainedTokenizer(path=str(folders[0]), vocabulary=3000))
    assert next((one.path, one.pieces) for one in tokenizer_list.made_tokenizers(again)) == (str(folders[0]), 3000)


def test_what_somebody_wrote_into_the_settings_is_left_out():
    odd = Preferences(made_tokenizers=["text", {"path": 3}, {"path": "/a", "pieces": "many"}])
    assert tokenizer_list.made_tokenizers(odd) == [MadeBefore("/a")]


def test_one_is_opened_on_the_page(panel: Page, folders):
    table = panel.tab().made_before.table
    assert [table.shown_text(row, "pieces") for row in range(2)] == ["2 000"] * 2
    table.selectRow(1)
    panel.tab().made_before.open.click()
    assert panel.choice.tokenizer() == str(folders[0])
    assert panel.choice.box.currentText().startswith("first · created today")


def test_a_folder_that_is_gone_is_shown_as_such_and_offered_no_more(panel: Page, folders):
    assert str(folders[1]) in offered(panel)
    shutil.rmtree(folders[1])
    panel.on_shown()
    card = panel.tab().made_before
    assert card.table.shown_text(0, "folder") == f"Not found: {folders[1]}"
    card.table.selectRow(0)
    assert (card.open.isEnabled(), card.use.isEnabled(), card.forget.isEnabled()) == (False, False, True)
    assert "remove this tokenizer from the list" in card.where.text()
    assert str(folders[1]) not in offered(panel)


def test_forgetting_leaves_the_folder(panel: Page, folders):
    card = panel.tab().made_before
    card.table.selectRow(0)
    card.forget.click()
    assert card.table.shown_count() == 1
    assert str(folders[1]) not in offered(panel)
    assert (folders[1] / "tokenizer.json").is_file()
    card.table.selectRow(0)
    card.forget.click()
    assert card.pages.currentIndex() == 0
