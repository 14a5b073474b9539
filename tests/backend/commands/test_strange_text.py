"""Strangers' names and texts never steer the terminal, and what the system refuses is one sentence with exit code 2."""

import io
import os
import sys
from pathlib import Path

import pytest

from backend.__main__ import main
from backend.commands.screen import PlainStream, plain_streams
from backend.contract.places import runs_folder
from backend.contract.rpc.protocol import Request
from backend.contract.safe_text import escape_controls, join_surrogates
from backend.helper.channel import Channel
from backend.helper.worker import answer_request

STEERS = "\x1b[2J\x1b]0;mine\x07\r\x9b31m\u202e"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_terminal_gets_no_control_characters_but_line_ends_and_tabs():
    assert escape_controls(f"a\tb\n{STEERS}") == "a\tb\n\\u001b[2J\\u001b]0;mine\\u0007\\u000d\\u009b31m\\u202e"


def test_letters_of_any_script_and_emoji_are_left_alone():
    text = "naïve 日本語 עברית السلام 👩‍👩‍👧 सिंहल\n"
    assert escape_controls(text) == text


def test_error_sentence_shows_what_a_path_hides(capsys: pytest.CaptureFixture[str]):
    assert main(["plan", f"no{STEERS}file.yaml"]) == 2
    assert "\x1b" not in (said := capsys.readouterr().err)
    assert "no\\u001b[2J" in said


def test_name_of_a_run_forges_no_row(capsys: pytest.CaptureFixture[str]):
    folder = runs_folder() / "a\n\r\t\u2028forged  finished"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").touch()
    assert main(["runs"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["stop", "b"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("command", [["note", "RUN", "words"], ["compare", "RUN", "OTHER"], ["runs", "--table", "csv"], ["runs", "--table", "markdown"]], ids=" ".join)  # fmt: skip
def test_name_of_a_run_forges_no_line_of_another_list(command: list[str], tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setenv("BURNISH_RUNS", str(tmp_path))
    names = {"RUN": "a\n\r\t\u2028| forged", "OTHER": "b"}
    for name in names.values():
        (tmp_path / name).mkdir()
        (tmp_path / name / "spec.yaml").write_text("version: 1\n")
    assert main([names.get(word, word) for word in command]) == 0
    said = capsys.readouterr().out
    assert "a\\u000a" in said.replace("\\\\", "\\")
    assert [line for line in said.splitlines() if line.strip().startswith(("| forged", "\\| forged"))] == []


def test_standard_output_is_for_people_where_it_is_a_terminal(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with plain_streams():
        sys.stdout.write(STEERS)
    assert terminal.getvalue() == escape_controls(STEERS)


def test_standard_output_into_a_file_stays_exact(monkeypatch: pytest.MonkeyPatch):
    file = io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    with plain_streams():
        sys.stdout.write(STEERS)
    assert file.getvalue() == STEERS


def test_half_a_character_can_be_printed(monkeypatch: pytest.MonkeyPatch):
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding="utf-8"))
    with plain_streams():
        sys.stdout.write("\ud83d")
        sys.stdout.flush()
    assert content.getvalue() == b"\\ud83d"


def test_streams_are_as_before_when_a_command_has_ended():
    before = sys.stdout, sys.stderr
    main(["plan", "nothing.yaml"])
    assert (sys.stdout, sys.stderr) == before
    assert not isinstance(sys.stderr, PlainStream)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "x\udcff.yaml"], "not UTF-8"),
        (["data", "report", "x" * 5000], "too long"),
        (["data", "report", "x/" * 5000], "too long"),
        (["data", "report", "rows\0.csv"], "no such"),
        (["tokenize", "x" * 5000, "--text", "hello"], "check"),
        (["predict", "x" * 5000, "--data", "rows.csv", "--output", "out.csv"], "x"),
        (["export", "x" * 5000, "--csv", "-"], "there"),
        (["resume", "x" * 5000], "there"),
        (["import", "x" * 5000], "too long"),
        (["data", "report", "~nobody-of-that-name/rows.csv"], "no such file"),
        (["plan", "spec.yaml", "--run-folder"], "unrecognized"),
    ],
)  # fmt: skip
def test_unusable_argument_is_one_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr().err
    assert code == 2, said

    assert words in said.splitlines()[-1]
    assert len(said) < 1100


@pytest.mark.parametrize(
    "encoding", ["hex", "rot13", "zip", "base64", "idna", "punycode", "undefined", "unicode_escape"]
)
def test_codec_that_is_no_encoding_of_text_is_refused(
    encoding: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    (tmp_path / "rows.csv").write_text("text\nwords\n")
    assert main(["data", "report", str(tmp_path / "rows.csv"), "--set", f"data.encoding={encoding}"]) == 2
    assert "not a text encoding" in capsys.readouterr().err


def test_memory_that_is_not_enough_is_one_sentence(capsys: pytest.CaptureFixture[str], monkeypatch):
    from backend.contract.errors import describe_system_error

    failed_import = ImportError("libtorch.so: failed to map segment from shared object: Cannot allocate memory")
    assert all("not enough memory" in str(describe_system_error(error)) for error in (MemoryError(), failed_import))
    assert describe_system_error(ImportError("No module named 'torch'")) is None


def test_full_disk_is_one_sentence():
    from backend.contract.errors import describe_system_error

    assert describe_system_error(OSError(28, os.strerror(28), "table.arrow")) == (
        "table.arrow: the disk is full; free up some space, or choose another folder"
    )


def test_halves_of_a_character_become_one():
    assert join_surrogates("\ud83d\ude00") == "😀"
    with pytest.raises(ValueError, match="half a character"):
        join_surrogates("\ude00\ud83d")


@pytest.mark.parametrize("path", ["x" * 5000, "a\0b", "x\udcff", "/dev/zero", "~nobody-of-that-name"])
def test_helper_answers_an_unusable_path_by_a_sentence(path: str, capfd: pytest.CaptureFixture[str]):
    with capfd.disabled():
        channel = Channel()
    for query, arguments in (
        ("preview_data", {"data": {"source": "files", "train": path}}),
        ("recognise_data", {"paths": [path]}),
    ):
        reply = answer_request(Request(1, query, arguments), channel)
        assert reply.error is not None
        assert "unexpectedly" not in reply.error.message
