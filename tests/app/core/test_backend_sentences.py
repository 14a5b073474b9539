"""The backend's sentences in the window's language: every template is known again and keeps its values."""

import re
import string
from collections.abc import Iterator

import msgspec
import pytest
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po

from app.core import i18n
from app.core.backend_sentences import FEW_LETTERS, FIELDS, LONGEST, NAMES, told, told_in
from app.services import backend_client
from backend.contract.catalog import EngineEntry, refusal
from backend.contract.resources import resource
from backend.contract.rpc.data import DataPreview
from backend.contract.rpc.interactive import Answer
from backend.contract.rpc.models import ModelChoice
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.run.events import RunFinished

CODES = [code for code in i18n.languages() if code != i18n.ENGLISH]
GERMAN = i18n.sentences("de")


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    i18n.choose(i18n.ENGLISH)


@pytest.fixture
def german() -> None:
    i18n.choose("de")


def places(text: str) -> list[str]:
    return [name for _, name, *_ in string.Formatter().parse(text) if name is not None]


@pytest.mark.parametrize("code", CODES)
def test_the_key_at_a_sentences_beginning_stays_where_the_field_is_known_by_it(code: str):
    def key(text: str) -> str:
        found = re.match(r"[\w.{}-]+: ", text)
        return found.group() if found else ""

    assert [text for text, said in i18n.sentences(code).items() if key(text) and key(text) != key(said)] == []


@pytest.mark.parametrize("code", CODES)
def test_what_the_window_reads_is_compiled_from_what_translators_wrote(code: str):
    folder = resource("languages", code, "LC_MESSAGES")
    with (folder / "backend.mo").open("rb") as compiled, (folder / "backend.po").open("rb") as source:
        read = {message.id: message.string for message in read_mo(compiled) if message.id}
        assert read == {message.id: message.string for message in read_po(source) if message.id}


def test_every_template_is_known_again_and_comes_out_with_its_values(german: None):
    """Values that no sentence has, so that what is not in its place is found."""
    wrong: list[tuple[str, str]] = []
    for text, words in GERMAN.items():
        values = {name: f"{place}x{place}" for place, name in enumerate(places(text), 3)}
        if told(text.format(**values)) != words.format(**values):
            wrong.append((text, told(text.format(**values))))
    assert wrong == []


def test_plausible_values_do_not_lead_to_another_template(german: None):
    """Also where values hold blanks and signs; a template of few words knows such ones only if they are sentences too."""
    examples = ["/data/reviews of 2026.csv", "12,345", "'un text'", "positive, negative and 3 more"]
    wrong: list[tuple[str, str]] = []
    for text, words in GERMAN.items():
        values = {name: examples[(place + len(text)) % len(examples)] for place, name in enumerate(places(text))}
        values |= {name: "KeyError" for name in values if name == "class_name"}
        own = sum(sign.isalpha() for piece, *_ in string.Formatter().parse(text) for sign in piece)
        said, begins = told(text.format(**values)), words.partition("{")[0]
        if own >= FEW_LETTERS and words != text and (said == text.format(**values) or not said.startswith(begins)):
            wrong.append((text, said))
    assert wrong == []


def test_values_that_are_sentences_words_or_great_numbers_are_said_too(german: None):
    assert told("the loss at step 12 is not a number; checkpoints from before it are kept") == (
        "der Loss bei Schritt 12 ist keine Zahl; Checkpoints von davor sind noch da"
    )
    assert told("holds lists of numbers, and text is wanted") == "enthält Listen von Zahlen, und Text ist verlangt"
    assert told("This is a table (CSV): a.csv for training, b.csv for validation.") == (
        "Das ist eine Tabelle (CSV): a.csv für Training, b.csv für Validierung."
    )
    assert told("The batch of 32 is larger than the data (1,200 rows); every step uses all rows.") == (
        "Der Batch von 32 ist größer als die Daten (1\u202f200 Zeilen); jeder Schritt nimmt alle Zeilen."
    )
    assert told("3 rows added to the vocabulary of 100; 1 row begun as the mean of the pieces replaced") == (
        "3 Zeilen zum Vokabular von 100 hinzugefügt; 1 Zeile als Mittel der ersetzten Stücke begonnen"
    )


def test_a_setting_or_a_place_before_a_sentence_stays(german: None):
    assert told("model.tokenizer_options.padding_side: 'up' is no side; take left or right") == (
        "model.tokenizer_options.padding_side: 'up' ist keine Seite; nehmen Sie left oder right"
    )
    assert told("reviews.csv:12: no text") == "reviews.csv:12: kein Text"
    assert told("data.train: my file.pdf is a PDF; export its text first") == (
        "data.train: my file.pdf ist ein PDF; exportieren Sie zuerst seinen Text"
    )
    assert told("model.name_or_path: /a b lacks x.bin; download the model again") == (
        "model.name_or_path: in /a b fehlt x.bin; laden Sie das Modell erneut herunter"
    )


def test_a_split_in_a_key_and_the_name_of_one_are_not_translated(german: None):
    assert told("data.validation: b.csv has no column x (Text), which the training data has; there are a and b") == (
        "data.validation: b.csv hat keine Spalte x (Text), die in den Trainingsdaten steht; es gibt a and b"
    )
    assert told("the split validation has no rows; choose another one") == (
        "der Teil validation hat keine Zeilen; wählen Sie einen anderen"
    )


def test_sentences_that_were_joined_are_told_each(german: None):
    assert told("there is no tpu here; there is cpu; a TPU is trained on with hardware.engine: jax") == (
        "es gibt hier kein tpu; es gibt cpu; auf einer TPU wird mit hardware.engine: jax trainiert"
    )
    assert told("training.x: 0 cannot be used: input should be 'a' or 'b', or input should be greater than 0") == (
        "training.x: 0 ist nicht nutzbar: der Wert muss 'a' oder 'b' sein, or der Wert muss größer als 0 sein"
    ), "the joining word is of the window's own catalogue, which this module looked up in English"


def test_what_no_template_knows_and_peoples_own_words_stay(german: None):
    assert told("CUDA error 700 at 0x7f: launch failed") == "CUDA error 700 at 0x7f: launch failed"
    assert told("the column 'no text' holds no text") == "the column 'no text' holds no text"
    assert told("") == ""


def test_a_slip_of_a_translator_leaves_the_sentence_english(monkeypatch: pytest.MonkeyPatch):
    slips = {"no {a} here": "kein {b} hier", "two {a} there": "zwei {a dort", "one {a} too": "auch ein {a}"}
    monkeypatch.setattr(i18n, "sentences", lambda code: slips)
    monkeypatch.setattr(i18n, "_code", "slips")
    assert [told("no x here"), told("two x there"), told("one x too")] == ["no x here", "two x there", "auch ein x"]


def test_why_an_engine_does_not_do_is_told(german: None):
    engine = EngineEntry(name="jax", title="JAX", description="", settings={}, architectures=["bert"])
    why = told_in(refusal(engine, "zebra", ""))
    assert why is not None
    assert why.reason == "die Engine JAX kennt die Architektur 'zebra' nicht"


def test_an_exceptions_name_is_one_word(german: None):
    assert told("unexpected KeyError: 'a b'") == "unerwartet KeyError: 'a b'"
    assert told("unexpected end of template; the block: 'for'") == "unexpected end of template; the block: 'for'"


def test_every_field_for_sentences_is_one_of_the_contract():
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


def test_what_a_person_has_named_like_a_sentence_keeps_its_name(german: None):
    run = ModelChoice(name="/runs/3 rows/model", group="run", title="3 rows", notes=["no text"])
    said = told_in(run)
    assert (told("3 rows"), said.title, said.notes) == ("3 Zeilen", "3 rows", ["kein Text"])


def test_a_listing_is_not_tried_with_every_template(german: None):
    """Which takes minutes: every value of a template is looked up again."""
    listing = "no text: " + "there is no data of it; " * 100
    assert len(listing) > LONGEST
    assert told(listing) is listing


def test_english_does_nothing():
    mistake = ErrorReply("no text")
    assert told("no text") == "no text"
    assert told_in(mistake) is mistake


def test_sentences_of_answers_are_told_and_data_is_not(german: None):
    answer = told_in(
        Answer(
            task="text_classification",
            model="no text",
            device="cpu",
            rows=[{"note": "no text", "reason": "no label"}],
            note="no text",
            cuts=["This is 3,000 tokens long, and the model takes 128: the rest is cut off."],
        )
    )
    assert (answer.model, answer.rows) == ("no text", [{"note": "no text", "reason": "no label"}])
    assert answer.note == "kein Text"
    assert answer.cuts == ["Das sind 3\u202f000 Tokens, und das Modell nimmt 128: der Rest wird abgeschnitten."]


def test_reasons_are_told_where_they_are_keys_and_where_they_stand_deep(german: None):
    preview = DataPreview(
        columns=["no text"],
        rows=[["no text"]],
        row_count=1,
        guessed_columns={"text": "no text"},
        guess_reasons={"text": "the only column of numbers"},
        unfit={"text": {"no label": "is empty in every row"}},
    )
    said = told_in(preview)
    assert (said.columns, said.rows, said.guessed_columns) == (["no text"], [["no text"]], {"text": "no text"})
    assert said.guess_reasons == {"text": "die einzige Spalte mit Zahlen"}
    assert said.unfit == {"text": {"no label": "ist in jeder Zeile leer"}}


def test_an_event_is_told_without_its_code(german: None):
    end = told_in(
        RunFinished(
            time=0, state="failed", step=3, message="the accelerator's memory is used up", code="out_of_memory",
            hint="Lower evaluation.batch_size or task.max_length.",
        )
    )  # fmt: skip
    assert (end.state, end.code) == ("failed", "out_of_memory")
    assert end.message == "der Speicher des Beschleunigers ist aufgebraucht"
    assert end.hint == "Verringern Sie evaluation.batch_size oder task.max_length."
