"""The window's language, and the catalogues of its texts."""

import ast
import gettext
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from app.__main__ import _speak
from app.core import language, translations
from app.core.language import tr, trn
from backend.contract.resources import resource

MODULES = sorted((Path(__file__).parents[3] / "app").rglob("*.py"))
TRANSLATED = [code for code in language.languages() if code != language.ENGLISH]


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    language.choose(language.ENGLISH)


def catalogue(code: str) -> Catalog:
    with resource("languages", code, "LC_MESSAGES", "burnish.po").open("rb") as file:
        return read_po(file)


def messages(code: str) -> list[Message]:
    return [message for message in catalogue(code) if message.id]


def forms(text: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def test_english_says_the_texts_themselves_and_fills_them():
    assert language.choose("en_GB") == "en"
    assert tr("{braces} stay where nothing is given") == "{braces} stay where nothing is given"
    assert tr("at step {step}", step=3) == "at step 3"
    assert tr("{name}", name="{not a placeholder}") == "{not a placeholder}"
    assert trn("{count} row", "{count} rows", 1) == "1 row"
    assert trn("{count} row", "{count} rows", 24_960) == "24\u202f960 rows"


def test_german_is_spoken_under_any_of_its_codes():
    assert "de" in TRANSLATED
    assert [language.choose(code) for code in ("de", "de_AT", "de-CH")] == ["de"] * 3
    assert tr("Training data") == "Trainingsdaten"


def test_a_language_that_is_not_known_is_english():
    assert language.choose("tlh") == language.chosen() == "en"


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_text_is_translated(code: str):
    assert [message.id for message in messages(code) if not all(forms(message.string)) or message.fuzzy] == []


@pytest.mark.parametrize("code", TRANSLATED)
def test_translations_keep_placeholders_and_the_space_around_a_text(code: str):
    def kept(text: str) -> tuple[set[str], str, str]:
        return set(re.findall(r"\{[^{}]*\}", text)), text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]

    wrong = [
        (original, translated)
        for message in messages(code)
        for original, translated in zip(forms(message.id), forms(message.string), strict=True)
        if kept(original) != kept(translated) and not (message.pluralizable and original == forms(message.id)[0])
    ]
    assert wrong == []


@pytest.mark.parametrize("code", TRANSLATED)
def test_the_window_reads_a_catalogue_as_gettext_does(code: str):
    compiled = BytesIO()
    write_mo(compiled, catalogue(code))
    compiled.seek(0)
    gnu = gettext.GNUTranslations(compiled)
    read = translations.read(resource("languages", code, "LC_MESSAGES", "burnish.po"))
    for message in messages(code):
        if message.pluralizable:
            for count in range(120):
                assert read.counted(*message.id, count) == gnu.ngettext(*message.id, count)
        elif message.context:
            assert read.text(message.id, message.context) == gnu.pgettext(message.context, message.id)
        else:
            assert read.text(message.id) == gnu.gettext(message.id)


POLISH = r"""
# A remark that somebody has left.
msgid ""
msgstr ""
"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2);\n"
#: app/core/wording.py
msgid "Say \"{name}\"\n"
msgstr ""
"Powiedz "
"\"{name}\"\n"
#, python-brace-format, fuzzy
msgid "guessed"
msgstr "zgadnięte"

msgid "not yet"
msgstr ""

msgctxt "a month"
msgid "May"
msgstr "maj"

msgid "{count} row"
msgid_plural "{count} rows"
msgstr[0] "{count} wiersz"
msgstr[1] "{count} wiersze"
msgstr[2] "{count} wierszy"

#~ msgid "gone"
#~ msgstr "nie ma"
"""


def polish(folder: Path, text: str) -> Path:
    path = folder / "pl" / "LC_MESSAGES" / "burnish.po"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_catalogue_is_read_as_translators_write_it(tmp_path: Path):
    read = translations.read(polish(tmp_path, POLISH))
    assert read.text('Say "{name}"\n') == 'Powiedz "{name}"\n'
    assert [read.text(text) for text in ("guessed", "not yet", "gone", "May")] == ["guessed", "not yet", "gone", "May"]
    assert read.text("May", "a month") == "maj"
    counted = [read.counted("{count} row", "{count} rows", count) for count in (1, 3, 5, 22)]
    assert counted == ["{count} wiersz", "{count} wiersze", "{count} wierszy", "{count} wiersze"]


def test_a_damaged_catalogue_is_told_of_and_english_spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = polish(tmp_path, POLISH.replace("msgctxt", "<<<<<<< HEAD\nmsgctxt"))
    monkeypatch.setattr(language, "_FOLDER", tmp_path)
    told = _speak("pl")
    assert f"{path}, line 18, is none of a PO file and has to be mended: <<<<<<< HEAD" in told
    assert language.chosen() == "en"
    assert tr("not yet") == "not yet"


def said_in_code(path: Path) -> Iterator[str]:
    """The first text of every look-up in a module, wherever it stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if name in ("tr", "trn", "said_in"):
            first = node.args[1 if name == "said_in" else 0]
            if isinstance(first, ast.Constant):
                yield first.value


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_text_that_the_window_looks_up_stands_in_the_catalogue(code: str):
    known = {forms(message.id)[0] for message in messages(code)}
    unknown = [(path.name, text) for path in MODULES for text in said_in_code(path) if text not in known]
    assert unknown == [], "make texts finds none that stands inside of an f-string"


PHRASE = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}|^[ ,;]*[a-z]{3,} | [a-z]{3,}[ ,;]*$")
"""What reads like a part of a sentence."""
NO_PHRASES = {
    "__main__.py", "example_rows.py", "invisible.py", "draft.py", "preferences.py", "tokenizer_command.py", "fonts.py", "translations.py",
}  # fmt: skip
"""Modules whose phrases are of the command line, of before a language is spoken, examples of data, or names."""
NO_TEXTS = {
    "loading data", "loading model", "finding model", "not installed", "code points", " min", " min ",
    '<span style="color:', language.NOUNS,
}  # fmt: skip
"""Words of the backend that are compared, keys, units, markup, and a question to translators."""
QUIET_CALLS = {"tr", "trn", "said_in", "setObjectName", "setProperty", "get", "replace", "removesuffix"}


def unmarked(path: Path) -> Iterator[str]:
    """Phrases in a module that are neither looked up nor documentation."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    quiet: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in QUIET_CALLS:
            quiet |= {id(part) for argument in node.args for part in ast.walk(argument)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            quiet.add(id(node.value))
        elif isinstance(node, ast.Assert) and node.msg is not None:
            quiet |= {id(part) for part in ast.walk(node.msg)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet
        if is_text and PHRASE.search(node.value):
            yield node.value


def test_phrases_of_the_window_are_looked_up():
    found = [(path.name, text) for path in MODULES if path.name not in NO_PHRASES for text in unmarked(path)]
    assert [(name, text) for name, text in found if text not in NO_TEXTS] == []


@pytest.mark.parametrize(
    ("answer", "said"), [("small", "klasyfikacja"), ("capital", "Klasyfikacja"), ("", "klasyfikacja")]
)
def test_the_catalogue_says_whether_a_title_within_a_sentence_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, said: str
):
    polish(tmp_path, f'msgctxt "{language.NOUNS}"\nmsgid "small"\nmsgstr "{answer}"\n')
    monkeypatch.setattr(language, "_FOLDER", tmp_path)
    assert language.inside("Klasyfikacja") == "klasyfikacja"
    language.choose("pl")
    assert language.inside("Klasyfikacja") == said


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_catalogue_says_how_nouns_begin(code: str):
    answers = [message.string for message in messages(code) if message.context == language.NOUNS]
    assert answers in (["small"], ["capital"])


def test_german_nouns_begin_with_capitals():
    language.choose("de")
    assert language.inside("Textklassifikation") == "Textklassifikation"


def test_thousands_stand_in_thin_groups_in_every_text():
    assert tr("Step {step:,} of {share:.1%}", step=12_000, share=0.5) == "Step 12\u202f000 of 50.0%"
    assert language.grouped(1234.5, 1) == "1\u202f234.5"
