"""Settings in sentences: titles in the place of keys, and the button that sets the model's own limit."""

import pytest

from app.core import formatting
from app.core.draft import setting_titles
from app.core.draft.draft import Draft
from app.core.draft.draft_settings import Setting
from app.core.draft.shorter_texts import shorter
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.protocol import Mistake
from backend.contract.run.fixes import Mend


@pytest.fixture(autouse=True)
def titles(monkeypatch):
    monkeypatch.setattr(setting_titles, "_titles", {})
    known = {"task.max_length": "Longest text", "training.learning_rate": "Learning rate", "data.train": "Train"}
    setting_titles.learn(Setting(key, title, "") for key, title in known.items())


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "task.max_length: 4096 tokens are more than the 512 positions; set task.max_length to 512 or less",
            "4\u202f096 tokens are more than the 512 positions; set “Longest text” to 512 or less",
        ),
        ("Lower training.learning_rate, or training.warmup.", "Lower “Learning rate”, or training.warmup."),
        ("/runs/training.learning_rate.txt is no file", "/runs/training.learning_rate.txt is no file"),
        ("Use --set training.learning_rate=1", "Use --set training.learning_rate=1"),
        ("step 4096 of run 20260102", "Step 4096 of run 20260102"),
        ("1,204 rows lose their end", "1\u202f204 rows lose their end"),
        (
            "/runs/my run/spec.yaml: training.learning_rate (it was 3e-05) was changed since the run started; "
            "put back what was there, or start a new run: burnish train /runs/my run/spec.yaml",
            "/runs/my run/spec.yaml: “Learning rate” (it was 3e-05) was changed since the run started; "
            "put back what was there, or start a new run with “Duplicate”",
        ),
        ("the log has the details; burnish report /runs/a gives", "The log has the details; “Copy report” gives"),
    ],
)
def test_known_keys_are_called_by_their_titles_and_paths_stay(said: str, shown: str):
    assert formatting.sentence(said, "task.max_length") == shown


@pytest.mark.parametrize(
    ("mend", "words"),
    [
        (Mend({"training.learning_rate": 5e-05}), "Start again with Learning rate 5e-5"),
        (Mend({"task.max_length": 64, "training.bias": True}, resume=True), "Resume with Longest text 64, bias on"),
        (Mend(), "Try again"),
        (Mend(convert_weights=True), "Convert the weights once and start again"),
    ],
)
def test_the_button_that_mends_names_fields(mend: Mend, words: str):
    assert setting_titles.mend_words(mend) == words


def test_texts_longer_than_the_model_reads_are_set_to_its_limit_by_a_click():
    model = ModelDescription(name="m", found="folder", max_length=512)
    refused = Mistake("task.max_length: 600 tokens are more than 512", "task.max_length")
    draft = Draft({"task": {"max_length": 600, "max_target_length": 64}})
    assert [(way.title, way.changes) for way in shorter(draft, model, refused)] == [
        ("At most 512 tokens", {"task.max_length": 512})
    ]
    assert shorter(draft, model, Mistake("another", "training.epochs")) == []
    assert shorter(draft, None, refused) == []
