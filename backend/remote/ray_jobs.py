"""Runs as jobs of a Ray cluster, through its Jobs REST API alone: whoever submits them needs no Ray.

https://docs.ray.io/en/latest/cluster/running-applications/job-submission/rest.html
"""

import http.client
import io
import json
import os
import re
import secrets
import shlex
import ssl
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import msgspec

from backend.contract import offline
from backend.contract.errors import InputError
from backend.contract.machines import Machine
from backend.contract.messages import message, plural
from backend.contract.run.folder import RunFolder
from backend.contract.run.job import PENDING, RUNNING, SUBMITTING, JobRecord
from backend.contract.safe_files import user_path, write_whole
from backend.contract.safe_text import one_line, parse_json
from backend.contract.versions import same_major
from backend.engines.hosts import OPEN
from backend.remote import protocol
from backend.remote.job import Job, entrypoint, in_folder, new_job_name

DESCRIPTION = "ray.json"
"""The file of a run's folder with what its job was made of; no secret is in it."""
OLDEST = (2, 60)
"""The oldest version of Ray whose Train the job's driver knows."""
POLL_SECONDS = 1.0
CALL_SECONDS = 15.0
SUBMIT_TRIES = 3
"""How often a job is submitted whose submission is not answered; Ray takes a job of the same number only once."""
MAX_UNANSWERED = 5
"""Looks in a row without an answer, after which the run's own folder decides whether it is lost."""
CHECK_SECONDS = 90.0
"""How long a test job may take."""
MAX_BYTES = 20_000_000
"""Of an answer."""
TOKEN, TOKEN_PATH, TOKEN_FILE = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token"
"""Where Ray itself looks for the token, in this order."""
_JOB = re.compile(r"burnish-[0-9a-f]{12}")
_ENDS = ("SUCCEEDED", "FAILED", "STOPPED", "GONE")
_NO_ACCESS = (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN)
_OTHER_NAME = (62, 64)
"""OpenSSL's numbers for a certificate of another host name or IP address."""
_NOT_FOUND = (126, 127)
"""What a shell exits with if a command is not there, or is not a program."""


class Description(msgspec.Struct, frozen=True):
    """What the user's machine says about the cluster and about jobs there."""

    ray: str
    """The dashboard's address."""
    open_cluster: bool = False
    setup: str = ""
    command: str = "burnish"
    cpus: int = 1


class UnreachableError(InputError):
    """Nothing answers at the dashboard's address, or nothing that says anything about a job."""


def describe_job(machine: Machine) -> str:
    """What a run's job is made of, as JSON."""
    found = Description(
        ray=machine.dashboard,
        open_cluster=machine.open_cluster,
        setup=machine.setup,
        command=machine.command,
        cpus=int(machine.cpus or 1),
    )
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode()


def is_job(script: str) -> bool:
    """Whether a script is the description of such a job."""
    return script.startswith("{") and '"ray":' in script


def read_description(text: str | bytes) -> Description:
    """The description that `describe_job` made. Raises InputError."""
    try:
        return msgspec.json.decode(text, type=Description)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(
            "the description of the Ray job is damaged ({error}); update Burnish", error=str(error)
        ) from None


def submit(folder: RunFolder, script: str, options: Sequence[str]) -> None:
    """Submit a job for the run. Raises InputError with what Ray says."""
    description = read_description(script)
    cluster = Cluster(description)
    cluster.connect()
    write_whole(folder.path / DESCRIPTION, script.encode())
    before, job = folder.job_record(), new_job_name()
    if before is not None and before.state == SUBMITTING and before.scheduler == "ray" and _JOB.fullmatch(before.job):
        found = cluster.look_up(before.job)
        if found is not None and found.get("status") not in _ENDS:
            folder.write_job_record(JobRecord(before.job, scheduler="ray"))
            return
        job = before.job if found is None else job
    folder.write_job_record(JobRecord(job, SUBMITTING, scheduler="ray"))  # before the job could start
    try:
        cluster.submit(job, entrypoint(_setup(description), description.command, folder.path, options), folder.name)
    except UnreachableError:  # it may have been taken all the same; whoever submits it again asks for the same number
        raise
    except InputError:
        if before is not None:
            folder.write_job_record(before)
        raise
    folder.write_job_record(JobRecord(job, scheduler="ray"))


def _setup(description: Description) -> str:
    """The set-up commands of a run's job; the consent to an open cluster holds for the addresses of its nodes too."""
    return "\n".join(filter(None, [f"export {OPEN}=1" if description.open_cluster else "", description.setup]))


def check(script: str, folder: Path) -> protocol.Devices:
    """Let the cluster run a small job in the machine's folder. Raises InputError with what is wrong."""
    description = read_description(script)
    cluster = Cluster(description)
    version = cluster.connect()
    job, mark = new_job_name(), f".check-{secrets.token_hex(6)}"
    unwritable = message("the cluster may not write to {folder}; change its permissions", folder=folder)
    agent = (
        f"exec {shlex.quote(description.command)} _agent {shlex.quote(str(folder))} < /dev/null"  # it greets, and ends
    )
    written = shlex.quote(str(folder / mark))  # the set-up commands may have gone to another folder
    command = f"{{ true > {written}; }} 2> /dev/null || {{ echo {shlex.quote(unwritable)} >&2; exit 2; }}\n{agent}"
    cluster.submit(job, in_folder(description.setup, folder, command), "check")
    try:
        state, details = _wait(cluster, job)
        log = cluster.read_log(job)
        if state != "SUCCEEDED":
            raise InputError("{reason}", reason=_reason(details, _last_line(log)))
        if not (folder / mark).exists():
            raise InputError(
                "the cluster has another folder {folder} than this computer; choose one on storage that both share",
                folder=folder,
            )
        versions = _check_versions(log)
    finally:
        (folder / mark).unlink(missing_ok=True)
        cluster.forget(job)
    return protocol.Devices(
        devices=[f"Ray {version}", *cluster.describe_nodes()],
        note=message("its jobs run {versions}", versions=versions),
    )


def _check_versions(log: str) -> str:
    """The versions with which the agent in a job has greeted. Raises InputError if runs could not be trained with them."""
    _, _, rest = log.partition(protocol.GREETING_LINE.decode())
    greeting, _ = protocol.receive(io.BytesIO(rest.partition("\n")[0].encode() + b"\n"))
    assert isinstance(greeting, protocol.Greeting)
    if not same_major(greeting.contract_version):
        raise InputError("its jobs have another version of Burnish; install the same one on its nodes")
    if "ray" not in greeting.versions:
        raise InputError("its jobs have no Ray; install burnish[ray] into the environment of burnish there")
    return one_line(", ".join(f"{name} {version}" for name, version in greeting.versions.items()))


def _wait(cluster: "Cluster", job: str) -> tuple[str, dict[str, Any]]:
    until = time.monotonic() + CHECK_SECONDS
    while time.monotonic() < until:
        details = cluster.look_up(job) or {}
        if (state := str(details.get("status"))) in _ENDS:
            return state, details
        time.sleep(POLL_SECONDS / 4)
    with suppress(InputError):
        cluster.stop(job)
    raise InputError(
        "the cluster did not finish a test job within {seconds:.0f} seconds; look at its dashboard for the reason",
        seconds=CHECK_SECONDS,
    )


class RayJob(Job):
    """The job of a run, as Ray knows it; its state is GONE if Ray does not know the job any longer."""

    PENDING_STATES = ("PENDING",)

    def __init__(self, record: JobRecord, cluster: "Cluster") -> None:
        super().__init__(record, POLL_SECONDS)
        self._cluster, self._details = cluster, dict[str, Any]()
        self._unanswered = 0
        """Looks in a row."""

    def life(self, folder: RunFolder) -> str:
        """As `RunFolder.life`. A run whose driver was killed is lost, and so is one whose cluster has gone."""
        self.poll()
        if not folder.exists():
            return "ended"
        if self._unanswered or self.trouble:
            life = folder.life()
            return life if life == "ended" or (life == "lost" and self._unanswered >= MAX_UNANSWERED) else "alive"
        if self.state not in _ENDS or folder.is_carried():
            return "alive"
        is_lost = self.state in ("FAILED", "GONE") and folder.process_record() and not folder.exit_record()
        return "lost" if is_lost else "ended"

    def _look_up(self) -> None:
        if self.state in _ENDS:
            return
        try:
            found = self._cluster.look_up(self.record.job)
        except UnreachableError:
            self._unanswered += 1
            return
        except InputError as error:  # such as a token that has expired: the run goes on, and people can renew it
            self.trouble = str(error)
            return
        self._unanswered, self.trouble = 0, ""
        self._details = found or {}
        self.state = str(self._details.get("status")) if found else "GONE"
        if self.is_pending:
            self.record = JobRecord(self.record.job, PENDING, "Pending", scheduler="ray")
        elif self.state == "RUNNING":
            started = self._details.get("start_time")
            seconds = started / 1000 if isinstance(started, int | float) else 0.0
            self.record = JobRecord(self.record.job, RUNNING, starts=seconds, scheduler="ray")

    def stop(self) -> None:
        """Let Ray end it: SIGTERM, and SIGKILL after some seconds. Raises InputError."""
        self._cluster.stop(self.record.job)

    def end(self, folder: RunFolder) -> tuple[str, str]:
        """See `Job.end`."""
        match self.state:
            case "STOPPED" if self._end_state:
                return self._end_state, ""
            case "STOPPED":
                return "interrupted", message("its job was stopped in Ray")
            case "GONE":
                return "interrupted", message(
                    "Ray does not know its job any longer; resume it to continue from its last checkpoint"
                )
            case "FAILED":
                log = ""
                with suppress(InputError):
                    log = self._cluster.read_log(self.record.job)
                return "", _reason(self._details, _last_line(log))
            case _:
                return "", ""


def job_of(record: JobRecord, script: str) -> RayJob | None:
    """The job of that record; None if it is none: the record may be a stranger's, and becomes part of an address."""
    return RayJob(record, Cluster(read_description(script))) if _JOB.fullmatch(record.job) else None


def _reason(details: dict[str, Any], said: str) -> str:
    """Why a job failed, from what Ray and the job's last line say."""
    if details.get("driver_exit_code") in _NOT_FOUND:
        return message("burnish is not installed there, or its set-up commands do not make it available")
    return said or _last_line(str(details.get("message") or "")) or message("no reason given")


class Cluster:
    """A Ray cluster, seen through its dashboard."""

    def __init__(self, description: Description) -> None:
        self._address, self._is_open = description.ray, description.open_cluster
        self._host = urlsplit(description.ray).hostname or ""
        self._token = ""
        self._is_checked = False
        self._web = urllib.request.build_opener(_NoRedirect)

    def connect(self) -> str:
        """Ray's version there. Raises InputError if it is too old, wants another token, or is open to strangers."""
        self._token = ""
        code, content = self._call("GET", "/api/version", b"")
        if code == http.HTTPStatus.UNAUTHORIZED:
            self._token = read_token(self._address)
            self._refuse_plain_token()
            code, content = self._call("GET", "/api/version", b"")
        elif offline.is_public(self._host) and not self._is_open:
            raise InputError(
                "the Ray cluster at {address} is at a public address and asks for no token, so anyone can run programs "
                "there; turn on its token authentication (RAY_AUTH_MODE=token), or agree with --open-cluster",
                address=self._address,
            )
        if code != http.HTTPStatus.OK:
            self._refuse(code, content)
        version = str(_parse(content).get("ray_version") or "")
        if not re.match(r"\d+\.\d+", version) or tuple(map(int, version.split(".")[:2])) < OLDEST:
            raise InputError(
                "the Ray cluster at {address} has Ray {version}, but Burnish needs {oldest} or newer; update it there",
                address=self._address,
                version=one_line(version)[:40] or message("unknown"),
                oldest=".".join(map(str, OLDEST)),
            )
        self._is_checked = True
        return version

    def submit(self, job: str, command: str, name: str) -> None:
        """Submit a job under this number. Raises InputError; if it is an UnreachableError, the job may have been taken."""
        values = {"entrypoint": command, "submission_id": job, "metadata": {"burnish_run": name}}
        for tries_left in reversed(range(SUBMIT_TRIES)):
            try:
                self.ask("POST", "/api/jobs/", values)
                return
            except (
                InputError
            ) as error:  # the answer may have been lost, or Ray refuses the number because it has taken it
                with suppress(InputError):
                    if self.look_up(job) is not None:
                        return
                if not tries_left or not isinstance(error, UnreachableError):
                    raise
            time.sleep(POLL_SECONDS)

    def look_up(self, job: str) -> dict[str, Any] | None:
        """What Ray knows of a job; None if it does not know it. Raises InputError."""
        return self.ask("GET", f"/api/jobs/{job}")

    def stop(self, job: str) -> None:
        """End a job; one that has ended stays as it is. Raises InputError."""
        self.ask("POST", f"/api/jobs/{job}/stop", {})

    def forget(self, job: str) -> None:
        """Remove a job that has ended from the cluster's list."""
        with suppress(InputError):
            self.ask("DELETE", f"/api/jobs/{job}")

    def read_log(self, job: str) -> str:
        """What the job has printed. Raises InputError."""
        return str((self.ask("GET", f"/api/jobs/{job}/logs") or {}).get("logs") or "")

    def describe_nodes(self) -> list[str]:
        """`2 nodes, 4 CPU, 1 GPU`; nothing if the dashboard does not say."""
        with suppress(InputError, KeyError, TypeError, ValueError, AttributeError):
            summary = (self.ask("GET", "/nodes?view=summary") or {})["data"]["summary"]
            alive = [node["raylet"] for node in summary if node["raylet"]["state"] == "ALIVE"]
            totals = [raylet.get("resourcesTotal") or {} for raylet in alive]
            counts = {kind: sum(float(one.get(kind, 0)) for one in totals) for kind in ("CPU", "GPU", "TPU")}
            words = [
                plural("{count} node", "{count} nodes", len(alive)),
                *(f"{count:g} {kind}" for kind, count in counts.items() if count),
            ]
            return [", ".join(words)]
        return []

    def ask(self, method: str, path: str, values: Any = None) -> dict[str, Any] | None:
        """Its answer; None if there is no such thing there. Raises InputError."""
        if not self._is_checked:
            self.connect()
        code, content = self._call(method, path, b"" if values is None else json.dumps(values).encode())
        if code == http.HTTPStatus.NOT_FOUND:
            return None
        if code != http.HTTPStatus.OK:
            if code in _NO_ACCESS:  # the next call reads the token again, which may have been renewed
                self._token, self._is_checked = "", False
            self._refuse(code, content)
        return _parse(content)

    def _call(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        headers = {"User-Agent": "burnish", "Content-Type": "application/json"}
        request = urllib.request.Request(self._address + path, body or None, headers, method=method)
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            with offline.allow_network(), self._web.open(request, timeout=CALL_SECONDS) as answer:  # the user named it
                return answer.status, answer.read(MAX_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(MAX_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError) and reason.verify_code in _OTHER_NAME:
                raise UnreachableError(
                    "the certificate of the Ray cluster at {address} is for another name ({reason}); use the address that it names",
                    address=self._address,
                    reason=one_line(reason.verify_message).rstrip(".")[:200],
                ) from None
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise UnreachableError(
                    "the certificate of the Ray cluster at {address} is not trusted here ({reason}); name the file of the "
                    "authority that signed it in SSL_CERT_FILE",
                    address=self._address,
                    reason=one_line(reason.verify_message)[:200],
                ) from None
            if isinstance(reason, ssl.SSLError) and reason.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
                raise UnreachableError(
                    "{address} does not speak https; write the address with http, or turn on https there",
                    address=self._address,
                ) from None
            raise UnreachableError(
                "no Ray cluster answers at {address} ({reason}); check the address, the network and whether Ray runs there",
                address=self._address,
                reason=one_line(str(getattr(reason, "strerror", None) or reason) or type(error).__name__)[:200],
            ) from None

    def _refuse_plain_token(self) -> None:
        if urlsplit(self._address).scheme == "http" and offline.is_public(self._host) and not self._is_open:
            raise InputError(
                "the Ray cluster at {address} is at a public address without https, where others could read the token; use "
                "an address with https or an ssh tunnel, or agree with --open-cluster",
                address=self._address,
            )

    def _refuse(self, code: int, content: bytes) -> NoReturn:
        if code in _NO_ACCESS:
            raise InputError(
                "the Ray cluster at {address} does not accept your token; put the right one into {variable} or {file}",
                address=self._address,
                variable=TOKEN,
                file=TOKEN_FILE,
            )
        words = _last_line(content.decode(errors="replace"))
        is_passing = code >= http.HTTPStatus.INTERNAL_SERVER_ERROR or code == http.HTTPStatus.TOO_MANY_REQUESTS
        raise (UnreachableError if is_passing else InputError)(
            "the Ray cluster at {address} refuses this (HTTP {code}): {reason}",
            address=self._address,
            code=code,
            reason=words[:300] or message("no reason given"),
        )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Nothing is sent to another address than the one that the user gave."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Refuse it; the answer with the other address is then an error."""


def read_token(address: str) -> str:
    """The token, from where Ray itself reads it. Raises InputError if there is none, or if others can read it."""
    if token := os.environ.get(TOKEN, "").strip():
        return _check_token(token, TOKEN)
    path = user_path(os.environ.get(TOKEN_PATH) or TOKEN_FILE)
    try:
        if os.name != "nt" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InputError("{path}: others can read this token; run: chmod 600 {path}", path=path)
        token = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        token = ""
    if not token:
        raise InputError(
            "the Ray cluster at {address} asks for a token; put it into {variable}, or into {file} with mode 600",
            address=address,
            variable=TOKEN,
            file=path,
        )
    return _check_token(token, str(path))


def _check_token(token: str, place: str) -> str:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InputError("{place} does not hold a token of Ray; write nothing else into it", place=place)
    return token


def _parse(content: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        found = parse_json(content) if content else {}
        if isinstance(found, dict):
            return found
    raise UnreachableError("the answer is not one of a Ray dashboard; check the address")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return one_line(lines[-1].strip())[:1000] if lines else ""
