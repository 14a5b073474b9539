"""A model is found in a folder, in the hub library's cache, on a hub, or as a converted copy."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.models.location import locate
from backend.models.weights import read_weights
from tests.backend.models.fake_hub import FakeHub

MAIN, CONVERTED = "a" * 40, "b" * 40

ASK = """
import json, sys
from pathlib import Path
from backend.contract.errors import InputError
from backend.models import inspection, location
wanted = json.loads(sys.argv[1])
reports = []
try:
    if wanted.pop("describe", False):
        found = inspection.describe(wanted["name_or_path"], task="text_classification", offline=wanted["offline"])
        print(json.dumps({"format": found.weights_format, "problem": found.problem, "size": found.size_mb, "found": found.found}))
    else:
        wanted["cache"] = Path(wanted["cache"])
        found = location.locate(report=lambda *each: reports.append(each), **wanted)
        print(json.dumps({"folder": str(found.folder), "found": found.found, "commit": found.commit, "reports": reports}))
except InputError as error:
    print(json.dumps({"error": str(error), "field": error.field}))
"""


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        yield running


@pytest.fixture
def ask(hub: FakeHub, tmp_path: Path) -> Callable[..., dict]:
    """Asks in a process of its own, whose hub library knows the hub on localhost and an empty cache."""

    def locate_there(name: str, **options) -> dict:
        wanted = {"name_or_path": name, "cache": str(tmp_path / "cache"), "offline": False, **options}
        environment = {**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": hub.address}
        environment |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": "hf_secret"}
        ended = subprocess.run(
            [sys.executable, "-c", ASK, json.dumps(wanted)],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        assert "hf_secret" not in ended.stdout
        return json.loads(ended.stdout)

    return locate_there


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


def test_a_bin_folder_is_converted_after_consent_and_found_again_without(bin_folder, tmp_path):
    with pytest.raises(InputError, match="--convert-weights"):
        locate(str(bin_folder), "main", cache=tmp_path / "cache", offline=True)
    made = locate(str(bin_folder), "main", cache=tmp_path / "cache", offline=True, consent_to_convert=True)
    assert made.found == "converted"
    assert locate(str(bin_folder), "main", cache=tmp_path / "cache", offline=True) == made


def test_a_cached_model_whose_weights_are_missing_is_completed(folder, ask, hub):
    hub.repositories["team/model"] = {"main": (MAIN, folder)}
    assert ask("team/model", describe=True) == {
        "format": "safetensors", "problem": "", "found": "hub",
        "size": pytest.approx((folder / "model.safetensors").stat().st_size / 1e6),
    }  # fmt: skip
    assert not any(path.endswith("model.safetensors") for path in hub.requests)
    assert "nor whole in the cache" in ask("team/model", offline=True)["error"]
    assert ask("team/model")["found"] == "hub"


def test_what_the_hub_does_not_have_is_named(folder, ask, hub):
    hub.repositories["team/model"] = {"main": (MAIN, folder)}
    assert "no model team/other" in ask("team/other")["error"]
    wrong = ask("team/model", revision="v9")
    assert "no revision 'v9'" in wrong["error"]
    assert wrong["field"] == "model.revision"


def test_without_network_a_missing_model_is_said_with_the_way_out(ask, hub):
    assert "give a folder" in ask("team/model", offline=True)["error"]
    assert hub.requests == []


@pytest.mark.parametrize("name", ["/no/such/folder", "./here", "a/b/c", "two words"])
def test_a_name_that_is_neither_folder_nor_hub_id_is_refused(name, tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        locate(name, "main", cache=tmp_path, offline=True)


def test_a_file_is_no_model_folder(folder, tmp_path):
    with pytest.raises(InputError, match="give the folder"):
        locate(str(folder / "config.json"), "main", cache=tmp_path, offline=True)
