"""Owns a hub on localhost: serves model folders as the hub's HTTP interface does, for tests in a second process."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlparse


class FakeHub:
    """Repositories by name: each a table of revisions (`main`, `refs/pr/1`) to (commit, folder)."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, tuple[str, Path]]] = {}
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> "FakeHub":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
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
        parts = [unquote(part) for part in urlparse(path).path.strip("/").split("/")]
        api = parts[:2] == ["api", "models"]
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
        return _json({"id": name, "modelId": name, "sha": commit, "siblings": siblings, "tags": [], "private": False})

    def _handler(hub) -> type[BaseHTTPRequestHandler]:  # noqa: N805 (the handler's self is another)
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                status, headers, body = hub.answer(self.path)
                self.send_response(status)
                for key, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

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
    return hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()
