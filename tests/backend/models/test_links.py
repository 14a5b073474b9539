"""A link in a model folder that leads out of it is refused by whatever uses the folder; the hub's cache consists of links."""

import os
import shutil
from pathlib import Path

import pytest
from huggingface_hub import constants
from own_code_model import made

from backend.__main__ import main
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.resources import resource
from backend.models import inspection, location
from backend.models.adapter_files import weights_folder
from backend.models.model_files import copy_small_files
from backend.models.remote_code import find_remote_code
from backend.models.weights import read_weights
from backend.tokenizers.loading import open_tokenizer

SECRET = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz"
CHAT = '[{"role": "user", "content": "hi"}]'
FILES = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt",
    "merges.txt", "generation_config.json", "adapter_config.json", "spiece.model", "chat_template.jinja", "README.md",
    "burnish.json", "additional_chat_templates/rag.jinja", "named-by-nobody",
)  # fmt: skip


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the user that has nothing to do with the model."""
    path = tmp_path / "home" / "token"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


def linked(path: Path, target: Path | str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def refused(folder: Path) -> list[str]:
    """What every way in says of the folder."""
    ways = (
        lambda: location.locate(str(folder), cache=folder.parent / "cache", offline=True),
        lambda: location.locate_small_files(str(folder), offline=True),
        lambda: location.locate_without_weights(str(folder), offline=True),
        lambda: inspection.check(folder, Head.SEQUENCE_CLASSIFICATION),
        lambda: weights_folder(folder),
        lambda: open_tokenizer(str(folder)),
    )
    said = []
    for way in ways:
        with pytest.raises(InputError) as error:
            way()
        said.append(str(error.value))
    return said


@pytest.mark.parametrize("name", FILES)
def test_file_that_is_a_link_out_of_the_folder_is_refused(folder: Path, secret: Path, name: str) -> None:
    linked(folder / name, secret)
    for sentence in refused(folder):
        assert f"{folder / name} is a link that points outside the model's folder" in sentence


@pytest.mark.parametrize("target", ["nowhere", "../nowhere", "chat_template.jinja", "/dev/zero", "/proc/self/environ"])
def test_link_to_nothing_itself_or_a_device_is_one_sentence(folder: Path, target: str) -> None:
    linked(folder / "chat_template.jinja", target)
    if target in ("nowhere", "chat_template.jinja"):  # as good as absent, and read by nobody
        location.locate_small_files(str(folder), offline=True)
        return
    assert all("points outside the model's folder" in sentence for sentence in refused(folder))


def test_folder_of_templates_that_is_a_link_is_refused(folder: Path, secret: Path) -> None:
    (folder / "additional_chat_templates").symlink_to(secret.parent)
    assert all("additional_chat_templates is a link that points outside" in sentence for sentence in refused(folder))


def test_vocabulary_alone_that_is_a_link_is_refused(tmp_path: Path, secret: Path) -> None:
    (tmp_path / "model").mkdir()
    linked(tmp_path / "model" / "vocab.txt", secret)
    with pytest.raises(InputError, match="is a link that points outside"):
        open_tokenizer(str(tmp_path / "model"))


def test_other_half_of_a_named_vocabulary_that_is_a_link_is_refused(tmp_path: Path, secret: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "vocab.json").write_text('{"a": 0, "b": 1}')
    (tmp_path / "here" / "merges.txt").symlink_to(secret)
    with pytest.raises(InputError, match=r"merges\.txt is a link that points outside"):
        open_tokenizer(str(tmp_path / "here" / "vocab.json"))


def test_code_that_is_a_link_is_neither_shown_nor_copied(tmp_path: Path, secret: Path) -> None:
    model = made(tmp_path / "homemade", tmp_path / "ran")
    linked(model / "parts" / "more.py", secret)
    with pytest.raises(InputError, match="is a link that points outside"):
        find_remote_code(model)
    (tmp_path / "copy").mkdir()
    with pytest.raises(InputError, match="is a link that points outside"):
        copy_small_files(model, tmp_path / "copy")


def test_blobs_that_are_a_link_themselves_are_no_way_out(folder: Path, secret: Path, tmp_path: Path) -> None:
    """An archive may look like the hub's cache."""
    snapshot = tmp_path / "models--a--b" / "snapshots" / "c"
    snapshot.parent.mkdir(parents=True)
    folder.rename(snapshot)
    snapshot.parent.with_name("blobs").symlink_to(secret.parent)
    linked(snapshot / "chat_template.jinja", "../../blobs/token")
    assert all("is a link that points outside" in sentence for sentence in refused(snapshot))


@pytest.mark.parametrize("command", ["plan", "train", "predict", "evaluate", "generate", "tokenize", "consents"])
def test_commands_answer_in_one_sentence(tmp_path: Path, secret: Path, capsys, command: str, monkeypatch) -> None:
    monkeypatch.setenv("BURNISH_RUNS", str(tmp_path / "runs"))
    model = Path(shutil.copytree(resource("demo", "bert-tiny"), tmp_path / "model"))
    linked(model / "chat_template.jinja", secret)
    rows, spec = str(resource("demo", "sentiment", "validation.csv")), str(resource("demo", "sentiment.yaml"))
    change = ["--set", f"model.name_or_path={model}"]
    task = ["--task", "text_classification", "--data", rows]
    arguments = {
        "plan": ["plan", spec, *change],
        "train": ["train", spec, *change],
        "predict": ["predict", str(model), *task, "--output", str(tmp_path / "out.csv")],
        "evaluate": ["evaluate", str(model), *task],
        "generate": ["generate", str(model), "--prompt", "x"],
        "tokenize": ["tokenize", str(model), "--messages", CHAT],
        "consents": ["consents", "--agree", str(model)],
    }
    assert main(arguments[command]) == 2
    printed = capsys.readouterr()
    assert "chat_template.jinja is a link that points outside the model's folder" in printed.err.splitlines()[-1]
    assert SECRET not in printed.out + printed.err
    assert not list(tmp_path.glob("runs/*"))


# What must work


def works(folder: Path) -> None:
    assert location.locate(str(folder), cache=folder.parent / "cache", offline=True).folder == folder
    inspection.check(folder, Head.SEQUENCE_CLASSIFICATION)
    assert open_tokenizer(str(folder))("hello")["input_ids"]


def moved(folder: Path, blobs: Path) -> None:
    """Every file of the folder is a link to a blob, as in the Hub cache."""
    blobs.mkdir(parents=True)
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(blobs / f"{number:040d}")
        path.symlink_to(os.path.relpath(blobs / f"{number:040d}", folder))


def test_snapshot_of_the_hubs_cache_is_used(folder: Path, tmp_path: Path) -> None:
    (folder / "additional_chat_templates").mkdir()
    (tmp_path / "models--a--b" / "snapshots").mkdir(parents=True)
    snapshot = folder.rename(tmp_path / "models--a--b" / "snapshots" / "c")
    (snapshot / "additional_chat_templates").rmdir()
    moved(snapshot, tmp_path / "models--a--b" / "blobs")
    works(snapshot)


def test_folder_that_an_older_hub_library_filled_with_links_into_its_cache_is_used(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    moved(folder, tmp_path / "hub" / "models--a--b" / "blobs")
    works(folder)


def test_model_folder_that_the_user_names_may_be_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "named").symlink_to(folder)
    works(tmp_path / "named")


def test_vocabulary_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "merges.txt").write_text("#version: 0.2\na b\n")
    (tmp_path / "elsewhere.json").write_text('{"a": 0, "b": 1, "ab": 2}')
    (tmp_path / "here" / "vocab.json").symlink_to(tmp_path / "elsewhere.json")
    assert len(open_tokenizer(str(tmp_path / "here" / "vocab.json"))) == 3


def test_link_inside_the_folder_is_followed(folder: Path) -> None:
    (folder / "tokenizer.json").rename(folder / "fast.json")
    (folder / "tokenizer.json").symlink_to("fast.json")
    works(folder)


def test_weights_may_lie_on_another_disk(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").rename(tmp_path / "weights")
    (folder / "model.safetensors").symlink_to(tmp_path / "weights")
    assert read_weights(folder).format == "safetensors"
    works(folder)
