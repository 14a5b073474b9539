"""The tab that makes tokenizers is tested with answers as the helper gives them."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QGuiApplication

from app.pages.tokenizer.compare.compare_tab import CompareTab as CompareSide
from app.pages.tokenizer.train.train_tab import TrainTab
from app.pages.tokenizer.vocabulary.vocabulary_tab import VocabularyTab as VocabularySide
from backend import catalog
from backend.contract.errors import Fix
from backend.contract.rpc.data import DataPreview
from backend.contract.rpc.protocol import ErrorReply, Progress
from backend.contract.tokens.training import Compression, ProposedToken, ProposedTokens, TokenCounts, TrainedTokenizer

PREVIEW = DataPreview(
    columns=["text", "label"], rows=[["A long and winding review", "positive"]], row_count=2400, guessed_columns={}
)
MEASURED = {"rows": 120, "words": 1000, "characters": 5000, "bytes": 5000, "unknown": 0}
NEW = Compression(tokenizer="/made", vocabulary=4000, tokens=1200, **MEASURED)
OLD = Compression(tokenizer="/old/bert", vocabulary=30522, tokens=1500, **MEASURED)
ZYZZYVA = ProposedToken("zyzzyva", False, ["z", "##y"], [1, 2])
THE = ProposedToken("the", False, ["the"], [1996], 1996, "it is already a token (ID 1996)")


@dataclass
class Asked:
    """One question and its answering ends; a ticket at once."""

    query: str
    arguments: dict[str, Any]
    on_answer: Callable[[Any], None]
    on_error: Callable[[ErrorReply], None]
    on_progress: Callable[[Progress], None] | None
    open: bool = True

    def cancel(self) -> None:
        self.open = False

    def answer(self, answer: Any) -> None:
        self.open = False
        self.on_answer(answer)

    def refuse(self, message: str, field: str | None = None, fix: Fix | None = None) -> None:
        self.open = False
        self.on_error(ErrorReply(message, field, fix=fix))


class Recorder:
    """A client whose questions wait for the test."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def ask(self, query, arguments, on_answer, on_error, on_progress=None) -> Asked:
        self.asked.append(Asked(query, dict(arguments), on_answer, on_error, on_progress))
        return self.asked[-1]

    def last(self, query: str) -> Asked:
        return next(one for one in reversed(self.asked) if one.query == query)

    def count(self, query: str) -> int:
        return sum(one.query == query for one in self.asked)

    def close(self) -> None:
        """Nothing runs."""


@pytest.fixture
def client() -> Recorder:
    return Recorder()


@pytest.fixture
def tab(qtbot, context, client) -> TrainTab:
    made = TrainTab(dataclasses.replace(context, client=client))
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    client.last("catalog").answer(catalog.catalog())
    made.use("/old/bert")
    return made


@pytest.fixture
def ready(qtbot, tab, client) -> TrainTab:
    """With texts chosen."""
    tab.texts.train.choose("/data/reviews/train.csv")
    qtbot.waitUntil(lambda: client.count("preview_data") == 1)
    client.last("preview_data").answer(PREVIEW)
    return tab


@pytest.fixture
def proposing(qtbot, tab, client) -> TrainTab:
    """With tokens written and their pieces known."""
    tab.show_way(1)
    tab.extending.ordinary.setPlainText("zyzzyva\nthe")
    qtbot.waitUntil(lambda: client.count("propose_tokens") == 1)
    client.last("propose_tokens").answer(ProposedTokens(tokens=[ZYZZYVA, THE], vocabulary=30522))
    return tab


def test_what_is_still_to_be_chosen_is_said(tab: TrainTab):
    assert tab.training.reason() == "Choose the texts: a file, a folder or another source."
    assert not tab.training.foot.begin.isEnabled()


def test_columns_with_texts_are_ticked_and_a_folder_proposed(ready: TrainTab):
    assert ready.texts.columns() == ["text"]
    assert Path(ready.training.foot.output()).name == "reviews-byte_bpe-8000"
    assert ready.training.foot.begin.isEnabled()


def test_another_setting_proposes_another_folder_unless_one_was_written(ready: TrainTab):
    form = ready.training.form
    form.editor("vocabulary").set_value(500)
    form.editor("vocabulary").changed.emit()
    assert Path(ready.training.foot.output()).name == "reviews-byte_bpe-500"
    ready.training.foot.line.setText("/mine")
    form.editor("vocabulary").set_value(600)
    form.editor("vocabulary").changed.emit()
    assert ready.training.foot.output() == "/mine"


def test_the_question_holds_what_was_chosen(ready: TrainTab, client: Recorder):
    ready.training.form.set_values({"kind": "unigram"})
    ready.training.foot.begin.click()
    asked = client.last("train_tokenizer").arguments
    assert asked["data"] == {"source": "files", "train": "/data/reviews/train.csv"}
    assert (asked["columns"], asked["settings"], asked["compare_with"]) == (["text"], {"kind": "unigram"}, "/old/bert")


def test_progress_is_shown_and_stopping_ends_the_question(ready: TrainTab, client: Recorder):
    ready.training.make()
    asked = client.last("train_tokenizer")
    asked.on_progress(Progress(600, 2400, "texts", "Reading the texts"))
    assert ready.training.foot.work.bar.fraction() == 0.25
    assert "600 of 2" in ready.training.foot.work.words.text()
    ready.training.foot.work.stop.click()
    assert not asked.open
    assert not ready.training.foot.pages.works


def test_a_made_tokenizer_is_measured_opened_and_used(qtbot, ready: TrainTab, client: Recorder):
    ready.training.make()
    made = TrainedTokenizer(path="/made", vocabulary=4000, rows=2280, held_out=True, compression=[NEW, OLD], seconds=2)
    with qtbot.waitSignal(ready.tokenizer_made) as opened:
        client.last("train_tokenizer").answer(made)
    assert opened.args == ["/made"]
    result = ready.training.result
    assert result.bars.accessibleDescription().startswith("Tokens per word: New 1.200, bert 1.500")
    assert "120 held-out texts" in result.sub.text()
    with qtbot.waitSignal(ready.settings_chosen) as chosen:
        result.use.click()
    assert chosen.args == [{"model.tokenizer": "/made"}]


@pytest.mark.parametrize(
    ("field", "where"),
    [
        ("vocabulary", lambda tab: tab.training.form.mistakes().get("vocabulary", "")),
        ("tokenizer.vocabulary", lambda tab: tab.training.form.mistakes().get("vocabulary", "")),
        ("data.train", lambda tab: tab.texts.banner.text()),
        ("output", lambda tab: tab.banner.text()),
        (None, lambda tab: tab.banner.text()),
    ],
)
def test_a_mistake_is_shown_where_it_can_be_mended(field, where, ready: TrainTab, client: Recorder):
    ready.training.make()
    client.last("train_tokenizer").refuse(f"{field}: this cannot be used; take another", field)
    assert "cannot be used" in where(ready)
    places = [*ready.training.form.mistakes().values(), ready.texts.banner.text(), ready.banner.text()]
    assert sum("cannot be used" in text for text in places) == 1
    assert not ready.training.foot.pages.works


def test_data_that_cannot_be_read_is_said_on_its_card(qtbot, tab: TrainTab, client: Recorder):
    tab.texts.train.choose("/nowhere.csv")
    qtbot.waitUntil(lambda: client.count("preview_data") == 1)
    client.last("preview_data").refuse("data.train: there is no such file", "data.train")
    assert tab.texts.banner.text() == "There is no such file"
    assert tab.training.reason() == "The data can't be read."


WINDOWS = Fix("Read as Windows-1252", {"data.encoding": "windows-1252"}, ("poesía",), "films.csv is not UTF-8:")
ADVICE = "films.csv line 2 is not UTF-8; use --set data.encoding=windows-1252"


def test_texts_of_windows_are_read_at_a_click(qtbot, tab: TrainTab, client: Recorder):
    tab.texts.train.choose("/films.csv")
    qtbot.waitUntil(lambda: client.count("preview_data") == 1)
    client.last("preview_data").refuse(ADVICE, fix=WINDOWS)
    assert tab.texts.banner.text() == "films.csv is not UTF-8:\npoesía"
    tab.texts.banner.fix.click()
    qtbot.waitUntil(lambda: client.count("preview_data") == 2)
    assert client.last("preview_data").arguments["data"]["encoding"] == "windows-1252"
    tab.texts.train.choose("/other.csv")
    qtbot.waitUntil(lambda: client.count("preview_data") == 3)
    assert "encoding" not in client.last("preview_data").arguments["data"]


@pytest.mark.parametrize("make", [CompareSide, VocabularySide])
def test_the_data_to_count_on_is_read_as_windows_at_a_click(qtbot, context, client: Recorder, make):
    tab = make(dataclasses.replace(context, client=client))
    qtbot.addWidget(tab)
    data = tab.data if make is CompareSide else tab.frequency.data
    data.choose("/films.csv")
    client.last("preview_data").refuse(ADVICE, fix=WINDOWS)
    assert tab.banner.text() == "films.csv is not UTF-8:\npoesía"
    tab.banner.fix.click()
    client.last("preview_data").answer(PREVIEW)
    assert data.data == {"source": "files", "train": "/films.csv", "encoding": "windows-1252"}
    assert tab.banner.text() == ""
    data.choose("/other.csv")
    assert client.last("preview_data").arguments["data"] == {"source": "files", "train": "/other.csv"}


def test_another_source_asks_for_what_it_needs(qtbot, tab: TrainTab, client: Recorder):
    tab.texts._on_source("demo")
    assert tab.texts.train.isHidden()
    assert "Fill in" in tab.texts.reason() or tab.texts.data()["source"] == "demo"
    tab.texts.change("data.name", "eng-spa")
    qtbot.waitUntil(lambda: client.count("preview_data") >= 1)
    assert client.last("preview_data").arguments["data"]["name"] == "eng-spa"


def test_the_data_of_the_new_run_is_taken(qtbot, tab: TrainTab, client: Recorder):
    tab.show_draft({"data": {"source": "demo", "name": "austen"}}, "")
    assert tab.texts.data() == {"source": "files"}  # nobody has asked
    tab.draft_wanted.connect(
        lambda: tab.show_draft({"data": {"source": "demo", "name": "eng-spa", "validation": 0.1, "columns": {}}}, "")
    )
    tab.texts.of_run.click()
    assert tab.texts.data() == {"source": "demo", "name": "eng-spa"}
    qtbot.waitUntil(lambda: client.count("preview_data") == 1)


@pytest.mark.parametrize("spec", [{"data": {"source": "files"}}, None])
def test_a_new_run_without_data_is_said(spec, qtbot, tab: TrainTab):
    if spec is not None:
        tab.draft_wanted.connect(lambda: tab.show_draft(spec, "Choose data."))
    with qtbot.waitSignal(tab.message) as said:
        tab.texts.of_run.click()
    assert "no data yet" in said.args[1]


def test_the_command_is_copied(ready: TrainTab):
    ready.training.foot.copy.click()
    assert QGuiApplication.clipboard().text().startswith("burnish tokenizer train --data /data/reviews/train.csv")


def test_pieces_are_shown_and_what_is_there_already_is_marked(proposing: TrainTab):
    table = proposing.extending.result.table
    assert table.shown_text(0, "pieces_now") == "z  ##y"
    assert table.shown_text(1, "note") == "Already a token: ID 1996"
    assert proposing.extending.foot.begin.isEnabled()


def test_a_selected_line_is_shown_whole(proposing: TrainTab):
    proposing.extending.result.table.selectRow(0)
    assert proposing.extending.result.words.text() == "zyzzyva is now z  ##y"


def test_without_texts_nothing_is_counted(proposing: TrainTab, client: Recorder):
    assert client.count("count_proposed") == 0
    assert "occurs" not in proposing.extending.result.table._model.shown


def test_with_texts_tokens_are_counted(qtbot, ready: TrainTab, client: Recorder):
    ready.show_way(1)
    ready.extending.ordinary.setPlainText("zyzzyva")
    qtbot.waitUntil(lambda: client.count("propose_tokens") == 1)
    client.last("propose_tokens").answer(ProposedTokens(tokens=[ZYZZYVA], vocabulary=30522))
    qtbot.waitUntil(lambda: client.count("count_proposed") == 1)
    client.last("count_proposed").on_progress(Progress(500, 2400, "texts"))
    assert "500 of 2" in ready.extending.result.counted.text()
    client.last("count_proposed").answer(
        TokenCounts(counts={"zyzzyva": 7}, rows=2400, tokens_before=1000, tokens_after=990)
    )
    assert ready.extending.result.table.shown_text(0, "occurs") == "7"
    assert "1.0% fewer" in ready.extending.result.words.text()


def test_a_token_that_cannot_be_keeps_the_button_shut(qtbot, tab: TrainTab, client: Recorder):
    tab.show_way(1)
    tab.extending.ordinary.setPlainText("zyzzyva\nzyzzyva")
    assert tab.extending.reason() == "Checking the tokens…"
    qtbot.waitUntil(lambda: client.count("propose_tokens") == 1)
    twice = ProposedToken("zyzzyva", False, [], [], problem="it occurs twice")
    client.last("propose_tokens").answer(ProposedTokens(tokens=[ZYZZYVA, twice], vocabulary=30522))
    assert tab.extending.reason() == "“zyzzyva”: it occurs twice; remove it."


def test_the_extended_tokenizer_is_opened_and_offered_to_the_run(qtbot, proposing: TrainTab, client: Recorder):
    proposing.extending.whole_words.setChecked(True)
    qtbot.waitUntil(lambda: client.count("propose_tokens") == 2)
    client.last("propose_tokens").answer(ProposedTokens(tokens=[ZYZZYVA, THE], vocabulary=30522))
    proposing.extending.foot.begin.click()
    asked = client.last("extend_tokenizer")
    assert asked.arguments["add"] == ["zyzzyva", "the"]
    assert asked.arguments["whole_words"]
    with qtbot.waitSignal(proposing.tokenizer_made) as opened:
        asked.answer(TrainedTokenizer(path="/own", vocabulary=30523, added=1))
    assert opened.args == ["/own"]
    assert "Added 1 token" in proposing.banner.text()
    with qtbot.waitSignal(proposing.settings_chosen) as chosen:
        proposing.use_button.click()
    assert chosen.args == [{"model.tokenizer": "/own"}]


def test_an_empty_list_asks_nothing(tab: TrainTab):
    tab.show_way(1)
    tab.extending.ordinary.setPlainText("  \n")
    assert tab.extending.reason() == "Enter a token to add."


def test_a_backend_that_does_not_answer_is_asked_again(qtbot, context, client):
    made = TrainTab(dataclasses.replace(context, client=client))
    qtbot.addWidget(made)
    client.last("catalog").refuse("The helper ended.")
    assert made.banner.text() == "The helper ended."
    made.on_shown()
    assert client.count("catalog") == 2
