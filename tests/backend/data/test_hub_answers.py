"""Names that a hub's answer gives are what they may be, or nothing is made of them."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote, unquote

import pytest
from huggingface_hub import constants

from backend.contract.errors import InputError
from backend.data.hub_answers import check_commit, check_content, check_digest, check_file_name, check_revision, client

BAD_PARTS = [
    "", ".", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", "..\\x", "C:\\x\\y", "a\0b", "a\nb", "\x1b[2J", "x" * 256,
    "/".join("ab" for _ in range(400)), "\ud800", None, 7, ["a"], b"a",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_PARTS)
def test_name_that_leads_out_of_a_repository_is_refused(name: object) -> None:
    with pytest.raises(InputError, match="an invalid file name"):
        check_file_name(name)


@pytest.mark.parametrize("name", ["config.json", "sub/modeling.py", "a b.txt", "日本語.json", "..x", "x..y"])
def test_ordinary_name_passes(name: str) -> None:
    assert check_file_name(name) == name


@pytest.mark.parametrize("name", ["CON", "nul.json", "a/Com1.txt", "a.", "a ", "a:b", "a?"])
def test_names_that_windows_keeps_for_itself_are_refused_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_file_name(name)
    monkeypatch.setattr("backend.data.hub_answers.os.name", "nt")
    with pytest.raises(InputError, match="an invalid file name"):
        check_file_name(name)


@pytest.mark.parametrize(
    "commit", ["", "main", "a" * 39, "a" * 41, "A" * 40, "../" + "a" * 37, "a" * 40 + "\n", None, 7]
)
def test_commit_is_forty_hex_digits(commit: object) -> None:
    with pytest.raises(InputError, match="an invalid commit"):
        check_commit(commit)


@pytest.mark.parametrize("digest", ["", "../../x", "/x", "a" * 31, "g" * 40, "a" * 129, "a" * 40 + "\n", None])
def test_digest_is_hex(digest: object) -> None:
    with pytest.raises(InputError, match="an invalid ETag"):
        check_digest(digest)


@pytest.mark.parametrize("revision", ["../../x", "/x", "a\0", "a\\b", ""])
def test_revision_of_a_spec_names_no_other_place(revision: str) -> None:
    with pytest.raises(InputError, match=r"model\.revision: .* is not a branch, tag or commit") as refused:
        check_revision(revision)
    assert refused.value.field == "model.revision"


def test_revision_may_be_a_pull_request() -> None:
    assert check_revision("refs/pr/1") == "refs/pr/1"


class _Endless(BaseHTTPRequestHandler):
    """Answers whatever the path says: a length, a packed body, or a body in chunks that never ends."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if "content" in self.path:
            content = unquote(self.path.partition("content=")[2]).encode()
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return
        if "length" in self.path:
            self.send_header("Content-Length", str(10**12))
        elif "packed" in self.path:
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", "100")
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with suppress(OSError):  # whoever asked has gone
            while "endless" in self.path:
                self.wfile.write(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("X-Linked-Size", self.path.partition("?")[2])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *message: object, **named: object) -> None:
        pass


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a hub that answers so."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endless) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("kind", ["length", "packed", "endless"])
@pytest.mark.parametrize("path", ["models/a/b", "whoami-v2"])
def test_answer_without_end_is_given_up(kind: str, path: str, endless: str) -> None:
    with pytest.raises(InputError, match="was discarded"):
        client().get(f"{endless}/api/{path}?{kind}", timeout=30).read()


def test_file_that_arrives_packed_is_refused_before_it_is_unpacked(endless: str) -> None:
    with client() as hub, pytest.raises(InputError, match="an invalid compressed response"):
        hub.get(f"{endless}/a/b/resolve/main/vocab.json?packed", timeout=30)


@pytest.mark.parametrize("size", ["99999999999999999999", "60000000000", "-1", "x", "9" * 5000])
def test_size_that_no_file_has_is_refused(size: str, endless: str) -> None:
    with client() as hub, pytest.raises(InputError, match="an invalid file size"):
        hub.head(f"{endless}/a/b/resolve/main/model.safetensors?{size}", timeout=30)


@pytest.mark.parametrize("size", ["-5", "-0.5", "1e30", "NaN", "Infinity", "9" * 30])
@pytest.mark.parametrize(
    "listing",
    [
        '{"siblings": [{"rfilename": "a", "size": SIZE}]}',
        '{"siblings": [{"rfilename": "a", "size": 1, "lfs": {"size": SIZE}}]}',
        '[{"type": "file", "path": "a", "size": SIZE}]',
    ],
    ids=["files", "large files", "tree"],
)
def test_list_of_files_with_a_size_that_none_has_is_refused(size: str, listing: str, endless: str) -> None:
    with client() as hub, pytest.raises(InputError, match="an invalid file size"):
        hub.get(f"{endless}/api/models/a/b?content={quote(listing.replace('SIZE', size))}", timeout=30)


@pytest.mark.parametrize("size", ["0", "5000000000", "null"])
def test_list_of_files_with_ordinary_sizes_passes(size: str, endless: str) -> None:
    listing = quote('{"siblings": [{"rfilename": "a", "size": SIZE}]}'.replace("SIZE", size))
    with client() as hub:
        assert hub.get(f"{endless}/api/models/a/b?content={listing}", timeout=30).is_success


def test_size_of_an_ordinary_file_passes(endless: str) -> None:
    with client() as hub:
        assert hub.head(f"{endless}/a/b/resolve/main/model.safetensors?5000000000", timeout=30).is_success


@pytest.mark.skipif(os.name == "nt", reason="without links the hub's cache names no file by its digest")
@pytest.mark.parametrize("name", ["tokenizer.json", "sub/tokenizer.json"])
@pytest.mark.parametrize("kind", ["git", "sha256", "sha1"])
def test_small_file_that_is_not_what_was_promised_is_thrown_away(name: str, kind: str, tmp_path: Path) -> None:
    content = b"{}"
    digests = {
        "git": hashlib.sha1(b"blob 2\0" + content, usedforsecurity=False).hexdigest(),
        "sha1": hashlib.sha1(content, usedforsecurity=False).hexdigest(),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    blob, link = tmp_path / digests[kind], tmp_path / "snapshot" / name
    link.parent.mkdir(parents=True)
    blob.write_bytes(content)
    link.symlink_to(blob)
    check_content(tmp_path / "snapshot", ["*.json"])
    blob.write_bytes(b"[]")
    with pytest.raises(InputError, match="not match the size or checksum on the Hub"):
        check_content(tmp_path / "snapshot", ["*.json"])
    assert not blob.exists()
    assert not link.is_symlink()
