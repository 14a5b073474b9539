"""Tests that the doctor says which variable decides, what is obsolete, and never shows a token."""

from pathlib import Path

import pytest

from backend.hardware.doctor import check_up


def findings() -> str:
    """All that is found, as text; the devices, each engine's asked of a process, have nothing to do with variables."""
    return "\n".join(f"{one.state} {one.text} {one.mend}" for one in check_up(ask_devices=False))


def test_healthy_machine_ends_with_zero_and_a_token_is_noticed_and_never_shown(burnish) -> None:
    done = burnish("doctor", HF_TOKEN="hf_abcdefghijklmnopqrstuvwxyz")

    assert done.returncode == 0, done.stdout
    assert "torch" in done.stdout
    assert "HF_TOKEN contains a Hub token" in done.stdout
    assert "hf_abc" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("variable", "folder"), [("HF_HUB_CACHE", ""), ("HF_HOME", "/hub"), ("XDG_CACHE_HOME", "/huggingface/hub")]
)
def test_variable_that_decides_the_cache_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, folder: str
) -> None:
    monkeypatch.delenv("HF_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))

    assert f"{tmp_path}{folder} (set by {variable})" in findings()


def test_stronger_variable_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "a"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "b"))

    assert f"{tmp_path / 'a'} (set by HF_HUB_CACHE)" in findings()


def test_variable_that_nothing_reads_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSFORMERS_CACHE", str(tmp_path))

    said = findings()

    assert "note TRANSFORMERS_CACHE is set, but it is no longer used" in said
    assert f"export HF_HUB_CACHE={tmp_path}" in said


def test_runs_folder_that_cannot_be_written_is_missing(burnish, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = burnish("doctor", BURNISH_RUNS=str(tmp_path / "file" / "runs"))

    assert done.returncode == 1
    assert "BURNISH_RUNS" in done.stdout


def test_login_is_looked_for_where_the_hub_library_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = tmp_path / "huggingface" / "token"
    stored.parent.mkdir()
    stored.write_text("hf_abcdefghijklmnopqrstuvwxyz012345")
    monkeypatch.setenv("HF_HOME", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "elsewhere" / "hub"))

    assert f"you are signed in to the Hub ({stored})" in findings()
