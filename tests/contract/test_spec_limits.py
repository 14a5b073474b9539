"""Spec files from strangers: no text freezes the reader, and what cannot be a setting is refused in one sentence."""

import itertools
import os
import time
from pathlib import Path

import pytest

from backend.contract import spec_file
from backend.contract.errors import InputError


def doubled(first: str, next_one: str) -> str:
    """Nine aliases of the line before in each line: the last stands for a billion values."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} {next_one.format(', '.join([f'*a{n - 1}'] * 9))}" for n in range(1, 10)]
    return "\n".join(lines)


REFUSED = {
    "merge keys": (doubled("{x: 1}", "{{<<: [{}]}}"), "more than 50,000"),
    "aliases": (doubled("[x]", "[{}]"), "more than 50,000"),
    "a chain of aliases": ("a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 500)), "levels deep"),
    "an alias within itself": ("a: &a [*a]\n", 'that contains it'),
    "a merge of itself": ("a: &a {<<: *a}\n", 'that contains it'),
    "deep JSON": ("[" * 100_000, "levels deep"),
    "deep mappings": ('{"a":' * 100_000, "levels deep"),
    "deep dashes": ("- " * 100_000, "levels deep"),
    "deep blocks": ("".join(f"{' ' * n}-\n" for n in range(1000)), "levels deep"),
    "long digits": (f"a: {'9' * 5000}", "too long"),
    "long hexadecimal digits": (f"a: 0x{'f' * 50_000}", "too long"),
    "a tag that its value denies": ("a: !!int many", "is not valid YAML"),
    "an empty whole number": ('a: !!int ""', "is not valid YAML"),
    "a wrong truth": ("a: !!bool maybe", "is not valid YAML"),
    "bytes": ("a: !!binary aGVsbG8=", "'binary'"),
    "a Python object": ("a: !!python/object/apply:os.system [ls]", "python/object"),
    "a code point beyond all": ('a: "\\UFFFFFFFF"', "is not valid YAML"),
    "a list as a key": ("[a, b]: 1", "a key is"),
    "NUL": ('a: "x\\0y"', "NUL"),
    "half a character": ('{"a": "\\ud83d"}', "half a character"),
    "half a character in a key": ('{"\\ude00": 1}', "half a character"),
    "too much text": ("#" * 2_000_001, "too large"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_unusable_text_is_refused_at_once(case: str):
    text, words = REFUSED[case]
    before = time.process_time()
    with pytest.raises(InputError, match=words) as refused:
        spec_file.parse(text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200
    assert time.process_time() - before < 10


@pytest.mark.parametrize("case", [case for case in REFUSED if case != "too much text"])
def test_lines_of_unusable_text_are_none(case: str):
    assert len(spec_file.lines(REFUSED[case][0])) <= 1


def test_too_many_values_are_refused_without_an_alias_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spec_file, "MAX_NODES", 500)
    text = "a: [" + "1," * 501 + "]"
    with pytest.raises(InputError, match="line 1: it has more than 500 keys and values"):
        spec_file.parse(text)
    assert spec_file.lines(text) == {}


def test_pair_of_surrogates_in_json_is_one_character():
    assert spec_file.parse('{"\\ud83d\\ude00": "\\ud83d\\ude00.csv"}') == {"😀": "😀.csv"}


def test_aliases_and_merge_keys_of_ordinary_size_are_read():
    text = "base: &base {epochs: 3}\ntraining: {<<: *base, seed: 1}\nlist: [*base, *base]\n"
    assert spec_file.parse(text)["training"] == {"epochs": 3, "seed": 1}


def test_ten_thousand_labels_are_read():
    assert len(spec_file.parse("".join(f"- label {n}\n" for n in range(10_000)))) == 10_000


def test_date_stays_text():
    assert spec_file.parse("a: 2026-11-21\nb: 2026-11-21T10:00:00Z") == {"a": "2026-11-21", "b": "2026-11-21T10:00:00Z"}


@pytest.mark.parametrize("name", ["/dev/zero", "/proc/self/environ", "/dev/stdin"])
def test_spec_that_is_no_regular_file_is_refused(name: str):
    with pytest.raises(InputError, match="not a regular file"):
        spec_file.read(Path(name))


def test_folder_and_text_that_is_not_utf8_are_refused_with_the_way_out(tmp_path: Path):
    with pytest.raises(InputError, match="is a folder; choose a spec file"):
        spec_file.read(tmp_path)
    (tmp_path / "own.yaml").write_bytes("name: Grüße\n".encode("windows-1252"))
    with pytest.raises(InputError, match="is not UTF-8; save it as UTF-8"):
        spec_file.read(tmp_path / "own.yaml")


def test_pipe_as_an_include_is_refused(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "own.yaml").write_text("include: pipe.yaml\n")
    with pytest.raises(InputError, match="not a regular file"):
        spec_file.read(tmp_path / "own.yaml")


def test_files_that_include_each_other_twice_end(tmp_path: Path):
    for number, following in itertools.pairwise(range(30)):
        (tmp_path / f"{number}.yaml").write_text(f"include: [{following}.yaml, {following}.yaml]\n")
    (tmp_path / "29.yaml").write_text("name: last\n")
    with pytest.raises(InputError, match="more than 100 spec files"):
        spec_file.read(tmp_path / "0.yaml")


@pytest.mark.parametrize("name", ["x" * 5000, "loop.yaml", "~nobody-of-that-name/spec.yaml"])
def test_include_that_cannot_be_opened_is_one_sentence(tmp_path: Path, name: str):
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "own.yaml").write_text(f"include: {name}\n")
    with pytest.raises(InputError):
        spec_file.read(tmp_path / "own.yaml")
