"""A worker of Ray Train: it starts the process of its rank, and waits for it.

It runs in a process of Ray, on any node, where only plain values come from and go to.
"""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend import process_tree, restart, supervisor
from backend.contract import offline
from backend.contract.messages import message
from backend.contract.run.folder import INTERRUPTED_EXIT_CODE, RunFolder, write_json
from backend.contract.safe_files import open_inside
from backend.engines.hosts import OPEN

WORKERS = "workers.json"
"""Which attempt has workers, and where the first one is."""
POLL_SECONDS = 0.2
FENCE_SECONDS = 1.0
"""How often a worker looks whether its attempt is still the last one."""
MISSING = "missing"
"""The first word of an error that says what is wrong with a worker's node; only such plain values come back from it."""


def take_part(config: Mapping[str, Any]) -> int:
    """Start the process of this worker's rank, and wait for it. Raises ChildProcessError(returncode, killed_by) if it fails."""
    from ray.train import get_context

    folder, context = RunFolder(config["run"]), get_context()
    rank, count = context.get_world_rank(), context.get_world_size()
    if not folder.exists():
        raise FileNotFoundError(
            MISSING,
            message(
                "the node {node} does not see {folder}; choose a folder on storage that all nodes of the cluster share",
                node=socket.gethostname(),
                folder=folder.path,
            ),
        )
    with tempfile.TemporaryDirectory(prefix="burnish-") as place:
        is_one_node = context.get_local_world_size() == count
        rendezvous = _meet(Path(place), rank, is_one_node, config) if count > 1 else ""
        if rank == 0:
            write_json(folder.path / WORKERS, {"attempt": config["attempt"], "node": socket.gethostname()})
        return _wait_for(folder, rank, count, rendezvous, config)


def _meet(place: Path, rank: int, is_one_node: bool, config: Mapping[str, Any]) -> str:
    """Where the processes meet: in a file, so that nothing listens, or at a port of the first, if they need one or are on several nodes.

    Raises PermissionError if strangers could reach that port and the user has not agreed to it.
    """
    from ray.train.collective import broadcast_from_rank_zero

    found = ""
    if rank == 0:
        is_file = is_one_node and not config["are_hosts"]
        found = str(place / "rendezvous") if is_file else f"tcp://{_free_port(is_one_node, config['is_open'])}"
    return broadcast_from_rank_zero(found)


def _free_port(is_one_node: bool, is_open: bool) -> str:
    import ray

    host = "127.0.0.1" if is_one_node else ray.util.get_node_ip_address()
    if offline.is_public(host) and not is_open:
        sentence = message(
            "the nodes would meet at {host}, which can be reached from everywhere, and nobody is asked for a password there; give them "
            "addresses that only they reach, or agree with {variable}=1 or the machine's --open-cluster",
            host=host,
            variable=OPEN,
        )
        raise PermissionError(MISSING, sentence)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _wait_for(folder: RunFolder, rank: int, count: int, rendezvous: str, config: Mapping[str, Any]) -> int:
    from backend.training.processes import log_name, process_command

    kills = restart.count_memory_kills()
    log = open_inside(folder.path, log_name(rank), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        process = subprocess.Popen(
            process_command(folder, rank, count, rendezvous),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **config["environment"], process_tree.MARKER: str(folder.path)},
            preexec_fn=supervisor.die_with(os.getpid()),
        )
    finally:
        os.close(log)
    try:
        _watch(folder, process, config["attempt"])
    finally:
        if process.poll() is None:
            process_tree.kill(process.pid)
            process.wait()
    if process.returncode not in (0, INTERRUPTED_EXIT_CODE):
        raise ChildProcessError(process.returncode, restart.killed_by(process.returncode, kills))
    return process.returncode


def _watch(folder: RunFolder, process: "subprocess.Popen[bytes]", attempt: int) -> None:
    """Wait until the process has ended, or another attempt has begun: Ray may find out late that a driver is gone."""
    looked = time.monotonic()
    while process.poll() is None:
        time.sleep(POLL_SECONDS)
        if time.monotonic() - looked >= FENCE_SECONDS:
            looked = time.monotonic()
            record = folder.process_record()
            if record is not None and record.attempt != attempt:
                return
