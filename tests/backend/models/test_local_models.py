"""Models on this computer are listed once, by where they come from, with why they do not go with the run."""

import shutil
from pathlib import Path

import pytest
from huggingface_hub import constants

from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder
from backend.models import hub, hub_transfer, local_models
from backend.models.compatibility import ModelFacts, RunNeeds, notes, problem
from backend.models.hub import RemoteModel
from backend.models.hub_errors import HubTimeoutError, InterruptedDownloadError, model_mistake, search_mistake

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(folder), raising=False)
    return folder


def lay_down(cache: Path, name: str, folder: Path, *, part: int = 0) -> None:
    """A repository as the hub library lays it down; with `part` only so many bytes of its weights have come."""
    root = cache / f"models--{name.replace('/', '--')}"
    snapshot = root / "snapshots" / COMMIT
    for made in (snapshot, root / "blobs", root / "refs"):
        made.mkdir(parents=True)
    (root / "refs" / "main").write_text(COMMIT)
    for number, path in enumerate(sorted(folder.iterdir())):
        if part and path.suffix == ".safetensors":
            (root / "blobs" / f"{number:064d}{hub_transfer.PART}").write_bytes(b"0" * part)
            continue
        shutil.copy(path, root / "blobs" / f"{number:040d}")
        (snapshot / path.name).symlink_to(root / "blobs" / f"{number:040d}")


def test_every_place_is_listed_and_nothing_twice(cache: Path, folder: Path, tmp_path: Path) -> None:
    lay_down(cache, "team/whole", folder)
    lay_down(cache, "team/used", folder)
    lay_down(cache, "team/begun", folder, part=1_000_000)
    run = RunFolder(tmp_path / "runs" / "2026-11-20-0900-poems")
    shutil.copytree(folder, run.model)
    recent = ["team/used", "team/far", str(folder), "/somewhere/gone"]
    found = {one.name: one for one in local_models.choices(RunNeeds("masked_lm"), recent, [run])}
    groups = {name: one.group for name, one in found.items() if one.group != "demo"}
    assert groups == {
        "team/used": "recent", "team/far": "recent", str(folder): "recent", "/somewhere/gone": "recent",
        str(run.model): "run", "team/whole": "cache", "team/begun": "cache",
    }  # fmt: skip
    assert sum(one.group == "demo" for one in found.values()) == 3
    assert "no longer exists" in found["/somewhere/gone"].problem
    assert "will be downloaded" in found["team/far"].notes[0]
    assert (found["team/begun"].started_mb, found["team/begun"].is_here) == (1.0, False)
    assert (found["team/whole"].problem, found["team/whole"].licence) == ("", "mit")
    assert found[str(run.model)].title == "2026-11-20-0900-poems"
    assert "cannot continue a text" in next(
        one.problem for one in local_models.choices(RunNeeds("causal_lm"), [], []) if one.title == "bert-tiny"
    )


def test_a_folder_without_its_weights_is_listed_with_the_reason(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert "git lfs pull" in local_models.of_folder(folder, RunNeeds(), "recent", "x").problem
    (folder / "model.safetensors").unlink()
    assert "has no weights" in local_models.of_folder(folder, RunNeeds(), "recent", "x").problem
    assert local_models.of_folder(folder, RunNeeds("masked_lm", from_scratch=True), "recent", "x").problem == ""
    (folder / "config.json").unlink()
    assert "has no config.json" in local_models.of_folder(folder, RunNeeds(), "recent", "x").problem


def test_memory_rules_out_what_cannot_lie_in_it_and_offers_an_adapter_for_what_can() -> None:
    known = ModelFacts({"model_type": "gpt2"}, 1_000_000_000, "safetensors")
    assert "4.0 GB in float32, but only 3.0 GB is free" in problem(known, RunNeeds("causal_lm", free_mb=3000))
    assert problem(known, RunNeeds("causal_lm", free_mb=8000)) == ""
    assert "at least 16.0 GB" in notes(known, RunNeeds("causal_lm", free_mb=8000))[0]
    assert notes(known, RunNeeds("causal_lm", free_mb=8000, partly=True)) == []
    assert notes(known, RunNeeds("causal_lm", free_mb=20_000)) == []
    assert "at least 8.0 GB" in notes(known, RunNeeds("causal_lm", optimizer="sgd", free_mb=6000))[0]


def test_a_disk_without_room_is_said_before_a_download(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = RemoteModel("team/big", "main", COMMIT, "safetensors", (), ("model.safetensors",), sizes={"model.safetensors": 9 * 10**9})  # fmt: skip
    monkeypatch.setattr(hub_transfer, "free_bytes", lambda: 2 * 10**9)
    with pytest.raises(InputError, match=r"needs another 9\.00 GB, but only 2\.00 GB is free"):
        hub.download(model, model.files, lambda done, total, unit: None)


class ReadTimeout(Exception):
    """As the HTTP library calls it."""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (HubTimeoutError(ReadTimeout()), "cannot be reached (the request timed out)"),
        (HubTimeoutError(ConnectionRefusedError()), "cannot be reached (ConnectionRefusedError)"),
        (ValueError("no JSON"), "is not a model hub"),
    ],
)
def test_a_hub_that_does_not_answer_is_said_with_what_is_possible(error: Exception, said: str) -> None:
    sentence = str(search_mistake(error))
    assert said in sentence
    assert "choose a model that is on this computer" in sentence


def test_a_download_that_broke_off_says_that_it_goes_on() -> None:
    assert "part that was downloaded is kept" in str(model_mistake("team/x", "main", InterruptedDownloadError("cut")))
