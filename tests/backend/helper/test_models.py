"""Tests that the models of the hub library's cache are found, and nothing else."""

from pathlib import Path

import pytest
from huggingface_hub import constants

from backend.helper.queries.models import QUERIES

CACHED = next(query.answer for query in QUERIES if query.name == "cached_models")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def put(cache: Path, folder: str, files: dict[str, int]) -> None:
    """A repository as the hub library lays it down: blobs, and a snapshot that links to them."""
    snapshot = cache / folder / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (cache / folder / "blobs").mkdir()
    (cache / folder / "refs").mkdir()
    (cache / folder / "refs" / "main").write_text(COMMIT)
    for number, (name, size) in enumerate(files.items()):
        blob = cache / folder / "blobs" / f"{number:040x}"
        blob.write_bytes(b"0" * size)
        (snapshot / name).symlink_to(blob)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(folder), raising=False)
    return folder


def found() -> list[tuple[str, float]]:
    return [(model.name, model.size_mb) for model in CACHED({}, lambda progress: None).models]


def test_a_cached_model_is_named_with_its_size(cache: Path) -> None:
    put(cache, "models--google--tiny", {"config.json": 500_000, "model.safetensors": 1_500_000})
    assert found() == [("google/tiny", 2.0)]


def test_a_tokenizer_alone_and_a_data_set_are_no_models(cache: Path) -> None:
    put(cache, "models--google--words", {"config.json": 10, "tokenizer.json": 10})
    put(cache, "datasets--glue", {"config.json": 10, "train.bin": 10})
    assert found() == []


def test_without_a_cache_there_is_nothing(cache: Path) -> None:
    assert found() == []
