"""A model is found in a folder, in the hub library's cache, on a hub, or as a converted copy."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.models import inspection
from backend.models.location import locate
from backend.models.weights import read_weights
from tests.backend.models.fake_hub import FakeHub, hub_library

MAIN, CONVERTED = "a" * 40, "b" * 40


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        yield running


@pytest.fixture
def ask(hub: FakeHub, tmp_path: Path) -> Iterator[Callable[..., dict]]:
    """Asks while the hub library knows the hub on localhost and an empty cache."""

    def ask(name: str, *, describe: bool, offline: bool, **options) -> dict:
        reports: list[tuple] = []
        try:
            if describe:
                model = inspection.describe(name, task="text_classification", offline=offline)
                return {key: getattr(model, key) for key in ("weights_format", "problem", "size_mb", "found")}
            found = locate(
                name, cache=tmp_path / "cache", offline=offline, report=lambda *each: reports.append(each), **options
            )
            return {"folder": str(found.folder), "found": found.found, "commit": found.commit, "reports": reports}
        except InputError as error:
            return {"error": str(error), "field": error.field}

    def ask_and_keep_the_secret(name: str, *, describe: bool = False, offline: bool = False, **options) -> dict:
        said = ask(name, describe=describe, offline=offline, **options)
        assert "hf_secret" not in str(said)
        return said

    with hub_library(
        HF_HOME=str(tmp_path / "hf"), HF_ENDPOINT=hub.address, HF_HUB_OFFLINE="0", HF_HUB_DISABLE_XET="1",
        HF_TOKEN="hf_secret",
    ):  # fmt: skip
        yield ask_and_keep_the_secret


def cached(cache: Path, name: str, folder: Path, commit: str = MAIN) -> None:
    """Lays a folder into a hub cache as the hub library does: blobs, refs, snapshots of links."""
    root = cache / f"models--{name.replace('/', '--')}"
    for part in ("blobs", "refs", f"snapshots/{commit}"):
        (root / part).mkdir(parents=True, exist_ok=True)
    (root / "refs" / "main").write_text(commit)
    for number, path in enumerate(sorted(each for each in folder.iterdir() if each.is_file())):
        shutil.copy(path, root / "blobs" / f"{number:040d}")
        (root / "snapshots" / commit / path.name).symlink_to(f"../../blobs/{number:040d}")


def test_a_folder_is_itself(folder, tmp_path):
    found = locate(str(folder), "main", cache=tmp_path / "cache", offline=True)
    assert (found.folder, found.found, found.commit) == (folder, "folder", "")


def test_what_is_in_the_cache_is_found_without_network(folder, tmp_path, ask, hub):
    cached(tmp_path / "hf" / "hub", "team/model", folder)
    found = ask("team/model", offline=True)
    assert (found["found"], found["commit"]) == ("cache", MAIN)
    assert read_weights(Path(found["folder"])).format == "safetensors"
    assert hub.requests == []


def test_a_hub_model_is_downloaded_with_progress_and_then_cached(folder, ask, hub):
    (folder / "pytorch_model.bin").write_bytes(b"not wanted")
    (folder / "flax_model.msgpack").write_bytes(b"not wanted")
    hub.repositories["team/model"] = {"main": (MAIN, folder)}
    found = ask("team/model")
    assert (found["found"], found["commit"]) == ("hub", MAIN)
    names = {path.name for path in Path(found["folder"]).iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert not {"pytorch_model.bin", "flax_model.msgpack"} & names
    assert found["reports"][-1][2] == "bytes"
    assert found["reports"][-1][0] == sum(path.stat().st_size for path in Path(found["folder"]).iterdir())
    hub.requests.clear()
    assert ask("team/model")["found"] == "cache"
    assert hub.requests == []


def test_the_hubs_own_conversion_is_looked_for_first_and_pinned(bin_folder, model_folder, ask, hub, tmp_path):
    other = tmp_path / "unrelated"
    other.mkdir()
    (other / "README.md").write_text("a pull request that only mends the text")
    hub.repositories["team/old"] = {
        "main": (MAIN, bin_folder), "refs/pr/2": (CONVERTED, model_folder), "refs/pr/3": ("c" * 40, other),
    }  # fmt: skip
    found = ask("team/old")
    assert (found["found"], found["commit"]) == ("hub", CONVERTED)
    assert not any("pytorch_model.bin" in path for path in hub.requests if "/resolve/" in path)
    hub.requests.clear()
    again = ask("team/old", offline=True)
    assert (again["folder"], again["commit"]) == (found["folder"], CONVERTED)
    assert hub.requests == []


@pytest.mark.usefixtures("converter_environments")
def test_a_hub_model_without_conversion_asks_for_consent_and_is_converted_once(bin_folder, ask, hub):
    hub.repositories["team/old"] = {"main": (MAIN, bin_folder)}
    refused = ask("team/old")
    assert "--convert-weights" in refused["error"]
    assert refused["field"] == "model.name_or_path"
    assert not any("/resolve/" in path for path in hub.requests)
    found = ask("team/old", consent_to_convert=True)
    assert (found["found"], found["commit"]) == ("converted", MAIN)
    assert read_weights(Path(found["folder"])).format == "safetensors"
    assert ask("team/old", offline=True)["folder"] == found["folder"]


def test_flax_weights_of_an_unknown_family_are_refused_before_they_are_fetched(folder, ask, hub):
    (folder / "model.safetensors").rename(folder / "flax_model.msgpack")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "big_bird"}), encoding="utf-8")
    hub.repositories["team/flax"] = {"main": (MAIN, folder)}
    refused = ask("team/flax", consent_to_convert=True)
    assert "big_bird" in refused["error"]
    assert not any("flax_model" in path for path in hub.requests if "/resolve/" in path)


@pytest.mark.usefixtures("converter_environments")
def test_a_bin_folder_is_converted_after_consent_and_found_again_without(bin_folder, tmp_path):
    with pytest.raises(InputError, match="--convert-weights"):
        locate(str(bin_folder), "main", cache=tmp_path / "cache", offline=True)
    made = locate(str(bin_folder), "main", cache=tmp_path / "cache", offline=True, consent_to_convert=True)
    assert made.found == "converted"
    assert locate(str(bin_folder), "main", cache=tmp_path / "cache", offline=True) == made


def test_a_cached_model_whose_weights_are_missing_is_completed(folder, ask, hub):
    hub.repositories["team/model"] = {"main": (MAIN, folder)}
    assert ask("team/model", describe=True) == {
        "weights_format": "safetensors", "problem": "", "found": "hub",
        "size_mb": pytest.approx((folder / "model.safetensors").stat().st_size / 1e6),
    }  # fmt: skip
    assert not any(path.endswith("model.safetensors") for path in hub.requests)
    assert "is not complete in the cache" in ask("team/model", offline=True)["error"]
    assert ask("team/model")["found"] == "hub"


def test_what_the_hub_does_not_have_is_named(folder, ask, hub):
    hub.repositories["team/model"] = {"main": (MAIN, folder)}
    assert "no model team/other" in ask("team/other")["error"]
    wrong = ask("team/model", revision="v9")
    assert "no revision 'v9'" in wrong["error"]
    assert wrong["field"] == "model.revision"


def test_without_network_a_missing_model_is_said_with_the_way_out(ask, hub):
    assert "use a local folder" in ask("team/model", offline=True)["error"]
    assert hub.requests == []


@pytest.mark.parametrize("name", ["/no/such/folder", "./here", "a/b/c", "two words"])
def test_a_name_that_is_neither_folder_nor_hub_id_is_refused(name, tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        locate(name, "main", cache=tmp_path, offline=True)


def test_a_file_is_no_model_folder(folder, tmp_path):
    with pytest.raises(InputError, match="use the folder"):
        locate(str(folder / "config.json"), "main", cache=tmp_path, offline=True)
