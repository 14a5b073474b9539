"""Tests that code which comes with a model runs only as this user agreed to it: that commit, those files."""

import json
from pathlib import Path

import pytest
from own_code_model import cached, made

from backend import answering
from backend.contract import consents
from backend.contract.errors import InputError
from backend.models import inspection, location
from backend.models.own_code import may_run, own_code
from backend.tokenizers.loading import open_tokenizer

A, B = "a" * 40, "b" * 40


@pytest.fixture(autouse=True)
def no_consents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has agreed to nothing."""
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "config"))


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """What is there once a line of the model's code has run."""
    return tmp_path / "ran"


@pytest.fixture
def model(tmp_path: Path, mark: Path) -> Path:
    """A folder whose model is code of its own."""
    return made(tmp_path / "homemade", mark)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Path) -> Path:
    """The same model in the hub library's cache, at commit A."""
    home = tmp_path / "hf"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(home / "hub"))
    cached(model, home, A)
    return home


def agree(folder: Path) -> None:
    found = own_code(folder)
    assert found is not None
    found.agree()


def ask(target: str) -> str:
    changes = ["hardware.device=cpu", 'task.labels=["no","yes"]']
    return answering.Answerer(target, "text_classification", changes).answer([{"text": "x"}]).rows[0]["prediction"]


def test_without_consent_no_line_runs(model: Path, mark: Path) -> None:
    with pytest.raises(InputError, match="you have not agreed to this version of it") as refused:
        ask(str(model))
    assert refused.value.field == "model.trust_remote_code"
    inspection.describe(str(model), task="text_classification")
    open_tokenizer(str(model))
    assert not mark.exists()


def test_model_answers_once_its_code_was_agreed_to_until_that_is_withdrawn(model: Path, mark: Path) -> None:
    agree(model)
    assert ask(str(model)) in {"no", "yes"}
    assert mark.exists()
    mark.unlink()
    for one in consents.read():
        consents.withdraw(one.name, one.version)
    with pytest.raises(InputError, match="have not agreed"):
        ask(str(model))
    assert not mark.exists()


@pytest.mark.parametrize("change", ["mixing.py", "modeling_homemade.py", "more.py"])
def test_changed_file_needs_a_new_consent(model: Path, change: str) -> None:
    agree(model)
    assert may_run(model)
    with (model / change).open("a") as file:
        file.write("\nimport os\n")
    with pytest.raises(InputError, match="have not agreed"):
        may_run(model)


def test_consent_to_one_commit_covers_no_other(hub: Path, model: Path) -> None:
    first = location.locate("team/homemade", cache=hub, offline=True).folder
    agree(first)
    assert consents.read()[0].name == "team/homemade"
    assert consents.read()[0].version == A
    assert may_run(first)
    second = cached(model, hub, B)  # the same files under another commit
    with pytest.raises(InputError, match=f"this version of it .{B[:12]}."):
        may_run(second)


def test_commit_that_holds_other_files_than_were_agreed_to_is_refused(hub: Path) -> None:
    first = location.locate("team/homemade", cache=hub, offline=True).folder
    agree(first)
    (first / "mixing.py").write_text("import os\n", encoding="utf-8")
    with pytest.raises(InputError, match="have not agreed"):
        may_run(first)


def test_cached_hub_model_answers_offline_after_consent(hub: Path, mark: Path) -> None:
    agree(location.locate("team/homemade", cache=hub, offline=True).folder)
    assert ask("team/homemade") in {"no", "yes"}
    assert mark.exists()


def test_copy_of_agreed_files_is_covered_as_a_run_leaves_one(hub: Path, model: Path) -> None:
    agree(location.locate("team/homemade", cache=hub, offline=True).folder)
    assert may_run(model)


def test_spec_that_does_not_want_code_gets_none(model: Path) -> None:
    agree(model)
    with pytest.raises(InputError, match=r"set model\.trust_remote_code to true"):
        may_run(model, wanted=False)


def test_code_in_another_repository_cannot_be_agreed_to(model: Path) -> None:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["auto_map"]["AutoConfig"] = "stranger/code--configuration_homemade.HomemadeConfig"
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(InputError, match=r"lies in another repository \(stranger/code\)"):
        agree(model)
    assert consents.read() == []


def test_description_says_what_would_run(model: Path) -> None:
    told = inspection.describe(str(model), task="text_classification")
    assert (told.problem, told.needs_remote_code, told.code_agreed, told.safe) == ("", True, False, False)
    assert told.code_files == ["configuration_homemade.py", "mixing.py", "modeling_homemade.py"]
    agree(model)
    assert inspection.describe(str(model)).code_agreed


def test_task_for_which_the_code_has_no_class_is_refused(model: Path) -> None:
    told = inspection.describe(str(model), task="causal_lm")
    assert told.problem.startswith(
        "this model's own code cannot continue text (its auto_map names no AutoModelForCausalLM)"
    )


def test_code_that_fails_is_a_sentence(model: Path) -> None:
    (model / "modeling_homemade.py").write_text("import a_package_that_nobody_has\n", encoding="utf-8")
    agree(model)
    with pytest.raises(InputError, match=r"failed .*a_package_that_nobody_has.*; install what it asks for"):
        ask(str(model))


def test_unreadable_consents_are_none(tmp_path: Path, model: Path) -> None:
    agree(model)
    consents.path().write_text("{", encoding="utf-8")
    assert consents.read() == []
    with pytest.raises(InputError, match="have not agreed"):
        may_run(model)
