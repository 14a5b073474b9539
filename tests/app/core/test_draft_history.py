"""Undo and redo of a draft, as values."""

from app.core.draft.draft_history import MAX_STEPS, History, Step


class Clock:
    """A time that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_what_was_done_is_undone_and_done_again():
    history = History("a")
    history.record("b", Step("Name"))
    history.record("c", Step("Task"))
    assert (history.undo_words, history.redo_words) == ("Task", "")
    assert (history.undo(), history.undo()) == ("b", "a")
    assert (history.undo_words, history.redo_words) == ("", "Name")
    assert (history.redo(), history.redo()) == ("b", "c")


def test_letters_typed_into_one_field_are_one_step():
    history = History("", now=Clock())
    for text in ("1", "16", "160"):
        history.record(text, Step(f"Batch size: 8 → {text}", "training.batch_size"))
    assert history.undo_words == "Batch size: 8 → 160"
    assert history.undo() == ""


def test_another_field_begins_another_step():
    history = History("", now=Clock())
    history.record("a", Step("One", "one"))
    history.record("ab", Step("Two", "two"))
    assert history.undo() == "a"


def test_a_pause_begins_another_step():
    clock = Clock()
    history = History("", now=clock)
    history.record("a", Step("One", "one"))
    clock.seconds = 60
    history.record("ab", Step("One", "one"))
    assert history.undo() == "a"


def test_typing_that_was_ended_is_continued_in_another_step():
    history = History("", now=Clock())
    history.record("a", Step("One", "one"))
    history.end_typing()
    history.record("ab", Step("One", "one"))
    assert history.undo() == "a"


def test_what_is_typed_and_deleted_again_is_no_step():
    history = History("", now=Clock())
    history.record("a", Step("One", "one"))
    history.record("", Step("One", "one"))
    assert history.undo_words == ""


def test_typing_after_an_undo_does_not_join_what_was_before():
    history = History("", now=Clock())
    history.record("a", Step("One", "one"))
    history.record("ab", Step("Two", "two"))
    history.undo()
    history.record("ac", Step("One", "one"))
    assert history.redo_words == ""
    assert history.undo() == "a"


def test_what_nobody_did_completes_the_present():
    history = History("")
    history.record("file", Step("Training data"))
    history.amend("file and columns")
    assert history.undo() == ""
    assert history.redo() == "file and columns"


def test_completing_the_present_forgets_nothing_that_can_be_redone():
    history = History("")
    history.record("file", Step("Training data"))
    history.undo()
    history.amend("no columns")
    assert history.redo_words == "Training data"


def test_nothing_changed_is_no_step():
    history = History("a")
    history.record("a", Step("Name"))
    assert history.undo_words == ""


def test_old_steps_are_forgotten_and_the_present_is_not():
    history = History(0)
    for number in range(1, MAX_STEPS + 51):
        history.record(number, Step(str(number)))
    assert history.present == MAX_STEPS + 50
    while history.undo_words:
        history.undo()
    assert history.present == 50
