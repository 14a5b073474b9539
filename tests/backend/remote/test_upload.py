"""Tests that everything a spec names on this computer is sent, and that the spec names it where it arrives."""

from pathlib import Path

import pytest

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.spec import RunSpec
from backend.preflight import resolve
from backend.remote import upload
from backend.remote.tree import check_tree, tree_name

BERT = str(resource("demo", "bert-tiny"))
DIGEST = "0" * 64


def _spec(train: object, model: str = "some/model", **data: object) -> RunSpec:
    values = {
        "version": 1,
        "name": "reviews",
        "task": {"type": "text_classification"},
        "model": {"name_or_path": model},
        "data": {
            "source": "files",
            "train": train,
            "validation": 0.1,
            "columns": {"text": "text", "label": "label"},
            **data,
        },
    }
    return resolve.resolve(values, Path("/"))


def _prepare(spec: RunSpec) -> upload.Upload:
    return upload.prepare_upload(spec, lambda done, total, unit: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.csv", "b.csv", "notes.txt", ".hidden"):
        (tmp_path / name).write_text(f"text,label\n{name},1\n")
    return tmp_path


def test_file_keeps_its_name(folder: Path) -> None:
    found = _prepare(_spec(str(folder / "a.csv")))
    assert list(found.files.values()) == [folder / "a.csv"]
    assert str(found.values_there("/far/data")["data.train"]).endswith("/a.csv")


def test_list_of_files_stays_a_list(folder: Path) -> None:
    found = _prepare(_spec([str(folder / "a.csv"), str(folder / "b.csv")]))
    assert [Path(one).name for one in found.values_there("/far")["data.train"]] == ["a.csv", "b.csv"]


def test_pattern_sends_only_what_it_matches(folder: Path) -> None:
    found = _prepare(_spec(str(folder / "*.csv")))
    assert {path.name for path in found.files.values()} == {"a.csv", "b.csv"}
    assert found.values["data.train"].endswith("/*.csv")


def test_folder_is_sent_without_hidden_files(folder: Path) -> None:
    found = _prepare(_spec(str(folder)))
    assert {path.name for path in found.files.values()} == {"a.csv", "b.csv", "notes.txt"}


@pytest.mark.parametrize("name", ["corpus", "corpus.en.gz"])
def test_both_files_of_a_pair_are_sent(tmp_path: Path, name: str) -> None:
    for ending in ("en.gz", "es.gz"):
        (tmp_path / f"corpus.{ending}").write_bytes(ending.encode())
    (tmp_path / "other.en").touch()
    values = {
        "version": 1,
        "name": "translation",
        "task": {"type": "seq2seq_lm"},
        "model": {"name_or_path": "some/model"},
        "data": {"source": "parallel", "train": str(tmp_path / name), "source_ending": "en", "target_ending": "es"},
    }
    found = _prepare(resolve.resolve(values, Path("/")))
    assert {path.name for path in found.files.values()} == {"corpus.en.gz", "corpus.es.gz"}
    assert str(found.values_there("/far")["data.train"]).endswith(f"/{name}")


def test_model_is_called_by_its_name_there(folder: Path) -> None:
    found = _prepare(_spec(str(folder / "a.csv"), BERT))
    assert Path(found.values_there("/far")["model.name_or_path"]).name == "bert-tiny"


def test_what_trainer_leaves_beside_a_model_is_not_sent(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    model = tmp_path_factory.mktemp("trained")
    for name in (
        "config.json",
        "model.safetensors",
        "optimizer.pt",
        "training_args.bin",
        "checkpoint-500/model.safetensors",
    ):
        (model / name).parent.mkdir(exist_ok=True)
        (model / name).write_text(name)
    found = _prepare(_spec(str(folder / "a.csv"), str(model)))
    assert {path.name for path in found.files.values()} == {"a.csv", "config.json", "model.safetensors"}
    assert len(found.files) == 3


def test_link_out_of_a_folder_is_not_sent(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("home") / "id_rsa"
    secret.write_text("private")
    (folder / "c.csv").symlink_to(secret)
    with pytest.raises(InputError, match="points outside"):
        _prepare(_spec(str(folder)))


def test_local_model_is_sent_and_one_of_the_hub_is_not(folder: Path) -> None:
    assert "model.name_or_path" in _prepare(_spec(str(folder / "a.csv"), BERT)).values
    assert "model.name_or_path" not in _prepare(_spec(str(folder / "a.csv"), "bert-base-cased")).values


def test_equal_content_is_sent_once(folder: Path) -> None:
    (folder / "b.csv").write_bytes((folder / "a.csv").read_bytes())
    found = _prepare(_spec([str(folder / "a.csv"), str(folder / "b.csv")]))
    assert len(found.files) == 1


def test_missing_file_is_named(folder: Path) -> None:
    with pytest.raises(InputError, match=r"data\.train.*gone\.csv does not exist"):
        _prepare(_spec(str(folder / "gone.csv")))


def test_spec_that_comes_back_has_the_paths_of_this_computer(folder: Path) -> None:
    spec = _spec(str(folder / "a.csv"), BERT)
    found = _prepare(spec)
    values = spec_file.set_values(spec.model_dump(mode="json"), found.values_there("/far/data"))
    values["training"]["batch_size"] = 16  # resolved there
    values["data"]["columns"] = {"text": "found there"}
    back = spec_file.parse(upload.restore_local(spec_file.dump(values), spec.model_dump(mode="json")))
    assert (back["data"]["train"], back["model"]["name_or_path"]) == (str(folder / "a.csv"), BERT)
    assert back["training"]["batch_size"] == 16
    assert back["data"]["columns"] == {"text": "found there"}


def test_machine_chooses_no_file_of_this_computer() -> None:
    before = {"model": {"name_or_path": "bert", "tokenizer": None}, "data": {"source": "hub", "train": "train"}}
    there = {
        "model": {"name_or_path": "/etc", "tokenizer": "/etc"},
        "data": {"source": "files", "train": "~/.ssh/id_rsa", "test": "/etc/passwd", "columns": {}},
    }
    back = spec_file.parse(upload.restore_local(spec_file.dump(there), before))
    assert back == {**before, "data": {**before["data"], "columns": {}}}


@pytest.mark.parametrize("text", ["- 1", "data: 1", "version: 1"])
def test_what_comes_back_and_is_no_spec_is_refused(text: str) -> None:
    before = {"model": {"name_or_path": "bert", "tokenizer": None}, "data": {}}
    with pytest.raises(InputError, match=r"something unknown \(spec\.yaml\)"):
        upload.restore_local(text, before)


@pytest.mark.parametrize("name", ["../escape", "/etc/passwd", "a/../../b", "", "a//b"])
def test_tree_with_a_name_outside_is_refused(name: str) -> None:
    files = {name: DIGEST}
    with pytest.raises(InputError, match="not a name inside"):
        check_tree(tree_name(files), files)


def test_tree_is_named_for_its_content() -> None:
    with pytest.raises(InputError, match="another name"):
        check_tree(tree_name({"a": DIGEST}), {"b": DIGEST})
