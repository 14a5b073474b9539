"""In the real window a tokenizer is trained and another extended; both open on the page and go into the new run."""

from pathlib import Path

import pytest
from end_to_end.burnish_process import small_csv
from end_to_end.test_window import ANSWER_MS, click, window, write  # noqa: F401 (a fixture)
from transformers import AutoTokenizer

from app.main_window import MainWindow
from app.pages.tokenizer.page import TABS
from backend.contract.resources import resource

MAKE = [name for _, name, _ in TABS].index("train.train_tab.TrainTab")


@pytest.mark.slow
def test_from_texts_to_a_tokenizer_in_the_run(qtbot, window: MainWindow, tmp_path: Path):  # noqa: F811
    small_csv(tmp_path / "reviews.csv", "train", 400)
    page = window.show_page("tokenizer")
    page.show_tokenizer(str(resource("demo", "bert-tiny")))
    page.show_tab(MAKE)
    side = page.tab()
    qtbot.waitUntil(lambda: side.training.form is not None, timeout=ANSWER_MS)
    write(qtbot, side.texts.train.line, str(tmp_path / "reviews.csv"))
    click(qtbot, side.training.foot.begin)
    qtbot.waitUntil(lambda: side.training.result.made is not None, timeout=ANSWER_MS)
    made = side.training.result.made
    assert page.choice.tokenizer() == made.path
    assert len(AutoTokenizer.from_pretrained(made.path)) == made.vocabulary
    assert len(made.compression) == 2

    side.show_way(1)
    side.extending.special.setPlainText("<review>")
    click(qtbot, side.extending.foot.begin)
    qtbot.waitUntil(lambda: side.use_button.isVisible(), timeout=ANSWER_MS)
    click(qtbot, side.use_button)
    new_run = window.show_page("new_run")
    own = new_run.draft.get("model.tokenizer")
    assert AutoTokenizer.from_pretrained(own).tokenize("a<review>")[-1] == "<review>"
