"""Messages remember how they were made; a table of them may come from anybody."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.contract import messages
from backend.contract.messages import Origin, fill, join, learn, message, origin_of, plural, table_of
from backend.contract.run import events


class Reply(msgspec.Struct):
    note: str
    parts: list[str] = []
    counts: dict[str, int] = {}
    numbers: list[list[float]] = []


def test_a_message_is_a_text_that_remembers_its_template_and_values():
    text = message("{path} has no column {column}", path="a.csv", column=repr("x"))
    assert text == "a.csv has no column 'x'"
    assert type(text) is str
    assert origin_of(text) == Origin("{path} has no column {column}", {"path": "a.csv", "column": "'x'"})


def test_without_values_braces_stay():
    assert message('give {"data": []}') == 'give {"data": []}'
    assert origin_of('give {"data": []}') is None


def test_a_number_decides_the_form():
    texts = [plural("{count:,} row", "{count:,} rows", count) for count in (1, 0, 1200)]
    assert texts == ["1 row", "0 rows", "1,200 rows"]
    assert table_of(texts[2]) == {"1,200 rows": ["{count:,} row", "{count:,} rows", {"count": 1200}]}


def test_several_messages_are_one():
    first, second = message("{n} files", n=2), message("{n} folders", n=3)
    text = join("; ", [first, second])
    assert text == "2 files; 3 folders"
    assert set(table_of(text)) == {text, first, second}
    assert (join("; ", [first]), join("; ", [])) == (first, "")


def test_the_table_of_an_answer_has_its_messages_wherever_they_stand():
    note, part, key = (message("{place} number {n}", place=place, n=7) for place in ("note", "part", "key"))
    reply = Reply(note, ["plain", part], {key: 1}, [[0.5] * 3])
    assert set(table_of(reply)) == {note, part, key}
    assert table_of({"answer": [reply]}) == table_of(reply)


def test_the_table_goes_through_json():
    text = message("{a} and {b:.1f} and {c}", a="x", b=0.25, c=True)
    assert json.loads(json.dumps(table_of(text))) == {
        text: ["{a} and {b:.1f} and {c}", {"a": "x", "b": 0.25, "c": "True"}]
    }


def test_an_event_carries_the_table_and_its_text_stays_as_it_is():
    warned = events.Warned(time=1, code="x", message=message("step {step} was {what}", step=3, what="slow"))
    line = json.loads(events.encode(warned))
    assert line["message"] == "step 3 was slow"
    assert line["messages"] == {"step 3 was slow": ["step {step} was {what}", {"step": 3, "what": "slow"}]}
    assert "messages" not in json.loads(events.encode(events.Warned(time=1, code="x", message="plain")))


def test_the_oldest_message_is_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(messages, "MAX_REMEMBERED", 20)
    first = message("the {n} to be forgotten", n="first")
    second = message("the {n} to be kept", n="second")
    for n in range(50):
        message("{n} and more", n=n)
        message("the {n} to be kept", n="second")
    assert origin_of(first) is None
    assert origin_of(second) is not None


HOSTILE: dict[str, Any] = {
    "an attribute of a value": ["{a.__class__}", {"a": "x"}],
    "an item of a value": ["{a[0]}", {"a": "x"}],
    "a conversion": ["{a!r}", {"a": "x"}],
    "a width of a gigabyte": ["{a:>1000000000}", {"a": "x"}],
    "digits without end": ["{a:.999999999f}", {"a": 1.0}],
    "a format within a format": ["{a:{b}}", {"a": 1, "b": ","}],
    "a brace alone": ["{", {}],
    "another text": ["you have won {a}", {"a": "x"}],
    "itself": ["{a}", {"a": "text"}],
    "a list for a value": ["text{a}", {"a": []}],
    "no values": ["text"],
    "a number for a template": [7, {}],
    "a missing value": ["text{a}", {}],
    "a word formatted as a number": ["{a:,}", {"a": "text"}],
    "a list for values": ["text", []],
    "nothing": None,
    "forty-one values": ["text", {f"a{n}": n for n in range(41)}],
    "a plural without its number": ["text", "texts", {"count": "1"}],
}


@pytest.mark.parametrize("entry", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_entry_is_ignored(entry: Any):
    learn({"text": entry})
    assert origin_of("text") is None


@pytest.mark.parametrize("table", [None, 7, "text", [], {7: ["{a}", {}]}, {"x" * 5000: ["x" * 5000, {}]}])
def test_a_hostile_table_is_ignored(table: Any):
    learn(table)
    assert [origin_of(text) for text in ("text", "x" * 5000)] == [None, None]


def test_a_long_table_is_read_in_part():
    learn({f"text number {n}": ["text number {n}", {"n": n}] for n in range(5000)})
    assert origin_of("text number 7") is not None
    assert origin_of("text number 4999") is None


def test_what_another_process_said_is_learnt():
    learn({"2 rabbits": ["{count} rabbit", "{count} rabbits", {"count": 2}]})
    assert origin_of("2 rabbits") == Origin("{count} rabbit", {"count": 2}, "{count} rabbits")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # other processes may hold this one up
@given(st.text(max_size=20), st.integers(), st.floats(allow_nan=False))
def test_filling_is_what_python_makes_of_it(word: str, number: int, share: float):
    template = "{{{a}}} has {b:,} of {c:.1%} {a}"
    values = {"a": word, "b": number, "c": share}
    assert fill(template, values) == template.format(**values)
