"""What a run takes over of the Tokenizer page's options, and what is said of the rest."""

import pytest

from app.core.text import run_handover
from app.core.text.run_handover import ChosenTask, Handover
from app.core.text.tokenizer_input import TextOptions
from backend.catalog import catalog

TASKS = catalog().tasks


def task(kind: str, **settings: object) -> ChosenTask:
    """A task of the real catalog, as a draft chooses it."""
    return run_handover.chosen_task(TASKS, {"task": {"type": kind, **settings}})


CLASSES, TAGS, ANSWERS = task("text_classification"), task("token_classification"), task("question_answering")
CHATS = task("causal_lm", rows="chat")


def test_a_run_gets_the_options_that_it_has():
    options = TextOptions(max_length=64, construction={"add_prefix_space": True}, truncation_side="left")
    assert run_handover.handover(options, CLASSES) == Handover(
        {
            "task.max_length": 64,
            "model.tokenizer_options.add_prefix_space": True,
            "model.tokenizer_options.truncation_side": "left",
        },
        [],
    )


def test_a_draft_without_a_task_that_is_known_has_none():
    assert task("unheard") == run_handover.chosen_task(TASKS, {}) == ChosenTask()


def test_settings_are_told_in_words_and_a_template_without_its_text():
    settings = {"task.max_length": 64, "task.window": False, "task.template": "{% for m in messages %}\n{% endfor %}"}
    assert run_handover.taken_over(settings) == "max_length 64, window off, template as written"


@pytest.mark.parametrize(
    ("chosen", "settings"),
    [
        (TAGS, {"task.max_length": 64, "task.window": True, "task.stride": 16}),
        (ANSWERS, {"task.max_length": 64, "task.doc_stride": 16}),
    ],
)
def test_windows_and_their_overlap_go_to_tasks_that_have_them(chosen: ChosenTask, settings: dict):
    options = TextOptions(max_length=64, windows=True, stride=16)
    assert run_handover.handover(options, chosen) == Handover(settings, [])


@pytest.mark.parametrize(
    ("options", "chosen", "said"),
    [
        (TextOptions(max_length=8, windows=True), CLASSES, "does not use windows"),
        (TextOptions(max_length=8, windows=True), ChosenTask(), "choose the task of your run first"),
        (TextOptions(max_length=8), ANSWERS, "nothing is truncated"),
        (TextOptions(max_length=8, truncation_side="left"), CHATS, "has its own truncation rule"),
        (TextOptions(padding="longest", padding_side="left"), ANSWERS, "the context before the question"),
        (TextOptions(padding="longest", padding_side="left"), CLASSES, "the side that its model requires"),
        (TextOptions(max_length=8, truncation="only_first"), CLASSES, "which text of a pair"),
        (TextOptions(special_tokens=False), CLASSES, "always adds the special tokens"),
        (TextOptions(padding="max_length", pad_to_multiple_of=8), CLASSES, "pads each batch to its longest row"),
        (TextOptions(chat_template="x"), CLASSES, "does not read chats"),
        (TextOptions(chat_template="x"), ChosenTask(), "choose the task of your run first"),
    ],
)
def test_what_a_run_decides_by_itself_is_said(options: TextOptions, chosen: ChosenTask, said: str):
    assert any(said in sentence for sentence in run_handover.handover(options, chosen).left)


def test_a_chat_template_goes_to_a_task_that_learns_from_chats():
    options = TextOptions(chat_template="{{ messages }}")
    assert run_handover.handover(options, CHATS) == Handover({"task.template": "{{ messages }}"}, [])
    found = run_handover.handover(options, task("causal_lm"))
    assert found.settings == {"task.template": "{{ messages }}"}
    assert "is used when the rows of your data are chats" in found.left[0]
