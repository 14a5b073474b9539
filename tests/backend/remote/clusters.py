"""The real things on this computer, each with folders, ports and keys of its own: an ssh server, a Slurm, a Ray cluster."""

import getpass
import importlib.util
import os
import platform
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

SYSTEM_PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
PROGRAMS = {"sshd": ("sshd", "ssh"), "slurm": ("munged", "slurmctld", "slurmd", "sbatch"), "ray": ()}


def missing(name: str) -> str:
    """What is not installed here of `sshd`, `slurm` or `ray`, as the reason to skip a test; empty if nothing."""
    if name == "ray":
        return "" if importlib.util.find_spec("ray") else "needs Ray (pip install burnish[ray])"
    lacking = [program for program in PROGRAMS[name] if shutil.which(program, path=SYSTEM_PATH) is None]
    return f"needs the programs {', '.join(lacking)} (packages openssh-server, slurmctld, slurmd, munge)" if lacking else ""  # fmt: skip


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait until it holds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.1)


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _start(command: list[str], environment: Mapping[str, str], log: Path) -> psutil.Popen:
    with log.open("ab") as file:
        return psutil.Popen(command, env=dict(environment), stdout=file, stderr=file, stdin=subprocess.DEVNULL)


def _end(processes: list[psutil.Popen]) -> None:
    for process in reversed(processes):
        family = [process, *process.children(recursive=True)] if process.is_running() else []
        for one in family:
            one.terminate()
        for one in psutil.wait_procs(family[1:], 20)[1]:
            one.kill()
        process.wait(20)


@contextmanager
def sshd(folder: Path) -> Iterator[Path]:
    """An ssh server, and the configuration of `ssh` in which it is the Host `lab`."""
    program = shutil.which("sshd", path=SYSTEM_PATH)
    assert program
    for name in ("host_key", "client_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    port = free_port()
    (folder / "authorized_keys").write_bytes((folder / "client_key.pub").read_bytes())
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host_key.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nAuthorizedKeysFile {folder}/authorized_keys\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nMaxStartups 100\n"
    )
    (folder / "ssh_config").write_text(
        f"Host lab\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {folder}/client_key\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known_hosts\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server = _start([program, "-D", "-f", str(folder / "sshd_config")], os.environ, folder / "sshd.log")
    try:
        wait_for(lambda: _is_open(port))
        yield folder / "ssh_config"
    finally:
        _end([server])


@contextmanager
def slurm(folder: Path) -> Iterator[Path]:
    """The configuration of a running Slurm of one node (`SLURM_CONF`)."""
    folder.chmod(0o755)
    munge = folder / "munge"
    munge.mkdir(mode=0o700)
    (munge / "key").write_bytes(os.urandom(128))
    (munge / "key").chmod(0o600)
    name, user = platform.node().partition(".")[0], getpass.getuser()
    path = folder / "slurm.conf"
    path.write_text(f"""\
ClusterName=test
SlurmctldHost={name}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={munge}/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
KillWait=10
NodeName={name} NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000
PartitionName=debug Nodes={name} Default=YES MaxTime=INFINITE State=UP
""")
    (folder / "state").mkdir()
    (folder / "spool").mkdir()
    commands = (
        ["munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
         f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"],
        ["slurmctld", "-D", "-f", str(path)],
        ["slurmd", "-D", "-f", str(path)],
    )  # fmt: skip
    environment = {**os.environ, "PATH": SYSTEM_PATH, "SLURM_CONF": str(path)}
    running: list[psutil.Popen] = []
    try:
        for command in commands:
            program = shutil.which(command[0], path=SYSTEM_PATH)
            assert program
            running.append(_start([program, *command[1:]], environment, folder / "output.log"))
            wait_for(lambda: (munge / "socket").exists())
        wait_for(lambda: b"idle" in subprocess.run(["sinfo", "-h"], env=environment, capture_output=True).stdout)
        yield path
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()


class RayCluster(NamedTuple):
    """Where a running cluster is."""

    dashboard: str
    token: str
    address: str
    """Where its own nodes meet."""


@contextmanager
def ray(folder: Path, nodes: int = 2) -> Iterator[RayCluster]:
    """A cluster whose nodes have two CPUs each."""
    token, port, http = secrets.token_hex(16), free_port(), free_port()
    environment = {
        **os.environ,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "RAY_memory_monitor_refresh_ms": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "HOME": str(folder),
    }
    program = str(Path(sys.executable).with_name("ray"))
    shared = ["--num-cpus=2", "--num-gpus=0", "--block", "--disable-usage-stats"]
    running: list[psutil.Popen] = []
    with TemporaryDirectory(prefix="ray-") as short:  # the paths of sockets are short
        head = ["--head", "--node-ip-address=127.0.0.1", f"--port={port}", "--dashboard-host=127.0.0.1",
                f"--dashboard-port={http}", f"--temp-dir={short}"]  # fmt: skip
        try:
            running.append(_start([program, "start", *head, *shared], environment, folder / "head.log"))
            wait_for(lambda: _is_open(port) and _is_open(http))
            for _ in range(nodes - 1):
                running.append(
                    _start([program, "start", f"--address=127.0.0.1:{port}", *shared], environment, folder / "node.log")
                )
            yield RayCluster(f"http://127.0.0.1:{http}", token, f"127.0.0.1:{port}")
        finally:
            _end(running)
