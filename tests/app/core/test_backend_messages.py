"""The backend's messages in the window's language: found by their templates, with their values."""

import re
from collections.abc import Iterator

import msgspec
import pytest
from babel.messages.pofile import read_po

from app.core import i18n
from app.core.backend_messages import FIELDS, NAMES, translate_message, translate_messages
from app.core.backend_words import translate_word
from app.core.runs.run_state import RunState
from app.services import backend_client
from backend.contract.catalog import EngineEntry, find_refusal
from backend.contract.messages import join, learn, message, plural, table_of
from backend.contract.resources import resource
from backend.contract.rpc.data import DataPreview
from backend.contract.rpc.interactive import Answer
from backend.contract.rpc.models import ModelChoice
from backend.contract.rpc.plan import Placement
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.run import events
from backend.contract.spec.section import validate
from backend.contract.spec.training import TrainingSection
from backend.helper.queries import storage

CODES = [code for code in i18n.languages() if code != i18n.ENGLISH]


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    i18n.choose(i18n.ENGLISH)


@pytest.fixture
def german() -> None:
    i18n.choose("de")


@pytest.mark.parametrize("code", CODES)
def test_the_key_at_a_messages_beginning_stays_where_the_field_is_known_by_it(code: str):
    def key(text: str) -> str:
        found = re.match(r"(?:[a-z_]+(?:\.[\w{}]+)+|--[\w-]+|\{\w+\}): ", text)
        return found.group() if found else ""

    with resource("languages", code, "LC_MESSAGES", "burnish.po").open("rb") as file:
        texts = {one.id: one.string for one in read_po(file) if isinstance(one.id, str) and one.id}
    assert [text for text, translated in texts.items() if key(text) and key(text) != key(translated)] == []


def test_a_message_comes_out_with_its_values(german: None):
    text = message("{path} is not a regular file; use a file on a disk", path="/data/a b")
    assert text == "/data/a b is not a regular file; use a file on a disk"
    assert (
        translate_message(text)
        == "/data/a b ist keine gewöhnliche Datei; geben Sie eine Datei auf einem Datenträger an"
    )


def test_a_number_is_written_as_the_language_writes_it(german: None):
    text = message("{share:.1%} of the rows are longer than the limit of {limit:,} {unit} and are truncated.",
                   share=0.125, limit=1024, unit="tokens")  # fmt: skip
    assert translate_message(text).startswith("12,5%")
    assert "1\u202f024 Tokens" in translate_message(text)


def test_each_number_has_its_form(german: None):
    one, many = "{count} row will be added for a token that", "{count} rows"
    assert (plural(one, many, 1), plural(one, many, 3)) == ("1 row will be added for a token that", "3 rows")
    texts = [plural("{count} special token", "{count} special tokens", count) for count in (1, 2)]
    assert [translate_message(text) for text in texts] == ["1 Sondertoken", "2 Sondertokens"]


def test_a_message_within_a_message_is_translated_too(german: None):
    inner = message("line {line}: {why}", line=3, why="?")
    outer = message("{field}: {reason}", field="data.train", reason=inner)
    assert translate_message(outer) == "data.train: Zeile 3: ?"
    assert translate_message(join("; ", [inner, "no text"])) == "Zeile 3: ?; kein Text"


def test_an_exception_carries_a_message(german: None):
    error = ValueError(message("line {line}: {why}", line=3, why="?"))
    assert translate_message(message("{field}: {error}", field="data.train", error=error)) == "data.train: Zeile 3: ?"


def test_words_of_burnish_are_translated_and_a_key_is_not(german: None):
    text = message("{skipped:,} {split} rows cannot be used; the first one: {place} ({reason}).",
                   skipped=2, split="training", place="a.csv:1", reason="no text")  # fmt: skip
    assert "Training" in translate_message(text)
    assert translate_message(text).endswith("a.csv:1 (kein Text).")


def test_what_pydantic_says_of_a_value_is_translated(german: None):
    with pytest.raises(ValueError, match="greater than") as refused:
        validate(TrainingSection, {"epochs": -1}, "training")
    assert translate_message(str(refused.value)) == (
        "training.epochs: -1 ist nicht nutzbar: der Wert muss größer als 0 sein"
    )


def test_what_is_no_message_and_peoples_own_words_stay(german: None):
    assert translate_message("CUDA error 700 at 0x7f: launch failed") == "CUDA error 700 at 0x7f: launch failed"
    assert translate_message("the column 'no text' has no text") == "the column 'no text' has no text"
    assert translate_message("") == ""


def test_a_slip_of_a_translator_leaves_the_message_english(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(i18n, "_code", "slips")
    monkeypatch.setattr(i18n, "lookup", {"no {a} here": "kein {b} hier", "two {a} there": "zwei {a dort"}.get)
    assert [translate_message(message(text, a="x")) for text in ("no {a} here", "two {a} there")] == [
        "no x here",
        "two x there",
    ]


def test_why_an_engine_does_not_do_is_translated(german: None):
    engine = EngineEntry(name="jax", title="JAX", description="", settings={}, architectures=["bert"])
    why = translate_messages(find_refusal(engine, "zebra", ""))
    assert why is not None
    assert why.reason == "die Engine JAX kennt die Architektur 'zebra' nicht"


def test_every_field_for_messages_is_one_of_the_contract():
    assert "plan" in backend_client.ANSWERS, "with it every answer's class is there"

    def kinds(kind: type) -> Iterator[type[msgspec.Struct]]:
        for one in kind.__subclasses__():
            yield one
            yield from kinds(one)

    known = {
        (kind.__name__, name)
        for kind in kinds(msgspec.Struct)
        if kind.__module__.startswith("backend.")
        for name in kind.__struct_fields__
    }
    assert sorted(FIELDS - {name for _, name in known}) == []
    assert sorted(NAMES - {".".join(each) for each in known}) == []


def test_parts_of_the_cache_have_titles_in_the_windows_language(german: None):
    assert [title for title, _ in storage.TITLES.values() if translate_message(title) == title] == []


def test_a_device_of_another_host_is_named_in_the_windows_language(german: None):
    one = Placement(message("host {host} {name}", host=1, name="cpu:0"), 8, 1.0, 2.0)
    assert translate_messages(one).device == "Rechner 1 cpu:0"


def test_what_a_person_has_named_like_a_message_keeps_its_name(german: None):
    run = ModelChoice(name="/runs/no text/model", group="run", title="no text", notes=["no text"])
    translated = translate_messages(run)
    assert (translated.title, translated.notes) == ("no text", ["kein Text"])


def test_english_does_nothing():
    mistake = ErrorReply("no text")
    assert translate_message("no text") == "no text"
    assert translate_messages(mistake) is mistake


def test_messages_of_answers_are_translated_and_data_is_not(german: None):
    answer = translate_messages(
        Answer(
            task="text_classification",
            model="no text",
            device="cpu",
            rows=[{"note": "no text", "reason": "no label"}],
            note="no text",
            cuts=[
                message(
                    "{where} is {length:,} tokens long, but the model reads only {limit:,}: {read}.",
                    where="Row 2", length=3000, limit=128, read="the rest is truncated",
                )
            ],
        )
    )  # fmt: skip
    assert (answer.model, answer.rows) == ("no text", [{"note": "no text", "reason": "no label"}])
    assert answer.note == "kein Text"
    assert answer.cuts == ["Row 2 ist 3\u202f000 Tokens lang, und das Modell nimmt 128: der Rest wird abgeschnitten."]


def test_reasons_are_translated_where_they_are_keys_and_where_they_stand_deep(german: None):
    preview = DataPreview(
        columns=["no text"],
        rows=[["no text"]],
        row_count=1,
        guessed_columns={"text": "no text"},
        guess_reasons={"text": "the only column of numbers"},
        unfit={"text": {"no label": "is empty in every row"}},
    )
    found = translate_messages(preview)
    assert (found.columns, found.rows, found.guessed_columns) == (["no text"], [["no text"]], {"text": "no text"})
    assert found.guess_reasons == {"text": "die einzige Spalte mit Zahlen"}
    assert found.unfit == {"text": {"no label": "ist in jeder Zeile leer"}}


def test_an_event_is_translated_without_its_code(german: None):
    end = translate_messages(
        events.RunFinished(
            time=0, state="failed", step=3, message="the accelerator ran out of memory", code="out_of_memory",
            hint="Lower evaluation.batch_size or task.max_length.",
        )
    )  # fmt: skip
    assert (end.state, end.code) == ("failed", "out_of_memory")
    assert end.message == "der Speicher des Beschleunigers ist aufgebraucht"
    assert end.hint == "Verringern Sie evaluation.batch_size oder task.max_length."


def test_a_recorded_event_brings_its_messages_and_an_old_one_stays_english(german: None):
    text = "the run of 9 lines stops"
    new = {"event": "Warned", "time": 1, "code": "a", "message": text}
    table = {"messages": {text: ["the run of {count} lines stops", {"count": 9}]}}
    old = RunState()
    old.apply(events.Warned(**{name: value for name, value in new.items() if name != "event"}))
    assert old.warnings[-1].message == text
    assert translate_word(text) == text
    line = msgspec.json.encode(
        {**new, "message": "line 7: ?", "messages": {"line 7: ?": ["line {line}: {why}", {"line": 7, "why": "?"}]}}
    )
    state = RunState()
    event = events.decode(line)
    assert event is not None
    state.apply(event)
    assert state.warnings[-1].message == "Zeile 7: ?"
    learn(table["messages"])
    assert translate_message(text) == text, "no catalogue knows this template"


def test_a_template_that_no_catalogue_knows_is_shown_in_english(german: None):
    text = "all 3 of it"
    learn({text: ["all {count} of it", {"count": 3}]})
    assert table_of(text) == {text: ["all {count} of it", {"count": 3}]}
    assert translate_message(text) == text
