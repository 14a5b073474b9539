"""Tests that a mistake on the command line gets exit code 2, one sentence with the way out, and leaves nothing behind."""

from pathlib import Path

import own_code_model
import pytest

from backend import __main__
from backend.commands.command import Command
from backend.contract.resources import resource


def sentence(done) -> str:
    """What was said, provided it is one line and the exit code is that of bad input."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr.strip()


def test_unknown_command_names_those_that_there_are(burnish) -> None:
    said = sentence(burnish("trian"))
    assert "'train'" in said
    assert "_run" not in said  # which is Burnish's own business
    assert "serve" not in said


def test_only_the_arguments_of_the_given_command_are_declared(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    declared: list[str] = []
    commands = tuple(
        Command(name, help_, lambda parser: declared.append(parser.prog), lambda arguments: 0)
        for name, help_ in (("one", "the first"), ("other", "the second"), ("_own", ""))
    )
    monkeypatch.setattr(__main__, "COMMANDS", commands)

    assert __main__.main(["one"]) == __main__.main(["_own"]) == 0
    assert declared == ["burnish one", "burnish _own"]

    with pytest.raises(SystemExit):
        __main__.main(["another"])
    assert "choose from 'one', 'other')" in capsys.readouterr().err


def test_missing_argument_is_named(burnish) -> None:
    assert "SPEC" in sentence(burnish("train"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tokenize", "bert-tiny"), "--text: there is no text"),
        (("generate", "model", "--prompt", " "), "--prompt: it is empty"),
        (("resume", "run", "--new-optimizer"), "--new-optimizer: "),
    ],
)
def test_what_is_missing_is_said_before_anything_is_loaded(burnish, arguments: tuple[str, ...], words: str) -> None:
    assert sentence(burnish(*arguments)).startswith(words)


def test_missing_spec_file_is_named(burnish, runs: Path) -> None:
    assert "nothing.yaml: there is no such spec file" in sentence(burnish("train", "nothing.yaml"))
    assert not runs.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("training.learning_rat=1", ["training.learning_rat", "learning_rate"]),
        ("training.epochs=many", ["training.epochs", "'many'"]),
        ("task.type=poetry", ["task.type", "'poetry'", "text_classification"]),
        ("task.max_lenght=3", ["task.max_lenght", "max_length"]),
        ("hardware.device=toaster", ["hardware.device", "'toaster'", "cuda"]),
        ("hardware.engine=steam", ["hardware.engine", "'steam'", "torch"]),
        ("data.source=sky", ["data.source", "'sky'", "files"]),
        ("evaluation.best_metric=beauty", ["evaluation.best_metric", "'beauty'", "accuracy"]),
        ("data.columns.label=sentimentality", ["data.columns.label", "'sentimentality'", "text"]),
        ("training", ["KEY=VALUE"]),
    ],
)
def test_bad_change_names_key_value_and_choices_and_writes_nothing(
    burnish, spec: Path, runs: Path, change: str, words: list[str]
) -> None:
    said = sentence(burnish("train", spec, "--set", change))

    assert [word for word in words if word not in said] == []
    assert not runs.exists()


def test_an_id_as_label_is_said_first_with_the_column_that_is_meant(
    burnish, spec: Path, runs: Path, tmp_path: Path
) -> None:
    rows = [f"A-{number:04},{number} warm and funny scenes,{'good' if number % 3 else 'bad'}" for number in range(400)]
    (tmp_path / "films.csv").write_text("\n".join(["id,text,sentiment", *rows]), encoding="utf-8")
    changes = (f"data.train={tmp_path / 'films.csv'}", "data.validation=0.1", "data.columns.label=id")

    assert sentence(burnish("train", spec, *(part for change in changes for part in ("--set", change)))) == (
        "data.columns.label: “id” has a different value in each of 400 rows, so it cannot be the label; "
        "“sentiment” (2 different values in 400 rows) probably is, so use that column"
    )
    assert not runs.exists()


def test_run_folder_that_exists_is_refused(burnish, spec: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()

    assert "already exists" in sentence(burnish("train", spec, "--run-folder", there))
    assert list(there.iterdir()) == []


def test_spec_alone_is_no_consent_to_remote_code(burnish, spec: Path, runs: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    model = own_code_model.made(tmp_path / "homemade", mark)

    changes = ("--set", "model.trust_remote_code=true", "--set", f"model.name_or_path={model}")
    said = sentence(burnish("train", spec, *changes))

    assert "--trust-remote-code" in said
    assert not runs.exists()
    assert not mark.exists()


@pytest.mark.parametrize("command", ["resume", "stop", "pause", "checkpoint"])
def test_unknown_run_is_named(burnish, command: str) -> None:
    assert "yesterday: there is no such run" in sentence(burnish(command, "yesterday"))


def test_run_that_does_not_run_cannot_be_stopped(burnish, runs: Path) -> None:
    (runs / "old").mkdir(parents=True)
    (runs / "old" / "spec.yaml").write_text("version: 1\n")

    assert "not running" in sentence(burnish("stop", "old"))
    assert not (runs / "old" / "stop").exists()


def test_curves_of_a_run_without_steps_say_so(burnish, runs: Path, tmp_path: Path) -> None:
    (runs / "old").mkdir(parents=True)
    (runs / "old" / "spec.yaml").write_text("version: 1\n")

    assert "no steps yet" in sentence(burnish("export", "old", "--csv", tmp_path / "curves.csv"))
    assert not (tmp_path / "curves.csv").exists()


def test_text_file_that_is_no_text_is_named(burnish, tmp_path: Path) -> None:
    file = tmp_path / "latin.txt"
    file.write_bytes("naïve".encode("latin-1"))

    assert "not UTF-8" in sentence(burnish("tokenize", "anything", "--file", file))


def test_unexpected_exception_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    faulty = Command("divide", "a command with a mistake of its own", lambda parser: None, lambda arguments: 1 // 0)
    monkeypatch.setattr(__main__, "COMMANDS", (faulty,))
    monkeypatch.delenv(__main__.DEBUG, raising=False)

    assert __main__.main(["divide"]) == 1

    said = capsys.readouterr().err
    assert said.startswith("burnish divide failed unexpectedly: ZeroDivisionError: ")
    assert said.count("\n") == 1


def test_unexpected_exception_is_shown_in_full_for_debugging(burnish, runs: Path) -> None:
    (runs / "old" / "events.jsonl").mkdir(parents=True)
    (runs / "old" / "spec.yaml").write_text("version: 1\n")

    assert "Traceback" in burnish("export", "old", "--csv", "-", BURNISH_DEBUG="1").stderr


def test_token_is_hidden_even_in_an_unexpected_sentence(burnish, runs: Path) -> None:
    secret = "hf_abcdefghijklmnopqrstuvwxyz"

    done = burnish("resume", secret, HF_TOKEN=secret)

    assert secret not in done.stderr
    assert "[hub token]" in done.stderr


def test_no_display_says_what_works_without_one(burnish, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)

    done = burnish()

    assert done.returncode == 1
    assert "burnish train" in done.stderr


def test_runs_folder_that_cannot_be_made_is_named(burnish, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    said = sentence(burnish("train", spec, BURNISH_RUNS=str(tmp_path / "file" / "runs")))

    assert "set BURNISH_RUNS" in said


@pytest.mark.parametrize("content", [None, "a,b\n1,2\n"], ids=["no file", "no column"])
@pytest.mark.parametrize("command", [("evaluate",), ("predict", "--output", "out.csv")], ids=["evaluate", "predict"])
def test_data_that_cannot_be_used_is_said_before_the_model_is_loaded(
    command: tuple[str, ...], content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("backend.inference.predict.open_model", pytest.fail)
    if content is not None:
        Path("rows.csv").write_text(content)
    model = str(resource("demo", "bert-tiny"))
    assert __main__.main([*command, model, "--task", "text_classification", "--data", "rows.csv"]) == 2
    stage, _ = capsys.readouterr().err.splitlines()
    assert stage == "reading the file"
