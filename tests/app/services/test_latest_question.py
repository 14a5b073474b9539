"""Asking again and again while a person types."""

from app.services.latest_question import LatestQuestion
from backend.contract.queries import Mistake


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
    client.asked[0][2](Mistake("no"))
    assert not mistakes
    client.asked[1][2](Mistake("still no"))
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
