"""A hub that means harm writes nothing outside the cache, and gets no token that is not its own."""

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.models.location import locate
from backend.tokenizers.loading import open_tokenizer
from tests.backend.models.fake_hub import Answer, FakeHub, hub_library

OUT = "../../../../escaped"


def _headers(**changes: str):
    def spoil(path: str, answer: Answer) -> Answer:
        status, headers, body = answer
        names = {name.replace("_", "-") for name in changes}
        kept = {name: value for name, value in headers.items() if name not in names}
        return status, {**kept, **{name.replace("_", "-"): value for name, value in changes.items()}}, body

    return spoil


def _body(old: str, new: str):
    def spoil(path: str, answer: Answer) -> Answer:
        status, headers, body = answer
        return status, headers, body.replace(old.encode(), new.encode()) if path.startswith("/api/") else body

    return spoil


def _other_content(path: str, answer: Answer) -> Answer:
    status, headers, body = answer
    return status, headers, b"x" * len(body) if path.endswith(".safetensors") else body


HARM = {
    "etag": _headers(ETag=f'"{OUT}"'),
    "linked-etag": _headers(X_Linked_ETag=f'"{OUT}"'),
    "weak-etag": _headers(ETag=f'W/"{OUT}"'),
    "empty-etag": _headers(ETag='""'),
    "commit-header": _headers(X_Repo_Commit=OUT),
    "sha": _body("a" * 40, OUT),
    "no-sha": _body('"sha"', '"sah"'),
    "file-name": _body("config.json", f"{OUT}.json"),
    "backslashes": _body("config.json", "..\\\\..\\\\config.json"),
    "size": _body('"size": ', '"size": "many", "other": '),
    "list": _body("{", "[{"),
    "content": _other_content,
}  # fmt: skip


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        yield running


def _ask(hub: FakeHub, home: Path, *names: str) -> list[tuple[str, str]]:
    """What is said of each name as a model and as a tokenizer."""
    said: list[tuple[str, str]] = []
    with hub_library(
        HF_HOME=str(home / "a" / "b" / "hf"), HF_ENDPOINT=hub.address, HF_HUB_OFFLINE="0", HF_HUB_DISABLE_XET="1",
        HF_TOKEN="hf_secret",
    ):  # fmt: skip
        for name in names:
            for take in (partial(locate, cache=home / "cache"), open_tokenizer):
                try:
                    take(name)
                    said.append((name, "taken"))
                except InputError as error:
                    said.append((name, str(error)))
    return said


def test_no_name_of_a_hub_leads_out_of_the_cache(hub: FakeHub, folder: Path, tmp_path: Path) -> None:
    hub.repositories = {f"team/{harm}": {"main": ("a" * 40, folder)} for harm in HARM}

    def spoil(path: str, answer: Answer) -> Answer:
        harm = next((harm for harm in HARM if f"/team/{harm}/" in f"{path.partition('?')[0]}/"), "")
        return HARM[harm](path, answer) if harm else answer

    hub.spoil = spoil
    said = _ask(hub, tmp_path, *hub.repositories)
    assert len(said) == 2 * len(HARM)
    taken = {name for name, sentence in said if sentence == "taken"}
    assert taken <= {"team/content", "team/size", "team/no-sha"}, said  # a tokenizer without the spoiled file
    assert all(sentence.count("\n") == 0 for _, sentence in said)
    assert not list(tmp_path.rglob("*escaped*"))
    assert any(
        "model.safetensors does not match the size or checksum on the Hub, so it was discarded" in sentence
        for _, sentence in said
    )
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert not list((tmp_path / "a" / "b" / "hf" / "hub").glob(f"models--team--content/blobs/{digest}*"))


def test_file_that_another_host_does_not_have_is_not_a_missing_hub(hub: FakeHub, folder: Path, tmp_path: Path) -> None:
    hub.repositories = {"team/bert": {"main": ("a" * 40, folder)}}
    with FakeHub() as other:
        other.spoil = lambda path, answer: (404, {}, b"{}")
        host = other.address.replace("http://127.0.0.1", "localhost")

        def away(path: str, answer: Answer) -> Answer:
            is_file = "/resolve/" in path and path.endswith(".safetensors")
            return (302, {**answer[1], "Location": f"http://{host}{path}"}, b"") if is_file else answer

        hub.spoil = away
        sentences = [sentence for _, sentence in _ask(hub, tmp_path, "team/bert") if sentence != "taken"]
    assert len(sentences) == 1
    assert f"the Hub redirected a download to {host}, but the file is not there (404)" in sentences[0]


def test_file_that_the_hub_only_names_is_not_a_missing_hub(hub: FakeHub, folder: Path, tmp_path: Path) -> None:
    hub.repositories = {"team/bert": {"main": ("a" * 40, folder)}}
    hub.spoil = lambda path, answer: (404, {}, b"{}") if path.endswith(".safetensors") else answer
    sentences = [sentence for _, sentence in _ask(hub, tmp_path, "team/bert") if sentence != "taken"]
    assert len(sentences) == 1
    assert "the Hub lists the file model.safetensors, but it could not be found (404)" in sentences[0]


def test_redirect_to_another_host_gets_no_token(hub: FakeHub, folder: Path, tmp_path: Path) -> None:
    hub.repositories = {"team/bert": {"main": ("a" * 40, folder)}}
    with FakeHub() as other:
        other.repositories = hub.repositories
        address = other.address.replace("127.0.0.1", "localhost")

        def away(path: str, answer: Answer) -> Answer:
            return (302, {**answer[1], "Location": f"{address}{path}"}, b"") if "/resolve/" in path else answer

        hub.spoil = away
        assert _ask(hub, tmp_path, "team/bert") == [("team/bert", "taken")] * 2
        assert "Bearer hf_secret" in hub.tokens
        assert other.requests
        assert set(other.tokens) == {""}
