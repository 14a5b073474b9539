"""The user's settings on disk."""

import json
import subprocess
import sys
from pathlib import Path

from app.core import preferences

ROOT = Path(__file__).parents[3]


def test_a_value_survives(tmp_path: Path):
    path = tmp_path / "deep" / "preferences.json"
    preferences.load(path).set("theme", "dark")
    assert preferences.load(path).theme == "dark"


def test_the_file_is_versioned(tmp_path: Path):
    path = tmp_path / "preferences.json"
    preferences.load(path).set("offline", True)
    assert json.loads(path.read_text())["version"] == preferences.VERSION


def test_a_damaged_file_is_put_aside_and_defaults_hold(tmp_path: Path):
    path = tmp_path / "preferences.json"
    path.write_text("{ this is no json")
    loaded = preferences.load(path)
    assert loaded.theme == "system"
    assert loaded.damaged is not None
    assert loaded.damaged.read_text() == "{ this is no json"
    assert not path.exists()


def test_a_value_of_the_wrong_kind_is_dropped_and_the_rest_holds(tmp_path: Path):
    path = tmp_path / "preferences.json"
    path.write_text(json.dumps({"version": 1, "theme": 7, "offline": True, "from_the_future": 1}))
    loaded = preferences.load(path)
    assert loaded.theme == "system"
    assert loaded.offline


def test_recent_models_are_few_and_newest_first(tmp_path: Path):
    loaded = preferences.load(tmp_path / "preferences.json")
    for number in range(20):
        loaded.remember_model(f"model-{number}")
    loaded.remember_model("model-15")
    assert loaded.recent_models[:2] == ["model-15", "model-19"]
    assert len(loaded.recent_models) == preferences.RECENT


def test_offline_and_cache_reach_the_backend(tmp_path: Path):
    loaded = preferences.load(tmp_path / "preferences.json")
    assert "HF_HUB_OFFLINE" not in loaded.environment()
    loaded.set("offline", True)
    loaded.set("cache_folder", str(tmp_path / "cache"))
    assert loaded.environment()["HF_HUB_OFFLINE"] == "1"
    assert loaded.environment()["BURNISH_CACHE"] == str(tmp_path / "cache")


def test_two_windows_keep_each_others_changes(tmp_path: Path):
    path = tmp_path / "preferences.json"
    one, other = preferences.load(path), preferences.load(path)
    one.remember_model("team/first")
    one.set("theme", "dark")
    other.remember_model("team/second")
    other.set("offline", True)
    found = preferences.load(path)
    assert (found.recent_models, found.theme, found.offline) == (["team/second", "team/first"], "dark", True)


def test_two_windows_that_write_at_once_lose_nothing(tmp_path: Path):
    path = tmp_path / "preferences.json"
    code = (
        "import sys; from pathlib import Path; from app.core import preferences\n"
        "kept = preferences.load(Path(sys.argv[1]))\n"
        "for n in range(6): kept.remember_model(f'{sys.argv[2]}-{n}')"
    )
    command = [sys.executable, "-c", code, str(path)]
    started = [subprocess.Popen([*command, name], cwd=ROOT) for name in ("one", "other")]
    assert [process.wait() for process in started] == [0, 0]
    expected = {f"{name}-{n}" for name in ("one", "other") for n in range(6)}
    assert set(preferences.load(path).recent_models) == expected


def test_what_a_newer_version_keeps_in_the_file_stays(tmp_path: Path):
    path = tmp_path / "preferences.json"
    path.write_text(json.dumps({"version": 1, "from_the_future": 1}))
    preferences.load(path).set("theme", "dark")
    assert json.loads(path.read_text())["from_the_future"] == 1
