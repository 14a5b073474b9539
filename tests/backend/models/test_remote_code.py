"""Tests that code which comes with a model runs only as this user agreed to it: that commit, those files."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_code_model import cached, made
from transformers import AutoConfig

from backend.__main__ import main
from backend.contract import consents
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.inference import interactive
from backend.inference.model import open_model
from backend.inference.spec import spec_of
from backend.models import inspection, location
from backend.models.remote_code import agree_to_copy, check_config, code_folder, copy_code, find_remote_code, may_run
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
    found = find_remote_code(folder)
    assert found is not None
    found.agree()


def ask(target: str) -> str:
    changes = ["hardware.device=cpu", 'task.labels=["no","yes"]']
    return (
        interactive.InteractivePredictor(target, "text_classification", changes)
        .answer([{"text": "x"}])
        .rows[0]["prediction"]
    )


def test_without_consent_no_line_runs(model: Path, mark: Path) -> None:
    with pytest.raises(InputError, match="you have not approved this version of it") as refused:
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
    with pytest.raises(InputError, match="have not approved"):
        ask(str(model))
    assert not mark.exists()


@pytest.mark.parametrize("change", ["mixing.py", "modeling_homemade.py", "more.py"])
def test_changed_file_needs_a_new_consent(model: Path, change: str) -> None:
    agree(model)
    assert may_run(model)
    with (model / change).open("a") as file:
        file.write("\nimport os\n")
    with pytest.raises(InputError, match="have not approved"):
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
    with pytest.raises(InputError, match="have not approved"):
        may_run(first)


def test_cached_hub_model_answers_offline_after_consent(hub: Path, mark: Path) -> None:
    agree(location.locate("team/homemade", cache=hub, offline=True).folder)
    assert ask("team/homemade") in {"no", "yes"}
    assert mark.exists()


def test_copy_that_burnish_makes_of_agreed_code_is_covered_until_the_first_consent_is_withdrawn(
    hub: Path, model: Path
) -> None:
    first = location.locate("team/homemade", cache=hub, offline=True).folder
    agree(first)
    agree_to_copy(first, model)
    assert may_run(model)
    consents.withdraw("team/homemade", A)
    assert consents.read() == []


def test_copy_with_other_code_than_was_agreed_to_is_asked_about(hub: Path, model: Path) -> None:
    first = location.locate("team/homemade", cache=hub, offline=True).folder
    agree(first)
    (model / "mixing.py").write_text("import os\n", encoding="utf-8")
    agree_to_copy(first, model)
    with pytest.raises(InputError, match="have not approved"):
        may_run(model)


def test_consent_to_one_folder_covers_no_other_with_the_same_code(model: Path, tmp_path: Path) -> None:
    agree(model)
    other = Path(shutil.copytree(model, tmp_path / "stranger"))
    with pytest.raises(InputError, match="have not approved"):
        may_run(other)


def test_folder_that_is_named_like_the_hubs_cache_is_only_a_folder(model: Path, tmp_path: Path) -> None:
    found = find_remote_code(cached(model, tmp_path / "stranger", A))
    assert found is not None
    assert "stranger" in found.name
    assert found.version != A


@pytest.fixture
def deep(model: Path) -> Path:
    """The same with its model's class in a sub folder."""
    (model / "parts").mkdir()
    for name in ("modeling_homemade.py", "mixing.py", "configuration_homemade.py"):
        (model / name).rename(model / "parts" / name)
    rewrite(model, lambda mapped: {name: f"parts/{value}" for name, value in mapped.items()})
    return model


def rewrite(model: Path, change: Callable[[dict], dict]) -> None:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["auto_map"] = change(config["auto_map"])
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")


def test_code_in_sub_folders_is_shown_and_covered(deep: Path) -> None:
    found = find_remote_code(deep)
    assert found is not None
    assert found.files == ("parts/configuration_homemade.py", "parts/mixing.py", "parts/modeling_homemade.py")
    agree(deep)
    assert consents.read()[0].files == found.files
    assert ask(str(deep)) in {"no", "yes"}
    with (deep / "parts" / "mixing.py").open("a") as file:
        file.write("\nimport os\n")
    with pytest.raises(InputError, match="have not approved"):
        may_run(deep)


def test_saved_copy_keeps_code_in_its_sub_folders(deep: Path, tmp_path: Path) -> None:
    agree(deep)
    spec = spec_of(str(deep), "text_classification", ["hardware.device=cpu", 'task.labels=["no","yes"]'])
    saved = tmp_path / "saved"
    saved.mkdir()
    session = open_model(spec, accepts_untrained=True).session
    session.engine.export(saved)
    session.tokenizer.save_pretrained(saved)
    copy_code(deep, saved)
    agree_to_copy(deep, saved)
    assert ask(str(saved)) in {"no", "yes"}


@pytest.mark.parametrize("file", ["parts.so", "parts/fast.pyd", "__pycache__/mixing.cpython-311.pyc", "parts.pyc"])
def test_compiled_module_is_never_copied_to_where_code_runs(model: Path, file: str) -> None:
    (model / file).parent.mkdir(exist_ok=True)
    (model / file).write_bytes(b"\x7fELF")
    agree(model)
    kept = code_folder(model)
    assert kept is not None
    assert not (kept / file).exists()
    assert (kept / "mixing.py").is_file()


def test_folder_that_is_a_link_brings_no_code(model: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "more.py").write_text("import os\n", encoding="utf-8")
    (model / "parts").symlink_to(tmp_path / "outside", target_is_directory=True)
    found = find_remote_code(model)
    assert found is not None
    assert "parts/more.py" not in found.files


@pytest.mark.parametrize(
    "reference", ["/outside/module.Class", "../module.Class", "parts\\module.Class", "C:/module.Class", "os.path", ""]
)
def test_class_outside_the_folder_cannot_be_agreed_to(model: Path, reference: str) -> None:
    rewrite(model, lambda mapped: {**mapped, "AutoModel": reference})
    with pytest.raises(InputError, match="refers to a class in a file that is not in its folder"):
        agree(model)


def test_code_of_another_repository_deep_in_the_configuration_cannot_be_agreed_to(model: Path) -> None:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["text_config"] = {"auto_map": {"AutoModel": "stranger/code--modeling.Body"}}
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(InputError, match=r"is in another repository \(stranger/code\)"):
        agree(model)


def test_code_runs_from_a_private_copy_that_no_change_of_the_folder_reaches(model: Path) -> None:
    agree(model)
    kept = code_folder(model)
    assert kept is not None
    before = (model / "mixing.py").read_bytes()
    assert ask(str(model)) in {"no", "yes"}
    imported = {name.split(".")[1] for name in sys.modules if name.startswith("transformers_modules.")}
    assert any(name.endswith(kept.name) for name in imported)
    assert model.name not in imported
    (model / "mixing.py").write_text("import os\n", encoding="utf-8")
    assert (kept / "mixing.py").read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows gives the folders of a user to that user alone")
def test_private_copy_is_for_its_owner_alone(model: Path) -> None:
    agree(model)
    kept = code_folder(model)
    assert kept is not None
    assert kept.parent.stat().st_mode & 0o777 == 0o700


def test_private_copy_that_was_changed_is_written_again(model: Path) -> None:
    agree(model)
    kept = code_folder(model)
    assert kept is not None
    (kept / "mixing.py").write_text("import os\n", encoding="utf-8")
    (kept / "more.py").write_text("import os\n", encoding="utf-8")
    assert code_folder(model) == kept
    assert (kept / "mixing.py").read_bytes() == (model / "mixing.py").read_bytes()
    assert not (kept / "more.py").exists()


def test_consents_of_an_older_version_still_count(model: Path) -> None:
    agree(model)
    kept = json.loads(consents.path().read_text(encoding="utf-8"))
    for one in kept["code"]:
        del one["files"], one["origin"]
    consents.path().write_text(json.dumps(kept), encoding="utf-8")
    assert may_run(model)


@pytest.mark.parametrize("change", [{"version": None}, {"agreed": 1e308}, {"agreed": float("nan")}, {"files": [7]}])
def test_consent_of_wrong_kinds_is_none(
    change: dict[str, object], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agree(model)
    kept = json.loads(consents.path().read_text(encoding="utf-8"))["code"]
    consents.path().write_text(json.dumps({"code": [{**one, **change} for one in kept]}), encoding="utf-8")
    assert main(["consents"]) == 0
    assert "not approved any model's own code" in capsys.readouterr().out
    with pytest.raises(InputError):
        may_run(model)


def test_spec_cannot_let_the_code_of_another_place_run(model: Path) -> None:
    agree(model)
    for key in ("_name_or_path", "name_or_path", "_attn_implementation", "auto_map"):
        with pytest.raises(InputError, match=r"cannot be changed|no such key|never run"):
            interactive.InteractivePredictor(
                str(model), "text_classification", [f"model.config.{key}=stranger/model", "hardware.device=cpu"]
            )


def test_spec_that_does_not_want_code_gets_none(model: Path) -> None:
    agree(model)
    with pytest.raises(InputError, match=r"set model\.trust_remote_code to true"):
        may_run(model, wanted=False)


def test_code_in_another_repository_cannot_be_agreed_to(model: Path) -> None:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["auto_map"]["AutoConfig"] = "stranger/code--configuration_homemade.HomemadeConfig"
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(InputError, match=r"is in another repository \(stranger/code\)"):
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
        "this model's own code cannot continue text (its auto_map has no AutoModelForCausalLM)"
    )


def test_code_that_fails_is_a_sentence(model: Path) -> None:
    (model / "modeling_homemade.py").write_text("import a_package_that_nobody_has\n", encoding="utf-8")
    agree(model)
    with pytest.raises(InputError, match=r"failed .*a_package_that_nobody_has.*; install what it requires"):
        ask(str(model))


def test_unreadable_consents_are_none(tmp_path: Path, model: Path) -> None:
    agree(model)
    consents.path().write_text("{", encoding="utf-8")
    assert consents.read() == []
    with pytest.raises(InputError, match="have not approved"):
        may_run(model)


def test_consents_are_their_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "new"))
    consents.agree("name", "version", "code")
    assert [path.stat().st_mode & 0o777 for path in (consents.path().parent, consents.path())] == [0o700, 0o600]


def test_a_configuration_that_opened_before_is_not_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(resource("demo", "bert-tiny"), tmp_path / "model")
    opened: list[str] = []
    open_with_library = AutoConfig.from_pretrained

    def count(folder: Path, **options: Any) -> Any:
        opened.append(str(folder))
        return open_with_library(folder, **options)

    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(AutoConfig, "from_pretrained", count)
    check_config(folder, wanted=False)
    check_config(folder, wanted=False)
    assert len(opened) == 1
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "layer_norm_eps": "small"}))
    with pytest.raises(InputError, match="layer_norm_eps"):
        check_config(folder, wanted=False)
    with pytest.raises(InputError, match="layer_norm_eps"):  # a refusal is not remembered as a success
        check_config(folder, wanted=False)
