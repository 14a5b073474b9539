"""The window's language, and the catalogues of its texts."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po

from app.core import formatting, i18n
from app.core.i18n import tr, trn
from app.widgets.forms.schema_field import number_text
from app.widgets.plots.plot_axis import PlotAxis
from app.widgets.plots.plot_crosshair import short_number
from app.widgets.tables.row_table import cell_text
from backend.contract.resources import resource

MODULES = sorted((Path(__file__).parents[3] / "app").rglob("*.py"))
TRANSLATED = [code for code in i18n.languages() if code != i18n.ENGLISH]


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    i18n.choose(i18n.ENGLISH)


def catalogue(code: str) -> Catalog:
    with resource("languages", code, "LC_MESSAGES", "burnish.po").open("rb") as file:
        return read_po(file)


def messages(code: str) -> list[Message]:
    return [message for message in catalogue(code) if message.id]


def forms(text: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def test_english_says_the_texts_themselves_and_fills_them():
    assert i18n.choose("en_GB") == "en"
    assert tr("{braces} stay where nothing is given") == "{braces} stay where nothing is given"
    assert tr("at step {step}", step=3) == "at step 3"
    assert tr("{name}", name="{not a placeholder}") == "{not a placeholder}"
    assert trn("{count} row", "{count} rows", 1) == "1 row"
    assert trn("{count} row", "{count} rows", 24_960) == "24\u202f960 rows"


def test_german_is_spoken_under_any_of_its_codes():
    assert "de" in TRANSLATED
    assert [i18n.choose(code) for code in ("de", "de_AT", "de-CH")] == ["de"] * 3
    assert tr("Training data") == "Trainingsdaten"


def test_a_language_that_is_not_known_is_english():
    assert i18n.choose("tlh") == i18n.current_language() == "en"


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
def test_what_the_window_reads_is_compiled_from_what_translators_wrote(code: str):
    with resource("languages", code, "LC_MESSAGES", "burnish.mo").open("rb") as file:
        compiled = {forms(message.id): forms(message.string) for message in read_mo(file) if message.id}
    assert compiled == {forms(message.id): forms(message.string) for message in messages(code)}


@pytest.fixture(scope="module")
def modules() -> dict[Path, list[ast.AST]]:
    """Every node of every module of the window."""
    return {path: list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in MODULES}


def said_in_code(nodes: list[ast.AST]) -> Iterator[str]:
    """The first text of every look-up in a module, wherever it stands."""
    for node in nodes:
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if name in ("tr", "trn", "said_in"):
            first = node.args[1 if name == "said_in" else 0]
            if isinstance(first, ast.Constant):
                yield first.value


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_text_that_the_window_looks_up_stands_in_the_catalogue(modules: dict[Path, list[ast.AST]], code: str):
    known = {forms(message.id)[0] for message in messages(code)}
    unknown = [
        (path.name, text) for path, nodes in modules.items() for text in said_in_code(nodes) if text not in known
    ]
    assert unknown == [], "make texts finds none that stands inside of an f-string"


PHRASE = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}|^[ ,;]*[a-z]{3,} | [a-z]{3,}[ ,;]*$")
"""What reads like a part of a sentence."""
NO_PHRASES = {
    "__main__.py", "invisible_characters.py", "draft.py", "preferences.py",
}  # fmt: skip
"""Modules whose phrases are of the command line, examples of data, or names."""
NO_TEXTS = {
    "JetBrains Mono", "burnish tokenizer train", "burnish tokenizer extend",
    "loading data", "loading model", "finding model", "not installed", "code points", " min", " min ",
    '<span style="color:', *i18n.QUESTIONS,
}  # fmt: skip
"""Words of the backend that are compared, keys, units, markup, and questions to translators."""
QUIET_CALLS = {"tr", "trn", "said_in", "setObjectName", "setProperty", "get", "replace", "removesuffix"}


def unmarked(nodes: list[ast.AST]) -> Iterator[str]:
    """Phrases in a module that are neither looked up nor documentation."""
    quiet: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in QUIET_CALLS:
            quiet |= {id(part) for argument in node.args for part in ast.walk(argument)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            quiet.add(id(node.value))
        elif isinstance(node, ast.Assert) and node.msg is not None:
            quiet |= {id(part) for part in ast.walk(node.msg)}
    for node in nodes:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet
        if is_text and PHRASE.search(node.value):
            yield node.value


def test_phrases_of_the_window_are_looked_up(modules: dict[Path, list[ast.AST]]):
    found = [
        (path.name, text) for path, nodes in modules.items() if path.name not in NO_PHRASES for text in unmarked(nodes)
    ]
    assert [(name, text) for name, text in found if text not in NO_TEXTS] == []


def test_a_title_within_a_sentence_is_small_where_the_language_writes_it_so():
    assert i18n.inside("Text classification") == "text classification"
    assert (i18n.inside("Macro F1"), i18n.inside("ROUGE-L")) == ("macro F1", "ROUGE-L")
    i18n.choose("de")
    assert i18n.inside("Textklassifikation") == "Textklassifikation"


def test_thousands_stand_in_thin_groups_in_every_text():
    assert tr("Step {step:,} of {share:.1%}", step=12_000, share=0.5) == "Step 12\u202f000 of 50.0%"
    assert i18n.group_digits(1234.5, 1) == "1\u202f234.5"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("BPE with 30,522 tokens fits the model's 1,000,000 rows.", "BPE with 30 522 tokens fits the model's 1 000 000 rows."),
        ("1,204–2,408 steps (3,000), 1,234.5 s", "1 204–2 408 steps (3 000), 1 234.5 s"),
        ("of '1,200' in “1,200” and \"1,200\"", "of '1,200' in “1,200” and \"1,200\""),
        ("/data/1,000/rows, C:\\1,000 and rows-1,000.csv", "/data/1,000/rows, C:\\1,000 and rows-1,000.csv"),
        ("1,000.csv has 0,823 and 12,34 and ids 1,2,345", "1,000.csv has 0,823 and 12,34 and ids 1,2,345"),
        ("--set=labels=1,000", "--set=labels=1,000"),
    ],
)  # fmt: skip
def test_counts_in_a_sentence_of_the_backend_get_thin_groups_and_names_stay(said: str, shown: str):
    assert i18n.thin(said).replace(i18n.THIN, " ") == shown


@pytest.mark.parametrize(
    ("shown", "written"),
    [
        (lambda: formatting.number(0.82345), "0,8235"),
        (lambda: formatting.number(1.5e-5), "1,50e-05"),
        (lambda: formatting.scientific(2.2e-4), "2,2e-4"),
        (lambda: formatting.number(1234.56), "1\u202f234,6"),
        (lambda: formatting.short_count(4_386_178), "4,39 M"),
        (lambda: formatting.megabytes(3141), "3,1 GB"),
        (lambda: i18n.tr("{share:.1%} of {rows:,} in {name}", share=0.125, rows=12345, name="v1.5"), "12,5% of 12\u202f345 in v1.5"),
        (lambda: short_number(0.125), "0,125"),
        (lambda: cell_text(0.5), "0,5000"),
        (lambda: PlotAxis("left").tickStrings([0.5, 0.6], 1, 0.1), ["0,5", "0,6"]),
        (lambda: number_text(2.5e-05), "2,5e-5"),
    ],
)  # fmt: skip
def test_a_german_window_writes_a_decimal_comma(qtbot, german, shown: Callable[[], object], written: object):
    assert shown() == written


def test_what_was_shown_is_a_number_again_for_programs_and_a_name_stays(german):
    assert [i18n.plain(text) for text in ("0,5", "0.5", "−1\u202f234,6", "12\u202f345", "2,5e-5", "12,5%")] == [
        "0.5", "0.5", "-1234.6", "12345", "2.5e-5", "12.5%",
    ]  # fmt: skip
    assert [i18n.plain(text) for text in ("a,b", "v1.5", "1, 2", "–", "")] == ["a,b", "v1.5", "1, 2", "–", ""]
    assert [i18n.localize_number(text) for text in ("0.5", "1.2.3", "file.csv")] == ["0,5", "1.2.3", "file.csv"]


def test_numbers_are_written_with_a_point_where_the_language_does():
    assert (formatting.number(0.82345), i18n.plain("0,5"), i18n.localize_number("0.5")) == ("0.8235", "0,5", "0.5")
    assert i18n.plain(i18n.group_digits(1234.5, 1)) == "1234.5"


def test_no_decimals_are_written_past_the_language(modules: dict[Path, list[ast.AST]]):
    """A format such as `.2f` in an f-string always writes a point."""
    found = [
        f"{path.name}:{node.lineno}"
        for path, nodes in modules.items()
        for node in nodes
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None
        if re.search(r"\.[1-9]\d*[feg%]|[eg]'$", ast.unparse(node.format_spec))
    ]
    assert found == []


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_catalogue_says_how_its_language_writes(code: str):
    answers = {message.context: message.string for message in catalogue(code) if message.context}
    assert answers.keys() == i18n.QUESTIONS.keys()
    assert answers[i18n.NOUNS] in (i18n.SMALL, i18n.CAPITAL)
    assert answers[i18n.DECIMALS] in (i18n.POINT, i18n.COMMA)


@pytest.mark.parametrize(("code", "inside", "number"), [("en", "learning rate", "0.5"), ("de", "Learning Rate", "0,5")])
def test_nouns_and_decimals_are_written_as_the_catalogue_says(code: str, inside: str, number: str):
    i18n.choose(code)
    assert (i18n.inside("Learning Rate"), i18n.figure(0.5)) == (inside, number)
