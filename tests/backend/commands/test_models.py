"""`burnish models` and `burnish hub`: in-process where nothing is asked, against a hub on localhost where something is."""

import json
from pathlib import Path

from backend.__main__ import main
from backend.contract.resources import resource
from backend.models import hub_transfer
from tests.backend.models.fake_hub import FakeHub, hub_library


def test_models_that_are_here_are_listed_with_what_fits(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("BURNISH_RUNS", str(tmp_path))
    assert main(["models", "--task", "causal_lm", "--engine", "jax"]) == 0
    printed = capsys.readouterr().out
    assert "austen-gpt2" in printed
    assert "not for this run: a bert model is an encoder and cannot continue a text" in printed
    assert main(["models", "--json", "--memory", "0.01"]) == 0
    [bert, *_] = json.loads(capsys.readouterr().out)["models"]
    assert (bert["title"], bert["group"]) == ("bert-tiny", "demo")
    assert "is free" in bert["problem"]


def test_mistaken_wishes_and_offline_are_one_sentence(capsys):
    assert main(["models", "--task", "nope"]) == 2
    assert "there is no task 'nope'" in capsys.readouterr().err
    assert main(["hub", "search", "bert"]) == 2
    assert "Burnish is in offline mode" in capsys.readouterr().err


def test_a_model_is_found_downloaded_and_then_here(burnish, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(hub_transfer, "PAUSES", (0.01,) * 5)
    with FakeHub() as hub:
        hub.repositories["team/tiny"] = {"main": ("c" * 40, resource("demo", "bert-tiny"))}
        hub.records = [{"id": "team/tiny", "config": {"model_type": "bert"}, "downloads": 12345}]
        online = {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "0"}
        online["HF_HUB_DISABLE_XET"] = "1"
        with hub_library(**online):
            assert "team/tiny  bert, 12,345 downloads" in burnish("hub", "search", "tiny").stdout
            hub.cut_after = 3_000_000
            ended = burnish("hub", "download", "team/tiny", "--json")
            assert ended.returncode == 0, ended.stderr
            got = json.loads(ended.stdout)
            assert hub.ranges == ["bytes=3000000-"]
            assert (Path(got["folder"]) / "model.safetensors").is_file()
            again = burnish("hub", "download", "team/tiny")
            assert again.stdout.startswith("team/tiny at cccccccccccc: 0.0 MB")
            assert "team/tiny" in burnish("models").stdout
