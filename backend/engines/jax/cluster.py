"""Connects the hosts of a run through `jax.distributed`; imports jax only where needed."""

import ipaddress
import os
import socket
from typing import Any

import psutil

from backend.contract import offline
from backend.contract.errors import InputError, RunFailed
from backend.contract.messages import message
from backend.engines.hosts import OPEN, Position

NUMBER = "BURNISH_HOST"
"""Environment variable with this host's number; not in the spec, which is the same for all."""
HEARTBEAT_SECONDS = 30
"""JAX ends the others if a process gives no sign of life for so long; a thread of its own gives it, whatever else that does."""
LEAVE_SECONDS = 300
"""Whoever computed its last metrics first waits so long for the others."""


def position(hosts: int, coordinator: str, timeout: float) -> Position:
    """Which of this many hosts this one is; an empty `coordinator` is detected.

    Raises InputError if neither the spec, `BURNISH_HOST` nor a TPU pod or Slurm tells.
    """
    if hosts == 1:
        return Position()
    number = _configured_host_number(hosts)
    if not coordinator or number is None:
        found = _detect_position()
        if found is not None:
            _check_count(hosts, found.count)
            coordinator = coordinator or found.coordinator
            number = found.number if number is None else number
    if not coordinator:
        raise InputError(
            "hardware.coordinator: set the address of the first of the {hosts} hosts, such as "
            "10.0.0.1:8476; only TPU pods and Slurm work without it",
            "hardware.coordinator",
            hosts=hosts,
        )
    if number is None:
        raise InputError(
            "hardware.hosts: the spec is the same on all {hosts} hosts, so it cannot specify which "
            "one this is; set {number}=0 on the first, {number}=1 on the second and so on",
            _HOSTS,
            hosts=hosts,
            number=NUMBER,
        )
    _refuse_public(coordinator, is_first=number == 0)
    return Position(number, hosts, coordinator, timeout)


def _refuse_public(coordinator: str, *, is_first: bool) -> None:
    """Raises InputError if strangers could reach the coordinator and the user has not agreed to that."""
    hosts = [_host(coordinator)]
    if is_first and _host(listen_address(coordinator)) == _EVERYWHERE:
        hosts += _own_addresses()
    if os.environ.get(OPEN) == "1" or not any(map(offline.is_public, hosts)):
        return
    raise InputError(
        "hardware.coordinator: {coordinator} can be reached from everywhere, and JAX asks nobody for a password there; choose an "
        "address that only your machines reach, or agree with {variable}=1",
        "hardware.coordinator",
        coordinator=coordinator,
        variable=OPEN,
    )


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def _check_count(wanted: int, there: int) -> None:
    if wanted != there:
        raise InputError(
            "hardware.hosts: the spec asks for {wanted}, but this job has {there}; set it to {there}",
            _HOSTS,
            wanted=wanted,
            there=there,
        )


def _configured_host_number(count: int) -> int | None:
    given = os.environ.get(NUMBER, "").strip()
    if not given:
        return None
    if not given.isdecimal() or int(given) >= count:
        raise InputError(
            "{number}: {given} is not a host number; hardware.hosts is {count}, so use 0 to {count_2}",
            _HOSTS,
            number=NUMBER,
            given=repr(given),
            count=count,
            count_2=count - 1,
        )
    return int(given)


def _detect_position() -> Position | None:
    """Detect it as JAX does on TPU pods, under Slurm and the like."""
    from jax._src.clusters import ClusterEnv  # no public name tells it before `initialize` acts on it

    try:
        coordinator, count, number, _ = ClusterEnv.auto_detect_unset_distributed_params(
            None, None, None, None, None, _DETECTION_SECONDS
        )
    except (RuntimeError, ValueError, KeyError, OSError) as error:
        raise InputError(
            "hardware.hosts: JAX cannot tell which host this is ({error}); set hardware.coordinator and {number}",
            _HOSTS,
            error=error,
            number=NUMBER,
        ) from error
    if coordinator is None or count is None or number is None:
        return None
    return Position(number, count, coordinator)


def join(here: Position) -> "JaxStore":
    """Connect to the other hosts; from here on JAX sees the devices of all. Raises RunFailed if that fails.

    JAX ends the process if a host is late, so the caller should notice earlier.
    """
    import jax  # takes seconds, and no run on one host needs it here

    try:
        jax.distributed.initialize(
            here.coordinator, here.count, here.number, initialization_timeout=int(2 * here.timeout) + 1,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS, shutdown_timeout_seconds=LEAVE_SECONDS,
            cluster_detection_method="deactivate", coordinator_bind_address=listen_address(here.coordinator),
        )  # fmt: skip
    except jax.errors.JaxRuntimeError as error:
        raise _not_met(here, error) from error
    return JaxStore()


def listen_address(coordinator: str) -> str:
    """Where the first host listens: at that address only, or if it is given by name, at the one that the name means here.

    At all of its addresses only if it has several and the name means none of them: a host's own name may only mean its loopback address
    there. It is always set, so that no variable in a spec's environment decides it.
    """
    name, port = _host(coordinator), coordinator.rpartition(":")[2]
    if _is_address(name):
        return coordinator
    meant, own = offline.find_addresses(name), _own_addresses()
    found = [one for one in meant if one in own or name.lower() == "localhost"]
    if not found and len(own) == 1:
        found = own
    return _join(found[0] if found else _EVERYWHERE, port)


def _join(host: str, port: str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _own_addresses() -> list[str]:
    """This computer's addresses that others can reach."""
    kinds = (socket.AF_INET, socket.AF_INET6)
    known = [one.address for several in psutil.net_if_addrs().values() for one in several if one.family in kinds]
    parsed = [(one, ipaddress.ip_address(one.partition("%")[0])) for one in known]
    return [text for text, one in parsed if not one.is_loopback and not one.is_link_local]


def _not_met(here: Position, error: Exception) -> RunFailed:
    who = (
        message("the other hosts")
        if here.is_first
        else message("the first host at {coordinator}", coordinator=here.coordinator)
    )
    why = next(iter(str(error).splitlines()), "") or message("no reason given by JAX")
    return RunFailed(
        "{who} could not be reached: {error}",
        "hosts_not_met",
        hint=message(
            "Run the same command on all {count} hosts, each with its own {number}, or raise hardware.host_timeout.",
            count=here.count,
            number=NUMBER,
        ),
        who=who,
        error=why,
    )


class JaxStore:
    """The key-value store of JAX's coordination service (`backend.engines.hosts.Store`)."""

    def __init__(self) -> None:
        import jax
        from jax._src import distributed  # no public name leads to the store; Orbax takes this one too

        self._client = distributed.global_state.client
        self._error, self._shutdown = jax.errors.JaxRuntimeError, jax.distributed.shutdown

    def put(self, key: str, word: str) -> None:
        """See `Store.put`."""
        self._call(lambda client: client.key_value_set(key, word, allow_overwrite=True))

    def get(self, key: str, seconds: float) -> str | None:
        """See `Store.get`."""
        if seconds <= 0:
            return self._call(lambda client: client.key_value_try_get(key))
        return self._call(lambda client: client.blocking_key_value_get(key, int(seconds * 1000)))

    def forget(self, folder: str) -> None:
        """See `Store.forget`."""
        self._call(lambda client: client.key_value_delete(f"{folder}/"))

    def wait_for_all(self, name: str) -> None:
        """See `Store.wait_for_all`."""
        self._call(lambda client: client.wait_at_barrier(name, _ANY_TIME_MS))

    def is_torn(self, error: Exception) -> bool:
        """See `Store.is_torn`."""
        if isinstance(error, ValueError):  # as which a torn connection between CPUs is raised too
            return _GLOO in str(error)
        return isinstance(error, self._error) and not str(error).startswith(_OWN)

    def leave(self) -> None:
        """See `Store.leave`."""
        self._call(lambda _: self._shutdown())

    def _call(self, ask: Any) -> Any:
        try:
            return ask(self._client)
        except self._error as error:
            if str(error).startswith(_NOT_THERE):
                return None
            reason = next(iter(str(error).splitlines()), "")
            raise RunFailed("the first host can no longer be reached ({error})", "host_lost", error=reason) from error


_EVERYWHERE = "::"
_HOSTS = "hardware.hosts"
_DETECTION_SECONDS = 60
_ANY_TIME_MS = 86_400_000
_OWN = ("RESOURCE_EXHAUSTED", "INVALID_ARGUMENT")
"""Status codes that no other host brings about."""
_GLOO = "Gloo "
_NOT_THERE = ("NOT_FOUND", "DEADLINE_EXCEEDED")
