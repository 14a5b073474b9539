"""Trains a run in the workers of a Ray cluster: its supervisor and this driver are a job there, its processes are with Ray Train.

Each worker starts one of the run's processes and waits for it, so training is that of `backend.training.processes` and not bound to
Ray's threads and signals. Ray finds nodes and devices for them, and tells when a node is gone; the supervisor restarts the run then.
"""

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.contract.errors import InputError, RunFailed, first_line
from backend.contract.messages import message
from backend.contract.redaction import redact
from backend.contract.run.event_summary import landmarks
from backend.contract.run.events import AnyEvent, RequestAnswered, RunFinished, Warned
from backend.contract.run.folder import (
    ENDS,
    RECORD_BYTES,
    DeviceRequest,
    RunFolder,
    exit_code,
)
from backend.contract.safe_files import read_unlinked
from backend.contract.safe_text import parse_json
from backend.contract.spec import HardwareSection, RunSpec
from backend.engines.hosts import OPEN
from backend.launchers.local import Local, explain_failed_start
from backend.remote import ray_jobs
from backend.remote.ray_worker import MISSING, WORKERS

if TYPE_CHECKING:
    from backend.training.processes import Death

STORAGE = "ray"
"""The folder in the run's, in which Ray Train makes sure that all nodes share it; it is removed at the end."""
POLL_SECONDS = 0.2
NOTICE_SECONDS = 2.0
"""How often to look whether a node is about to leave; clouds tell half a minute before, or more."""
_ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds our packages."""


class Ray:
    """Runs of a Ray cluster, seen from the job that the cluster runs for each."""

    title = "Ray"
    description = "The workers of a Ray cluster train the run; this process is its driver."

    def start(
        self, folder: RunFolder, hardware: HardwareSection, *, queue: DeviceRequest | None = None
    ) -> "subprocess.Popen[bytes]":
        """See `Launcher.start`. The cluster has its own queue."""
        return Local().start(folder, hardware)

    def run(self, folder: RunFolder) -> int:
        """See `Launcher.run`."""
        try:
            import ray  # noqa: F401  # an extra, which only the cluster needs

            from backend.training import loop, processes  # load the data room and the framework
        except ImportError:
            explain_failed_start(folder)
            return 1
        from backend.preflight.resolve import read_run

        try:
            spec = read_run(folder)
        except (InputError, OSError):
            return loop.run(folder)  # it says what is wrong
        started = time.time()
        try:
            found = _train(folder, spec)
        except RunFailed as error:
            _write(folder, _failure(folder, error))
            return 1
        return found if isinstance(found, int) else processes.explain(folder, *found, started)

    def end_now(self, folder: RunFolder) -> None:
        """See `Launcher.end_now`."""
        Local().end_now(folder)


# The driver


def _train(folder: RunFolder, spec: RunSpec) -> "int | tuple[int, Death]":
    """Train in workers. Returns the run's exit code, or the rank and the death of a process. Raises RunFailed."""
    from ray.exceptions import RayError
    from ray.train import TrainingFailedError, WorkerGroupError
    from ray.train.v2.api.exceptions import PreemptionError

    from backend.hardware.devices import count_hosts, count_processes
    from backend.training.processes import Death

    count = max(count_processes(spec.hardware), count_hosts(spec.hardware))
    with _cluster():
        resources = _resources(folder, spec, count)
        _warn_of_wait(folder, resources, count)
        leaving = set[str]()
        for watch, *more in ((_end_while_waiting,), (_save_before_nodes_leave, leaving)):
            threading.Thread(target=watch, args=(folder, *more), daemon=True).start()
        try:
            return int(_trainer(folder, spec, count, resources).fit().return_value)
        except WorkerGroupError as error:
            return _find_death(error.worker_failures, had_notice=bool(leaving))
        except PreemptionError as error:
            rank = next(iter(error.preemption_info.preempted_ranks), 0)
            return rank, Death(-signal.SIGKILL, "preemption", is_elsewhere=True)
        except (TrainingFailedError, RayError) as error:
            raise RunFailed(
                "Ray could not train the run ({error})", "ray", error=redact(first_line(error)),
                hint=message("See the log for details, and the dashboard of the cluster."),
            ) from error  # fmt: skip
        finally:
            shutil.rmtree(folder.path / STORAGE, ignore_errors=True)


@contextmanager
def _cluster() -> Iterator[None]:
    """A connection to the cluster whose job this process is. Raises RunFailed."""
    import ray
    from ray.exceptions import RayError

    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    address = os.environ.get("RAY_ADDRESS") or "auto"
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.WARNING)
    except (RayError, RuntimeError, ValueError, OSError) as error:  # ConnectionError, and those of its token
        raise RunFailed(
            "the run could not join the Ray cluster ({error})", "ray", error=redact(first_line(error)),
            hint=message("Start it as a job: burnish train SPEC --on MACHINE."),
        ) from error  # fmt: skip
    finally:
        for number, handler in handlers.items():  # Ray's own would end the run without a checkpoint
            signal.signal(number, handler)
    try:
        yield
    finally:
        ray.shutdown()


def _resources(folder: RunFolder, spec: RunSpec, count: int) -> dict[str, float]:
    """What each worker gets: the machine's CPUs, and a GPU if the run computes on GPUs."""
    import ray

    cpus = 1
    with suppress(OSError, InputError):  # only a number is read there: the folder may be a stranger's
        cpus = ray_jobs.read_description(read_unlinked(folder.path / ray_jobs.DESCRIPTION, RECORD_BYTES)).cpus
    kind = spec.hardware.device
    has_gpus = kind == "auto" and ray.cluster_resources().get("GPU", 0) >= count
    return {"CPU": float(cpus), **({"GPU": 1.0} if kind == "cuda" or has_gpus else {})}


def _warn_of_wait(folder: RunFolder, resources: Mapping[str, float], count: int) -> None:
    import ray

    there = ray.cluster_resources()
    for kind, number in resources.items():
        if there.get(kind, 0) < number * count:
            sentence = message(
                "the Ray cluster has {there:g} {kind}, but the run needs {needed:g}; it waits for more nodes",
                there=there.get(kind, 0),
                kind=kind,
                needed=number * count,
            )
            _write(folder, Warned(time=time.time(), code="ray_waits", message=sentence))


def _trainer(folder: RunFolder, spec: RunSpec, count: int, resources: Mapping[str, float]) -> Any:
    """The trainer of Ray Train that starts a process of the run in each of its workers, or with JAX a host."""
    from ray.train import ScalingConfig
    from ray.train.backend import Backend, BackendConfig
    from ray.train.v2.api.config import FailureConfig, RunConfig
    from ray.train.v2.api.data_parallel_trainer import (
        DataParallelTrainer,
    )  # TorchTrainer would load torch in each worker

    from backend.hardware.devices import count_hosts

    are_hosts = count_hosts(spec.hardware) > 1

    class Together(Backend):
        share_cuda_visible_devices = (
            not are_hosts
        )  # as without Ray: a process sees all devices of its node, a host its own

    class TogetherConfig(BackendConfig):
        @property
        def backend_cls(self) -> type[Backend]:
            return Together

    record = folder.process_record()
    work = {
        "root": str(_ROOT),
        "run": str(folder.path),
        "attempt": record.attempt if record else 0,
        "are_hosts": are_hosts,
        "is_open": os.environ.get(OPEN) == "1",
        "environment": {"OMP_NUM_THREADS": f"{resources['CPU']:.0f}", **spec.hardware.environment},
    }
    return DataParallelTrainer(
        _worker_function(),
        train_loop_config=work,
        backend_config=TogetherConfig(),
        scaling_config=ScalingConfig(
            num_workers=count, use_gpu="GPU" in resources, resources_per_worker=dict(resources)
        ),
        run_config=RunConfig(  # pyright: ignore[reportArgumentType]  # Ray declares the older class of that name
            name=STORAGE,
            storage_path=str(folder.path),
            failure_config=FailureConfig(max_preemption_failures=0),  # the supervisor restarts the run
        ),
    )


def _worker_function() -> Callable[[dict[str, Any]], int]:
    """What each worker calls. A function inside one is sent as code: the worker finds our packages only with its help."""

    def work(config: dict[str, Any]) -> int:
        import sys

        sys.path.insert(0, config["root"])  # the same on every node: what they share, or an environment of that name
        from backend.remote.ray_worker import take_part

        return take_part(config)

    return work


def _find_death(failures: Mapping[int, Exception], *, had_notice: bool = False) -> "tuple[int, Death]":
    """The process that died first, as far as Ray knows, and how. The others end with an error of their own, because it is gone."""
    from backend.training.processes import Death

    causes = {rank: getattr(error, "health_check_failure", error) for rank, error in failures.items()}
    rank = min(causes, key=lambda rank: _order(causes[rank]), default=0)
    error = causes.get(rank)
    if isinstance(error, ChildProcessError):
        returncode, killed_by = error.args
        return rank, Death(int(returncode), str(killed_by), is_elsewhere=True)
    if _is_of_ray(error):
        how = "node"
        if type(error).__name__ == "OutOfMemoryError":
            how = "memory"
        elif had_notice or getattr(error, "preempted", False):
            how = "preemption"
        return rank, Death(-signal.SIGKILL, how, is_elsewhere=True)
    if isinstance(error, ModuleNotFoundError):
        return rank, Death(1, sentence=message("Burnish is not installed on its node in {folder}", folder=_ROOT))
    sentence = error.args[1] if isinstance(error, OSError) and error.args[:1] == (MISSING,) else str(error)
    return rank, Death(1, sentence=redact(str(sentence)))


def _order(error: Exception) -> int:
    if type(error).__name__ == "OutOfMemoryError" or getattr(error, "preempted", False):
        return 0
    if isinstance(error, ChildProcessError):
        return 1 if int(error.args[0]) < 0 else 3
    return 2 if _is_of_ray(error) else 4


def _is_of_ray(error: Exception | None) -> bool:
    return type(error).__module__.partition(".")[0] == "ray"


def _end_while_waiting(folder: RunFolder) -> None:
    """End the run on a request as long as it has no worker that could."""
    record = folder.process_record()
    while not _has_workers(folder, record.attempt if record else 0):
        request = folder.open_request()
        if request in ENDS:
            step = _last_step(folder)
            folder.clear_request(request)
            _write(folder, RequestAnswered(time=time.time(), request=request, step=step))
            _write(folder, RunFinished(time=time.time(), state=ENDS[request], step=step))
            os._exit(exit_code(ENDS[request]))
        time.sleep(POLL_SECONDS)


def _save_before_nodes_leave(folder: RunFolder, known: set[str]) -> None:
    """Ask for a checkpoint when the cluster is about to take nodes away, such as spot instances; `known` are those so far.

    Ray Train has a notice of its own, but that is a barrier, which every worker must reach as often.
    """
    from ray._private.state import state  # as Ray Train does
    from ray.exceptions import RayError

    record, problem = folder.process_record(), ""
    while True:
        try:
            leaving = set(state.get_draining_nodes())
            if leaving - known and _has_workers(folder, record.attempt if record else 0):
                folder.request("checkpoint")
                known |= leaving
        except (RayError, RuntimeError, ValueError, OSError) as error:  # the head may only be restarting
            if problem != (problem := redact(first_line(error))):
                sys.stderr.write(f"nodes that are about to leave: {problem}\n")
        time.sleep(NOTICE_SECONDS)


def _has_workers(folder: RunFolder, attempt: int) -> bool:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return parse_json(read_unlinked(folder.path / WORKERS, RECORD_BYTES))["attempt"] >= attempt
    return not folder.exists()


def _write(folder: RunFolder, event: AnyEvent) -> None:
    from backend.training.event_log import EventLog

    log = EventLog(folder.events)
    log.write(event)
    log.close()


def _failure(folder: RunFolder, error: RunFailed) -> RunFinished:
    from backend.training.failures.failure import FailureContext, failure_event

    return failure_event(error, _last_step(folder), FailureContext(folder))


def _last_step(folder: RunFolder) -> int:
    from backend.training.processes import last_step

    return last_step(landmarks(folder.events))


LAUNCHER = Ray
