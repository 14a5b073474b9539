"""Gives the rules of the house what they look at: every module of the two packages, read and parsed once."""

import ast
import gc
from pathlib import Path

import pytest

from tests.architecture.source import Module

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's own folder."""
    return ROOT


@pytest.fixture(scope="session")
def modules() -> list[Module]:
    """Every module of `app` and `backend`."""
    files = sorted(path for package in ("app", "backend") for path in (ROOT / package).rglob("*.py"))
    assert len(files) > 50, "the packages are not where this test looks for them"
    gc.disable()  # it would search the hundreds of thousands of nodes again and again while they are made, and later
    found = [_read(path) for path in files]
    gc.freeze()
    gc.enable()
    return found


def _read(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    return Module(path.relative_to(ROOT).as_posix(), text, ast.parse(text))
