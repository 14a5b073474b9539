"""Two hosts with two processors each compute what one with four computes; who they are is told or refused in a sentence."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import psutil
import pytest
from jax._src import distributed

from backend.contract import offline
from backend.contract.errors import InputError, RunFailed
from backend.contract.spec.section import validate
from backend.engines.hosts import Position
from backend.engines.jax import JaxEntry, Settings, cluster
from tests.backend.engines.example_batches import BERT_TINY, VOCABULARY

HOSTS = 2
BERT = {"do": "train", "model": str(BERT_TINY), "head": "sequence_classification", "vocabulary": 30522, "dropout": 0.1}
FSDP = {"parallelism": "fsdp"}
SLURM = {
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_NODELIST": "node[3-4]",
    "SLURM_NTASKS": "2",
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "0",
}


def on_processors(count: int, *arguments: str) -> subprocess.Popen[str]:
    """A process of `on_devices.py` with so many processors."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
    command = [sys.executable, "-m", "tests.backend.engines.on_devices", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "XLA_FLAGS": flags}
    )


def answers(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def on_hosts(*tasks: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """What each of the hosts made of the tasks."""
    where = f"127.0.0.1:{free_port()}"
    started = [on_processors(2, json.dumps(tasks), str(number), str(HOSTS), where) for number in range(HOSTS)]
    return [answers(each) for each in started]


def alone(*tasks: dict[str, Any]) -> list[dict[str, Any]]:
    """What one host with four processors made of them."""
    return answers(on_processors(4, json.dumps(tasks)))


@pytest.mark.slow
def test_two_hosts_lose_and_answer_what_one_does(tiny: Callable[[str], Path]):
    llama = {"do": "train", "model": str(tiny("llama")), "head": "causal_lm", "vocabulary": VOCABULARY, "writes": True}
    tasks = [
        {**BERT, "settings": FSDP, "passes": 2},
        {**llama, "settings": FSDP | {"tensor_parallel": 2}},
        {**llama, "settings": {"tensor_parallel": 4}, "writes": False},
    ]
    first, second = on_hosts(*({**task, "devices": 2} for task in tasks))
    for found, other, whole in zip(first, second, alone(*({**task, "devices": 4} for task in tasks)), strict=True):
        assert found == other
        np.testing.assert_allclose(found["losses"], whole["losses"], rtol=0, atol=1e-5)
        for name, values in whole["outputs"].items():
            np.testing.assert_allclose(found["outputs"][name], values, rtol=0, atol=1e-4)
        assert found["written"] == whole["written"]
        assert found["share"] == pytest.approx(whole["share"])
    assert first[0]["share"] < 0.26


@pytest.mark.slow
def test_one_host_goes_on_where_two_have_stopped(tmp_path: Path):
    for name in ("state", "model"):
        (tmp_path / name).mkdir()
    task = {**BERT, "settings": FSDP, "folder": str(tmp_path)}
    [before], _ = on_hosts({**task, "do": "save", "devices": 2})
    after, whole = alone({**task, "do": "go_on", "devices": 4}, {**BERT, "devices": 4})
    np.testing.assert_allclose(before["losses"] + after["losses"], whole["losses"], rtol=0, atol=1e-5)
    assert after["equal"]


@pytest.mark.parametrize(("number", "who"), [(0, "the other hosts"), (1, "the first host at 10.0.0.1:8476")])
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("DEADLINE_EXCEEDED: Barrier timed out.\nTimed out task names: 1", "DEADLINE_EXCEEDED: Barrier timed out."),
        ("", "no reason given by JAX"),
    ],
)
def test_a_host_that_does_not_come_is_a_sentence(
    number: int, who: str, said: str, why: str, monkeypatch: pytest.MonkeyPatch
):
    waited: list[int] = []

    def wait_in_vain(*_: object, initialization_timeout: int, **more: object) -> None:
        waited.append(initialization_timeout)
        raise jax.errors.JaxRuntimeError(said)

    monkeypatch.setattr(jax.distributed, "initialize", wait_in_vain)
    with pytest.raises(RunFailed) as failed:
        cluster.join(Position(number, 2, "10.0.0.1:8476", 7))
    assert (failed.value.code, str(failed.value)) == ("hosts_not_met", f"{who} could not be reached: {why}")
    assert failed.value.hint == (
        "Run the same command on all 2 hosts, each with its own BURNISH_HOST, or raise hardware.host_timeout."
    )
    assert waited == [15]


class Client:
    """What JAX's coordination service answers to every question."""

    def __init__(self, said: str) -> None:
        self.said = said

    def key_value_try_get(self, key: str) -> str:
        raise jax.errors.JaxRuntimeError(self.said)


def store(said: str, monkeypatch: pytest.MonkeyPatch) -> cluster.JaxStore:
    monkeypatch.setattr(distributed.global_state, "client", Client(said))
    return cluster.JaxStore()


def test_a_word_that_is_not_there_yet_is_none(monkeypatch: pytest.MonkeyPatch):
    assert store("NOT_FOUND: no such key", monkeypatch).get("a/word", 0) is None


def test_a_first_host_that_is_gone_is_a_sentence(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(RunFailed) as failed:
        store("UNAVAILABLE: connection refused\nmore", monkeypatch).get("a/word", 0)
    said = "the first host can no longer be reached (UNAVAILABLE: connection refused)"
    assert (failed.value.code, str(failed.value)) == ("host_lost", said)


def test_one_host_is_the_first_of_one():
    assert JaxEntry.position(Settings()) == Position(0, 1)


def test_a_host_is_told_its_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(cluster.NUMBER, "1")
    found = JaxEntry.position(Settings(hosts=3, coordinator="10.0.0.1:8476", host_timeout=20))
    assert found == Position(1, 3, "10.0.0.1:8476", 20)


def test_slurm_tells_what_the_spec_does_not(monkeypatch: pytest.MonkeyPatch):
    for name, value in SLURM.items():
        monkeypatch.setenv(name, value)
    found = JaxEntry.position(Settings(hosts=2))
    assert (found.number, found.count) == (1, 2)
    assert found.coordinator.startswith("node3:")
    with pytest.raises(InputError, match=r"hardware\.hosts: the spec asks for 3, but this job has 2; set it to 2"):
        JaxEntry.position(Settings(hosts=3))


@pytest.mark.parametrize(
    ("number", "coordinator", "words", "field"),
    [
        ("0", "", "hardware.coordinator: set the address of the first of the 2 hosts", "hardware.coordinator"),
        (
            "",
            "10.0.0.1:8476",
            "hardware.hosts: the spec is the same on all 2 hosts.* set BURNISH_HOST=0",
            "hardware.hosts",
        ),
        ("2", "10.0.0.1:8476", "BURNISH_HOST: '2' is not a host number; .* so use 0 to 1", "hardware.hosts"),
        ("one", "10.0.0.1:8476", "BURNISH_HOST: 'one' is not a host", "hardware.hosts"),
    ],
)
def test_a_host_that_is_not_told_who_it_is_is_refused(
    monkeypatch: pytest.MonkeyPatch, number: str, coordinator: str, words: str, field: str
):
    monkeypatch.setenv(cluster.NUMBER, number)
    with pytest.raises(InputError, match=words) as refusal:
        JaxEntry.position(Settings(hosts=2, coordinator=coordinator))
    assert refusal.value.field == field


def test_a_coordinator_at_a_public_address_needs_consent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(cluster.NUMBER, "0")
    for address in ("8.8.8.8:8476", "[2001:4860:4860::8888]:8476"):
        settings = Settings(hosts=2, coordinator=address)
        with pytest.raises(InputError, match=r"^hardware\.coordinator: .* can be reached from everywhere"):
            JaxEntry.position(settings)
        with monkeypatch.context() as consent:
            consent.setenv(cluster.OPEN, "1")
            assert JaxEntry.position(settings).coordinator == address


@pytest.mark.parametrize("address", ["10.0.0.1", "10.0.0.1:", ":8476", "host:http", "host:70000"])
def test_an_address_without_a_port_is_refused(address: str):
    with pytest.raises(InputError, match=r"hardware\.coordinator: .* such as 10\.0\.0\.1:8476"):
        validate(Settings, {"coordinator": address}, "hardware")


@pytest.mark.parametrize(
    ("coordinator", "meant", "own", "listens"),
    [
        ("10.0.0.1:8476", [], [], "10.0.0.1:8476"),
        ("[fd00::1]:8476", [], [], "[fd00::1]:8476"),
        ("localhost:8476", ["127.0.0.1"], ["10.0.0.1"], "127.0.0.1:8476"),
        ("trainer:8476", ["10.0.0.1"], ["10.0.0.1", "8.8.8.8"], "10.0.0.1:8476"),
        ("trainer:8476", ["fd00::1"], ["10.0.0.1", "fd00::1"], "[fd00::1]:8476"),
        ("trainer:8476", ["127.0.1.1"], ["10.0.0.1"], "10.0.0.1:8476"),  # as Debian has it
        ("trainer:8476", ["127.0.1.1"], ["10.0.0.1", "10.1.0.1"], "[::]:8476"),  # which one others use is not known
    ],
)
def test_the_first_host_listens_at_the_address_alone_that_its_name_means(
    coordinator: str, meant: list[str], own: list[str], listens: str, monkeypatch: pytest.MonkeyPatch
):
    _have_addresses(monkeypatch, meant, own)
    assert cluster.listen_address(coordinator) == listens


def _have_addresses(monkeypatch: pytest.MonkeyPatch, meant: list[str], own: list[str]) -> None:
    find = offline.find_addresses
    monkeypatch.setattr(
        offline, "find_addresses", lambda host: meant if host in ("trainer", "localhost") else find(host)
    )
    family = {one: socket.AF_INET6 if ":" in one else socket.AF_INET for one in own}
    known = {"eth0": [SimpleNamespace(family=family[one], address=one) for one in own]}
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: known)


def test_a_first_host_that_would_listen_at_a_public_address_needs_consent(monkeypatch: pytest.MonkeyPatch):
    """Its name means its loopback address there, so it must listen at all of its addresses."""
    monkeypatch.setenv(cluster.NUMBER, "0")
    settings = Settings(hosts=2, coordinator="trainer:8476")
    _have_addresses(monkeypatch, ["127.0.1.1"], ["10.0.0.1", "8.8.8.8"])
    with pytest.raises(InputError, match="can be reached from everywhere"):
        JaxEntry.position(settings)
    monkeypatch.setenv(cluster.NUMBER, "1")  # it does not listen
    assert JaxEntry.position(settings).number == 1
