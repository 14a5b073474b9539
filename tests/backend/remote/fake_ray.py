"""A Ray cluster of one node: a small server that speaks the Jobs API, and a package `ray` whose workers are threads."""

import json
import os
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_PACKAGE = """
import sys, threading, types
import psutil

class Context(threading.local):
    rank = count = 0
    def get_world_rank(self): return self.rank
    def get_world_size(self): return self.count
    def get_local_world_size(self): return self.count

context, said = Context(), []

class TrainingFailedError(Exception):
    pass

class WorkerGroupError(TrainingFailedError):
    pass

class PreemptionError(TrainingFailedError):
    pass

class Settings:
    def __init__(self, **values): self.__dict__ |= values

class Trainer:
    def __init__(self, work, *, train_loop_config, backend_config, scaling_config, run_config):
        self.work, self.config, self.count = work, train_loop_config, scaling_config.num_workers
        self.barrier, self.found, self.failures = threading.Barrier(self.count), {}, {}

    def fit(self):
        threads = [threading.Thread(target=self.call, args=(rank,)) for rank in range(self.count)]
        for one in threads: one.start()
        for one in threads: one.join()
        if self.failures:
            error = WorkerGroupError()
            error.worker_failures = dict([next(iter(self.failures.items()))])
            raise error
        return types.SimpleNamespace(return_value=self.found[0])

    def call(self, rank):
        context.rank, context.count, context.barrier = rank, self.count, self.barrier
        try:
            self.found[rank] = self.work(self.config)
        except Exception as error:
            self.failures[rank] = error
            for child in psutil.Process().children(): child.kill()

def broadcast(value):
    if context.rank == 0: said.append(value)
    context.barrier.wait()
    return said[-1]

def module(name, **values):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(values)

def init(address, **values): pass
def shutdown(): pass
def cluster_resources(): return {"CPU": 2.0}
__path__ = []
known = types.SimpleNamespace(get_draining_nodes=dict)
Config = type("BackendConfig", (), {})
module("ray.train", __path__=[], ScalingConfig=Settings, WorkerGroupError=WorkerGroupError, TrainingFailedError=TrainingFailedError, get_context=lambda: context)
module("ray.exceptions", RayError=type("RayError", (Exception,), {}))
module("ray.train.backend", Backend=type("Backend", (), {}), BackendConfig=Config)
module("ray.train.collective", broadcast_from_rank_zero=broadcast)
for name in ("ray._private", "ray.train.v2", "ray.train.v2.api"): module(name, __path__=[])
module("ray._private.state", state=known)
module("ray.train.v2.api.config", FailureConfig=Settings, RunConfig=Settings)
module("ray.train.v2.api.exceptions", PreemptionError=PreemptionError)
module("ray.train.v2.api.data_parallel_trainer", DataParallelTrainer=Trainer)
"""


class FakeRay:
    """The cluster. While it is held, jobs stay pending."""

    def __init__(self, folder: Path) -> None:
        self.token, self.version = "", "2.60.0"
        self.is_held = False
        self.answer: tuple[int, str] | None = None
        """What it says to everything, if that is not what a dashboard says."""
        self.falls_silent = False
        """Whether it takes the next job, but says nothing of it, nor anything else."""
        self.seen: list[tuple[str, str, str]] = []
        """Method, path and token of each request."""
        self.jobs: dict[str, dict[str, Any]] = {}
        (folder / "ray").mkdir(parents=True)
        (folder / "ray" / "__init__.py").write_text(_PACKAGE)
        (folder / "ray-2.60.0.dist-info").mkdir()
        (folder / "ray-2.60.0.dist-info" / "METADATA").write_text("Name: ray\nVersion: 2.60.0\n")
        self._folder, self._processes = folder, dict[str, subprocess.Popen[bytes]]()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def address(self) -> str:
        """Of its dashboard."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def use_https(self, certificate: Path, key: Path) -> None:
        """Speak https with this certificate from now on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._server.handle_error = lambda request, client_address: None  # a client may trust it not

    def close(self) -> None:
        """End it and its jobs."""
        for job in self._processes:
            self.stop(job)
            self._processes[job].wait()
        self._server.shutdown()
        self._server.server_close()

    def respond(self, method: str, path: str, token: str, body: bytes) -> tuple[int, str]:
        """The status and content of an answer."""
        self.seen.append((method, path, token))
        if self.token and token != f"Bearer {self.token}":
            return (403, "Forbidden") if token else (401, "Unauthorized")
        if self.answer is not None:
            return self.answer
        if path == "/api/version":
            return 200, json.dumps({"ray_version": self.version})
        if path.startswith("/nodes"):
            node = {"raylet": {"state": "ALIVE", "resourcesTotal": {"CPU": 2}}}
            return 200, json.dumps({"data": {"summary": [node]}})
        if path == "/api/jobs/":
            return self._submit(json.loads(body))
        job, _, verb = path.removeprefix("/api/jobs/").partition("/")
        if job not in self.jobs:
            return 404, "no such job"
        if verb == "stop":
            self.stop(job)
        if verb == "logs":
            return 200, json.dumps({"logs": (self._folder / f"{job}.log").read_text()})
        return 200, json.dumps(self._look_up(job))

    def _submit(self, asked: dict[str, Any]) -> tuple[int, str]:
        job = asked["submission_id"]
        if job in self.jobs:
            return 400, f"ValueError: Job with submission_id {job} already exists."
        self.jobs[job] = {"status": "PENDING", **asked}
        if not self.is_held:
            with (self._folder / f"{job}.log").open("wb") as log:
                path = os.pathsep.join([str(self._folder), os.environ.get("PYTHONPATH", ""), str(Path.cwd())])
                self._processes[job] = subprocess.Popen(
                    asked["entrypoint"], shell=True, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": path}
                )
        if self.falls_silent:
            self.answer = (503, "the dashboard restarts")
            return self.answer
        return 200, json.dumps({"submission_id": job})

    def _look_up(self, job: str) -> dict[str, Any]:
        values, process = self.jobs[job], self._processes.get(job)
        if process is not None and values["status"] in ("PENDING", "RUNNING"):
            code = process.poll()
            values["status"] = "RUNNING" if code is None else "FAILED" if code else "SUCCEEDED"
            values["driver_exit_code"] = code
        return values

    def stop(self, job: str) -> None:
        """As Ray does on a request."""
        if self._look_up(job)["status"] in ("PENDING", "RUNNING"):
            self.jobs[job]["status"] = "STOPPED"
            if job in self._processes:
                self._processes[job].terminate()


def _handler(fake: FakeRay) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, content = fake.respond(self.command, self.path, self.headers.get("Authorization") or "", body)
            self.send_response(code)
            if code == 302:
                self.send_header("Location", content)
            self.end_headers()
            self.wfile.write(content.encode())

        do_GET = do_POST = do_DELETE = _respond  # noqa: N815 (the names that http.server looks for)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
