"""The processes that train one model: which one this is, which rows are its own, and what they add up or pass on.

Where each holds the whole model, gradients are summed by plain all-reduces, not by DistributedDataParallel. That averages over processes, while here a
sum is divided by the targets of all of them, and it expects every process to have rows and to call one `forward`.
"""

import errno
import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import psutil
import torch
import torch.distributed as dist
from safetensors.numpy import load, save

from backend.contract.errors import RunFailed
from backend.contract.messages import message
from backend.data.batches import process_share
from backend.engines.engine import Batch
from backend.engines.hosts import TCP
from backend.engines.torch.inputs import valid_rows
from backend.engines.torch.memory import translate_out_of_memory

_ANY_TIME = timedelta(days=3650)
"""How long others wait for the next call: reading data or predicting may take hours, and whoever dies ends them all."""
_MEETING_TIME = timedelta(minutes=10)
"""How long the processes may take to start."""
_KILLED_WITHIN_SECONDS = 10.0
"""If a process died, the launcher kills the others so soon."""
_LARGE = 1 << 18
"""Numbers in a gradient that is summed where it is; smaller ones are copied into one."""
_PLACE = re.compile(r"^\[[^\]]*\] *")
"""The line of gloo's source code, before what it says."""
_LOOPBACK = {"linux": "lo", "darwin": "lo0"}


@dataclass(frozen=True)
class Call:
    """A call of the engine that every process makes: plain JSON values, and batches."""

    method: str
    values: dict[str, Any]
    batches: list[Batch]


def _meet_at(host: str, port: int, size: int, *, is_first: bool) -> dist.TCPStore:  # pyright: ignore[reportPrivateImportUsage]
    """The store at that address of the first process, which listens there only; PyTorch itself would listen at all addresses."""
    descriptor = None
    if is_first:
        with socket.socket(_family(host), socket.SOCK_STREAM) as listening:
            listening.bind((host, port))
            descriptor = listening.detach()
    return dist.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        host, port, size, is_master=is_first, timeout=_MEETING_TIME, master_listen_fd=descriptor
    )


def _interface_to(host: str) -> str:
    """The network interface through which a host is reached; empty if that cannot be told."""
    with suppress(OSError), socket.socket(_family(host), socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # sends nothing
        own = probe.getsockname()[0]
        for name, addresses in psutil.net_if_addrs().items():
            if own in (one.address.partition("%")[0] for one in addresses):
                return name
    return ""


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


class ProcessGroup:
    """This process among those that train together; alone it has all rows and nothing to exchange."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size
        self._timeout = _MEETING_TIME
        self._calls: Any = None
        """In which the others wait for the first one's next call."""
        self._numbers: Any = None
        """For values on the processor; the default group until the spec's time-out is known."""
        self._gradients: Any = None

    @staticmethod
    def join(rank: int, size: int, rendezvous: str) -> "ProcessGroup":
        """Meet the other processes: those of this computer through a file, those of a cluster at `tcp://HOST:PORT` of the first.

        With a file, nothing is reachable from other computers; else only the address of each through which it reaches the first.
        """
        if rendezvous.startswith(TCP):
            host, _, port = rendezvous.removeprefix(TCP).rpartition(":")
            store: dist.Store = _meet_at(host.strip("[]"), int(port), size, is_first=rank == 0)  # pyright: ignore[reportPrivateImportUsage]  # fmt: skip
            if interface := _interface_to(host.strip("[]")):
                os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = interface
        else:
            if loopback := _LOOPBACK.get(
                sys.platform
            ):  # whatever a cluster's environment names for groups of many hosts
                os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = loopback
            store = dist.FileStore(rendezvous, size)  # pyright: ignore[reportPrivateImportUsage]
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=_MEETING_TIME)
        group = ProcessGroup(rank, size)
        group._calls = dist.new_group(backend="gloo", timeout=_ANY_TIME)
        return group

    def prepare(self, device: torch.device, timeout_seconds: int) -> None:
        """Connect the devices on which the model is trained; waits for the others at most so long from here on."""
        if self.size == 1:
            return
        self._timeout = timedelta(seconds=timeout_seconds)
        with self._exchange():
            self._numbers = self._gradients = dist.new_group(backend="gloo", timeout=self._timeout)
            if device.type != "cpu":
                backend = dist.get_default_backend_for_device(device)
                self._gradients = dist.new_group(backend=backend, timeout=self._timeout)

    def own_rows(self, batch: Batch) -> Batch:
        """This process's rows of a batch, without filler rows; maybe none."""
        if self.size == 1:
            return valid_rows(batch)
        return _take(batch, self._rows_of(batch, self.rank))

    def own_or_first_row(self, batch: Batch) -> tuple[Batch, bool]:
        """The same, and whether they count: instead of none, the first row of all, so that every process computes."""
        own = self.own_rows(batch)
        if len(own["row_valid"]):
            return own, True
        return _take(batch, np.flatnonzero(batch["row_valid"])[:1]), False

    def sum_step(self, loss: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """Add up the gradients of these weights, and the loss, which is returned.

        As on one process, a weight has a gradient if it was used for any row.
        """
        if self.size == 1:
            return loss
        used = self.any_process([weight.grad is not None for weight in weights])
        loss = loss.reshape(1)
        gradients = [_gradient(weight) for weight, is_used in zip(weights, used, strict=True) if is_used]
        self._sum([loss, *gradients])
        return loss[0]

    def any_process(self, flags: Sequence[bool]) -> list[bool]:
        """Of each flag, whether it is set in any process."""
        found = torch.tensor(flags, dtype=torch.uint8)
        with self._exchange():
            dist.all_reduce(found, dist.ReduceOp.MAX, group=self._numbers)
        return [flag > 0 for flag in found.tolist()]

    def add_up(self, number: torch.Tensor) -> torch.Tensor:
        """The sum of every process's number."""
        with self._exchange():
            dist.all_reduce(number, group=self._group_of(number))
        return number

    def mesh(self, device: torch.device) -> Any:
        """The processes as FSDP takes them; imports torch's distributed tensors (a second)."""
        from torch.distributed.device_mesh import DeviceMesh

        return DeviceMesh.from_group(self._gradients, device.type)

    def share_weights(self, weights: Sequence[torch.Tensor]) -> None:
        """Give every process the first one's weights."""
        if self.size == 1:
            return
        with self._exchange(), torch.no_grad():
            for weight in weights:
                own = weight.detach().contiguous()
                dist.broadcast(own, 0, group=self._group_of(own))
                if own.data_ptr() != weight.data_ptr():
                    weight.copy_(own)

    def collect_rows(self, found: dict[str, np.ndarray], batch: Batch) -> dict[str, np.ndarray]:
        """What every process found for its rows of the batch, in the rows' order; on others than the first, their own."""
        if self.size == 1:
            return found
        names = sorted(found)
        with self._exchange():
            if self.rank:
                for name in names if len(self._rows_of(batch, self.rank)) else []:
                    dist.send(torch.from_numpy(np.ascontiguousarray(found[name])), 0, group=self._numbers)
                return found
            places = [self._rows_of(batch, rank) for rank in range(self.size)]
            order = np.argsort(np.concatenate(places))
            return {name: self._receive_rows(found[name], places)[order] for name in names}

    def collect_lists(self, found: Sequence[np.ndarray], batch: Batch) -> list[np.ndarray]:
        """The same for one list of integers for each row."""
        if self.size == 1:
            return list(found)
        width = torch.tensor(max(map(len, found), default=0))
        with self._exchange():
            dist.all_reduce(width, dist.ReduceOp.MAX, group=self._numbers)
        own = np.zeros((len(found), 1 + int(width)), dtype=np.int64)
        for row, one in zip(own, found, strict=True):
            row[0], row[1 : 1 + len(one)] = len(one), one
        return [row[1 : 1 + row[0]] for row in self.collect_rows({"ids": own}, batch)["ids"]]

    def send(self, method: str, values: dict[str, Any], batches: Sequence[Batch] = ()) -> None:
        """Let every other process make this call too."""
        words = np.frombuffer(json.dumps([method, values, len(batches)]).encode(), dtype=np.uint8)
        arrays = {f"{number}.{name}": array for number, batch in enumerate(batches) for name, array in batch.items()}
        whole = bytearray(save({"call": words, **{name: np.ascontiguousarray(one) for name, one in arrays.items()}}))
        with self._exchange():
            size: Any = dist.broadcast(torch.tensor([len(whole)]), 0, group=self._calls, async_op=True)
            size.wait(self._timeout)  # unlike the others, this process does not wait for one that hangs
            dist.broadcast(torch.frombuffer(whole, dtype=torch.uint8), 0, group=self._numbers)

    def receive(self) -> Call:
        """Wait for the first process's next call."""
        size = torch.zeros(1, dtype=torch.int64)
        with self._exchange():
            dist.broadcast(size, 0, group=self._calls)
            whole = torch.empty(int(size), dtype=torch.uint8)
            dist.broadcast(whole, 0, group=self._numbers)
        arrays = load(whole.numpy().tobytes())
        method, values, count = json.loads(arrays.pop("call").tobytes())
        batches: list[Batch] = [{} for _ in range(count)]
        for key, array in arrays.items():
            number, _, name = key.partition(".")
            batches[int(number)][name] = array
        return Call(method, values, batches)

    @contextmanager
    def share_error(self) -> Iterator[None]:
        """Wait for all processes, and if the system refused something to one of them, raise that OSError in all."""
        problem: OSError | None = None
        try:
            yield
        except OSError as error:
            problem = error
        number = torch.tensor([0 if problem is None else problem.errno or errno.EIO])
        with self._exchange():
            dist.all_reduce(number, dist.ReduceOp.MAX, group=self._numbers)
        if problem is not None:
            raise problem
        if int(number):
            raise OSError(int(number), os.strerror(int(number)))

    @contextmanager
    def computing_together(self) -> Iterator[None]:
        """Raises RunFailed if the others do not answer while a sharded model computes: FSDP talks to them itself."""
        try:
            yield
        except RuntimeError as error:
            if isinstance(error, RunFailed) or not (isinstance(error, dist.DistError) or "gloo/" in str(error)):
                raise
            with self._exchange():
                raise

    def leave(self) -> None:
        """Close all connections."""
        if self.size > 1:
            dist.destroy_process_group()

    def _group_of(self, tensor: torch.Tensor) -> Any:
        return self._numbers if tensor.device.type == "cpu" else self._gradients

    def _rows_of(self, batch: Batch, rank: int) -> np.ndarray:
        return process_share(np.flatnonzero(batch["row_valid"]), rank, self.size)

    def _receive_rows(self, own: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
        parts = [own]
        for rank in range(1, self.size):
            part = np.empty((len(places[rank]), *own.shape[1:]), own.dtype)
            if len(part):
                dist.recv(torch.from_numpy(part), rank, group=self._numbers)
            parts.append(part)
        return np.concatenate(parts)

    def _sum(self, tensors: Sequence[torch.Tensor]) -> None:
        small: dict[torch.dtype, list[torch.Tensor]] = {}
        summed = []
        for each in tensors:
            if each.numel() >= _LARGE and each.is_contiguous():
                summed.append(each)
            else:
                small.setdefault(each.dtype, []).append(each)
        joined = [torch.cat([each.reshape(-1) for each in some]) for some in small.values()]
        with self._exchange():
            works: list[Any] = [
                dist.all_reduce(each, group=self._gradients, async_op=True) for each in (*joined, *summed)
            ]
            for work in works:
                work.wait()
        for flat, some in zip(joined, small.values(), strict=True):
            for each, part in zip(some, flat.split([each.numel() for each in some]), strict=True):
                each.copy_(part.view_as(each))

    @contextmanager
    def _exchange(self) -> Iterator[None]:
        """Raises RunFailed if the others do not answer; if one of them died, this process is killed before that.

        What an accelerator itself says, in a kernel before this or of its memory, is passed on.
        """
        try:
            with translate_out_of_memory():
                yield
        except (RunFailed, torch.AcceleratorError):
            raise
        except RuntimeError as error:
            time.sleep(_KILLED_WITHIN_SECONDS)
            raise RunFailed(
                "the process of rank {rank} could not exchange numbers with the others ({error})",
                "collective_failed",
                hint=message(
                    "If a step takes longer than {seconds:g} seconds, raise hardware.collective_timeout; else see the "
                    "logs of all processes.",
                    seconds=self._timeout.total_seconds(),
                ),
                rank=self.rank,
                error=_PLACE.sub("", next(iter(str(error).splitlines()), "")),
            ) from error


def is_sharded(model: Any) -> bool:
    """Whether the processes hold parts of this model (`sharded_model.py`), which they use together or not at all."""
    return bool(getattr(model, "_is_fsdp_managed_module", False))


def _take(batch: Batch, rows: np.ndarray) -> Batch:
    return {name: array[rows] for name, array in batch.items()}


def _gradient(weight: torch.Tensor) -> torch.Tensor:
    if weight.grad is None:
        weight.grad = torch.zeros_like(weight)
    return weight.grad
