"""The report on a failed run that people send to each other."""

import ast
import json
from pathlib import Path

import pytest

from backend.contract.messages import message
from backend.contract.run import events
from backend.contract.run.folder import RunFolder
from backend.contract.run.report import report

ROOT = Path(__file__).parents[2]
TOKEN = "hf_" + "a1B2" * 6


@pytest.fixture
def run(tmp_path: Path, monkeypatch) -> RunFolder:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.spec.write_text(
        f"name: x\ntraining: {{batch_size: 32}}\ndata: {{train: {tmp_path}/train.csv}}\nhardware: {{environment: {{PASSPHRASE: open sesame}}}}\n"
        "model: {name_or_path: 'https://me:pass@word@host.org/model?signature=abc&key=def'}\n"
    )
    steps = [
        events.StepFinished(
            time=2, step=n, epoch=0, loss=1, learning_rate=1, gradient_norm=1, rows=1, tokens=1, seconds=1
        )
        for n in range(1, 400)
    ]
    said = [
        events.RunStarted(time=1, name="x", task="t", model="m", engine="torch", versions={"torch": "2.9"}),
        *steps,
        events.RowsSampled(
            time=2, step=399, rows=[events.SampledRow(row=0, kind="drawn", values={"text": "my diary"})]
        ),
        events.RunFinished(time=3, state="failed", step=399, message="unexpected KeyError: 'x'", code="unknown"),
    ]
    folder.events.write_bytes(b"".join(map(events.encode, said)))
    folder.log.write_text(
        "first line\n"
        + "middle\n" * 100
        + f'Traceback\n  File "/x/site-packages/torch/nn/modules/module.py", line 7, in _call_impl\nKeyError: {TOKEN}\n'
    )
    return folder


def test_it_tells_versions_settings_and_the_last_words(run: RunFolder):
    text = report(run)
    for words in (
        "- torch 2.9",
        "failed at step 399. KeyError",
        '"step":399',
        "batch_size: 32",
        "module.py, line 7, in _call_impl",
    ):
        assert words in text


def test_it_holds_no_secret_and_no_home_folder(run: RunFolder, tmp_path: Path):
    text = report(run)
    assert TOKEN not in text
    assert "open sesame" not in text
    assert "host.org" not in text
    assert str(tmp_path) not in text
    assert "train: '[path].csv'" in text


def stages_of_training() -> set[tuple[str, str]]:
    """Each stage that the code of a run enters, and what it counts there."""
    found = set()
    for path in sorted((ROOT / "backend" / "training").rglob("*.py")):
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            is_start = isinstance(call.func, ast.Attribute) and call.func.attr == "start"
            if is_start and call.args and not isinstance(call.args[0], ast.Starred):
                units = [*call.args[2:3], *(word.value for word in call.keywords if word.arg == "unit")]
                found.add((ast.literal_eval(call.args[0]), *map(ast.literal_eval, units or [ast.Constant("")])))
    return found


def test_it_tells_every_stage_and_unit_of_a_run(run: RunFolder):
    stages = stages_of_training()
    assert {("training", "steps"), ("finding model", "bytes"), ("compiling", "")} <= stages
    for stage, unit in stages:
        with run.events.open("ab") as file:
            file.write(events.encode(events.StageStarted(time=4, stage=stage, total=1, unit=unit)))
        line = next(line for line in reversed(report(run).splitlines()) if '"event":"StageStarted"' in line)
        told = json.loads(line)
        assert (told["stage"], told.get("unit", "")) == (stage, unit)


def test_it_tells_no_stage_or_unit_of_others(run: RunFolder):
    with run.events.open("ab") as file:
        file.write(events.encode(events.StageStarted(time=4, stage="secret", total=1, unit="secret")))
        file.write(events.encode(events.StageStarted(time=4, stage="loading data", total=1, unit="rows")))
    text = report(run)
    assert "secret" not in text
    assert '"stage":"loading data"' in text


def test_it_holds_no_row_of_the_data(run: RunFolder):
    assert "my diary" not in report(run)


def test_it_leaves_out_the_tables_for_translation(run: RunFolder):
    said = message("{path} is full", path="/home/me")
    with run.events.open("ab") as file:
        file.write(events.encode(events.Warned(time=4, code="disk", message=said)))
    assert "messages" in run.events.read_text()
    assert "messages" not in report(run)


def test_it_is_short(run: RunFolder):
    text = report(run)
    assert text.count('"event":"StepFinished"') == 3
    assert "first line" not in text


def test_a_folder_with_nothing_but_a_broken_spec_gets_one_too(tmp_path: Path):
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.spec.write_text("task: [")
    assert "spec.yaml cannot be read: line 1" in report(folder)


def test_a_run_that_went_on_does_not_end_as_an_earlier_attempt_did(run: RunFolder):
    with run.events.open("ab") as file:
        file.write(events.encode(events.RunResumed(time=4, attempt=2, from_step=0, versions={"torch": "3.0"})))
    text = report(run)
    assert "State: failed" not in text
    assert "State: new" in text
    assert "- torch 3.0" in text
