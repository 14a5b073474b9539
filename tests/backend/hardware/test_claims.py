"""A run asks waiting models for the accelerator, and starts whether or not that can be asked."""

import tempfile
from pathlib import Path

import pytest

from backend.hardware import claims

pwd = pytest.importorskip("pwd")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for files that do not last."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_user_without_a_name_claims_too(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda user: {}[user])

    claims.claim()

    assert [path.name for path in temporary.glob("*/*")] == ["accelerator-wanted"]


def test_a_run_starts_where_a_claim_cannot_be_made(temporary: Path) -> None:
    claims.claim()
    (folder,) = temporary.iterdir()
    (folder / "accelerator-wanted").unlink()
    folder.rmdir()
    folder.write_text("somebody else's")

    claims.claim()

    assert folder.is_file()
