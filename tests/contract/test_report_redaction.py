"""What a report gives away, for any text there is: numbers and our own words."""

from pathlib import PureWindowsPath

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import backend
from backend import catalog as catalogue
from backend.contract import spec_file
from backend.contract.catalog import Catalog
from backend.contract.run import events
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import RunFolder
from backend.contract.run.report import report
from backend.contract.run.report_redaction import (
    CHOICES,
    SETTINGS,
    extract_facts,
    metric_names,
    public_version,
    traceback_lines,
)

SECRETS = st.one_of(
    st.text(st.characters(categories=("L", "N")), min_size=8, max_size=20).map(lambda text: f"Zq{text}qZ"),
    st.sampled_from(
        [
            "hf_a1B2a1B2a1B2a1B2",
            "ya29.a0AfH6SMBx-1_y",
            "correct horse battery",
            "hunter2hunter2",
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
            "ann.b@mail.example.org",
            "Ann Example",
            "4111 1111 1111 1111",
            "sessionid=8f3b",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "/srv/projects/merger/letters",
        ]
    ),
)
FRAMES = (
    "{s}", "token=\"{s}\"", "pwd={s}", "DB_PASS={s}", "Cookie: sid={s}", "/srv/{s}/train.csv", "https://x.org/?k={s}",
    "-----BEGIN RSA PRIVATE KEY-----\n{s}\n-----END RSA PRIVATE KEY-----", "KeyError: '{s}'", "ValueError: {s}: step 3",
    '  File "/home/{s}/x.py", line 3, in f', "    call(password='{s}')", "C:\\Users\\{s}\\runs", "training.{s}",
)  # fmt: skip


def planted(folder: RunFolder, secret: str, frame: str) -> None:
    """A run that has the secret wherever a person, a file or a library may put a text."""
    said = frame.format(s=secret)
    spec = {
        "name": said,
        "task": {"type": "text_classification", "max_length": 128, "labels": [said], said: said},
        "model": {"name_or_path": said, "revision": said, "config": {said: 4, "hidden_size": 128, "layer_norm_eps": said}},
        "data": {"train": said, "validation": [said, said], "columns": {"text": said, said: "x"}, "token": said},
        "training": {"optimizer": said, "learning_rate": 3e-5, "optimizer_options": {said: said}},
        "evaluation": {"best_metric": said},
        "hardware": {"engine": "torch", "environment": {said: said, "OMP_NUM_THREADS": said}},
        said: [said],
    }  # fmt: skip
    folder.spec.write_text(spec_file.dump(spec), encoding="utf-8")
    log = [
        events.RunStarted(time=1, name=said, task="text_classification", model=said, engine="torch", device="cuda:0",
                          precision="bfloat16", versions={"torch": "2.9.0+cu128", said: "1.0", "numpy": said}),
        events.DataLoaded(time=1, split="train", rows=400, files=[said], labels={said: 200, "b": 200}, fingerprint=said),
        events.RowsSkipped(time=1, split=said, reason=said, count=2, places=[said]),
        events.ModelLoaded(time=1, architecture=said, parameters=10, trainable=10, new_weights=[said], unused_weights=[said]),
        events.EvaluationFinished(time=1, step=4, epoch=1, rows=3, seconds=1, metrics={f"f1_{said}": 0.5, "accuracy": 0.25}),
        events.RowsSampled(time=1, step=4, rows=[events.SampledRow(row=0, kind="best", values={said: said})], measure=said),
        events.CheckpointSaved(time=1, step=4, folder=said),
        events.Warned(time=1, code="new_optimizer", message=said),
        events.PredictionsWritten(time=1, split=said, csv=said, parquet=said, rows=3, seconds=1),
        events.RunFinished(time=1, state="failed", step=313, message=said, code="out_of_memory", hint=said,
                           mend=RunFix(changes={"hardware.micro_batch_size": 4, f"task.{said}": said}), metrics={said: 0.75}),
    ]  # fmt: skip
    folder.events.write_bytes(b"".join(map(events.encode, log)))
    lines = [
        "Traceback (most recent call last):",
        said,
        f'  File "{backend.__path__[0]}/training/loop.py", line 12, in run',
        f'  File "/srv/a/{said}.py", line 12, in step',
        said,
        f"ValueError: {said}",
    ]
    folder.log.write_text("\n".join([said, *lines, said]), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    made = RunFolder(tmp_path_factory.mktemp("report") / "run")
    made.path.mkdir()
    return made


@given(secret=SECRETS, frame=st.sampled_from(FRAMES))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(secret="hunter2hunter2", frame="DB_PASS={s}")
def test_a_secret_is_in_no_report_wherever_it_is_put(folder: RunFolder, secret: str, frame: str):
    planted(folder, secret, frame)
    text = report(folder)
    assert secret not in text
    for part in secret.split():
        assert len(part) < 5 or part not in text
    for kept in (
        "failed at step 313",
        "out_of_memory",
        "max_length: 128",
        "torch 2.9.0+cu128",
        '"accuracy":0.25',
        "cuda:0",
    ):
        assert kept in text
    assert "loop.py, line 12, in run" in text


@pytest.mark.parametrize(
    ("sentence", "left"),
    [
        ("the device ran out of memory at step 313 with 2.50 GiB free", "step 313, 2.50 GiB"),
        ("unexpected KeyError: 'my column'", "KeyError"),
        ("mat1 and mat2 shapes cannot be multiplied (16x128 and 64x2)", "16x128, 64x2"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried [16, 128, 768]", "OutOfMemoryError, [16, 128, 768]"),
        ("data.columns.text: there is no column 'salary'", "data.columns.text"),
        ("task.hunter2: unknown", "[text]"),
        ("/srv/me/SecretError: x", "[text]"),
        ("pwd=HunterError", "[text]"),
    ],
)
def test_of_a_sentence_stays_what_explains_a_failure(sentence: str, left: str):
    assert extract_facts(sentence) == left


@pytest.mark.parametrize("text", ["2.9.0", "2.13.0+cpu", "2.9.0+cu128", "5.0.0rc1", "3.11.7"])
def test_versions_stay(text: str):
    assert public_version(text) == text


def test_a_version_with_other_words_goes():
    assert public_version("1.0+hunter2") == "[text]"


def test_every_setting_of_the_catalog_is_known():
    """Whoever adds a setting or a choice adds its name to the words that a report may hold."""
    catalog: Catalog = catalogue.catalog()
    found = msgspec.to_builtins(catalog)
    del (
        found["tokenizer_training"],
        found["presets"],
        found["mirrors"],
        found["search"],
    )  # which are no part of a run's spec
    settings_, choices = set[str](), set[str]()
    collect(found, settings_, choices)
    assert settings_ - SETTINGS == set()
    assert {choice for choice in choices if choice.strip("0123456789")} - CHOICES == set()
    assert {name for task in catalog.tasks for name in [*task.metrics]} - metric_names() == set()


def collect(part: object, names: set[str], choices: set[str]) -> None:
    """Properties of every JSON Schema in it, and what they may be."""
    if isinstance(part, list):
        for item in part:
            collect(item, names, choices)
    elif isinstance(part, dict):
        properties = part.get("properties")
        names |= set(properties) if isinstance(properties, dict) else set()
        choices |= {choice for choice in part.get("enum", []) if isinstance(choice, str)}
        for item in [item for name, item in part.items() if name != "propertyNames"]:
            collect(item, names, choices)


@pytest.mark.parametrize(
    ("path", "function"),
    [
        (f"{backend.__path__[0]}/training/loop.py", "run"),
        (r"C:\elsewhere\Lib\site-packages\burnish\backend\training\loop.py", "run"),
        (r"C:\elsewhere\Lib\site-packages\backend\training\loop.py", "run"),
        ("/home/me/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py", "_call_impl"),
        ("/usr/lib/python3.11/json/decoder.py", "decode"),
        (r"C:\Python311\Lib\threading.py", "run"),
        ("<frozen importlib._bootstrap>", "_find_and_load"),
    ],
)
def test_frame_of_public_code_keeps_its_function(path: str, function: str):
    (line,) = traceback_lines([f'  File "{path}", line 7, in {function}'])
    assert line == f"  {PureWindowsPath(path).name}, line 7, in {function}"


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/merger_with_acme.py",
        f"{backend.__path__[0]}/training/loop.py",
        "/home/me/backend/training/loop.py",
        "/home/me/backend/../loop.py",
        "/home/me/burnish/merger_with_acme.py",
        "/home/me/.venv/lib/python3.11/site-packages/acme_plugin/torch.py",
        "/home/me/site-packages/torch/merger_with_acme.py",
        "/home/me/site-packages/torch/nn/modules/module.py",
        "/home/me/lib/python3.11/json/merger_with_acme.py",
        "/home/me/.cache/burnish/code/modules/transformers_modules/acme/modeling.py",
        "/home/me/lib/json/x.py",
        "<string>",
    ],
)
def test_frame_of_other_code_names_nothing(path: str):
    assert list(traceback_lines([f'  File "{path}", line 7, in merge_with_acme'])) == ["  (your code)"]
