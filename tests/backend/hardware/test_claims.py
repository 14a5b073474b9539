"""A run asks waiting models for the accelerator, and starts whether or not that can be asked."""

import sys
import tempfile
from pathlib import Path

import pytest

from backend.contract.places import runtime_folder
from backend.hardware import claims

pwd = pytest.importorskip("pwd")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems name these folders otherwise")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder for what running processes share."""
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(own))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return own


def test_a_user_without_a_name_claims_too(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda user: {}[user])

    claims.claim()

    assert [path.name for path in temporary.glob("*/*/*")] == ["accelerator-wanted"]


def test_nothing_is_put_where_another_user_could_be_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everybodys = tmp_path / "everybodys"
    everybodys.mkdir()
    everybodys.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(everybodys))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(everybodys))

    claims.claim()

    assert list(everybodys.iterdir()) == []
    assert [path.name for path in (tmp_path / "cache").glob("*/*/*")] == ["accelerator-wanted"]
    assert runtime_folder().stat().st_mode & 0o777 == 0o700


def test_a_claim_does_not_follow_a_link(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (temporary / "burnish").mkdir()
    (temporary / "burnish" / "runtime").symlink_to(tmp_path / "elsewhere")

    claims.claim()

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_run_starts_where_a_claim_cannot_be_made(temporary: Path) -> None:
    claims.claim()
    folder = runtime_folder()
    (folder / "accelerator-wanted").unlink()
    folder.rmdir()
    folder.write_text("somebody else's")

    claims.claim()

    assert folder.is_file()
