"""Which sentences of the backend are gathered for translators, and that none waits for one."""

import ast
import importlib.util
import string
from pathlib import Path
from types import ModuleType

import pytest

from app.core import i18n

CODES = [code for code in i18n.languages() if code != i18n.ENGLISH]


@pytest.fixture(scope="module")
def sentences() -> ModuleType:
    path = Path(__file__).parents[2] / "packaging" / "sentences.py"
    found = importlib.util.spec_from_file_location("sentences", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def places(text: str) -> list[str]:
    return sorted(name for _, name, *_ in string.Formatter().parse(text) if name is not None)


@pytest.mark.parametrize("code", CODES)
def test_every_sentence_of_the_backend_is_translated_with_its_places(code: str, sentences: ModuleType):
    known = i18n.sentences(code)
    gathered = sentences.of_the_backend()
    assert sorted(set(gathered) - set(known)) == [], "make texts gathers them; then they want a translation"
    assert [text for text in gathered if places(text) != places(known[text])] == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('raise InputError("name a file")', ["name a file"]),
        ('f"{path}: no row {number + 1:,} in {self.folder.name!r}"', ["{path}: no row {number} in {name}"]),
        ("f\"there are {len(rows)}, for example {', '.join(names[:3])}\"", ["there are {rows}, for example {names}"]),
        ('f"from {a.name} to {b.name}"', ["from {name} to {name_2}"]),
        ('"one sentence " f"of {count} " "parts"', ["one sentence of {count} parts"]),
        ('f\'{n} word{"" if n == 1 else "s"} too long\'', ["{n} word too long", "{n} words too long"]),
        ('f"write {{braces}} like {this}"', ["write {{braces}} like {this}"]),
        ('HINT = "choose a folder"\nf"{name} is gone; {HINT}"', ["{name} is gone; choose a folder"]),
        (
            'def f(x):\n    tail = f" (see {x})" if x else ""\n    return f"it is broken{tail}"',
            ["it is broken (see {x})", "it is broken"],
        ),
        ('"one way " + "or another"', ["one way or another"]),
        ('"read it in {run}".format(run=run)', ["read it in {run}"]),
    ],
)
def test_a_sentence_becomes_a_template(code: str, expected: list[str], sentences: ModuleType):
    assert sorted(sentences.of_a_module(ast.parse(code))) == sorted(expected)


@pytest.mark.parametrize(
    "code",
    [
        '"""Owns the words of a module."""',
        'if "no such file" in str(error): pass',
        '_THEIRS = ("is not found",)\nfound = any(words in said for words in _THEIRS)',
        're.compile("one or more words")',
        'parser.add_argument("--rows", help="how many rows to read")',
        'found["a key of it"]',
        'f"{folder}/{name}"',
        'f"{key}: {value}"',
        '"word"',
    ],
)
def test_what_no_person_reads_is_not_gathered(code: str, sentences: ModuleType):
    assert sentences.of_a_module(ast.parse(code)) == []
