"""Asking again and again while a person types."""

from pathlib import Path

from app.services.backend_client import ArrowAnswer
from app.services.latest_question import LatestQuestion
from backend.contract.rpc.protocol import ErrorReply


class Client:
    """Keeps the questions, and answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.cancelled = [], []

    def ask(self, query, arguments, on_answer, on_error, on_progress):
        self.asked.append((arguments, on_answer, on_error))
        number = len(self.asked)
        return type("Ticket", (), {"cancel": lambda _: self.cancelled.append(number)})()

    def answer(self, number: int, answer: object = "answer") -> None:
        self.asked[number][1](answer)


def made():
    client, answers, mistakes = Client(), [], []
    return client, LatestQuestion(client, "tokenize", answers.append, mistakes.append), answers, mistakes  # type: ignore[arg-type]


def texts(client: Client) -> list[str]:
    return [arguments["text"] for arguments, _, _ in client.asked]


def test_the_first_is_asked_at_once_and_the_last_after_it():
    client, question, answers, _ = made()
    for text in "abcd":
        question.ask({"text": text})
    assert texts(client) == ["a"]
    client.answer(0, "A")
    assert texts(client) == ["a", "d"]
    client.answer(1, "D")
    assert answers == ["A", "D"]
    assert not question.open


def test_what_is_typed_back_is_not_asked_again():
    client, question, _, _ = made()
    for text in "aba":
        question.ask({"text": text})
    client.answer(0)
    assert texts(client) == ["a"]


def test_another_tokenizer_ends_the_open_question():
    client, question, _, _ = made()
    question.ask({"tokenizer": "one", "text": "a"})
    question.ask({"tokenizer": "two", "text": "a"})
    assert client.cancelled == [1]
    assert len(client.asked) == 2


def test_a_mistake_about_an_older_text_is_not_told():
    client, question, _, mistakes = made()
    question.ask({"text": "a"})
    question.ask({"text": "b"})
    client.asked[0][2](ErrorReply("no"))
    assert not mistakes
    client.asked[1][2](ErrorReply("still no"))
    assert [one.message for one in mistakes] == ["still no"]


def test_stopping_forgets_what_waits():
    client, question, _, _ = made()
    question.ask({"text": "a"})
    question.ask({"text": "b"})
    question.stop()
    assert client.cancelled == [1]
    assert not question.open
    question.ask({"text": "c"})
    assert texts(client) == ["a", "c"]


def test_what_opens_slowly_may_be_named():
    client = Client()
    question = LatestQuestion(client, "compare_text", print, print, opened="tokenizers")  # type: ignore[arg-type]
    for text in "ab":
        question.ask({"tokenizers": ["one", "two"], "text": text})
    assert not client.cancelled
    question.ask({"tokenizers": ["one"], "text": "b"})
    assert client.cancelled == [1]


def test_an_answer_tells_which_question_it_is_of():
    client, question, _, _ = made()
    question.ask({"text": "a"})
    question.ask({"text": "b"})
    client.answer(0)
    assert question.answered == {"text": "a"}


def test_an_ignored_question_goes_on_and_is_told_to_nobody():
    client, question, answers, _ = made()
    question.ask({"text": "a"})
    question.ignore()
    assert not question.open
    question.ask({"text": "b"})
    client.answer(0, "A")
    client.answer(1, "B")
    assert answers == ["B"]
    assert not client.cancelled


def test_an_ignored_question_that_is_asked_again_is_answered():
    client, question, answers, _ = made()
    question.ask({"text": "a"})
    question.ignore()
    question.ask({"text": "a"})
    client.answer(0, "A")
    assert answers == ["A"]


def test_the_file_of_an_ignored_answer_is_deleted(tmp_path: Path):
    client, question, answers, _ = made()
    (tmp_path / "answer.arrow").touch()
    question.ask({"text": "a"})
    question.ignore()
    client.answer(0, ArrowAnswer(str(tmp_path / "answer.arrow")))
    assert not answers
    assert not (tmp_path / "answer.arrow").exists()


def test_a_change_is_asked_about_when_nothing_has_changed_for_a_while(qtbot):
    client, answers = Client(), []
    about = {"tokenizer": "one", "text": "a"}
    question = LatestQuestion(client, "propose", answers.append, print, arguments=lambda: about, delay_ms=5)  # type: ignore[arg-type]
    question.ask_soon()
    assert (question.waits, client.asked) == (True, [])
    qtbot.waitUntil(lambda: texts(client) == ["a"])
    about = {"tokenizer": "one", "text": "b"}
    question.ask_soon()
    client.answer(0, "A")
    assert answers == []
    assert question.waits
    qtbot.waitUntil(lambda: texts(client) == ["a", "b"])
    client.answer(1, "B")
    assert (answers, question.waits, client.cancelled) == (["B"], False, [])


def test_nothing_is_asked_where_there_is_nothing_to_ask(qtbot):
    client = Client()
    question = LatestQuestion(client, "propose", print, print, arguments=lambda: None)  # type: ignore[arg-type]
    question.ask_now()
    assert (question.waits, client.asked) == (False, [])


def test_a_worker_that_keeps_nothing_open_is_ended_by_a_newer_question(qtbot):
    client, answers = Client(), []
    question = LatestQuestion(client, "preview_data", answers.append, print, opened="")  # type: ignore[arg-type]
    question.ask({"text": "a"})
    question.ask({"text": "a"})
    question.ask({"text": "b"})
    assert (client.cancelled, texts(client)) == ([1], ["a", "b"])
    question.forget()
    assert (client.cancelled, question.waits) == ([1, 2], False)
