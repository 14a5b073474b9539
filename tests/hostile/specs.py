"""Specs that freeze, fill memory, or hold what no setting can."""

import json
import os
from collections.abc import Callable
from pathlib import Path

from backend.contract.resources import resource
from tests.hostile.case import Hostile, file, given


def doubled(first: str, next_one: str) -> str:
    """Nine aliases of the line before in each line."""
    lines = [f"a{n}: &a{n} {next_one.format(', '.join([f'*a{n - 1}'] * 9))}" for n in range(1, 10)]
    return "\n".join([f"a0: &a0 {first}", *lines])


def pipe(folder: Path) -> Path:
    """A FIFO that nobody writes to."""
    os.mkfifo(folder / "spec.yaml")
    return folder / "spec.yaml"


def loop(folder: Path) -> Path:
    """A link to itself."""
    (folder / "spec.yaml").symlink_to("spec.yaml")
    return folder / "spec.yaml"


TEXTS = {
    "merge keys that double": (doubled("{x: 1}", "{{<<: [{}]}}"), "more than"),
    "aliases that double": (doubled("[x]", "[{}]"), "more than"),
    "JSON nested 100,000 deep": ("[" * 100_000, "levels deep"),
    "mappings nested 100,000 deep": ('{"a":' * 100_000, "levels deep"),
    "an alias of itself": ("a: &a [*a]\n", "alias"),
    "5,000 digits": (f"training: {{epochs: {'9' * 5000}}}\n", "too long"),
    "a Python object": ("a: !!python/object/apply:os.system [ls]\n", "python/object"),
    "a tag that its value denies": ("a: !!int many\n", "valid YAML"),
    "half a character": ('{"model": {"name_or_path": "\\ud83d"}}', "half a character"),
    "NUL in a path": ('{"data": {"train": "a\\u0000b"}}', "NUL"),
    "escape sequences raw": ("name: \x1b[2J\n", "valid YAML"),
    "bytes that are no text": ("\udcff\udcfe", "not UTF-8"),
    "two documents": ("a: 1\n---\nb: 2\n", "valid YAML"),
    "a list": ("- a\n", "mapping of sections"),
    "nothing": ("", "mapping of sections"),
    "a scalar": ("1", "mapping of sections"),
    "sections that are no mappings": ("model: 1\ndata: [1]\ntask: x\n", "task"),
    "a list as a key": ("[a, b]: 1\n", "key"),
    "an unknown version": ("version: 99\n", "update Burnish"),
    "infinite numbers": ("task: {type: text_classification}\nmodel: {name_or_path: x}\ndata: {}\ntraining: {learning_rate: .inf}\n", "learning_rate"),
    "a number that is none": ("task: {type: text_classification}\nmodel: {name_or_path: x}\ndata: {}\ntraining: {learning_rate: .nan}\n", "learning_rate"),
    "an include of a device": ("include: /dev/zero\n", "regular file"),
    "an include of itself": ("include: input.yaml\n", "includes itself"),
    "an over-long include": (f"include: {'x' * 5000}\n", "too long"),
    "an include of nobody's home": ("include: ~nobody-of-that-name/spec.yaml\n", "no such spec file"),
    "3 MB": ("#" * 3_000_000, "too large"),
}  # fmt: skip


COMPLETE = {"task": {"type": "text_classification"}, "model": {"name_or_path": "x"}, "data": {}}


def taught_by(template: str) -> Callable[[Path], Path]:
    """A spec of a language model that learns from instructions, written out by this template."""

    def make(folder: Path) -> Path:
        (folder / "rows.csv").write_text("prompt,response\n" + "hello,world\n" * 20)
        spec = {
            "task": {"type": "causal_lm", "rows": "instructions", "template": template},
            "model": {"name_or_path": str(resource("demo", "austen-gpt2"))},
            "data": {"train": "rows.csv"},
        }
        (folder / "input.yaml").write_text(json.dumps(spec))
        return folder / "input.yaml"

    return make


CASES = (
    Hostile("a template that multiplies", "spec", taught_by("{{ 'x' * 10 ** 10 }}"), "task.template"),
    Hostile("a template nested too deep", "spec", taught_by("{{" + "(" * 10_000), "task.template"),
    *(Hostile(name, "spec", file("input.yaml", text), words) for name, (text, words) in TEXTS.items()),
    Hostile("a pipe", "spec", pipe, "regular file"),
    Hostile("a link to itself", "spec", loop, "cannot be read"),
    Hostile("/dev/zero", "spec", given("/dev/zero"), "regular file"),
    Hostile("/proc/self/environ", "spec", given("/proc/self/environ"), "regular file"),
    Hostile("a folder", "spec", lambda folder: folder, "is a folder"),
    Hostile("a name of 5,000 letters", "spec", given("x" * 5000), "too long"),
    Hostile("an undecodable name", "spec", given("x\udcff.yaml"), "UTF-8"),
    *(
        Hostile(f"a key {key!r}", "spec", file("input.yaml", json.dumps(COMPLETE | {key: 1})), "no such setting")
        for key in ("", "[", "...", "\x1b[31m", "int")
    ),
    Hostile("a number of 399 digits", "setting", given("training.max_steps=" + "9" * 399), "too long", command="plan"),
    *(
        Hostile(f"data.encoding={name}", "setting", given(f"data.encoding={name}"), "not a text encoding")
        for name in ("hex", "rot13", "zip", "base64", "idna", "punycode", "undefined", "unicode_escape")
    ),
)
