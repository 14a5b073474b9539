"""Owns what an attempt owes those before it: their words, the event that goes on from them, the same rows, the best so far."""

import time

from backend.contract.errors import RunFailed
from backend.contract.events import AnyEvent, DataLoaded, RunResumed, RunStarted
from backend.contract.packages import PACKAGES_OF_A_RUN, installed_versions
from backend.contract.run_folder import RunFolder
from backend.contract.spec import RunSpec
from backend.contract.version import CONTRACT_VERSION
from backend.hardware import devices
from backend.run.event_log import EventLog, read_events
from backend.run.hosts import Hosts
from backend.run.material import Material
from backend.run.stages import Stages
from backend.run.stopping import Best, evaluations


def read(folder: RunFolder, hosts: Hosts) -> list[AnyEvent]:
    """What the attempts before this one have said; the first host may be writing anew by the time another reads."""
    if hosts.count == 1:
        return read_events(folder.events)
    size = hosts.agree(lambda: folder.events.stat().st_size if folder.events.exists() else 0)
    return read_events(folder.events, size)


def begin(
    folder: RunFolder, spec: RunSpec, log: EventLog, stages: Stages, earlier: list[AnyEvent], from_step: int,
    choice: devices.Choice,
) -> None:  # fmt: skip
    """The first event of the attempt; a resume also says where library versions differ from the first attempt's."""
    record = folder.process_record()
    attempt, versions = record.attempt if record else 1, installed_versions(PACKAGES_OF_A_RUN)
    first = next((event for event in earlier if isinstance(event, RunStarted)), None)
    if first is None:
        log.write(
            RunStarted(
                time=time.time(), name=spec.name, task=spec.task["type"], model=spec.model.name_or_path, attempt=attempt,
                contract_version=CONTRACT_VERSION, engine=spec.hardware.engine, device=choice.words, precision=choice.precision,
                versions=versions,
            )
        )  # fmt: skip
        return
    log.write(
        RunResumed(
            time=time.time(),
            attempt=attempt,
            from_step=from_step,
            versions=versions,
            device=choice.words,
            precision=choice.precision,
            engine=spec.hardware.engine,
        )
    )
    changed = [
        f"{name} {first.versions[name]} → {version}"
        for name, version in versions.items()
        if first.versions.get(name, version) != version
    ]
    if changed:
        stages.warn(
            "other_versions",
            f"the run began with other library versions ({', '.join(changed)}); it goes on, but later steps need not "
            "equal those of an uninterrupted run to the bit",
        )


def refuse_other_rows(material: Material, earlier: list[AnyEvent]) -> None:
    """A run that went on with other rows would be a mixture that no spec describes."""
    first = {event.split: event for event in reversed(earlier) if isinstance(event, DataLoaded)}
    for split, rows in material.rows.items():
        if split in first and first[split].fingerprint not in ("", rows.fingerprint):
            raise RunFailed(
                f"the {split} data ({', '.join(rows.files[:3])}) is not what it was when the run began",
                code="data_changed",
                hint="Put the old files back and resume, or start a new run on the new ones.",
            )


def best_so_far(spec: RunSpec, earlier: list[AnyEvent], from_step: int) -> Best:
    """Early stopping and the best checkpoint are facts of evaluations, so a resumed run decides the same."""
    best = Best(spec)
    for one in evaluations(earlier):
        if from_step > 0 and one.step <= from_step:  # from the very beginning everything is measured again
            best.apply(one.metrics, one.step)
    return best
