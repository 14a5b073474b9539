"""Serves model folders on localhost as the Hub's HTTP interface does, to this process or to another one."""

import hashlib
import importlib.util
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse

import pytest
from huggingface_hub import close_session, constants

Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def hub_library(**environment: str) -> Iterator[None]:
    """The hub library of this process as it would be in one that had started with these variables, which it reads but then."""
    # What were imported first within this context would keep its values for good.
    import transformers.utils.hub  # noqa: F401
    from huggingface_hub import scan_cache_dir  # noqa: F401

    holders = [
        module for name, module in sys.modules.items() if name.split(".")[0] in ("huggingface_hub", "transformers")
    ]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        assert constants.__spec__
        fresh = importlib.util.module_from_spec(constants.__spec__)
        constants.__spec__.loader.exec_module(fresh)  # type: ignore[union-attr]
        changed = {name for name, value in vars(fresh).items() if name.isupper() and value != getattr(constants, name)}
        for module in holders:
            for name in changed & vars(module).keys():
                patch.setattr(module, name, getattr(fresh, name))
        yield
    close_session()  # its connections belong to that hub


class _Server(ThreadingHTTPServer):
    def handle_error(self, *given: object) -> None:
        """Whoever asked was ended meanwhile, as some tests want."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*given)  # type: ignore[arg-type]


class FakeHub:
    """Repositories by name: each a table of revisions (`main`, `refs/pr/1`) to (commit, folder)."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, tuple[str, Path]]] = {}
        self.requests: list[str] = []
        self.ranges: list[str] = []
        """The Range headers that came with requests for files."""
        self.records: list[dict] = []
        """What a search finds, before its words and limit are looked at."""
        self.spoil: Callable[[str, Answer], Answer] | None = None
        """Changes the answer to a path."""
        self.tokens: list[str] = []
        """The Authorization headers that came."""
        self.status = 200
        """Another one is the answer to whatever is asked."""
        self.headers: dict[str, str] = {}
        """Sent with such a status."""
        self.raw: bytes | None = None
        """The answer to every search, whatever is asked."""
        self.cut_after: int | None = None
        """Bytes of weights after which the connection is cut, once."""
        self.knows_ranges = True
        self.hold = threading.Event()
        """Cleared, it keeps weights back after their first bytes."""
        self.hold.set()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> "FakeHub":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.hold.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def address(self) -> str:
        """What HF_ENDPOINT is to be."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body for a path."""
        self.requests.append(path)
        if self.status != 200:
            return self.status, self.headers, b"{}"
        parts = [unquote(part) for part in urlparse(path).path.strip("/").split("/")]
        api = parts[:2] == ["api", "models"]
        if api and len(parts) == 2:
            return self._found(parse_qs(urlparse(path).query))
        name, rest = "/".join(parts[2:4] if api else parts[:2]), parts[4:] if api else parts[2:]
        if name not in self.repositories:
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        revisions = self.repositories[name]
        if api and rest[:1] == ["refs"]:
            pulls = [
                {"name": ref, "ref": ref, "targetCommit": commit}
                for ref, (commit, _) in revisions.items()
                if ref != "main"
            ]
            main = {"name": "main", "ref": "refs/heads/main", "targetCommit": revisions["main"][0]}
            return _json({"branches": [main], "tags": [], "converts": [], "pullRequests": pulls})
        known = dict(revisions.values()) | {ref: each[1] for ref, each in revisions.items()}
        revision = rest[1] if len(rest) > 1 else "main"
        if revision not in known:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        commit = next((commit for commit, folder in revisions.values() if folder == known[revision]), revision)
        if api:
            return self._listing(name, commit, known[revision], tree=rest[:1] == ["tree"])
        return _file(known[revision] / "/".join(rest[2:]), commit)

    def _listing(self, name: str, commit: str, folder: Path, tree: bool) -> tuple[int, dict[str, str], bytes]:
        files = sorted(path for path in folder.iterdir() if path.is_file())
        if tree:
            return _json([{"type": "file", "path": p.name, "size": p.stat().st_size, "oid": _etag(p)} for p in files])
        siblings = [{"rfilename": path.name, "size": path.stat().st_size} for path in files]
        known = next((record for record in self.records if record["id"] == name), {})
        return _json(
            {"id": name, "modelId": name, "tags": [], "private": False, **known, "sha": commit, "siblings": siblings}
        )

    def _found(self, query: dict[str, list[str]]) -> tuple[int, dict[str, str], bytes]:
        if self.raw is not None:
            return 200, {"Content-Type": "application/json"}, self.raw
        words = query.get("search", [""])[0].lower()
        found = [record for record in self.records if words in record["id"].lower()]
        return _json(found[: int(query.get("limit", ["1000"])[0])])

    def part(self, wanted: str, status: int, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        """The answer cut to `bytes=START-`, or the whole where ranges are not known."""
        start = int(wanted.removeprefix("bytes=").rstrip("-"))
        if status != 200 or not self.knows_ranges:
            return status, headers, body
        if start >= len(body):
            return 416, headers, b""
        return 206, {**headers, "Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}, body[start:]

    def _handler(hub) -> type[BaseHTTPRequestHandler]:  # noqa: N805 (the handler's self is another)
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                status, headers, body = hub.answer(self.path)
                hub.tokens.append(self.headers.get("Authorization", ""))
                if hub.spoil is not None:
                    status, headers, body = hub.spoil(self.path, (status, headers, body))
                wanted = self.headers.get("Range")
                if wanted and self.command == "GET":
                    hub.ranges.append(wanted)
                    status, headers, body = hub.part(wanted, status, headers, body)
                self.send_response(status)
                for key, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command == "GET":
                    self._send(body)

            def _send(self, body: bytes) -> None:
                is_weights = self.path.endswith((".safetensors", ".bin"))
                cut, hub.cut_after = (hub.cut_after, None) if is_weights else (None, hub.cut_after)
                if is_weights and not hub.hold.is_set():
                    self.wfile.write(body[: len(body) // 2])
                    self.wfile.flush()
                    hub.hold.wait()
                    body = body[len(body) // 2 :]
                self.close_connection = cut is not None or self.close_connection
                with suppress(OSError):  # whoever asked was ended meanwhile
                    self.wfile.write(body[:cut])

            do_HEAD = do_GET  # noqa: N815 (the name that http.server looks for)

            def log_message(self, *message: object) -> None:
                pass

        return Handler


def _json(value: object) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def _file(path: Path, commit: str) -> tuple[int, dict[str, str], bytes]:
    if not path.is_file():
        return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
    return 200, {"ETag": f'"{_etag(path)}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}, path.read_bytes()


def _etag(path: Path) -> str:
    """Large files are named by their SHA-256, as the hub does."""
    if path.suffix in (".safetensors", ".bin"):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()
