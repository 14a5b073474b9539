"""Runs a search: proposes trials, trains each as a run of its own, pauses and promotes them, confirms the best.

It is the engine process of the search's folder, started and watched by the supervisor like that of a run. What it knows it
reads from the folder: the proposals in events.jsonl, everything else in the trials' folders. So a killed search
continues as if it had not been.
"""

import subprocess
import time
import traceback
from collections import Counter
from contextlib import closing
from dataclasses import replace

from backend.contract.errors import InputError, RunFailed, describe_system_error, first_line
from backend.contract.machines import find_machine
from backend.contract.messages import message
from backend.contract.rpc.search import BASELINE
from backend.contract.run import events
from backend.contract.run.event_summary import landmarks
from backend.contract.run.folder import ENDS, RemoteRun, RunFolder, exit_code
from backend.contract.spec import RunSpec
from backend.contract.versions import CONTRACT_VERSION
from backend.launchers import launcher
from backend.preflight import checks
from backend.preflight.pandas_left_out import leave_pandas_out
from backend.preflight.resolve import read_run
from backend.remote import remote_runs
from backend.remote.connection import NoConnection
from backend.search.plan import Plan, read_plan
from backend.search.space import Observation, Proposal, propose
from backend.search.trials import SEED, Action, Trial, next_action, rank, read_trial, read_trials, remove_weights, rungs
from backend.training.event_log import EventLog
from backend.training.requests import Requests

POLL_SECONDS = 0.2
MAX_STARTS = 3
"""How often in a row a trial is started that ends without having come anywhere."""
RECONNECT_SECONDS = 30.0
"""Before the next attempt to reach the machine of the trials."""
HOPELESS = 3
"""If the first trials all fail, and are as many, so would the others."""


def run(folder: RunFolder) -> int:
    """Run or continue the search in this folder; returns the exit code of its process."""
    log = EventLog(folder.events)
    with closing(log):
        try:
            ended = Search(folder, read_plan(folder), log).run()
        except Exception as error:
            traceback.print_exc()  # into process.log, for debugging
            words = str(error) if isinstance(error, InputError | RunFailed) else describe_system_error(error)
            ended = events.RunFinished(time=time.time(), state="failed", step=0, message=words or first_line(error))
        log.write(ended)
    return exit_code(ended.state)


class Search:
    """One attempt at a search."""

    def __init__(self, folder: RunFolder, plan: Plan, log: EventLog) -> None:
        self._folder, self._plan, self._log = folder, plan, log
        self._requests = Requests(folder)
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._held: set[int] = set()
        """Trials that this attempt leaves alone: a person has paused them, or they cannot be started."""
        self._starts: Counter[int] = Counter()
        self._claimed: tuple[str, ...] = ()
        self._is_exhausted = False
        self._waits_until, self._lost = 0.0, ""
        """When the machine of the trials is tried again, and why there was no connection to it."""
        self._trials = {trial.number: trial for trial in read_trials(folder, plan.metric)}
        self._failed_before = {trial.number for trial in self._trials.values() if trial.state == "failed"}
        """In earlier attempts."""

    def run(self) -> events.RunFinished:
        """Search until nothing is left to do or a request ends it; returns the last event."""
        if self._plan.section.machine is not None:
            find_machine(self._plan.section.machine)  # or no trial could start
            self._folder.claim_devices(())  # it needs none of this computer's
        self._write_first_events()
        while True:
            request = self._requests.pending()
            if request in ENDS:
                return self._end_early(request)
            if request is not None:
                self._pass_on_request(request)
            self._update_ended()
            if (hopeless := self._find_common_failure()) is not None:
                return self._end("failed", hopeless)
            while self._can_start() and (action := self._next_action()) is not None:
                self._start_trial(action)
            if not self._find_busy() and self._next_action() is None:
                self._remove_losers(is_over=True)
                return self._end("finished")
            time.sleep(POLL_SECONDS)

    def _can_start(self) -> bool:
        return len(self._running) < self._plan.section.parallel and time.monotonic() >= self._waits_until

    # Events

    def _write_first_events(self) -> None:
        earlier = landmarks(self._folder.events)
        record = self._folder.process_record()
        attempt = record.attempt if record else 1
        if any(isinstance(event, events.RunStarted) for event in earlier):
            self._log.write(events.RunResumed(time=time.time(), attempt=attempt, from_step=self._count_ended()))
        else:
            values = self._plan.values
            self._log.write(
                events.RunStarted(
                    time=time.time(), name=str(values.get("name", "run")), task=str(values["task"]["type"]),
                    model=str(values["model"]["name_or_path"]), attempt=attempt, contract_version=CONTRACT_VERSION,
                )
            )  # fmt: skip
        recorded = {(event.trial, event.state, event.step) for event in earlier if isinstance(event, events.TrialEnded)}
        for trial in self._trials.values():
            if trial.state not in ("proposed", "running") and (trial.number, trial.state, trial.step) not in recorded:
                self._record_end(trial)
        self._log.write(
            events.StageStarted(time=time.time(), stage="searching", total=self._plan.trials, unit="trials")
        )
        self._record_progress()

    def _record_end(self, trial: Trial) -> None:
        self._log.write(
            events.TrialEnded(
                time=time.time(), trial=trial.number, state=trial.state, step=trial.step, value=trial.value,
                message=trial.message,
            )
        )  # fmt: skip

    def _record_progress(self) -> None:
        done, total = self._count_ended(), self._plan.trials
        self._log.write(events.StageProgress(time=time.time(), stage="searching", done=done, total=total))

    def _own(self) -> list[Trial]:
        return [trial for trial in self._trials.values() if not trial.confirms]

    def _count_ended(self) -> int:
        return sum(trial.state in ("finished", "stopped", "failed") or trial.is_at_rung for trial in self._own())

    # Trials

    def _next_action(self) -> Action | None:
        left = 0 if self._is_exhausted else self._plan.trials - len(self._own())
        held = {*self._held, *(number for number, starts in self._starts.items() if starts >= MAX_STARTS)}
        return next_action(
            self._plan.section, list(self._trials.values()), left, greater=self._plan.greater, seed=self._plan.seed,
            busy=self._find_busy(), held=held,
        )  # fmt: skip

    def _start_trial(self, action: Action) -> None:
        number = action.trial or self._propose(action)
        if number is None:
            self._is_exhausted = True
            return
        try:
            self._launch(self._trials[number], action.pause)
            self._waits_until, self._lost = 0.0, ""
        except NoConnection as error:
            self._wait_for_connection(str(error))
        except (InputError, RunFailed) as error:
            refused = replace(self._trials[number], state="failed", message=str(error))
            self._trials[number] = refused
            self._held.add(number)
            self._record_end(refused)

    def _wait_for_connection(self, reason: str) -> None:
        """Try again later: the trial has not failed. The reason is said once."""
        self._waits_until = time.monotonic() + RECONNECT_SECONDS
        if reason != self._lost:
            self._lost = reason
            self._log.write(events.Warned(time=time.time(), code="connection_lost", message=reason))

    def _propose(self, action: Action) -> int | None:
        """Choose a trial's settings and put them on record; returns its number."""
        number = max(self._trials, default=0) + 1
        if action.confirms == BASELINE:
            found, name = Proposal({SEED: action.seed}, ""), f"trials/own-settings-seed-{action.seed}"
        elif action.confirms:
            found = Proposal({**self._trials[action.confirms].settings, SEED: action.seed}, "")
            name = f"trials/trial-{action.confirms:03d}-seed-{action.seed}"
        else:
            plan, observations = self._plan, [_observe(trial, self._plan) for trial in self._own()]
            made = propose(plan.section, plan.parameters, len(observations) + 1, observations, greater=plan.greater)
            if made is None:
                return None
            found, name = made, f"trials/trial-{number:03d}"
        event = events.TrialProposed(
            time=time.time(), trial=number, run=name, settings=found.settings, confirms=action.confirms,
            source=found.source, results=found.results,
        )  # fmt: skip
        self._log.write(event)
        self._trials[number] = read_trial(self._folder, event, self._plan.metric)
        return number

    def _launch(self, trial: Trial, pause: float | None) -> None:
        folder, is_queued = trial.folder, self._plan.section.parallel > 1
        if folder.remote_run() is not None or (self._plan.section.machine is not None and not folder.exists()):
            self._start_there(trial, pause, is_queued=is_queued)
            is_queued = False  # its copy here needs no device
        elif not folder.exists():
            self._write_run(trial)
        spec = read_run(folder, to_write=True)
        self._starts[trial.number] += 1
        self._running[trial.number] = launcher.start(folder, spec, pause=pause, queue=is_queued)
        self._trials[trial.number] = replace(trial, state="running", pause=pause)

    def _start_there(self, trial: Trial, pause: float | None, *, is_queued: bool) -> None:
        """Start or continue the run of a trial on the search's machine; its folder here becomes a copy. Raises InputError."""
        folder, remote = trial.folder, trial.folder.remote_run()
        options = [remote_runs.QUEUE] if is_queued else []
        options += ["--pause-after", repr(pause)] if pause is not None else []
        if remote is not None:
            remote_runs.resume(folder, remote, options)
            return
        assert self._plan.section.machine is not None

        def make_copy(text: str, remote: RemoteRun) -> RunFolder:
            folder.path.mkdir(parents=True, exist_ok=True)
            remote_runs.write_copy(folder, text, remote)
            return folder

        remote_runs.start(self._spec_of(trial), self._plan.section.machine, options, make_copy)

    def _spec_of(self, trial: Trial) -> RunSpec:
        """Raises InputError."""
        spec = self._plan.spec(trial.settings)
        return spec.model_copy(update={"name": f"{spec.name}-{trial.folder.name}"[:100]})

    def _write_run(self, trial: Trial) -> None:
        """Write the run of a trial, checked like any other. Raises InputError."""
        spec = self._spec_of(trial)
        leave_pandas_out(spec.data.source)
        checked = checks.check(spec)
        trial.folder.path.mkdir(parents=True, exist_ok=True)
        checks.write_spec(trial.folder, checked)

    def _update_ended(self) -> None:
        """Read how the trials ended whose processes are gone."""
        for number in [number for number in self._find_busy() if self._has_ended(number)]:
            self._running.pop(number, None)
            before = self._trials[number]
            after = next(one for one in read_trials(self._folder, self._plan.metric) if one.number == number)
            self._trials[number] = after
            if after.step > before.step:
                self._starts[number] = 0
            if after.state == "paused" and not after.is_at_rung:
                self._held.add(number)
            self._record_end(after)
            self._record_progress()
            self._remove_losers()

        self._claim_devices()

    def _remove_losers(self, *, is_over: bool = False) -> None:
        """Remove the weights of trials that are no longer among the best, if only so many are to be kept."""
        keep = self._plan.section.keep
        if keep is None:
            return
        kept = {trial.number for trial in rank(self._own(), greater=self._plan.greater)[:keep]}
        for trial in self._trials.values():
            # A person may still resume what was stopped or paused.
            is_lost = trial.state == "finished" or (is_over and trial.is_at_rung)
            if is_lost and not {trial.number, trial.confirms} & kept:
                remove_weights(trial.folder)

    def _find_busy(self) -> list[int]:
        """Trials that train; perhaps because a person has resumed one."""
        return [trial.number for trial in self._trials.values() if trial.state == "running"]

    def _has_ended(self, number: int) -> bool:
        supervisor = self._running.get(number)
        return supervisor.poll() is not None if supervisor is not None else not self._trials[number].folder.is_carried()

    def _claim_devices(self) -> None:
        """Tell the queue of the folder that the search is in which devices its trials use."""
        claims = [self._trials[number].folder.claimed_devices() for number in self._running]
        found = tuple(sorted({name for claim in claims for name in claim or ()}))
        if found and found != self._claimed:
            self._claimed = found
            self._folder.claim_devices(found)

    def _find_common_failure(self) -> str | None:
        """Why the search cannot succeed, if its first trials have all failed."""
        own = self._own()
        if len(own) < self._plan.trials:  # what made earlier ones fail may be gone
            own = [trial for trial in own if trial.number not in self._failed_before]
        failed = [trial for trial in own if trial.state == "failed"]
        if len(failed) < min(HOPELESS, self._plan.trials) or len(failed) < len(own) or self._running:
            return None
        return message("the first {count} trials failed: {reason}", count=len(failed), reason=failed[-1].message or message("no reason given"))  # fmt: skip

    # Ends

    def _pass_on_request(self, request: str) -> None:
        """Let the trials that train save a checkpoint."""
        for number in self._running:
            self._trials[number].folder.request(request)
        self._log.write(events.RequestAnswered(time=time.time(), request=request, step=self._count_ended()))
        self._requests.close(request)

    def _end_early(self, request: str) -> events.RunFinished:
        """Pause the trials that train, so that each continues from a checkpoint."""
        self._log.write(events.RequestAnswered(time=time.time(), request=request, step=self._count_ended()))
        self._requests.close(request)
        for number in self._running:
            self._trials[number].folder.request("interrupt" if request == "interrupt" else "pause")
        while self._running:
            self._update_ended()
            time.sleep(POLL_SECONDS)
        return self._end(ENDS[request])

    def _end(self, state: str, words: str = "") -> events.RunFinished:
        best = rank(self._own(), greater=self._plan.greater)
        metrics = {self._plan.metric: best[0].value, **best[0].metrics} if best else {}  # the one that decides is first
        return events.RunFinished(
            time=time.time(), state=state, step=self._count_ended(), message=words, metrics=metrics,
            best_step=None,
        )  # fmt: skip


def _observe(trial: Trial, plan: Plan) -> Observation:
    """A trial as its sampler may know it."""
    state = {"finished": "finished", "stopped": "finished", "failed": "failed", "paused": "paused"}.get(
        trial.state, "running"
    )
    levels = {
        round(1000 * level): value for level in rungs(plan.section.halving) if (value := trial.at(level)) is not None
    }
    return Observation(trial.settings, state, trial.value, levels)
