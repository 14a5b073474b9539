"""Each command as the process that people start, once; what it does in detail is tested within the tests' own process."""

import pytest

from backend.__main__ import COMMANDS
from backend.contract.resources import resource

ROWS = str(resource("demo", "sentiment", "validation.csv"))
CALLS: dict[str, tuple[int, str]] = {
    "window --nothing": (2, "unrecognized arguments: --nothing"),
    "demo --nothing": (2, "unrecognized arguments: --nothing"),
    "train nothing.yaml": (2, "nothing.yaml: there is no such spec file"),
    "search nothing.yaml": (2, "nothing.yaml: there is no such spec file"),
    "resume nothing": (2, "nothing: there is no such run"),
    "stop nothing": (2, "nothing: there is no such run"),
    "pause nothing": (2, "nothing: there is no such run"),
    "checkpoint nothing": (2, "nothing: there is no such run"),
    "start nothing": (2, "nothing: there is no such run"),
    "queue nothing next": (2, "nothing: there is no such run"),
    "runs --json": (0, "[]"),
    "compare nothing": (2, "nothing"),
    "report nothing": (2, "nothing: there is no such run"),
    "note nothing words": (2, "nothing: there is no such run"),
    "slices nothing": (2, "nothing: there is no such run"),
    "calibrate nothing": (2, "nothing: there is no such run"),
    "evaluate nothing --data nothing.csv": (2, "nothing"),
    "predict nothing --data nothing.csv --output out.csv": (2, "nothing"),
    "generate nothing --prompt words": (2, "nothing"),
    "tokenize nothing --text words": (2, "nothing"),
    "tokenizer nothing": (2, "invalid choice: 'nothing'"),
    f"data recognise {ROWS}": (0, "validation.csv"),
    "export nothing --csv -": (2, "nothing: there is no such run"),
    "plan nothing.yaml": (2, "nothing.yaml: there is no such spec file"),
    "import nothing.sh": (2, "nothing.sh"),
    "models --task nope": (2, "is no task"),
    "hub search": (2, "offline"),
    "consents --json": (0, "consents"),
    "trackers send nothing mlflow": (2, "nothing: there is no such run"),
    "machines check nothing": (2, "there is no machine nothing"),
    "machines install nothing": (2, "there is no machine nothing"),
    "adopt nothing:run": (2, "there is no machine nothing"),
    "describe --no-devices": (0, "text_classification"),
    "doctor": (0, "torch"),
}


@pytest.mark.parametrize("line", CALLS)
def test_command_is_a_process_with_an_exit_code_and_words(burnish_process, line: str) -> None:
    code, words = CALLS[line]

    done = burnish_process(*line.split())

    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_every_command_is_among_them() -> None:
    listed = {command.name for command in COMMANDS if command.help}
    assert listed - {line.split()[0] for line in CALLS} == set()
